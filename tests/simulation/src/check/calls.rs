//! Calls and their replies: exactly one for each, the right one, in time.

use std::{collections::VecDeque, time::Duration};

use switchboard_machine::{CallError, Moment, Reply};
use switchboard_wire::Outcome;

use super::{Cause, Checker, Phase};
use crate::{
    coverage::Happening,
    invariant::{Checked, ensure},
    step::Shape,
    subject::Subject,
};

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) shape: Shape,
    pub(super) made: Moment,
    pub(super) deadline: Option<Moment>,
    pub(super) stage: Stage,
    /// Replied to, or gone.
    pub(super) ended: bool,
    gone: bool,
    /// The server has received a cancellation.
    pub(super) cancelled: bool,
}

impl Record {
    /// Tests if it has not been replied to.
    pub(crate) fn waits(&self) -> bool {
        !self.ended
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not offered yet.
    Held,
    /// Offered, but not accepted yet.
    Offered,
    /// Accepted by the transport.
    Accepted,
}

/// The way in which a call must end now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Answered { serial: u32, error: bool },
    Sent,
    Backpressure(u32),
    Timeout,
    Lost,
    RequestFailed,
    NotReady,
    Failed,
    Cancelled,
    CancelledByServer,
    Shutdown,
    InvalidParams,
}

const NO_CALL: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) records: Vec<Record>,
    /// For each id, the index of its record plus one; [`NO_CALL`] if it is not the id of a call.
    places: Vec<u16>,
    pub(super) due: Vec<(u64, Due)>,
    open: usize,
    /// Number of callers that went away before their reply.
    pub(super) gone: u64,
    /// Ids that the server knows but no caller waits for, with the expiry of their tombstones.
    tombstones: VecDeque<(u64, Moment)>,
}

impl Default for Calls {
    fn default() -> Self {
        // Room for a schedule of the usual length, to avoid most reallocations.
        Self {
            records: Vec::with_capacity(24),
            places: Vec::with_capacity(48),
            due: Vec::with_capacity(16),
            open: 0,
            gone: 0,
            tombstones: VecDeque::with_capacity(16),
        }
    }
}

impl Calls {
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(super) fn index(&self, id: u64) -> Option<usize> {
        let place = self.places.get(usize::try_from(id).ok()?).copied()?;
        usize::from(place)
            .checked_sub(1)
            .filter(|_| place != NO_CALL)
    }

    /// Assigns a place to an id. Returns its previous place.
    fn place(&mut self, id: u64, place: u16) -> u16 {
        // Ids are drawn one by one, so there is room for all of them.
        let index = usize::try_from(id).unwrap_or(usize::MAX - 1);
        if self.places.len() <= index {
            self.places.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.places[index], place)
    }

    /// Uses an id for something other than a call. Returns `true` on its first use.
    pub(super) fn is_fresh(&mut self, id: u64) -> bool {
        self.place(id, NO_CALL) == 0
    }

    pub(super) fn get(&self, id: u64) -> Option<&Record> {
        self.index(id).map(|index| &self.records[index])
    }

    pub(super) fn is_due(&self, id: u64) -> bool {
        self.due.iter().any(|(due, _)| *due == id)
    }

    /// Tests if a response to it would be delivered.
    pub(super) fn awaits_answer(&self, id: u64) -> bool {
        let waits = |call: &Record| !call.ended && call.stage == Stage::Accepted;
        self.get(id).is_some_and(waits) && !self.is_due(id)
    }

    pub(super) fn is_buried(&self, now: Moment, id: u64) -> bool {
        self.tombstones
            .iter()
            .any(|(buried, end)| *buried == id && *end > now)
    }

    /// Passes the latest end of each open call to `see`.
    pub(super) fn deadlines(&self, mut see: impl FnMut(Moment)) {
        for call in self.records.iter().filter(|call| !call.ended) {
            if let Some(deadline) = call.deadline {
                see(deadline);
            }
        }
    }

    pub(super) fn all_due(&mut self, how: Due) {
        for call in self.records.iter().filter(|call| !call.ended) {
            if !self.due.iter().any(|(due, _)| *due == call.id) {
                self.due.push((call.id, how));
            }
        }
    }
}

impl Checker<'_> {
    /// Records a call that is about to be made.
    pub(crate) fn made(&mut self, id: u64, shape: Shape) {
        // A schedule has far fewer calls than that.
        let Ok(place) = u16::try_from(self.calls.records.len() + 1) else {
            return;
        };
        self.calls.place(id, place);
        self.calls.open += 1;
        let timeout = (shape.timeout > 0).then(|| Duration::from_millis(u64::from(shape.timeout)));
        self.calls.records.push(Record {
            id,
            shape,
            made: self.now,
            deadline: timeout.map(|timeout| self.now + timeout),
            stage: Stage::Held,
            ended: false,
            gone: false,
            cancelled: false,
        });
    }

    pub(super) fn expect_call(&mut self, id: u64) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let due = match self.phase {
            Phase::Closing => Some(Due::Shutdown),
            Phase::Failed => Some(Due::Failed),
            Phase::Starting | Phase::Initializing | Phase::Backoff if call.shape.fast => {
                Some(Due::NotReady)
            }
            // This call itself is already counted.
            _ if self.calls.open > self.settings.in_flight_max => Some(Due::Backpressure(0)),
            Phase::Ready if self.cannot_be_stamped(call.shape) => Some(Due::InvalidParams),
            Phase::Starting | Phase::Initializing | Phase::Backoff | Phase::Ready => None,
        };
        self.calls.due.extend(due.map(|due| (id, due)));
    }

    /// Tests if the parameters cannot hold the metadata of 2026-07-28, or a progress token.
    pub(super) fn cannot_be_stamped(&self, shape: Shape) -> bool {
        shape.array && !shape.notify && (self.life.modern || shape.progress)
    }

    pub(super) fn expect_gone(&mut self, id: u64) {
        let Some(index) = self
            .calls
            .index(id)
            .filter(|index| !self.calls.records[*index].ended)
        else {
            return;
        };
        self.calls.gone += 1;
        self.calls.records[index].gone = true;
        self.end(index);
        if self.calls.records[index].stage == Stage::Accepted {
            self.bury(id);
        }
    }

    pub(super) fn expect_cancel(&mut self, id: u64) {
        if self.calls.get(id).is_some_and(|call| !call.ended) {
            self.calls.due.push((id, Due::Cancelled));
        }
    }

    pub(super) fn expect_deadlines(&mut self) {
        let now = self.now;
        for call in &self.calls.records {
            if !call.ended && call.deadline.is_some_and(|deadline| deadline <= now) {
                self.calls.due.push((call.id, Due::Timeout));
                self.coverage.hit(self.phase, Happening::Deadline);
            }
        }
    }

    pub(super) fn on_reply(&mut self, id: u64, outcome: &Result<Reply, CallError>) -> Checked {
        let Some(index) = self.calls.index(id) else {
            ensure!(
                false,
                OneReply,
                "a reply to {id}, which is no call: {outcome:?}"
            );
            return Ok(());
        };
        let call = &self.calls.records[index];
        ensure!(
            !call.gone,
            NoReplyToGone,
            "a reply to {id}, whose caller is gone: {outcome:?}"
        );
        ensure!(!call.ended, OneReply, "a second reply to {id}: {outcome:?}");
        self.check_told(id)?;
        if let Err(CallError::Timeout { .. }) = outcome {
            let in_time = call.deadline.is_some_and(|deadline| deadline <= self.now);
            ensure!(
                in_time,
                Deadline,
                "{id} times out at {:?}, due {:?}",
                self.now,
                call.deadline
            );
        }
        let Some(at) = self.calls.due.iter().position(|(due, _)| *due == id) else {
            let cause = self.cause;
            ensure!(
                false,
                RightEnd,
                "{cause:?} ends {id}, which still waits, with {outcome:?}"
            );
            return Ok(());
        };
        let (_, due) = self.calls.due.swap_remove(at);
        let accepted = call.stage == Stage::Accepted;
        ensure!(
            self.fits(due, index, outcome),
            RightEnd,
            "{id} (accepted: {accepted}) must end with {due:?} and ends with {outcome:?}"
        );
        if let (Due::Answered { serial, error }, Ok(Reply::Answered(response))) = (due, outcome) {
            let right = response.id.as_ref().and_then(switchboard_wire::Id::as_u64) == Some(id);
            let same = match &response.outcome {
                Outcome::Result(result) => !error && read_serial(result.as_bytes()) == Some(serial),
                Outcome::Error(object) => error && object.code == i64::from(serial),
            };
            ensure!(
                right && same,
                RightAnswer,
                "{id} must get answer {serial} and gets {response:?}"
            );
        }
        let cancelled = self.calls.records[index].cancelled;
        let withdrawn = matches!(due, Due::Timeout | Due::Cancelled);
        ensure!(
            !withdrawn || !accepted || cancelled,
            CancelOnce,
            "{id} ends with {due:?}, and the server is not told"
        );
        if accepted
            && matches!(
                due,
                Due::Timeout | Due::Cancelled | Due::Lost | Due::Shutdown | Due::Failed
            )
        {
            self.bury(id);
        }
        self.end(index);
        Ok(())
    }

    fn fits(&self, due: Due, index: usize, outcome: &Result<Reply, CallError>) -> bool {
        let call = &self.calls.records[index];
        match (due, outcome) {
            (
                Due::Timeout,
                Err(CallError::Timeout {
                    after,
                    sent,
                    reason,
                }),
            ) => {
                *after == self.now - call.made
                    && *sent == (call.stage == Stage::Accepted)
                    && reason.is_some() == self.life.failing
            }
            (Due::Backpressure(attempts), Err(CallError::Backpressure { attempts: told })) => {
                attempts == *told
            }
            (Due::Shutdown, Err(CallError::Shutdown { sent })) => {
                *sent == (call.stage == Stage::Accepted)
            }
            (Due::NotReady, Err(CallError::NotReady { state })) => *state == self.phase.word(),
            (Due::Answered { .. }, Ok(Reply::Answered(_)))
            | (Due::Sent, Ok(Reply::Sent))
            | (Due::Lost, Err(CallError::ConnectionLost { .. }))
            | (Due::RequestFailed, Err(CallError::RequestFailed(_)))
            | (Due::Failed, Err(CallError::Failed { .. }))
            | (Due::Cancelled, Err(CallError::Cancelled))
            | (Due::CancelledByServer, Err(CallError::CancelledByServer))
            | (Due::InvalidParams, Err(CallError::InvalidParams { .. })) => true,
            _ => false,
        }
    }

    fn end(&mut self, index: usize) {
        self.calls.records[index].ended = true;
        self.calls.open -= 1;
        self.sends.forget_call(index);
    }

    pub(super) fn bury(&mut self, id: u64) {
        let end = self.now + self.settings.tombstone_ttl();
        self.calls.tombstones.push_back((id, end));
        if self.calls.tombstones.len() > self.settings.tombstones_max {
            self.calls.tombstones.pop_front();
        }
    }

    pub(super) fn check_calls(&self, subject: &impl Subject) -> Checked {
        if let Some((id, due)) = self.calls.due.first() {
            let cause = self.cause;
            match due {
                Due::Timeout => ensure!(false, Deadline, "{id} outlives its deadline"),
                _ => ensure!(
                    false,
                    OneReply,
                    "{cause:?} must end {id} with {due:?}, and it still waits"
                ),
            }
        }
        if let Cause::Gone(id) | Cause::Cancel(id) = self.cause {
            let told =
                |call: &Record| call.stage != Stage::Accepted || !call.ended || call.cancelled;
            let lost = matches!(self.phase, Phase::Ready)
                && self.calls.get(id).is_some_and(|call| call.gone);
            ensure!(
                !lost || self.calls.get(id).is_none_or(told),
                CancelOnce,
                "the caller of {id} is gone, and the server is not told"
            );
        }
        let (open, in_flight, max) = (
            self.calls.open,
            subject.in_flight(),
            self.settings.in_flight_max,
        );
        ensure!(
            in_flight == open,
            InFlight,
            "{in_flight} in flight, and {open} not replied to"
        );
        ensure!(
            in_flight <= max,
            InFlight,
            "{in_flight} in flight, {max} allowed"
        );
        let (buried, most) = (subject.tombstones(), self.settings.tombstones_max);
        ensure!(
            buried <= most,
            Tombstones,
            "{buried} tombstones, {most} allowed"
        );
        let now = self.now;
        let kept = self
            .calls
            .tombstones
            .iter()
            .filter(|(_, end)| *end > now)
            .count();
        ensure!(
            buried >= kept,
            Tombstones,
            "{buried} tombstones, and {kept} late answers may come"
        );
        Ok(())
    }
}

/// The number in `{"s":7}`.
pub(super) fn read_serial(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br#"{"s":"#)?.strip_suffix(b"}")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
