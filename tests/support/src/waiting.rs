//! Waiting for something that no event announces.

use std::{
    thread,
    time::{Duration, Instant},
};

/// A limit that ends a hang and nothing else: far more than anything that works takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// A timeout, in milliseconds, that no test lives to see: whatever waits for its end fails the test.
pub const FOREVER_MS: u64 = 3_600_000;

const PAUSE: Duration = Duration::from_millis(5);

/// The outcome of a look at something that is to become so.
pub trait Found {
    type Value;

    fn found(self) -> Option<Self::Value>;
}

impl Found for bool {
    type Value = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Found for Option<T> {
    type Value = T;

    fn found(self) -> Self {
        self
    }
}

/// Looks until it finds something: `true`, or a value.
#[track_caller]
pub fn until<F: Found>(what: &str, look: impl FnMut() -> F) -> F::Value {
    patiently(look).unwrap_or_else(|| panic!("never: {what}"))
}

/// Looks until it finds something; `None` if it never does.
pub fn patiently<F: Found>(mut look: impl FnMut() -> F) -> Option<F::Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = look().found();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(PAUSE);
    }
}

/// Does as [`until`] on a runtime. Where time is virtual, the limit is real nevertheless.
pub async fn until_async<F: Found>(what: &str, mut look: impl AsyncFnMut() -> F) -> F::Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await.found() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
