//! The broker in virtual time, against the rules that every request keeps.

mod interleavings;
mod timelines;
mod world;
