//! The client library from the outside, against scripted servers, in virtual time.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod asking;
mod calls;
#[path = "../common/contract.rs"]
mod contract;
mod faults;
mod hostile;
mod lists;
mod local_contract;
mod logs;
mod peer;
mod reconnect;
mod stdio;
mod stop;
mod telemetry;
