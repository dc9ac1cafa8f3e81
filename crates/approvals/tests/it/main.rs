//! The broker in virtual time, the rules against a naive evaluator, and the forms of questions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod addresses;
mod disk;
mod evasions;
mod expansions;
mod forms;
mod hosts;
mod interleavings;
mod naive;
mod rules;
mod shells;
mod spellings;
mod timelines;
mod world;
mod wrapped;
mod writing;

use switchboard_wire::Raw;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}: {text}"))
}
