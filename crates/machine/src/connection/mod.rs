//! The machine itself: its states and transitions. The modules below implement the behaviour within a state:
//! [`calls`], [`inbound`] and [`opening`].

mod calls;
mod inbound;
mod opening;

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use switchboard_wire::{Era, Id, Message};

use crate::{
    backoff::Backoff,
    counters::Counters,
    error::CallError,
    event::{Action, Down, DownKind, Event, Inbound, SendOutcome, State, Stopped, Telemetry},
    handshake::{Handshake, Session},
    ids::Ids,
    outbox::{Lane, Outbox, Purpose, Sent},
    random::Random,
    settings::Settings,
    time::Moment,
    timers::{Timer, Timers},
    tombstones::Tombstones,
};
use calls::Entry;

/// The beginning of the failure reason of a server whose handshake took too long.
pub const NO_HANDSHAKE: &str = "no handshake within";

/// A connection to one server. The [crate documentation](crate) explains how to drive it.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    ids: Ids,
    counters: Arc<Counters>,
    random: Random,
    phase: Phase,
    /// The transport opened last. Its events are ignored unless it is `live`.
    epoch: u64,
    live: bool,
    /// The known era of the server. Cleared if a handshake fails.
    era: Option<Era>,
    backoff: Backoff,
    timers: Timers,
    outbox: Outbox,
    calls: FxHashMap<u64, Entry>,
    /// Calls that wait for the connection to become ready, in order of arrival.
    waiting: VecDeque<u64>,
    tombstones: Tombstones,
    /// The beginning of the first frame of this transport that was not JSON-RPC.
    garbage: Option<Arc<str>>,
    /// The reason why the last attempt failed, until one succeeds. Reported to calls that time out while
    /// waiting for the connection.
    last_failure: Option<Arc<str>>,
    /// Requests of the server that wait for a response, the oldest first, with their size in bytes.
    server_requests: Vec<(Id, usize)>,
    actions: VecDeque<Action>,
}

#[derive(Debug)]
enum Phase {
    Starting,
    Initializing {
        handshake: Handshake,
        /// Messages that arrived before the handshake was done, each with its stream and the size of its
        /// frame in bytes.
        held: Vec<(Message, Option<u64>, usize)>,
    },
    Ready(Arc<Session>),
    Backoff,
    Failed {
        reason: Arc<str>,
    },
    Closing,
    Exited,
}

impl Machine {
    /// Creates a machine, which starts by requesting its first transport.
    pub fn new(
        settings: Settings,
        ids: Ids,
        counters: Arc<Counters>,
        seed: u64,
        now: Moment,
    ) -> Self {
        let mut machine = Self {
            random: Random::new(seed),
            phase: Phase::Backoff,
            epoch: 0,
            live: false,
            era: settings.era,
            backoff: Backoff::new(settings.backoff_base, settings.backoff_max),
            timers: Timers::default(),
            outbox: Outbox::new(settings.send_attempts, settings.send_retry_delay),
            calls: FxHashMap::default(),
            waiting: VecDeque::new(),
            tombstones: Tombstones::new(settings.tombstone_ttl(), settings.tombstones_max),
            garbage: None,
            last_failure: None,
            server_requests: Vec::new(),
            actions: VecDeque::new(),
            settings,
            ids,
            counters,
        };
        machine.open(now);
        machine
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Moment, event: Event) {
        match event {
            Event::TransportUp { epoch } if self.is_current(epoch) => self.transport_up(now),
            Event::TransportDown { epoch, down } if self.is_current(epoch) => {
                self.transport_down(now, &down);
            }
            Event::Frame { epoch, frame, via } if self.is_current(epoch) => {
                self.frame(now, &frame, via);
            }
            Event::FrameTooLarge { epoch, limit } if self.is_current(epoch) => {
                self.frame_too_large(now, limit);
            }
            Event::RequestFailed { epoch, id, failure } if self.is_current(epoch) => {
                self.request_failed(now, id, failure);
            }
            Event::Answer { epoch, id, answer } if self.is_current(epoch) => {
                self.answer(&id, answer);
            }
            Event::TransportUp { .. }
            | Event::TransportDown { .. }
            | Event::Frame { .. }
            | Event::FrameTooLarge { .. }
            | Event::RequestFailed { .. }
            | Event::Answer { .. } => self.counters.stale.add(),
            Event::SendResult { ticket, outcome } => self.send_result(now, ticket, outcome),
            Event::Call { id, call } => self.call(now, id, call),
            Event::CallerGone { id } => self.caller_gone(now, id),
            Event::Cancel { id, reason } => self.cancel(now, id, reason.as_deref()),
            Event::Tick => self.tick(now),
            Event::Restart => self.restart(now),
            Event::Stop => self.stop(now),
        }
    }

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns the time at which the next [`Event::Tick`] is due, unless another event comes first.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.timers.next()
    }

    /// Returns the number of calls that have had no reply yet.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of ids that are remembered to recognise late responses.
    pub fn tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Returns the known era of the server, to start the next machine with.
    pub fn era(&self) -> Option<Era> {
        self.era
    }

    /// Returns `true` if there is nothing to wait for: no call, no frame, no timer.
    pub fn is_idle(&self) -> bool {
        self.calls.is_empty()
            && self.waiting.is_empty()
            && self.outbox.is_empty()
            && self.timers.next().is_none()
    }

    fn is_current(&self, epoch: u64) -> bool {
        self.live && epoch == self.epoch
    }

    fn transport_up(&mut self, now: Moment) {
        match self.phase {
            Phase::Starting => self.begin_handshake(now),
            Phase::Initializing { .. } | Phase::Ready(_) => self.violation("transport up twice"),
            Phase::Backoff | Phase::Failed { .. } | Phase::Closing | Phase::Exited => {}
        }
    }

    fn transport_down(&mut self, now: Moment, down: &Down) {
        self.live = false;
        match &self.phase {
            Phase::Initializing { handshake, .. }
                if handshake.open_probe.is_some()
                    && down.kind == DownKind::Closed
                    && self.era != Some(Era::Legacy) =>
            {
                // An older server may exit when it receives an unknown request. Use `initialize` immediately:
                // this is not a failure of the server. But do so only once; otherwise a server that
                // alternates between `initialize` and the probe would be reopened forever.
                self.era = Some(Era::Legacy);
                self.forget_frames();
                self.enter(State::Starting, "the server disconnected when probed");
                self.open(now);
            }
            Phase::Starting | Phase::Initializing { .. } => {
                self.era = None;
                self.lost(now, down);
            }
            Phase::Ready(_) => self.lost(now, down),
            Phase::Closing => self.exit(),
            Phase::Backoff | Phase::Failed { .. } | Phase::Exited => {}
        }
    }

    fn frame_too_large(&mut self, now: Moment, limit: usize) {
        match self.phase {
            Phase::Initializing { .. } | Phase::Ready(_) => {
                self.counters.oversized.add();
                let reason = format!("frame over the limit of {limit} bytes");
                self.emit_violation(&reason, None);
                self.give_up(now, false, &reason, None);
            }
            Phase::Starting
            | Phase::Backoff
            | Phase::Failed { .. }
            | Phase::Closing
            | Phase::Exited => {}
        }
    }

    fn send_result(&mut self, now: Moment, ticket: u64, outcome: SendOutcome) {
        let Some(sent) = self.outbox.result(ticket, outcome, &mut self.random) else {
            return;
        };
        if outcome == SendOutcome::Busy {
            self.counters.busy.add();
        }
        match sent {
            Sent::Again { delay, attempts } => {
                self.actions
                    .push_back(Action::Emit(Telemetry::Busy { attempts }));
                self.timers.set(Timer::Retry(ticket), now + delay);
                return;
            }
            Sent::Accepted(Purpose::Call(id)) => self.call_sent(now, id),
            Sent::Accepted(Purpose::Confirm) => self.confirmed(now),
            Sent::Accepted(Purpose::Handshake(_) | Purpose::Answer | Purpose::Cancel) => {}
            Sent::GivenUp { purpose, attempts } => match purpose {
                Purpose::Call(id) => self.end_call(now, id, CallError::Backpressure { attempts }),
                Purpose::Handshake(_) | Purpose::Confirm => {
                    self.era = None;
                    self.give_up(
                        now,
                        false,
                        &format!("transport busy after {attempts} attempts"),
                        None,
                    );
                }
                Purpose::Answer | Purpose::Cancel => self.counters.dropped.add(),
            },
            // The end of the transport is reported by a separate event.
            Sent::Closed(Purpose::Call(id)) => {
                let reason = Arc::from("transport closed");
                let sent = false;
                self.end_call(now, id, CallError::ConnectionLost { reason, sent });
            }
            Sent::Closed(_) => {}
        }
        self.leave_outbox(ticket);
    }

    fn tick(&mut self, now: Moment) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Handshake => {
                    self.era = None;
                    let after = self.settings.handshake_timeout;
                    let reason = format!("{NO_HANDSHAKE} {after:.1?}");
                    self.give_up(now, false, &reason, None);
                }
                Timer::Probe => self.probe_unanswered(now),
                Timer::Backoff => {
                    self.enter(State::Starting, "backoff over");
                    self.open(now);
                }
                Timer::Sweep => self.sweep(now),
                Timer::Exit => self.exit(),
                Timer::Deadline(id) => self.deadline_passed(now, id),
                Timer::Retry(ticket) => {
                    if let Some(outgoing) = self.outbox.offer(ticket) {
                        self.counters.retries.add();
                        self.actions.push_back(Action::Send { ticket, outgoing });
                    }
                }
            }
        }
    }

    fn restart(&mut self, now: Moment) {
        match self.phase {
            Phase::Backoff | Phase::Failed { .. } => {
                self.timers.stop(Timer::Backoff);
                self.backoff.reset();
                self.enter(State::Starting, "restart");
                self.open(now);
            }
            Phase::Starting
            | Phase::Initializing { .. }
            | Phase::Ready(_)
            | Phase::Closing
            | Phase::Exited => {}
        }
    }

    fn stop(&mut self, now: Moment) {
        let waits_for_close = match self.phase {
            Phase::Closing | Phase::Exited => {
                self.actions
                    .push_back(Action::Stopped(Stopped::AlreadyClosing));
                return;
            }
            Phase::Initializing { .. } | Phase::Ready(_) => true,
            Phase::Starting | Phase::Backoff | Phase::Failed { .. } => false,
        };
        self.actions.push_back(Action::Stopped(Stopped::Ok));
        self.fail_all(now, |sent| CallError::Shutdown { sent });
        self.forget_server_requests();
        self.timers.clear();
        self.enter(State::Closing, "stop");
        self.phase = Phase::Closing;
        if self.live {
            self.actions.push_back(Action::Close { epoch: self.epoch });
        }
        if waits_for_close {
            self.timers
                .set(Timer::Exit, now + self.settings.close_linger);
        } else {
            self.exit();
        }
    }

    fn exit(&mut self) {
        self.timers.clear();
        self.live = false;
        self.phase = Phase::Exited;
        self.actions.push_back(Action::Exit);
    }

    fn open(&mut self, now: Moment) {
        self.epoch += 1;
        self.live = true;
        self.garbage = None;
        self.phase = Phase::Starting;
        self.timers.stop(Timer::Probe);
        self.timers
            .set(Timer::Handshake, now + self.settings.handshake_timeout);
        self.actions.push_back(Action::Open { epoch: self.epoch });
    }

    fn lost(&mut self, now: Moment, down: &Down) {
        let permanent = down.kind == DownKind::Permanent;
        self.give_up(now, permanent, &down.message, down.said.clone());
    }

    /// Abandons the transport and waits for the next attempt or for a restart. The reason contains no text
    /// from the server, so everyone may see it; `said` is the server's message, for the user only.
    fn give_up(&mut self, now: Moment, permanent: bool, reason: &str, said: Option<Arc<str>>) {
        let garbage = self.garbage.take();
        let garbage = garbage.filter(|_| matches!(self.phase, Phase::Initializing { .. }));
        let reason: Arc<str> = match garbage {
            Some(_) => Arc::from(format!(
                "{reason}; the server wrote text that is not JSON-RPC (is it an MCP server?)"
            )),
            None => Arc::from(reason),
        };
        let wrote = match (garbage, said) {
            (Some(garbage), Some(said)) => Some(format!("{garbage}\n{said}").into()),
            (garbage, said) => garbage.or(said),
        };
        self.last_failure = Some(Arc::clone(&reason));
        if matches!(self.phase, Phase::Ready(_)) {
            let reason = Arc::clone(&reason);
            self.fail_all(now, |sent| CallError::ConnectionLost {
                reason: Arc::clone(&reason),
                sent,
            });
        }
        self.forget_server_requests();
        self.forget_frames();
        self.timers.stop(Timer::Handshake);
        self.timers.stop(Timer::Probe);
        if self.live {
            self.live = false;
            self.actions.push_back(Action::Close { epoch: self.epoch });
        }
        if permanent {
            let error = CallError::Failed {
                reason: Arc::clone(&reason),
            };
            self.fail_all(now, |_| error.clone());
            let to = State::Failed {
                reason: Arc::clone(&reason),
                wrote,
            };
            self.enter(to, &reason);
            self.phase = Phase::Failed { reason };
        } else {
            let delay = self.backoff.next(&mut self.random);
            let to = State::Backoff {
                failures: self.backoff.failures(),
                delay,
                reason: Arc::clone(&reason),
                wrote,
            };
            self.enter(to, &reason);
            self.phase = Phase::Backoff;
            self.timers.set(Timer::Backoff, now + delay);
        }
    }

    /// Announces a state. The caller sets the phase itself, because it has the data.
    fn enter(&mut self, to: State, reason: &str) {
        self.counters.transitions.add();
        self.actions.push_back(Action::Emit(Telemetry::Transition {
            from: self.state_name(),
            to: to.name(),
            reason: Arc::from(reason),
        }));
        self.actions.push_back(Action::State(to));
    }

    fn state_name(&self) -> &'static str {
        match self.phase {
            Phase::Starting => "starting",
            Phase::Initializing { .. } => "initializing",
            Phase::Ready(_) => "ready",
            Phase::Backoff => "backoff",
            Phase::Failed { .. } => "failed",
            Phase::Closing | Phase::Exited => "closing",
        }
    }

    /// Adds a frame to the outbox, and offers it to the transport if nothing is ahead of it.
    fn post(&mut self, lane: Lane, purpose: Purpose, outgoing: crate::event::Outgoing) -> u64 {
        let (ticket, offered) = self.outbox.push(lane, purpose, outgoing);
        if let Some(outgoing) = offered {
            self.actions.push_back(Action::Send { ticket, outgoing });
        }
        ticket
    }

    /// Removes a frame from the outbox and offers the one behind it.
    fn leave_outbox(&mut self, ticket: u64) {
        self.timers.stop(Timer::Retry(ticket));
        if self.outbox.is_offered(ticket) {
            // If the offer is still among the actions, the frame has not been sent, and must not be.
            self.actions.retain(
                |action| !matches!(action, Action::Send { ticket: offered, .. } if *offered == ticket),
            );
        }
        if let Some((ticket, outgoing)) = self.outbox.remove(ticket) {
            self.actions.push_back(Action::Send { ticket, outgoing });
        }
    }

    /// Drops the frames for a transport that was abandoned.
    fn forget_frames(&mut self) {
        self.actions
            .retain(|action| !matches!(action, Action::Send { .. }));
        for ticket in self.outbox.clear() {
            self.timers.stop(Timer::Retry(ticket));
        }
    }

    fn forget_server_requests(&mut self) {
        for (id, _) in std::mem::take(&mut self.server_requests) {
            let cancelled = Inbound::RequestCancelled { id };
            self.actions.push_back(Action::Deliver(cancelled));
        }
    }

    fn violation(&mut self, reason: &str) {
        self.counters.violations.add();
        self.emit_violation(reason, None);
    }

    fn emit_violation(&mut self, reason: &str, frame: Option<&Bytes>) {
        let violation = Telemetry::Violation {
            reason: Arc::from(reason),
            frame: frame.cloned(),
        };
        self.actions.push_back(Action::Emit(violation));
    }
}
