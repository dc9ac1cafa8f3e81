//! The proof: random schedules, machines with a bug, and the numbers and rules by name.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod campaign;
mod mistakes;
mod numbers;
mod probe;
mod properties;
mod rig;
mod schedules;
