//! Transports and states: opening, arming and closing, and the transitions between states.

use std::time::Duration;

use switchboard_machine::{Action, CallError, DownKind, Moment, State, Stopped};
use switchboard_wire::Era;

use super::{Cause, Checker, Phase, STOP_MAX, calls::Due};
use crate::invariant::{Checked, ensure};

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what was seen of a transport, each on its own; a state would be the machine's opinion"
)]
pub(crate) struct Lifecycle {
    /// The transport opened last, and its status.
    pub(crate) epoch: u64,
    live: bool,
    pub(super) up: bool,
    closed: bool,
    armed: bool,
    /// A request of the handshake has been offered to it.
    pub(super) greeted: bool,
    pub(super) opened: Moment,
    /// Number of transports opened since the last delay.
    opened_at_once: u8,
    /// The session, if there is one, is of 2026-07-28.
    pub(super) modern: bool,
    failures: u32,
    /// The last attempt failed, and none has succeeded since.
    pub(super) failing: bool,
    pub(super) backoff_until: Moment,
    pub(crate) stopped_at: Option<Moment>,
    pub(crate) exited: bool,
}

impl Lifecycle {
    /// Tests if events of this transport are expected.
    pub(crate) fn listens_to(&self, epoch: u64) -> bool {
        self.live && epoch == self.epoch
    }

    /// Tests if a frame can be sent.
    pub(crate) fn carries(&self) -> bool {
        self.live && self.up && !self.closed
    }
}

impl Checker<'_> {
    pub(super) fn expect_up(&mut self) {
        self.life.up = true;
        if self.phase == Phase::Starting {
            self.due_phase = Phase::Initializing;
        }
    }

    pub(super) fn expect_down(&mut self, kind: DownKind) {
        self.life.live = false;
        self.life.armed = false;
        self.due_phase = match self.phase {
            Phase::Initializing
                if kind == DownKind::Closed && self.handshake.left_when_probed() =>
            {
                Phase::Starting
            }
            Phase::Starting | Phase::Initializing | Phase::Ready if kind == DownKind::Permanent => {
                Phase::Failed
            }
            Phase::Starting | Phase::Initializing | Phase::Ready => Phase::Backoff,
            other @ (Phase::Backoff | Phase::Failed | Phase::Closing) => other,
        };
        self.expect_loss();
    }

    pub(super) fn expect_oversize(&mut self) {
        self.life.armed = false;
        if matches!(self.phase, Phase::Initializing | Phase::Ready) {
            self.due_phase = Phase::Backoff;
        }
        self.expect_loss();
    }

    /// Records the consequence for the calls, if the connection ends.
    pub(super) fn expect_loss(&mut self) {
        if self.phase == Phase::Ready && self.due_phase != Phase::Ready {
            self.calls.all_due(Due::Lost);
        }
        if self.due_phase == Phase::Failed {
            self.calls.all_due(Due::Failed);
        }
    }

    pub(super) fn expect_tick(&mut self) {
        let now = self.now;
        self.expect_deadlines();
        match self.phase {
            Phase::Starting | Phase::Initializing => {
                self.expect_probe_timeout();
                if self.life.opened + self.settings.handshake_timeout <= now {
                    self.due_phase = Phase::Backoff;
                }
            }
            Phase::Backoff if self.life.backoff_until <= now => self.due_phase = Phase::Starting,
            Phase::Backoff | Phase::Ready | Phase::Failed | Phase::Closing => {}
        }
    }

    pub(super) fn expect_restart(&mut self) {
        if matches!(self.phase, Phase::Backoff | Phase::Failed) {
            self.due_phase = Phase::Starting;
            self.life.failures = 0;
        }
    }

    pub(super) fn expect_stop(&mut self) {
        self.due_phase = Phase::Closing;
        self.calls.all_due(Due::Shutdown);
    }

    pub(super) fn on_open(&mut self, epoch: u64) -> Checked {
        let life = &mut self.life;
        ensure!(
            epoch > life.epoch,
            Epochs,
            "transport {epoch} is opened after {}",
            life.epoch
        );
        ensure!(
            !life.live,
            Epochs,
            "transport {epoch} is opened while {} stands",
            life.epoch
        );
        let paused = matches!(self.cause, Cause::Begin | Cause::Tick | Cause::Restart);
        let in_a_row = if paused { 1 } else { life.opened_at_once + 1 };
        ensure!(
            in_a_row <= 2,
            HotLoop,
            "{in_a_row} transports are opened without a pause"
        );
        life.opened_at_once = in_a_row;
        life.epoch = epoch;
        life.live = true;
        life.up = false;
        life.closed = false;
        life.armed = false;
        life.greeted = false;
        life.opened = self.now;
        self.sends.clear();
        self.inbox.new_transport();
        Ok(())
    }

    pub(super) fn on_close(&mut self, epoch: u64) -> Checked {
        let life = &mut self.life;
        ensure!(
            epoch == life.epoch && life.live && !life.closed,
            Epochs,
            "transport {epoch} is closed, and {} is open: {}",
            life.epoch,
            life.live && !life.closed
        );
        life.closed = true;
        // While the connection stops, the end of the transport still matters.
        life.live = life.stopped_at.is_some();
        life.armed = false;
        Ok(())
    }

    pub(super) fn on_arm(&mut self, epoch: u64) -> Checked {
        let life = &mut self.life;
        let phase = self.phase.word();
        ensure!(
            epoch == life.epoch
                && life.carries()
                && matches!(self.phase, Phase::Initializing | Phase::Ready),
            Arm,
            "transport {epoch} is armed while {phase}, and {} is the one that can be",
            life.epoch
        );
        ensure!(
            !life.armed,
            Arm,
            "transport {epoch} is armed twice for one frame"
        );
        ensure!(
            life.greeted,
            HandshakeFirst,
            "transport {epoch} is armed ahead of the handshake"
        );
        life.armed = true;
        Ok(())
    }

    /// Records that the transport has handed in the frame for which it was armed.
    pub(crate) fn disarm(&mut self) {
        self.life.armed = false;
    }

    pub(super) fn on_state(&mut self, state: &State) -> Checked {
        let from = self.phase;
        let to = match state {
            State::Starting => Phase::Starting,
            State::Initializing => Phase::Initializing,
            State::Ready(_) => Phase::Ready,
            State::Backoff { .. } => Phase::Backoff,
            State::Failed { .. } => Phase::Failed,
            State::Closing => Phase::Closing,
        };
        let legal = match from {
            Phase::Starting => matches!(
                to,
                Phase::Initializing | Phase::Backoff | Phase::Failed | Phase::Closing
            ),
            Phase::Initializing => to != Phase::Initializing,
            Phase::Ready => matches!(to, Phase::Backoff | Phase::Failed | Phase::Closing),
            Phase::Backoff | Phase::Failed => matches!(to, Phase::Starting | Phase::Closing),
            Phase::Closing => false,
        };
        ensure!(legal, Transition, "from {} to {}", from.word(), to.word());
        self.phase = to;
        if from == Phase::Ready {
            let left = self.calls.open();
            ensure!(
                left == 0,
                OneReply,
                "the connection is lost, and {left} calls still wait"
            );
            self.check_requests_forgotten()?;
        }
        if matches!(to, Phase::Backoff | Phase::Failed | Phase::Closing) {
            self.sends.clear();
        }
        match to {
            Phase::Ready => self.life.failing = false,
            Phase::Backoff | Phase::Failed => self.life.failing = true,
            Phase::Starting | Phase::Initializing | Phase::Closing => {}
        }
        match state {
            State::Starting | State::Failed { .. } | State::Closing => Ok(()),
            State::Initializing => {
                self.begin_handshake();
                Ok(())
            }
            State::Ready(session) => {
                self.life.failures = 0;
                self.life.modern = session.revision.era() == Era::Modern;
                self.on_ready(session.revision)
            }
            State::Backoff {
                failures, delay, ..
            } => self.on_backoff(*failures, *delay),
        }
    }

    fn on_backoff(&mut self, failures: u32, delay: Duration) -> Checked {
        self.life.failures += 1;
        let expected = self.life.failures;
        ensure!(
            failures == expected,
            Backoff,
            "failure {expected} is reported as {failures}"
        );
        let doubled = 2_u32.saturating_pow(expected - 1);
        let base = self
            .settings
            .backoff_base
            .saturating_mul(doubled)
            .min(self.settings.backoff_max);
        ensure!(
            delay >= base * 8 / 10 && delay <= base * 12 / 10,
            Backoff,
            "a delay of {delay:?} after failure {failures}, base {base:?}"
        );
        self.life.backoff_until = self.now + delay;
        Ok(())
    }

    pub(super) fn on_stopped(&mut self, stopped: Stopped) -> Checked {
        ensure!(
            self.cause == Cause::Stop,
            StopFirst,
            "{:?} leads to {stopped:?}",
            self.cause
        );
        ensure!(
            self.actions == 1,
            StopFirst,
            "{} actions go ahead of {stopped:?}",
            self.actions - 1
        );
        let expected = match self.life.stopped_at {
            None => Stopped::Ok,
            Some(_) => Stopped::AlreadyClosing,
        };
        ensure!(
            stopped == expected,
            StopFirst,
            "told {stopped:?}, not {expected:?}"
        );
        self.life.stopped_at.get_or_insert(self.now);
        Ok(())
    }

    pub(super) fn on_exit(&mut self) -> Checked {
        let Some(stopped_at) = self.life.stopped_at else {
            ensure!(false, StopExit, "an exit without a stop");
            return Ok(());
        };
        ensure!(!self.life.exited, StopExit, "a second exit");
        let after = self.now - stopped_at;
        // After a doze the exit may be late; another check covers the timer.
        ensure!(
            after <= STOP_MAX || self.dozed,
            StopExit,
            "the exit is {after:?} after the stop"
        );
        self.life.exited = true;
        self.life.live = false;
        Ok(())
    }

    /// Checks that after a stop there is only the exit, and errors for late callers.
    pub(super) fn check_quiet(&self, action: &Action) -> Checked {
        if self.phase != Phase::Closing {
            return Ok(());
        }
        let allowed = match action {
            Action::Exit => true,
            Action::Close { .. } | Action::Stopped(_) => self.cause == Cause::Stop,
            Action::Reply { outcome, .. } => matches!(outcome, Err(CallError::Shutdown { .. })),
            _ => false,
        };
        ensure!(allowed, StopQuiet, "after the stop there is {action:?}");
        Ok(())
    }

    pub(super) fn check_link(&self) -> Checked {
        let life = &self.life;
        let listens = matches!(self.phase, Phase::Initializing | Phase::Ready);
        ensure!(
            life.armed == listens,
            Arm,
            "while {}, the transport is armed: {}",
            self.phase.word(),
            life.armed
        );
        let stands = matches!(
            self.phase,
            Phase::Starting | Phase::Initializing | Phase::Ready
        );
        ensure!(
            stands == (life.live && !life.closed) || self.phase == Phase::Closing,
            Epochs,
            "while {}, there is a transport: {}",
            self.phase.word(),
            life.live && !life.closed
        );
        ensure!(
            self.phase != Phase::Failed || self.calls.open() == 0,
            OneReply,
            "failed for good, and {} calls still wait",
            self.calls.open()
        );
        let ends_at_once =
            matches!(self.cause, Cause::Down(_)) && self.phase == Phase::Closing && !self.stale;
        ensure!(
            !ends_at_once || life.exited,
            StopExit,
            "the transport ends while closing, and there is no exit"
        );
        Ok(())
    }
}
