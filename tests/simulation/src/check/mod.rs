//! The checker: sees every event and every action, keeps its own record of what must follow, and reports
//! differences.
//!
//! It is an independent check, not a second machine: it knows only the observable behaviour, not how it is
//! implemented. Before an event it records the replies, deliveries and state that are due. Each action must
//! be one of these, and after the event none may remain.

mod calls;
mod handshake;
mod inbound;
mod lifecycle;
mod sends;

use std::time::Duration;

use switchboard_machine::{Action, CounterValues, Counters, DownKind, Moment, Settings, Telemetry};

pub(crate) use crate::coverage::Phase;
use crate::{
    coverage::{Coverage, Happening},
    invariant::{Checked, ensure},
    subject::Subject,
};
use calls::Calls;
use handshake::Handshake;
use inbound::Inbox;
use lifecycle::Lifecycle;
use sends::Sends;

/// The cause of the current event, as far as the checker needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Begin,
    Up,
    Down(DownKind),
    Frame,
    Oversize,
    Failed { id: u64, status: Option<u16> },
    Call(u64),
    Gone(u64),
    Cancel(u64),
    Reply(u8),
    Tick,
    Restart,
    Stop,
}

pub(crate) struct Checker<'a> {
    pub(crate) coverage: &'a mut Coverage,
    pub(crate) settings: Settings,
    pub(crate) now: Moment,
    pub(crate) phase: Phase,
    /// The state to which this event must lead.
    due_phase: Phase,
    cause: Cause,
    stale: bool,
    /// Timers were not served for a while, so actions that were due are late.
    pub(crate) dozed: bool,
    /// Number of actions of this event, without telemetry.
    actions: u32,
    /// Number of all actions.
    pub(crate) all_actions: u64,
    counted: CounterValues,
    pub(crate) calls: Calls,
    handshake: Handshake,
    pub(crate) inbox: Inbox,
    pub(crate) life: Lifecycle,
    sends: Sends,
}

/// More actions than any event causes, even if it offers every waiting call.
const ACTIONS_MAX: u32 = 10_000;

impl<'a> Checker<'a> {
    pub(crate) fn new(settings: Settings, coverage: &'a mut Coverage) -> Self {
        Self {
            coverage,
            settings,
            now: Moment::START,
            phase: Phase::Starting,
            due_phase: Phase::Starting,
            cause: Cause::Begin,
            stale: false,
            dozed: false,
            actions: 0,
            all_actions: 0,
            counted: CounterValues::default(),
            calls: Calls::default(),
            handshake: Handshake::default(),
            inbox: Inbox::default(),
            life: Lifecycle::default(),
            sends: Sends::default(),
        }
    }

    /// Prepares for an event that is about to be handed in. The notes of a frame follow one by one.
    pub(crate) fn before(&mut self, cause: Cause, epoch: Option<u64>, counters: &Counters) {
        self.cause = cause;
        self.actions = 0;
        self.due_phase = self.phase;
        self.stale = epoch.is_some_and(|epoch| !self.life.listens_to(epoch));
        if self.stale || cause == Cause::Frame {
            self.counted = counters.values();
        }
        self.inbox.begin();
        let happening = match cause {
            Cause::Begin | Cause::Frame | Cause::Tick => None,
            Cause::Up => Some(Happening::Up),
            Cause::Down(_) => Some(Happening::Down),
            Cause::Oversize => Some(Happening::Oversize),
            Cause::Failed { .. } => Some(Happening::RequestFailed),
            Cause::Call(_) => Some(Happening::Call),
            Cause::Gone(_) => Some(Happening::CallerGone),
            Cause::Cancel(_) => Some(Happening::Cancel),
            Cause::Reply(_) => Some(Happening::OwnerAnswers),
            Cause::Restart => Some(Happening::Restart),
            Cause::Stop => Some(Happening::Stop),
        };
        if let Some(happening) = happening {
            self.coverage.hit(self.phase, happening);
        }
        if self.stale {
            self.coverage.hit(self.phase, Happening::Stale);
            return;
        }
        match cause {
            Cause::Begin | Cause::Frame => {}
            Cause::Up => self.expect_up(),
            Cause::Down(kind) => self.expect_down(kind),
            Cause::Oversize => self.expect_oversize(),
            Cause::Failed { id, status } => self.expect_failure(id, status),
            Cause::Call(id) => self.expect_call(id),
            Cause::Gone(id) => self.expect_gone(id),
            Cause::Cancel(id) => self.expect_cancel(id),
            Cause::Reply(own) => self.expect_owner_answer(own),
            Cause::Tick => self.expect_tick(),
            Cause::Restart => self.expect_restart(),
            Cause::Stop => self.expect_stop(),
        }
    }

    /// Checks an action that was taken from the machine and is about to be performed.
    pub(crate) fn action(&mut self, action: &Action) -> Checked {
        self.all_actions += 1;
        if let Action::Emit(telemetry) = action {
            return self.telemetry(telemetry);
        }
        self.actions += 1;
        ensure!(
            self.actions < ACTIONS_MAX,
            Endless,
            "{:?} leads to actions without end",
            self.cause
        );
        ensure!(
            !self.stale,
            StaleActs,
            "{:?} of a transport that was given up leads to {action:?}",
            self.cause
        );
        self.check_quiet(action)?;
        match action {
            Action::Open { epoch } => self.on_open(*epoch),
            Action::Close { epoch } => self.on_close(*epoch),
            Action::Send { ticket, outgoing } => self.on_send(*ticket, outgoing),
            Action::Arm { epoch } => self.on_arm(*epoch),
            Action::Negotiated { epoch, session } => self.on_negotiated(*epoch, session),
            Action::Reply { id, outcome } => self.on_reply(*id, outcome),
            Action::Progress { id, params } => self.on_progress(*id, params),
            Action::Log { id, params, .. } => self.on_log(*id, params),
            Action::Deliver(inbound) => self.on_deliver(inbound),
            Action::State(state) => self.on_state(state),
            Action::Stopped(stopped) => self.on_stopped(*stopped),
            Action::Exit => self.on_exit(),
            Action::Emit(_) => Ok(()),
        }
    }

    /// Checks the state after all actions of an event have been performed.
    pub(crate) fn after(
        &mut self,
        subject: &impl Subject,
        timeout_before: Option<Moment>,
        counters: &Counters,
    ) -> Checked {
        let next = subject.next_timeout();
        if self.stale {
            ensure!(
                counters.stale.get() == self.counted.stale + 1,
                Counted,
                "{:?} of a transport that was given up is not counted",
                self.cause
            );
            ensure!(
                next == timeout_before,
                StaleActs,
                "{:?} of a transport that was given up moves the timer from {timeout_before:?} to {next:?}",
                self.cause
            );
        }
        ensure!(
            self.phase == self.due_phase,
            Transition,
            "{:?} leads to {}, not to {}",
            self.cause,
            self.phase.word(),
            self.due_phase.word()
        );
        if self.cause == Cause::Frame && !self.stale {
            self.check_counted(counters)?;
        }
        self.check_inbox()?;
        self.check_calls(subject)?;
        self.check_lanes()?;
        self.check_link()?;
        self.check_timers(next, subject.tombstones())?;
        ensure!(
            !self.life.exited || subject.is_idle(),
            Idle,
            "the connection is over and still waits for something"
        );
        Ok(())
    }

    /// Checks the final state.
    pub(crate) fn finish(&mut self, subject: &impl Subject, counters: &Counters) -> Checked {
        let open = self.calls.open();
        ensure!(open == 0, OneReply, "{open} calls were never replied to");
        ensure!(
            subject.is_idle(),
            Idle,
            "all is over and something is still waited for"
        );
        if self.life.stopped_at.is_some() {
            ensure!(self.life.exited, StopExit, "stopped, and no exit");
        } else {
            let left = subject.tombstones();
            ensure!(left == 0, Tombstones, "{left} tombstones never went away");
        }
        let counted = counters.values();
        let ended = counted.answered + counted.failed + self.calls.gone;
        ensure!(
            counted.calls == ended,
            Counted,
            "{} calls counted, and {ended} ends of calls",
            counted.calls
        );
        Ok(())
    }

    fn telemetry(&self, telemetry: &Telemetry) -> Checked {
        if let Telemetry::Transition { from, .. } = telemetry {
            let phase = self.phase.word();
            ensure!(
                *from == phase,
                Transition,
                "a transition from {from} is reported in {phase}"
            );
        }
        Ok(())
    }

    /// Checks that everything that waits has a timer, and that no timer is without purpose.
    fn check_timers(&self, next: Option<Moment>, tombstones: usize) -> Checked {
        // The earliest and the latest time for the next timer.
        let mut window: Option<(Moment, Moment)> = None;
        let mut wants = |earliest: Moment, latest: Moment| {
            window = Some(match window {
                None => (earliest, latest),
                Some((early, late)) => (early.min(earliest), late.min(latest)),
            });
        };
        self.calls.deadlines(|deadline| wants(deadline, deadline));
        let delay = self.settings.send_retry_delay;
        self.sends
            .retries(|since| wants(since + delay / 2, since + delay * 3 / 2));
        match self.phase {
            Phase::Starting | Phase::Initializing => {
                let at = self.life.opened + self.settings.handshake_timeout;
                wants(at, at);
                if self.phase == Phase::Initializing
                    && let Some(since) = self.handshake.probing_since()
                {
                    let at = since + self.settings.probe_timeout;
                    wants(at, at);
                }
            }
            Phase::Backoff => wants(self.life.backoff_until, self.life.backoff_until),
            Phase::Closing if !self.life.exited => {
                if let Some(at) = self.life.stopped_at {
                    wants(at, at + STOP_MAX);
                }
            }
            Phase::Ready | Phase::Failed | Phase::Closing => {}
        }
        if tombstones > 0 && self.phase != Phase::Closing {
            wants(self.now, self.now + self.settings.sweep_interval);
        }
        match (next, window) {
            (None, None) => {}
            (Some(next), None) => ensure!(false, Timers, "a timer at {next:?}, and nothing waits"),
            (None, Some((_, latest))) => ensure!(
                false,
                Timers,
                "something waits until {latest:?} without a timer"
            ),
            (Some(next), Some((earliest, latest))) => {
                ensure!(
                    next <= latest,
                    Timers,
                    "the next timer is at {next:?}, and due by {latest:?}"
                );
                ensure!(
                    next >= earliest,
                    Timers,
                    "a timer at {next:?}, and nothing waits before {earliest:?}"
                );
            }
        }
        if self.cause == Cause::Tick {
            let now = self.now;
            ensure!(
                next.is_none_or(|next| next > now),
                Timers,
                "after a tick at {now:?} the next timer is at {next:?}"
            );
        }
        Ok(())
    }
}

/// The longest time that a stop may take, regardless of the server.
pub(crate) const STOP_MAX: Duration = Duration::from_millis(100);
