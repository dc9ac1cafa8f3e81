//! The delay before the next attempt to connect.

use std::time::Duration;

use crate::random::Random;

/// Exponential backoff. It stores the number of failures and not the last delay, so that jitter
/// does not accumulate.
#[derive(Debug)]
pub(crate) struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
}

const JITTER_PERCENT: u32 = 20;

impl Backoff {
    pub(crate) fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            failures: 0,
        }
    }

    /// Counts a failure and returns the delay that follows it.
    pub(crate) fn next(&mut self, random: &mut Random) -> Duration {
        let doubled = self
            .base
            .saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        random.jitter(doubled.min(self.max), JITTER_PERCENT)
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_the_maximum_until_reset() {
        let (base, max) = (Duration::from_secs(1), Duration::from_secs(30));
        let mut random = Random::new(7);
        let mut backoff = Backoff::new(base, max);
        for _ in 0..2 {
            for expected in [1, 2, 4, 8, 16, 30, 30, 30] {
                let delay = backoff.next(&mut random).as_millis();
                assert!(
                    (expected * 800..=expected * 1200).contains(&delay),
                    "{delay} for {expected} s"
                );
            }
            backoff.reset();
        }
        backoff.failures = u32::MAX;
        assert!(backoff.next(&mut random) <= max * 12 / 10);
    }
}
