//! The timers of a connection, in one ordered set.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::time::Moment;

/// The purpose of a timer. There is at most one timer for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    /// The handshake takes too long.
    Handshake,
    /// The server does not respond to `server/discover`.
    Probe,
    /// The next attempt to connect is due.
    Backoff,
    /// Expired tombstones can be removed.
    Sweep,
    /// The time for the transport to close has passed.
    Exit,
    /// A call takes too long.
    Deadline(u64),
    /// A frame that was offered to a busy transport is due again.
    Retry(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    order: BTreeSet<(Moment, Timer)>,
    due: FxHashMap<Timer, Moment>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Moment) {
        self.stop(timer);
        self.order.insert((at, timer));
        self.due.insert(timer, at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        if let Some(at) = self.due.remove(&timer) {
            self.order.remove(&(at, timer));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.due.clear();
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Removes and returns the earliest timer that is due.
    pub(crate) fn pop(&mut self, now: Moment) -> Option<Timer> {
        let (at, timer) = *self.order.first()?;
        if at > now {
            return None;
        }
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timer_that_is_reset_fires_once() {
        let at = |seconds| Moment::after_start(Duration::from_secs(seconds));
        let mut timers = Timers::default();
        timers.set(Timer::Backoff, at(5));
        timers.set(Timer::Sweep, at(3));
        timers.set(Timer::Backoff, at(2));
        assert_eq!(timers.next(), Some(at(2)));
        assert_eq!(timers.pop(at(1)), None);
        assert_eq!(timers.pop(at(9)), Some(Timer::Backoff));
        timers.stop(Timer::Sweep);
        assert_eq!(timers.pop(at(9)), None);
        assert_eq!(timers.next(), None);
    }
}
