//! The console in a real browser: headless Chromium, driven over `WebDriver`, with the program and a server
//! that asks questions behind it.
//!
//! `./test` installs Chromium, its driver, and axe-core, which checks accessibility. Screenshots of every
//! page are saved in `target/screenshots`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test may fail, and say why it is left out"
)]
#![cfg(target_os = "linux")]

mod access;
mod approvals;
mod browser;
mod hostile;
mod http;
mod impostor;
mod instances;
mod journey;
mod memory;
mod pages;
mod place;
mod sign_in;
mod squatter;
mod usability;
mod vectors;
