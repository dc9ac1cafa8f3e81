//! The embedders from outside: against the published model where it is there, and against files that lie.
#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod folder;
mod prompts;
mod published;
mod table;
mod wordpiece;
