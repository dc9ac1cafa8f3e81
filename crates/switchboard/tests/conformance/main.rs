//! The server side of the official conformance suite: the fixture server alone, and the same server behind
//! the gateway, where clients and servers may be of different eras.
//!
//! A gateway is transparent if it adds no failure to those of its server alone. [`bounds`] lists the checks
//! that cannot pass between the eras, with the reasons. [`sign_in`] is the client side: the gateway signs in to the
//! servers of the suite.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and says what it leaves out"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "JSON is written down where it is handed over"
)]
#![cfg(target_os = "linux")]

mod alone;
mod behind;
mod bounds;
mod fixture;
mod sdks;
mod sign_in;
mod skills;
mod suite;
