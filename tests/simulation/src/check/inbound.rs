//! Messages of the server: their recipients, their order, and how they are counted.

use std::collections::VecDeque;

use switchboard_machine::{Counters, Inbound};
use switchboard_wire::{Id, Raw};

use super::{Checker, Phase, calls::Due};
use crate::{
    coverage::Happening,
    invariant::{Checked, ensure},
    server::{Note, SERVER_IDS},
};

/// A message for the owner, with the request on whose stream it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    News(u32, Option<u64>),
    Request(u8, Option<u64>),
    Cancelled(u8),
}

/// A message for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Progress(u32),
    Log(u32),
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(super) due: VecDeque<Delivery>,
    /// Messages due, in order.
    told: VecDeque<(u64, Told)>,
    /// Requests of the server that the owner has, by their index in [`SERVER_IDS`].
    pub(crate) outstanding: Vec<u8>,
    /// Number of responses that may be sent under each id of the server.
    pub(super) answers: [u8; SERVER_IDS.len()],
    /// The response to a ping must be sent with this very event.
    ping: bool,
    late: u64,
    unknown: u64,
    /// Responses to requests of an earlier handshake count as either.
    either: u64,
    malformed: u64,
}

impl Inbox {
    pub(super) fn begin(&mut self) {
        self.ping = false;
        self.late = 0;
        self.unknown = 0;
        self.either = 0;
        self.malformed = 0;
    }

    pub(super) fn new_transport(&mut self) {
        self.answers = [0; SERVER_IDS.len()];
    }

    pub(super) fn late_or_unknown(&mut self) {
        self.either += 1;
    }
}

impl Checker<'_> {
    /// Records one message of the frame that is about to be handed in.
    pub(crate) fn note(&mut self, note: Note, via: Option<u64>) {
        // Within one frame, a message may already meet the state caused by the previous one.
        let phase = self.due_phase;
        let deaf = self.stale || !matches!(phase, Phase::Initializing | Phase::Ready);
        let happening = match note {
            Note::Answer { id, .. } if !deaf && self.calls.awaits_answer(id) => Happening::Answer,
            Note::Answer { id, .. } => self.classify(id),
            Note::Welcome { id, .. } if !deaf && self.decides(id) => Happening::Handshake,
            Note::Welcome { .. } | Note::Stray => Happening::Unknown,
            Note::Garbage => Happening::Garbage,
            Note::Ping(_) => Happening::Ping,
            Note::Ask(_) => Happening::Request,
            Note::News { .. } | Note::Log { .. } => Happening::Notification,
            Note::Progress { .. } => Happening::Progress,
            Note::Withdraw { .. } => Happening::Withdrawal,
        };
        self.coverage.hit(phase, happening);
        if deaf {
            return;
        }
        match note {
            Note::Answer { id, serial, error } => match happening {
                Happening::Answer => self.calls.due.push((id, Due::Answered { serial, error })),
                Happening::Late => self.inbox.late += 1,
                _ => self.inbox.unknown += 1,
            },
            Note::Welcome { id, how } if phase == Phase::Initializing => {
                self.expect_welcome(id, how);
            }
            Note::Welcome { .. } => self.inbox.either += 1,
            Note::Stray => self.inbox.unknown += 1,
            Note::Garbage => self.inbox.malformed += 1,
            Note::Ping(own) => {
                self.inbox.answers[usize::from(own)] += 1;
                self.inbox.ping = true;
            }
            Note::Log { serial } => match self.logging_call(via) {
                Some(id) => self.inbox.told.push_back((id, Told::Log(serial))),
                None => self.expect_delivery(Delivery::News(serial, via)),
            },
            Note::Ask(_) | Note::News { .. } | Note::Progress { .. } | Note::Withdraw { .. } => {
                if phase == Phase::Initializing {
                    self.hold(note, via);
                } else {
                    self.expect_news(note, via);
                }
            }
        }
    }

    fn classify(&self, id: u64) -> Happening {
        if self.calls.is_buried(self.now, id) {
            Happening::Late
        } else {
            Happening::Unknown
        }
    }

    /// Records a notification or request that arrives while the connection is ready.
    pub(super) fn expect_news(&mut self, note: Note, via: Option<u64>) {
        match note {
            Note::News { serial } => self.expect_delivery(Delivery::News(serial, via)),
            Note::Ask(own) => {
                if self.inbox.outstanding.contains(&own) {
                    return;
                }
                let has_room = self.inbox.outstanding.len() < self.settings.server_requests_max;
                // A newer server may not send requests, and gets an error.
                if self.life.modern || !has_room {
                    self.inbox.answers[usize::from(own)] += 1;
                } else {
                    self.inbox.outstanding.push(own);
                    self.expect_delivery(Delivery::Request(own, via));
                }
            }
            Note::Progress { id, serial } => {
                if self.calls.awaits_answer(id)
                    && let Some(index) = self.calls.index(id)
                    && self.calls.records[index].shape.progress
                {
                    self.extend(index);
                    self.inbox.told.push_back((id, Told::Progress(serial)));
                }
            }
            Note::Withdraw { own, number } => {
                if let Some(own) = own.filter(|own| self.inbox.outstanding.contains(own)) {
                    self.inbox
                        .outstanding
                        .retain(|outstanding| *outstanding != own);
                    self.expect_delivery(Delivery::Cancelled(own));
                } else if let Some(number) = number
                    && self.life.modern
                    && self.calls.awaits_answer(number)
                {
                    // An older server may cancel its own requests only. Any later message, even in the same
                    // frame, is late.
                    self.calls.due.push((number, Due::CancelledByServer));
                    self.bury(number);
                }
            }
            Note::Answer { .. }
            | Note::Welcome { .. }
            | Note::Stray
            | Note::Garbage
            | Note::Ping(_)
            | Note::Log { .. } => {}
        }
    }

    /// The call to which a log message belongs, if it accepts log messages.
    fn logging_call(&self, via: Option<u64>) -> Option<u64> {
        let records = self.calls.records.iter();
        let mut under_way = records.filter(|call| self.calls.awaits_answer(call.id));
        let call = match via {
            Some(id) => under_way.find(|call| call.id == id),
            None => under_way.next().filter(|_| under_way.next().is_none()),
        };
        call.filter(|call| call.shape.logs).map(|call| call.id)
    }

    fn extend(&mut self, index: usize) {
        let now = self.now;
        let call = &mut self.calls.records[index];
        let (by, cap) = call.shape.extend;
        if (by, cap) == (0, 0) {
            return;
        }
        let millis = |ms: u32| std::time::Duration::from_millis(u64::from(ms));
        let limit = call.made + millis(cap);
        call.deadline = call
            .deadline
            .map(|deadline| deadline.max((now + millis(by)).min(limit)));
    }

    pub(super) fn expect_owner_answer(&mut self, own: u8) {
        if self.phase == Phase::Ready && self.inbox.outstanding.contains(&own) {
            self.inbox
                .outstanding
                .retain(|outstanding| *outstanding != own);
            self.inbox.answers[usize::from(own)] += 1;
        }
    }

    pub(super) fn on_deliver(&mut self, inbound: &Inbound) -> Checked {
        let delivered = match inbound {
            Inbound::Notification { notification, via } => notification
                .params
                .as_ref()
                .and_then(|params| super::calls::read_serial(params.as_bytes()))
                .map(|serial| Delivery::News(serial, *via)),
            Inbound::Request { request, via, .. } => {
                own_id(&request.id).map(|own| Delivery::Request(own, *via))
            }
            Inbound::RequestCancelled { id } => own_id(id).map(Delivery::Cancelled),
        };
        // When the connection ends, every pending request is cancelled, oldest first.
        if let Some(Delivery::Cancelled(own)) = delivered
            && self.ends_now()
            && self.inbox.outstanding.first() == Some(&own)
        {
            self.inbox.outstanding.remove(0);
            return Ok(());
        }
        let due = self.inbox.due.pop_front();
        ensure!(
            delivered.is_some() && delivered == due,
            Delivery,
            "{inbound:?} is delivered, and {due:?} is due"
        );
        Ok(())
    }

    fn ends_now(&self) -> bool {
        matches!(
            self.due_phase,
            Phase::Backoff | Phase::Failed | Phase::Closing
        )
    }

    pub(super) fn check_requests_forgotten(&self) -> Checked {
        let left = self.inbox.outstanding.len();
        ensure!(
            left == 0,
            Delivery,
            "the connection ends, and {left} requests of the server are not withdrawn"
        );
        Ok(())
    }

    pub(super) fn on_progress(&mut self, id: u64, params: &Raw) -> Checked {
        let start = format!(r#"{{"progressToken":{id},"progress":"#);
        let serial = params.as_str().strip_prefix(&start);
        let serial = serial.and_then(|rest| rest.strip_suffix('}')?.parse().ok());
        self.on_told(id, serial.map(Told::Progress))
    }

    pub(super) fn on_log(&mut self, id: u64, params: &Raw) -> Checked {
        let serial = super::calls::read_serial(params.as_bytes());
        self.on_told(id, serial.map(Told::Log))
    }

    fn on_told(&mut self, id: u64, told: Option<Told>) -> Checked {
        let due = self.inbox.told.pop_front();
        ensure!(
            due.is_some() && due == told.map(|told| (id, told)),
            Delivery,
            "{id} is told {told:?}, and {due:?} is due"
        );
        Ok(())
    }

    /// Checks that all messages for a call are delivered before its end.
    pub(super) fn check_told(&self, id: u64) -> Checked {
        let left = self.inbox.told.iter().find(|(due, _)| *due == id);
        ensure!(
            left.is_none(),
            Delivery,
            "{id} ends, and has not been told {left:?}"
        );
        Ok(())
    }

    /// Checks a response to the server when it is first offered.
    pub(super) fn on_answer(&mut self, frame: &[u8]) -> Checked {
        let id = frame
            .strip_prefix(br#"{"jsonrpc":"2.0","id":"#)
            .and_then(|rest| {
                let end = rest.iter().position(|byte| *byte == b',')?;
                SERVER_IDS
                    .iter()
                    .position(|own| own.as_bytes() == &rest[..end])
            });
        let Some(own) = id else {
            let text = String::from_utf8_lossy(frame);
            ensure!(
                false,
                ServerAnswer,
                "an answer to nothing that was asked: {text}"
            );
            return Ok(());
        };
        let left = self.inbox.answers[own];
        ensure!(
            left > 0,
            ServerAnswer,
            "an answer too many to {}",
            SERVER_IDS[own]
        );
        self.inbox.answers[own] -= 1;
        self.inbox.ping = false;
        Ok(())
    }

    pub(super) fn check_inbox(&self) -> Checked {
        if let Some(due) = self.inbox.due.front() {
            ensure!(false, Delivery, "{due:?} is not delivered");
        }
        if let Some(due) = self.inbox.told.front() {
            ensure!(false, Delivery, "{due:?} is not told");
        }
        let could = matches!(self.phase, Phase::Initializing | Phase::Ready)
            && !self.sends.own_lane_waits();
        ensure!(
            !self.inbox.ping || !could,
            ServerAnswer,
            "a ping is not answered"
        );
        Ok(())
    }

    pub(super) fn check_counted(&self, counters: &Counters) -> Checked {
        let (before, inbox) = (&self.counted, &self.inbox);
        let late = counters.late.get() - before.late;
        let unknown = counters.unknown.get() - before.unknown;
        let malformed = counters.malformed.get() - before.malformed;
        ensure!(
            late >= inbox.late
                && unknown >= inbox.unknown
                && late + unknown == inbox.late + inbox.unknown + inbox.either,
            Counted,
            "{late} late and {unknown} unknown, not {} and {} and {} of either",
            inbox.late,
            inbox.unknown,
            inbox.either
        );
        ensure!(
            malformed == inbox.malformed,
            Counted,
            "{malformed} malformed, not {}",
            inbox.malformed
        );
        Ok(())
    }
}

fn own_id(id: &Id) -> Option<u8> {
    let text = id.raw().as_bytes();
    SERVER_IDS
        .iter()
        .zip(0..)
        .find(|(own, _)| own.as_bytes() == text)
        .map(|(_, own)| own)
}
