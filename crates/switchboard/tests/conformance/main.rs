//! The server side of the official conformance suite: the fixture server alone, and the same server
//! behind the gateway, where clients and servers may be of different eras.
//!
//! A gateway that adds no failure to what its server passes alone is transparent. What cannot cross
//! from one era to the other is named in [`bounds`], with the reason.
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
mod skills;
mod suite;
