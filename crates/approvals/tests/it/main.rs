//! The broker in virtual time, rules against a naive evaluator, and the forms of questions.

mod forms;
mod interleavings;
mod naive;
mod redaction;
mod rules;
mod timelines;
mod world;
mod writing;
use switchboard_wire::Raw;
