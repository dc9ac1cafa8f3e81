//! The clock of the runtime.

use std::time::Instant;

/// The time, which stands still in tests that pause the clock of the runtime. Timers follow the same clock.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
