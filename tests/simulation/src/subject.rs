//! The subject of a simulation: the machine, or a substitute.

use std::sync::Arc;

use switchboard_machine::{Action, Counters, Event, Ids, Machine, Moment, Settings};

/// A subject that can be driven like [`Machine`].
pub trait Subject {
    /// See [`Machine::new`].
    fn begin(settings: Settings, ids: Ids, counters: Arc<Counters>, seed: u64, now: Moment)
    -> Self;

    /// See [`Machine::handle`].
    fn handle(&mut self, now: Moment, event: Event);

    /// See [`Machine::poll_action`].
    fn poll_action(&mut self) -> Option<Action>;

    /// See [`Machine::next_timeout`].
    fn next_timeout(&self) -> Option<Moment>;

    /// See [`Machine::in_flight`].
    fn in_flight(&self) -> usize;

    /// See [`Machine::tombstones`].
    fn tombstones(&self) -> usize;

    /// See [`Machine::is_idle`].
    fn is_idle(&self) -> bool;
}

impl Subject for Machine {
    fn begin(
        settings: Settings,
        ids: Ids,
        counters: Arc<Counters>,
        seed: u64,
        now: Moment,
    ) -> Self {
        Self::new(settings, ids, counters, seed, now)
    }

    fn handle(&mut self, now: Moment, event: Event) {
        Self::handle(self, now, event);
    }

    fn poll_action(&mut self) -> Option<Action> {
        Self::poll_action(self)
    }

    fn next_timeout(&self) -> Option<Moment> {
        Self::next_timeout(self)
    }

    fn in_flight(&self) -> usize {
        Self::in_flight(self)
    }

    fn tombstones(&self) -> usize {
        Self::tombstones(self)
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }
}
