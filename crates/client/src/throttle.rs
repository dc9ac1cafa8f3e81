//! Rate limits for log lines that a peer can cause.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use switchboard_machine::Moment;
pub use switchboard_machine::{Missed, Throttle};

/// The number of events that are reported one by one, see [`EVERY`].
pub const BURST: u32 = 10;
/// The time between two reports once the burst is used up.
pub const EVERY: Duration = Duration::from_secs(10);

/// A log line that may repeat without end: the first ten are written, then one per ten seconds, with the
/// number of lines that were left out.
#[derive(Debug)]
pub struct Limited {
    started: Instant,
    throttle: Mutex<Throttle>,
}

impl Default for Limited {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            throttle: Mutex::new(Throttle::new(BURST, EVERY)),
        }
    }
}

impl Limited {
    /// Calls `report` with the number of events left out since the last report, unless another report would
    /// exceed the rate.
    pub fn report(&self, report: impl FnOnce(u64)) {
        let now = Moment::after_start(self.started.elapsed());
        let missed = {
            let mut throttle = self.throttle.lock();
            match throttle.summary(now) {
                Some(missed) => Some(missed.events),
                None => throttle.admit(now, 0).then_some(0),
            }
        };
        if let Some(missed) = missed {
            report(missed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_line_is_written_ten_times() {
        let limited = Limited::default();
        let mut written = 0;
        for _ in 0..1_000 {
            limited.report(|missed| {
                assert_eq!(missed, 0);
                written += 1;
            });
        }
        assert_eq!(written, 10);
    }
}
