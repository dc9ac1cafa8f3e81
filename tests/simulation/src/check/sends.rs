//! Frames that are offered to the transport: number of offers, order, and contents.

use std::{collections::VecDeque, io::Write};

use bytes::Bytes;
use switchboard_machine::{Moment, Outgoing, OutgoingKind, SendOutcome};
use switchboard_wire::method;

use super::{
    Cause, Checker, Phase,
    calls::{Due, Stage},
};
use crate::{
    coverage::Happening,
    invariant::{Checked, ensure},
    world::{CALL_METHOD, NOTIFY_METHOD},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Call(usize),
    Handshake,
    Confirm,
    Answer,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Offered, with an unknown outcome.
    Offered,
    /// To be offered again.
    Retry,
    /// Accepted, given up or dropped.
    Done,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    what: What,
    frame: Bytes,
    attempts: u32,
    since: Moment,
    place: Place,
}

#[derive(Debug)]
pub(super) struct Sends {
    /// In the order of their first offer. The relevant ones are at the end.
    tickets: Vec<Ticket>,
    retrying: u32,
    /// The first call of each caller that waited for the connection.
    waited: VecDeque<usize>,
    scratch: Vec<u8>,
}

impl Default for Sends {
    fn default() -> Self {
        Self {
            tickets: Vec::with_capacity(32),
            retrying: 0,
            waited: VecDeque::new(),
            scratch: Vec::with_capacity(128),
        }
    }
}

impl Sends {
    fn position(&self, number: u64) -> Option<usize> {
        self.tickets
            .iter()
            .rposition(|ticket| ticket.number == number)
    }

    /// Drops all frames in progress.
    pub(super) fn clear(&mut self) {
        self.retrying = 0;
        for ticket in &mut self.tickets {
            ticket.place = Place::Done;
        }
    }

    /// Drops unsent requests of the handshake, which is done.
    pub(super) fn forget_handshake(&mut self) {
        for ticket in &mut self.tickets {
            if ticket.what == What::Handshake && ticket.place != Place::Done {
                self.retrying -= u32::from(ticket.place == Place::Retry);
                ticket.place = Place::Done;
            }
        }
    }

    pub(super) fn forget_call(&mut self, index: usize) {
        for ticket in &mut self.tickets {
            if ticket.what == What::Call(index) && ticket.place != Place::Done {
                self.retrying -= u32::from(ticket.place == Place::Retry);
                ticket.place = Place::Done;
            }
        }
    }

    /// Passes the time since which each frame waits for a retry to `see`.
    pub(super) fn retries(&self, mut see: impl FnMut(Moment)) {
        if self.retrying > 0 {
            for ticket in self
                .tickets
                .iter()
                .filter(|ticket| ticket.place == Place::Retry)
            {
                see(ticket.since);
            }
        }
    }

    /// Tests if a response to the server has to wait behind another frame.
    pub(super) fn own_lane_waits(&self) -> bool {
        let own = |ticket: &Ticket| {
            ticket.place == Place::Retry
                && matches!(ticket.what, What::Handshake | What::Confirm | What::Answer)
        };
        self.retrying > 0 && self.tickets.iter().any(own)
    }
}

impl Checker<'_> {
    pub(super) fn on_send(&mut self, number: u64, outgoing: &Outgoing) -> Checked {
        ensure!(
            matches!(self.phase, Phase::Initializing | Phase::Ready) && self.life.carries(),
            SendPlace,
            "{} is sent while {}, with a transport to carry it: {}",
            String::from_utf8_lossy(&outgoing.frame),
            self.phase.word(),
            self.life.carries()
        );
        match self.sends.position(number) {
            Some(at) => self.on_offer_again(at, outgoing),
            None => self.on_first_offer(number, outgoing),
        }
    }

    fn on_offer_again(&mut self, at: usize, outgoing: &Outgoing) -> Checked {
        self.coverage.hit(self.phase, Happening::Retry);
        let (now, delay) = (self.now, self.settings.send_retry_delay);
        let ticket = &mut self.sends.tickets[at];
        let (what, place, attempts) = (ticket.what, ticket.place, ticket.attempts);
        ensure!(
            place == Place::Retry && attempts < self.settings.send_attempts,
            SendCount,
            "{what:?} is offered again after {attempts} offers, and it is {place:?}"
        );
        let waited = now - ticket.since;
        ensure!(
            self.cause == Cause::Tick && waited >= delay / 2,
            RetryDelay,
            "{what:?} is offered again after {waited:?}, because of {:?}",
            self.cause
        );
        ensure!(
            what != What::Handshake || self.phase == Phase::Initializing,
            Handshake,
            "a question of the handshake is offered again while {}",
            self.phase.word()
        );
        ensure!(
            ticket.frame == outgoing.frame,
            RightFrame,
            "{what:?} is offered again with another frame"
        );
        ticket.attempts += 1;
        ticket.place = Place::Offered;
        self.sends.retrying -= 1;
        Ok(())
    }

    fn on_first_offer(&mut self, number: u64, outgoing: &Outgoing) -> Checked {
        let frame = &outgoing.frame;
        let what = match &outgoing.kind {
            OutgoingKind::Request { id, method } => {
                if let Some(index) = self.calls.index(*id) {
                    self.on_call(index, frame)?;
                    What::Call(index)
                } else {
                    self.on_greeting(*id, method, frame)?;
                    What::Handshake
                }
            }
            OutgoingKind::Notification { method } if method == method::INITIALIZED => {
                self.on_confirm()?;
                What::Confirm
            }
            OutgoingKind::Notification { .. } => {
                let index = self.notification_of(frame);
                let text = String::from_utf8_lossy(frame);
                let Some(index) = index.filter(|index| *index < self.calls.records.len()) else {
                    ensure!(
                        false,
                        RightFrame,
                        "a notification that nobody wanted: {text}"
                    );
                    return Ok(());
                };
                self.on_call(index, frame)?;
                What::Call(index)
            }
            OutgoingKind::Cancel { id } => {
                self.on_withdrawal(*id, frame)?;
                What::Cancel
            }
            OutgoingKind::Answer => {
                self.on_answer(frame)?;
                What::Answer
            }
        };
        self.sends.tickets.push(Ticket {
            number,
            what,
            frame: frame.clone(),
            attempts: 1,
            since: self.now,
            place: Place::Offered,
        });
        Ok(())
    }

    /// Checks a call when it is first offered.
    fn on_call(&mut self, index: usize, frame: &[u8]) -> Checked {
        let call = &self.calls.records[index];
        let id = call.id;
        ensure!(
            self.phase == Phase::Ready,
            SendPlace,
            "{id} is sent while {}",
            self.phase.word()
        );
        ensure!(
            !call.ended,
            SendPlace,
            "{id} is sent, and nobody waits for it"
        );
        ensure!(
            call.stage == Stage::Held,
            SendCount,
            "{id} is sent under a second ticket"
        );
        let scratch = &mut self.sends.scratch;
        scratch.clear();
        // Writing to a vector cannot fail.
        let _ = if call.shape.notify {
            write!(scratch, r#"{{"jsonrpc":"2.0","method":"{NOTIFY_METHOD}""#)
        } else {
            write!(
                scratch,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{CALL_METHOD}""#
            )
        };
        let _ = if call.shape.array {
            write!(scratch, r#","params":[{index}]"#)
        } else {
            write!(scratch, r#","params":{{"n":{index}"#)
        };
        let next = frame
            .strip_prefix(scratch.as_slice())
            .and_then(|rest| rest.first());
        ensure!(
            matches!(next, Some(b'}' | b',')),
            RightFrame,
            "{id} is sent as {}",
            String::from_utf8_lossy(frame)
        );
        self.check_turn(index)?;
        self.calls.records[index].stage = Stage::Offered;
        Ok(())
    }

    /// Checks that no earlier frame of the same caller is waiting, and that the first calls of the callers
    /// that waited for the connection go out in order.
    fn check_turn(&mut self, index: usize) -> Checked {
        let lane = self.calls.records[index].shape.lane;
        for (at, call) in self.calls.records.iter().enumerate().take(index) {
            // A frame is sent before the reply that makes room for it.
            let left = call.ended || call.stage == Stage::Accepted || self.calls.is_due(call.id);
            ensure!(
                left || call.shape.lane != lane,
                LaneOrder,
                "call {index} overtakes {at}, which is of the same caller"
            );
        }
        if self.sends.waited.contains(&index) {
            let first = self.sends.waited.pop_front();
            ensure!(
                first == Some(index),
                LaneOrder,
                "call {index} goes ahead of {first:?}, which waited for longer"
            );
        }
        Ok(())
    }

    /// Queues the calls that waited for the connection, which is now ready.
    pub(super) fn line_up(&mut self) {
        let mut lanes = 0_u32;
        self.sends.waited.clear();
        for (index, call) in self.calls.records.iter().enumerate() {
            let lane = 1 << (call.shape.lane % 32);
            if !call.ended && lanes & lane == 0 && !self.calls.is_due(call.id) {
                self.sends.waited.push_back(index);
                lanes |= lane;
            }
        }
    }

    /// Checks that after an event no caller's frame waits for that of another caller.
    pub(super) fn check_lanes(&self) -> Checked {
        if self.phase != Phase::Ready {
            return Ok(());
        }
        let mut lanes = 0_u32;
        for call in self
            .calls
            .records
            .iter()
            .filter(|call| !call.ended && call.stage != Stage::Accepted)
        {
            let lane = 1 << (call.shape.lane % 32);
            let waits = lanes & lane == 0 && call.stage == Stage::Held;
            ensure!(
                !waits,
                LaneFreedom,
                "{} waits, and nothing of its caller is ahead of it",
                call.id
            );
            lanes |= lane;
        }
        Ok(())
    }

    fn on_withdrawal(&mut self, id: u64, frame: &[u8]) -> Checked {
        let now = self.now;
        let Some(index) = self.calls.index(id) else {
            ensure!(false, CancelOnce, "{id} is withdrawn, and was never called");
            return Ok(());
        };
        let call = &mut self.calls.records[index];
        ensure!(
            call.stage == Stage::Accepted,
            CancelOnce,
            "{id} is withdrawn, and the server has not seen it"
        );
        ensure!(!call.cancelled, CancelOnce, "{id} is withdrawn twice");
        let wanted = match self.cause {
            Cause::Gone(gone) | Cause::Cancel(gone) => gone == id,
            Cause::Tick => call.deadline.is_some_and(|deadline| deadline <= now),
            _ => false,
        };
        ensure!(
            wanted,
            CancelOnce,
            "{id} is withdrawn because of {:?}",
            self.cause
        );
        call.cancelled = true;
        let scratch = &mut self.sends.scratch;
        scratch.clear();
        let _ = write!(
            scratch,
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}"#
        );
        let next = frame
            .strip_prefix(scratch.as_slice())
            .and_then(|rest| rest.first());
        ensure!(
            matches!(next, Some(b'}' | b',')),
            RightFrame,
            "{id} is withdrawn with {}",
            String::from_utf8_lossy(frame)
        );
        Ok(())
    }

    /// The index of the call in a notification, which has no id to identify it.
    fn notification_of(&mut self, frame: &[u8]) -> Option<usize> {
        let scratch = &mut self.sends.scratch;
        scratch.clear();
        let _ = write!(
            scratch,
            r#"{{"jsonrpc":"2.0","method":"{NOTIFY_METHOD}","params":"#
        );
        let params = frame.strip_prefix(scratch.as_slice())?;
        let digits = params.iter().skip_while(|byte| !byte.is_ascii_digit());
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        Some(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
    }

    /// Records the outcome of an offer, which is about to be handed in.
    pub(crate) fn sent(&mut self, number: u64, outcome: SendOutcome) {
        let Some(at) = self.sends.position(number) else {
            return;
        };
        let (now, attempts_max) = (self.now, self.settings.send_attempts);
        let ticket = &mut self.sends.tickets[at];
        let (what, attempts) = (ticket.what, ticket.attempts);
        if ticket.place == Place::Done {
            return;
        }
        let again = outcome == SendOutcome::Busy && attempts < attempts_max && what != What::Cancel;
        ticket.since = now;
        ticket.place = if again { Place::Retry } else { Place::Done };
        if again {
            self.sends.retrying += 1;
            return;
        }
        match (what, outcome) {
            (What::Call(index), _) => self.call_left(index, outcome, attempts),
            (What::Confirm, SendOutcome::Accepted) => self.on_confirmed(),
            (What::Handshake | What::Confirm, SendOutcome::Busy) => self.on_handshake_given_up(),
            _ => {}
        }
    }

    fn call_left(&mut self, index: usize, outcome: SendOutcome, attempts: u32) {
        let call = &mut self.calls.records[index];
        let id = call.id;
        let due = match outcome {
            SendOutcome::Accepted => {
                call.stage = Stage::Accepted;
                if !call.shape.notify {
                    return;
                }
                Due::Sent
            }
            SendOutcome::Busy => Due::Backpressure(attempts),
            SendOutcome::Closed => Due::Lost,
        };
        // A deadline that expired at the same tick takes precedence.
        if !self.calls.is_due(id) {
            self.calls.due.push((id, due));
        }
    }
}
