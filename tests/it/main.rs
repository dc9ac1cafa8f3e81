//! End-to-end tests of the client library, against third-party servers.
//!
//! `./test` installs the servers from npm and `PyPI`; with `SWITCHBOARD_TEST_QUICK=1` the tests that need
//! them are skipped with a message and pass. Each test starts its own servers, on separate ports and in
//! separate directories.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]

mod conformance;
mod everything;
mod python;
mod reference;
mod rust_sdk;
mod support;
