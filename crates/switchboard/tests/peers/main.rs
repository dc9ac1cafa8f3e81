//! Third-party servers and clients of every revision, with the gateway in between: each client goes on a tour
//! of each server, no matter which revisions they speak.
//!
//! All servers have the same tools, so that one tour fits all: `scripts/` and `tests/peers` contain the peers
//! in TypeScript and Python, `tests/peers-rust` those in Rust. The table in `left_out` lists what a library
//! does not support. `./test` installs what they need.
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
mod device;
mod left_out;
mod login;
mod renewals;
mod servers;
mod strict;
mod tours;
