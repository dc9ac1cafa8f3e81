//! End-to-end tests of the client library, against servers that nobody here wrote.
//!
//! The servers from npm and `PyPI` are installed by `./test`; with `SWITCHBOARD_TEST_QUICK=1` the tests
//! that need them say so and pass. Each test starts its own servers, on ports and in directories of
//! their own.
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
