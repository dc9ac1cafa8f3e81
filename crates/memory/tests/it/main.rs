//! The memory server, called as by the gateway.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in tests this is how failures are told"
)]

mod faults;
mod isolation;
mod rig;
mod times;
mod tools;
mod vectors;
