//! The gateway in real use: the real program, real servers, real sockets and pipes.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "JSON is written down where it is handed over"
)]
#![cfg(target_os = "linux")]

mod asking;
mod bad_input;
mod crowds;
mod environment;
mod faults;
mod first_contact;
mod hostile_floods;
mod hostile_peer;
mod hostile_repository;
mod hostile_server;
mod hostile_words;
mod instances;
mod memory_crash;
mod memory_start;
mod orphans;
mod profiles;
mod promptness;
mod reload;
mod secrets;
mod start;
mod stdio;
mod stop;
mod strangers;
mod takeover;
