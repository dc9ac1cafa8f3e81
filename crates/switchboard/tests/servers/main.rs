//! Servers by others, as they are published: what they offer and answer is the same directly and through the gateway,
//! a restart changes nothing, and forty of them are learnt at once.
//!
//! `./test servers` installs them (`packages.txt`) and sets `SWITCHBOARD_TEST_SERVERS`; without it, the tests
//! are left out. A server that could not be installed is skipped by name.
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
#[path = "../e2e/support/http.rs"]
#[allow(dead_code, reason = "each test binary that has this uses a part of it")]
mod http;
mod offers;
mod place;
#[path = "../e2e/support/processes.rs"]
#[allow(dead_code, reason = "each test binary that has this uses a part of it")]
mod processes;
mod table;
#[path = "../clients/support/tools.rs"]
mod tools;

use std::{
    thread,
    time::{Duration, Instant},
};

/// Far more than one server takes for anything on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// Looks again and again until it finds what it looks for.
#[track_caller]
pub(crate) fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + time;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "not within {time:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
