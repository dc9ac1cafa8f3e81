//! Process trees from the outside: real processes and signals, and no process left at the end.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail"
)]
#![cfg(target_os = "linux")]

mod containers;
mod launching;
mod lineage;
mod matrix;
mod support;
mod sweeping;
