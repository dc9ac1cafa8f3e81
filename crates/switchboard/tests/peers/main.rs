//! Servers and clients that nobody here wrote, of every revision, with the gateway in between: each client
//! goes on a tour of each server, whatever the one and the other speak.
//!
//! The servers all have the same tools, so that there is one tour for all: `scripts/` and
//! `tests/peers` have those in TypeScript and Python, `tests/peers-rust` those in Rust. What a library cannot
//! do is in one table, in `left_out`. `./test` installs what they are made of.
#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]
#![cfg(target_os = "linux")]

mod apps;
mod clients;
mod left_out;
mod servers;
mod tours;
