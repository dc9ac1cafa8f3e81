//! Machines with a plausible bug each, which prove that the simulation finds it.

use std::{collections::VecDeque, sync::Arc};

use switchboard_machine::{
    Action, CallError, Counters, Event, Ids, Machine, Moment, Outgoing, OutgoingKind, SendOutcome,
    Settings,
};

use crate::subject::Subject;

/// A bug: sees events and actions as they pass, and corrupts them.
pub trait Mistake: Default {
    /// Handles an event on its way in.
    fn event(&mut self, event: Event, _out: &mut VecDeque<Action>) -> Event {
        event
    }

    /// Handles an action on its way out.
    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        out.push_back(action);
    }
}

/// A machine with a bug.
#[derive(Debug)]
pub struct With<M> {
    machine: Machine,
    mistake: M,
    out: VecDeque<Action>,
}

impl<M: Mistake> Subject for With<M> {
    fn begin(
        settings: Settings,
        ids: Ids,
        counters: Arc<Counters>,
        seed: u64,
        now: Moment,
    ) -> Self {
        Self {
            machine: Machine::new(settings, ids, counters, seed, now),
            mistake: M::default(),
            out: VecDeque::new(),
        }
    }

    fn handle(&mut self, now: Moment, event: Event) {
        let event = self.mistake.event(event, &mut self.out);
        self.machine.handle(now, event);
    }

    fn poll_action(&mut self) -> Option<Action> {
        if let Some(action) = self.machine.poll_action() {
            self.mistake.action(action, &mut self.out);
        }
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Moment> {
        self.machine.next_timeout()
    }

    fn in_flight(&self) -> usize {
        self.machine.in_flight()
    }

    fn tombstones(&self) -> usize {
        self.machine.tombstones()
    }

    fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }
}

/// Requests that were offered to the transport: the ticket, the call, and the number of busy results.
#[derive(Debug, Default)]
struct Waiting {
    offered: Vec<(u64, u64, u32)>,
}

impl Waiting {
    fn see_action(&mut self, action: &Action) {
        if let Action::Send { ticket, outgoing } = action
            && let OutgoingKind::Request { id, .. } = outgoing.kind
            && !self.offered.iter().any(|(known, ..)| known == ticket)
        {
            self.offered.push((*ticket, id, 0));
        }
    }

    /// The number of busy results of this frame, if the event is one.
    fn see_event(&mut self, event: &Event) -> Option<u32> {
        let Event::SendResult { ticket, outcome } = event else {
            return None;
        };
        if *outcome != SendOutcome::Busy {
            self.offered.retain(|(known, ..)| known != ticket);
            return None;
        }
        let (.., busy) = self
            .offered
            .iter_mut()
            .find(|(known, ..)| known == ticket)?;
        *busy += 1;
        Some(*busy)
    }

    fn has_call(&self, call: u64) -> bool {
        self.offered
            .iter()
            .any(|(_, id, busy)| *id == call && *busy > 0)
    }
}

/// Replies twice on stop to a call that waits for a retry.
#[derive(Debug, Default)]
pub struct AnswersTwice(Waiting);

impl Mistake for AnswersTwice {
    fn event(&mut self, event: Event, _out: &mut VecDeque<Action>) -> Event {
        self.0.see_event(&event);
        event
    }

    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        self.0.see_action(&action);
        if let Action::Reply {
            id,
            outcome: Err(CallError::Shutdown { .. }),
        } = &action
            && self.0.has_call(*id)
        {
            out.push_back(action.clone());
        }
        out.push_back(action);
    }
}

/// Takes events of an abandoned transport for events of the current one.
#[derive(Debug, Default)]
pub struct ActsOnStale {
    epoch: u64,
}

impl Mistake for ActsOnStale {
    fn event(&mut self, mut event: Event, _out: &mut VecDeque<Action>) -> Event {
        if let Event::TransportDown { epoch, .. } | Event::Frame { epoch, .. } = &mut event {
            *epoch = self.epoch;
        }
        event
    }

    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        if let Action::Open { epoch } = action {
            self.epoch = epoch;
        }
        out.push_back(action);
    }
}

/// Loses the stream on which a frame arrived.
#[derive(Debug, Default)]
pub struct ForgetsStream;

impl Mistake for ForgetsStream {
    fn event(&mut self, mut event: Event, _out: &mut VecDeque<Action>) -> Event {
        if let Event::Frame { via, .. } = &mut event {
            *via = None;
        }
        event
    }
}

/// Delivers a log message after the next action.
#[derive(Debug, Default)]
pub struct LogsLate {
    log: Option<Action>,
}

impl Mistake for LogsLate {
    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        if let Action::Log { .. } = action {
            out.extend(self.log.replace(action));
            return;
        }
        let telemetry = matches!(action, Action::Emit(_));
        out.push_back(action);
        if !telemetry {
            out.extend(self.log.take());
        }
    }
}

/// Drops the deadline of a call that waits behind another of its caller.
#[derive(Debug, Default)]
pub struct ForgetsDeadline {
    lanes: Vec<u64>,
}

impl Mistake for ForgetsDeadline {
    fn event(&mut self, mut event: Event, _out: &mut VecDeque<Action>) -> Event {
        if let Event::Call { call, .. } = &mut event {
            if self.lanes.contains(&call.lane) {
                call.timeout = None;
            }
            self.lanes.push(call.lane);
        }
        event
    }
}

/// Offers a frame a fourth time.
#[derive(Debug, Default)]
pub struct SendsAgain {
    waiting: Waiting,
    frames: Vec<(u64, Outgoing)>,
}

impl Mistake for SendsAgain {
    fn event(&mut self, event: Event, out: &mut VecDeque<Action>) -> Event {
        if self.waiting.see_event(&event) == Some(3)
            && let Event::SendResult { ticket, .. } = &event
            && let Some((ticket, outgoing)) = self.frames.iter().find(|(known, _)| known == ticket)
        {
            out.push_back(Action::Send {
                ticket: *ticket,
                outgoing: outgoing.clone(),
            });
        }
        event
    }

    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        self.waiting.see_action(&action);
        if let Action::Send { ticket, outgoing } = &action {
            self.frames.push((*ticket, outgoing.clone()));
        }
        out.push_back(action);
    }
}

/// Sends a frame without waiting for the previous one of the same caller.
#[derive(Debug, Default)]
pub struct Overtakes {
    lanes: u64,
}

impl Mistake for Overtakes {
    fn event(&mut self, mut event: Event, _out: &mut VecDeque<Action>) -> Event {
        if let Event::Call { call, .. } = &mut event {
            self.lanes += 1;
            call.lane = self.lanes;
        }
        event
    }
}

/// Arms a transport after it was closed.
#[derive(Debug, Default)]
pub struct ArmsClosed;

impl Mistake for ArmsClosed {
    fn action(&mut self, action: Action, out: &mut VecDeque<Action>) {
        let armed = match &action {
            Action::Close { epoch } => Some(Action::Arm { epoch: *epoch }),
            _ => None,
        };
        out.push_back(action);
        out.extend(armed);
    }
}
