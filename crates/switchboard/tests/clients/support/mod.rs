//! What the tests share: where the clients are installed, a gateway of one's own, and a client at work.

mod client;
#[path = "../../e2e/support/http.rs"]
#[allow(dead_code, reason = "each test binary that has this uses a part of it")]
mod http;
mod place;
mod tools;

use std::{
    thread,
    time::{Duration, Instant},
};

pub(crate) use client::{Client, Kind};
pub(crate) use http::Http;
pub(crate) use place::{Door, Place};
pub(crate) use tools::Tools;

/// Far more than anything that works takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Looks again and again until it finds what it looks for.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < SOON, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}
