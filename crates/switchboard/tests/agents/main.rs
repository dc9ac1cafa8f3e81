//! Third-party agents, driven by a model that follows a script: each is connected with `switchboard connect`,
//! in a home of its own, and uses servers through the gateway.
//!
//! `./test agents` installs the agents and runs these tests. Without the agents, each test reports that it is
//! skipped.
#![allow(
    clippy::expect_used,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]
#![cfg(target_os = "linux")]

mod agent;
mod dialect;
mod model;
mod tours;
