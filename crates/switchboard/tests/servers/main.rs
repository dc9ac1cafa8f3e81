//! Published third-party servers: their offers and responses are the same directly and through the gateway, a
//! restart changes nothing, forty of them are listed at once, and clients do not see the state of others.
//!
//! `./test servers` installs them (`packages.txt`) and sets `SWITCHBOARD_TEST_SERVERS`; without it, the tests
//! are skipped. A server that could not be installed is skipped by name, unless clients have instances of it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail, and say what it has skipped"
)]
#![cfg(target_os = "linux")]

mod client;
mod crowd;
mod each;
mod offers;
mod place;
mod sharing;
mod table;
