//! Helpers that the tests of all crates share.
//!
//! A test that cannot run has not passed: without its tools it fails, unless [`left_out`] names the reason.
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    clippy::return_self_not_must_use,
    clippy::should_implement_trait,
    reason = "helpers of tests, whose names say enough"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail, and say how"
)]

pub mod left_out;
pub mod tools;

mod dice;
mod growth;
#[cfg(target_os = "linux")]
mod home;
#[cfg(target_os = "linux")]
pub mod http;
#[cfg(target_os = "linux")]
pub mod mcp;
#[cfg(target_os = "linux")]
pub mod pipe;
#[cfg(target_os = "linux")]
pub mod processes;
mod programs;
#[cfg(target_os = "linux")]
pub mod provider;
mod waiting;

pub use dice::Dice;
pub use growth::assert_linear;
#[cfg(target_os = "linux")]
pub use home::{Home, Serve, eager, server, with};
pub use programs::{fixture, switchboard};
pub use tools::Tools;
pub use waiting::{FOREVER_MS, Found, PATIENCE, patiently, until, until_async};
