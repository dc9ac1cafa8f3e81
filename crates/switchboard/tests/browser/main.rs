//! The console in a real browser: Chromium without a window, driven over `WebDriver`, with the program
//! behind it and a server that asks.
//!
//! `./test` installs Chromium, its driver, and axe-core, which looks for what keeps people out. Pictures of
//! every page are put into `target/screenshots`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]
#![cfg(target_os = "linux")]

mod approvals;
mod browser;
mod hostile;
mod http;
mod impostor;
mod journey;
mod memory;
mod pages;
mod place;
mod squatter;
mod usability;
mod vectors;
