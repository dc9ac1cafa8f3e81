//! Clients that nobody here wrote, through the gateway as they would use it: over HTTP with the token
//! and as the program on their pipe, with the reference server `server-everything` or the built-in memory behind it.
//!
//! The clients are small programs on the SDKs (`scripts/`) that say what happens to them, one JSON
//! object per line, and the MCP Inspector's command line. `./test` installs what they are made of.
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
