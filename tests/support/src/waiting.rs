//! Waits for conditions that no event announces.

use std::{
    thread,
    time::{Duration, Instant},
};

/// A limit that only ends hangs: far longer than any working test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// A timeout, in milliseconds, longer than any test runs: code that waits for it fails the test.
pub const FOREVER_MS: u64 = 3_600_000;

const PAUSE: Duration = Duration::from_millis(5);

/// The outcome of one poll of a condition.
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

/// Polls until the condition is `true`, or has a value.
#[track_caller]
pub fn until<F: Found>(what: &str, look: impl FnMut() -> F) -> F::Value {
    patiently(look).unwrap_or_else(|| panic!("never: {what}"))
}

/// Polls until the condition holds; `None` if it never does.
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

/// Like [`until`], on a runtime. The limit is real time even if the runtime's time is virtual.
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
