//! The public interface of the embedders: compared with the published model if it is present, and fed
//! with invalid files.
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
