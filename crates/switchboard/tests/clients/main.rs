//! Third-party clients, through the gateway as they would use it: over HTTP with the token, and with the
//! program on a pipe; behind it is the reference server `server-everything` or the built-in memory.
//!
//! The clients are small programs on the SDKs (`scripts/`) that report each step as one JSON object per line,
//! and the command line of the MCP Inspector. `./test` installs what they need.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]
#![cfg(target_os = "linux")]

mod changes;
mod inspector;
mod memory;
mod sharing;
mod support;
mod tours;
