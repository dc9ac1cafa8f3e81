//! The position of a guard on the ladder: pure decisions, without signals or a clock.
//!
//! ```text
//!             | running     | waiting            | asked              | insisting
//! ------------+-------------+--------------------+--------------------+----------
//! stop        | waiting     | sooner of the two  | sooner of the two  | -
//! leader left | waiting     | waiting, but short | -                  | -
//! gateway lost| asked 300ms | asked 300ms        | sooner of the two  | -
//! kill        | insisting   | insisting          | insisting          | -
//! its time up |             | asked              | insisting          |
//! ```

use std::time::{Duration, Instant};

use crate::{launch::Ladder, report::Rung};

/// Time between SIGTERM and SIGKILL when the gateway has died.
pub(crate) const LOST_TERM: Duration = Duration::from_millis(300);

/// An event that a guard reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The gateway closed the server's standard input and stops the server.
    Stop(Ladder),
    /// The gateway kills the server.
    Kill,
    /// The gateway has died.
    GatewayLost,
    /// The server's first process has exited; others of it are alive.
    LeaderLeft,
    /// Time has passed.
    Tick,
}

/// The reaction to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask all processes to exit within this time.
    Ask(Duration),
    /// Kill all processes.
    Insist,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Waiting { until: Instant, term: Duration },
    Asked { until: Instant },
    Insisting,
}

/// The progress of one server down the ladder.
#[derive(Debug)]
pub(crate) struct Rungs {
    phase: Phase,
    /// The ladder for processes that the server leaves behind.
    leftovers: Ladder,
    rung: Rung,
    /// Time of the first event.
    since: Option<Instant>,
}

impl Rungs {
    pub(crate) fn new(leftovers: Ladder) -> Self {
        Self {
            phase: Phase::Running,
            leftovers,
            rung: Rung::Own,
            since: None,
        }
    }

    pub(crate) fn handle(&mut self, now: Instant, event: Event) -> Option<Action> {
        if event != Event::Tick {
            self.since.get_or_insert(now);
        }
        match (event, self.phase) {
            (Event::Stop(ladder), Phase::Running) => {
                self.rung = Rung::Close;
                self.wait(now + ladder.close, ladder.term)
            }
            (Event::Stop(ladder), Phase::Waiting { until, term }) => {
                self.wait(until.min(now + ladder.close), term.min(ladder.term))
            }
            (Event::Stop(ladder), Phase::Asked { until }) => {
                self.phase = Phase::Asked {
                    until: until.min(now + ladder.close + ladder.term),
                };
                None
            }
            (Event::LeaderLeft, Phase::Running) => {
                self.wait(now + self.leftovers.close, self.leftovers.term)
            }
            // Processes that it leaves behind seldom exit by themselves: a forgotten helper, a browser.
            (Event::LeaderLeft, Phase::Waiting { until, term }) => {
                self.wait(until.min(now + self.leftovers.close), term)
            }
            (Event::GatewayLost, Phase::Running | Phase::Waiting { .. }) => {
                Some(self.ask(now, LOST_TERM))
            }
            (Event::GatewayLost, Phase::Asked { until }) => {
                self.phase = Phase::Asked {
                    until: until.min(now + LOST_TERM),
                };
                None
            }
            (Event::Kill, Phase::Running | Phase::Waiting { .. } | Phase::Asked { .. }) => {
                Some(self.insist())
            }
            (Event::Tick, Phase::Waiting { until, term }) if now >= until => {
                Some(self.ask(now, term))
            }
            (Event::Tick, Phase::Asked { until }) if now >= until => Some(self.insist()),
            (Event::Tick, Phase::Running | Phase::Waiting { .. } | Phase::Asked { .. })
            | (Event::LeaderLeft, Phase::Asked { .. })
            | (_, Phase::Insisting) => None,
        }
    }

    /// Time of the next tick.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { until, .. } | Phase::Asked { until } => Some(until),
            Phase::Running | Phase::Insisting => None,
        }
    }

    pub(crate) fn is_insisting(&self) -> bool {
        self.phase == Phase::Insisting
    }

    /// The last rung so far, and the time that it has taken.
    pub(crate) fn so_far(&self, now: Instant) -> (Rung, Duration) {
        let took = self
            .since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        (self.rung, took)
    }

    fn wait(&mut self, until: Instant, term: Duration) -> Option<Action> {
        self.phase = Phase::Waiting { until, term };
        None
    }

    fn ask(&mut self, now: Instant, term: Duration) -> Action {
        self.rung = Rung::Term;
        self.phase = Phase::Asked { until: now + term };
        Action::Ask(term)
    }

    fn insist(&mut self) -> Action {
        self.rung = Rung::Kill;
        self.phase = Phase::Insisting;
        Action::Insist
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFTOVERS: Ladder = Ladder {
        close: Duration::from_millis(500),
        term: Duration::from_secs(2),
    };

    /// Feeds `events` to a server, each at its millisecond, ticks on time until nothing is left to do, and
    /// returns the actions with their times.
    fn walk(events: &[(u64, Event)]) -> Vec<(u64, Action)> {
        let start = Instant::now();
        let mut rungs = Rungs::new(LEFTOVERS);
        let mut events = events.iter().peekable();
        let mut done = Vec::new();
        loop {
            let next = events
                .peek()
                .map(|(at, _)| start + Duration::from_millis(*at));
            let (now, event) = match (next, rungs.deadline()) {
                (Some(next), deadline) if deadline.is_none_or(|deadline| next <= deadline) => {
                    (next, events.next().unwrap().1)
                }
                (_, Some(deadline)) => (deadline, Event::Tick),
                (_, None) => return done,
            };
            let action = rungs.handle(now, event);
            let at = u64::try_from((now - start).as_millis()).unwrap();
            done.extend(action.map(|action| (at, action)));
        }
    }

    const TERM: Duration = Duration::from_secs(9);

    #[test]
    fn rungs_follow_the_ladder_in_time() {
        assert_eq!(
            walk(&[(0, Event::Stop(Ladder::PROCESS))]),
            [(10_000, Action::Ask(TERM)), (19_000, Action::Insist)]
        );
    }

    #[test]
    fn stopping_twice_is_stopping_once() {
        let stop = Event::Stop(Ladder::PROCESS);
        let once = walk(&[(0, stop)]);
        assert_eq!(walk(&[(0, stop), (5_000, stop)]), once);
        assert_eq!(walk(&[(0, stop), (15_000, stop)]), once);
        assert_eq!(walk(&[(0, stop), (5_000, stop), (30_000, stop)]), once);
    }

    #[test]
    fn leftovers_get_less_time() {
        assert_eq!(
            walk(&[(0, Event::LeaderLeft)]),
            [(500, Action::Ask(LEFTOVERS.term)), (2_500, Action::Insist)]
        );
        assert_eq!(
            walk(&[
                (0, Event::Stop(Ladder::PROCESS)),
                (1_000, Event::LeaderLeft)
            ]),
            [(1_500, Action::Ask(TERM)), (10_500, Action::Insist)]
        );
    }

    #[test]
    fn lost_gateway_shortens_every_phase() {
        let stop = Event::Stop(Ladder::PROCESS);
        let ask = Action::Ask(LOST_TERM);
        for before in [vec![], vec![(0, stop)], vec![(0, Event::LeaderLeft)]] {
            let mut events = before;
            events.push((100, Event::GatewayLost));
            assert_eq!(walk(&events), [(100, ask), (400, Action::Insist)]);
        }
        assert_eq!(
            walk(&[(0, stop), (12_000, Event::GatewayLost)]),
            [(10_000, Action::Ask(TERM)), (12_300, Action::Insist)]
        );
    }

    #[test]
    fn kill_is_immediate_and_final() {
        let stop = Event::Stop(Ladder::PROCESS);
        for (before, at) in [(vec![], 1), (vec![(0, stop)], 7), (vec![(0, stop)], 12_000)] {
            let mut events = before;
            events.push((at, Event::Kill));
            events.push((at + 1, stop));
            events.push((at + 2, Event::GatewayLost));
            events.push((at + 3, Event::LeaderLeft));
            assert_eq!(walk(&events).last(), Some(&(at, Action::Insist)));
        }
    }

    #[test]
    fn last_rung_and_duration_are_recorded() {
        let start = Instant::now();
        let mut rungs = Rungs::new(LEFTOVERS);
        assert_eq!(rungs.so_far(start), (Rung::Own, Duration::ZERO));
        rungs.handle(start, Event::Stop(Ladder::PROCESS));
        let later = start + Duration::from_secs(1);
        assert_eq!(rungs.so_far(later), (Rung::Close, Duration::from_secs(1)));
        rungs.handle(later, Event::GatewayLost);
        assert_eq!(rungs.so_far(later).0, Rung::Term);
    }
}
