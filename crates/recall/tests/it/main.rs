//! The library at its public surface.

mod changes;
mod examples;
mod graph;
mod hostile;
mod world;
