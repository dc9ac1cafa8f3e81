//! Limits the rate at which a repeated event is reported.

use std::time::Duration;

use crate::time::Moment;

/// Reports the first events one by one, and the rest as one summary per interval.
///
/// This is a token bucket: each report costs a token, and one token is added per interval. While there are
/// unreported events, the next report is their summary.
#[derive(Debug, Clone)]
pub struct Throttle {
    burst: u32,
    every: Duration,
    tokens: u32,
    /// Time at which the last token was added.
    refilled: Moment,
    missed: Missed,
    /// Time of the first unreported event.
    since: Moment,
}

/// Events that were counted but not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// Number of events.
    pub events: u64,
    /// Total size of the events, in bytes.
    pub bytes: u64,
}

impl Throttle {
    /// Creates a throttle that reports up to `burst` events at once, and then one summary per `every`.
    pub const fn new(burst: u32, every: Duration) -> Self {
        Self {
            burst,
            every,
            tokens: burst,
            refilled: Moment::START,
            missed: Missed {
                events: 0,
                bytes: 0,
            },
            since: Moment::START,
        }
    }

    /// Registers an event of this size. Returns `true` if it should be reported; otherwise it is counted.
    pub fn admit(&mut self, now: Moment, bytes: u64) -> bool {
        self.refill(now);
        if self.missed.events == 0 && self.tokens > 0 {
            self.tokens -= 1;
            return true;
        }
        if self.missed.events == 0 {
            self.since = now;
        }
        self.missed.events = self.missed.events.saturating_add(1);
        self.missed.bytes = self.missed.bytes.saturating_add(bytes);
        false
    }

    /// Returns the time of the next summary; `None` if there are no unreported events.
    pub fn due(&self) -> Option<Moment> {
        (self.missed.events > 0).then(|| self.since + self.every)
    }

    /// Returns the summary, if one is due.
    pub fn summary(&mut self, now: Moment) -> Option<Missed> {
        self.due()
            .filter(|due| *due <= now)
            .and_then(|_| self.take(now))
    }

    /// Returns the summary even if it is not due yet, for when no more events follow.
    pub fn take(&mut self, now: Moment) -> Option<Missed> {
        self.refill(now);
        let missed = std::mem::take(&mut self.missed);
        if missed.events == 0 {
            return None;
        }
        self.tokens = self.tokens.saturating_sub(1);
        Some(missed)
    }

    fn refill(&mut self, now: Moment) {
        let every = self.every.as_nanos().max(1);
        let back = (now - self.refilled).as_nanos() / every;
        let back = u32::try_from(back).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(back).min(self.burst);
        if self.tokens == self.burst {
            self.refilled = self.refilled.max(now);
        } else {
            self.refilled = self.refilled + self.every.saturating_mul(back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn at(millis: u64) -> Moment {
        Moment::after_start(Duration::from_millis(millis))
    }

    #[test]
    fn burst_is_reported_and_the_rest_summarised() {
        let mut throttle = Throttle::new(3, EVERY);
        let admitted = (0..100).filter(|n| throttle.admit(at(*n), 10)).count();
        assert_eq!(admitted, 3);
        assert_eq!(throttle.due(), Some(at(3) + EVERY));
        assert_eq!(throttle.summary(at(10_002)), None);
        let missed = Missed {
            events: 97,
            bytes: 970,
        };
        assert_eq!(throttle.summary(at(10_003)), Some(missed));
        assert_eq!(throttle.due(), None);
    }

    #[test]
    fn endless_flood_costs_one_line_per_interval() {
        let mut throttle = Throttle::new(10, EVERY);
        let (mut lines, mut counted) = (0, 0);
        for millis in 0..600_000 {
            if let Some(missed) = throttle.summary(at(millis)) {
                lines += 1;
                counted += missed.events;
            }
            let admitted = throttle.admit(at(millis), 1);
            lines += u64::from(admitted);
            counted += u64::from(admitted);
        }
        counted += throttle.take(at(600_000)).map_or(0, |missed| missed.events);
        assert_eq!(counted, 600_000);
        assert!((60..=72).contains(&lines), "{lines} lines in 10 minutes");
    }

    #[test]
    fn quiet_time_restores_the_burst() {
        let mut throttle = Throttle::new(3, EVERY);
        for _ in 0..5 {
            throttle.admit(at(0), 1);
        }
        assert!(throttle.summary(at(20_000)).is_some());
        let later = at(200_000);
        let admitted = (0..5).filter(|_| throttle.admit(later, 1)).count();
        assert_eq!(admitted, 3);
    }

    #[test]
    fn clock_that_does_not_advance_adds_no_tokens() {
        let mut throttle = Throttle::new(1, EVERY);
        assert!(throttle.admit(at(50_000), 1));
        assert!(!throttle.admit(at(10_000), 1));
        assert!(!throttle.admit(at(50_000), 1));
    }
}
