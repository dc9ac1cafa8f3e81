//! The calls: from the caller to the transport, with exactly one reply for each.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_wire::{Era, Id, Raw, RawError, Response, encode, meta, method};

use super::{Machine, Phase};
use crate::{
    error::{CallError, RequestFailure},
    event::{Action, Call, CallKind, Outgoing, OutgoingKind, Reply, Telemetry},
    handshake::{self, Session},
    outbox::{Lane, Purpose},
    time::Moment,
    timers::Timer,
};

/// A call that has had no reply yet.
#[derive(Debug)]
pub(super) struct Entry {
    call: Call,
    started: Moment,
    deadline: Option<Moment>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waiting for the connection to become ready.
    Waiting,
    /// In the outbox, with this ticket.
    Posted(u64),
    /// Accepted by the transport.
    Sent,
}

/// Requests during which servers rarely log anything, so that a log message is assumed to belong to another
/// call. A listen stream, moreover, never completes.
const HOUSEKEEPING: [&str; 8] = [
    method::LISTEN,
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCE_TEMPLATES_LIST,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    method::SET_LEVEL,
];

impl Machine {
    pub(super) fn call(&mut self, now: Moment, id: u64, call: Call) {
        if self.calls.contains_key(&id) {
            self.violation("a call with an ID that is in use");
            return;
        }
        self.counters.calls.add();
        let method = call.method.clone();
        self.actions
            .push_back(Action::Emit(Telemetry::CallStarted { id, method }));
        let refusal = match &self.phase {
            Phase::Closing | Phase::Exited => Some(CallError::Shutdown { sent: false }),
            Phase::Failed { reason } => Some(CallError::Failed {
                reason: Arc::clone(reason),
            }),
            Phase::Starting | Phase::Initializing { .. } | Phase::Backoff if call.fail_fast => {
                let state = self.state_name();
                Some(CallError::NotReady { state })
            }
            _ if self.calls.len() >= self.settings.in_flight_max => {
                Some(CallError::Backpressure { attempts: 0 })
            }
            Phase::Starting | Phase::Initializing { .. } | Phase::Backoff | Phase::Ready(_) => None,
        };
        if let Some(error) = refusal {
            self.reply(now, id, now, Err(error));
            return;
        }
        let deadline = call.timeout.map(|timeout| now + timeout);
        if let Some(deadline) = deadline {
            self.timers.set(Timer::Deadline(id), deadline);
        }
        let entry = Entry {
            call,
            started: now,
            deadline,
            stage: Stage::Waiting,
        };
        self.calls.insert(id, entry);
        if matches!(self.phase, Phase::Ready(_)) {
            self.send_call(now, id);
        } else {
            self.waiting.push_back(id);
        }
    }

    /// Posts a call, either at once or after it has waited for the connection.
    pub(super) fn send_call(&mut self, now: Moment, id: u64) {
        let (Phase::Ready(session), Some(entry)) = (&self.phase, self.calls.get(&id)) else {
            return;
        };
        let call = &entry.call;
        let frame = match self.encode(session, id, call) {
            Ok(frame) => frame,
            Err(error) => {
                let reason = Arc::from(error.to_string());
                self.end_call(now, id, CallError::InvalidParams { reason });
                return;
            }
        };
        let outgoing = Outgoing {
            frame,
            kind: call.kind.outgoing(id, call.method.clone()),
            headers: Arc::clone(&call.headers),
        };
        let lane = Lane::Caller(call.lane);
        let ticket = self.post(lane, Purpose::Call(id), outgoing);
        if let Some(entry) = self.calls.get_mut(&id) {
            entry.stage = Stage::Posted(ticket);
        }
    }

    /// Handles the acceptance of a call's frame by the transport.
    pub(super) fn call_sent(&mut self, now: Moment, id: u64) {
        let Some(entry) = self.calls.get_mut(&id) else {
            return;
        };
        entry.stage = Stage::Sent;
        if entry.call.kind == CallKind::Notification
            && let Some(entry) = self.remove_call(id)
        {
            self.reply(now, id, entry.started, Ok(Reply::Sent));
        }
    }

    /// Passes a response to its call. Returns the response if there is no such call.
    pub(super) fn call_answered(
        &mut self,
        now: Moment,
        id: u64,
        response: Response,
    ) -> Option<Response> {
        let waits =
            |entry: &Entry| entry.stage == Stage::Sent && entry.call.kind == CallKind::Request;
        if !self.calls.get(&id).is_some_and(waits) {
            return Some(response);
        }
        if let Some(entry) = self.remove_call(id) {
            self.reply(now, id, entry.started, Ok(Reply::Answered(response)));
        }
        None
    }

    pub(super) fn request_failed(&mut self, now: Moment, id: u64, failure: RequestFailure) {
        if !self.handshake_failed(now, id, &failure) && self.is_sent(id) {
            self.end_call(now, id, CallError::RequestFailed(failure));
        }
    }

    pub(super) fn deadline_passed(&mut self, now: Moment, id: u64) {
        let Some(entry) = self.calls.get(&id) else {
            return;
        };
        let error = CallError::Timeout {
            after: now - entry.started,
            sent: entry.stage == Stage::Sent,
            reason: self.last_failure.clone(),
        };
        self.counters.timeouts.add();
        self.withdraw(now, id, Some("deadline passed"));
        self.end_call(now, id, error);
    }

    pub(super) fn caller_gone(&mut self, now: Moment, id: u64) {
        self.withdraw(now, id, None);
        if self.remove_call(id).is_some() {
            self.counters.cancelled.add();
        }
    }

    pub(super) fn cancel(&mut self, now: Moment, id: u64, reason: Option<&str>) {
        if self.calls.contains_key(&id) {
            self.counters.cancelled.add();
            self.withdraw(now, id, reason);
            self.end_call(now, id, CallError::Cancelled);
        }
    }

    /// Handles the end of a call by the server, which may end a listen stream in 2026-07-28. An older server
    /// only cancels its own requests, whose ids may coincide with ours.
    pub(super) fn cancelled_by_server(&mut self, now: Moment, id: u64) {
        let modern =
            matches!(&self.phase, Phase::Ready(session) if session.revision.era() == Era::Modern);
        if modern && self.is_sent(id) {
            // The server may still send the result that ends the stream.
            self.bury(now, id);
            self.end_call(now, id, CallError::CancelledByServer);
        }
    }

    pub(super) fn progressed(&mut self, now: Moment, params: Raw) {
        let token = params
            .member(meta::PROGRESS_TOKEN)
            .and_then(Id::from_raw)
            .and_then(|token| token.as_u64());
        let entry = token.and_then(|id| Some((id, self.calls.get_mut(&id)?)));
        let Some((id, entry)) =
            entry.filter(|(_, entry)| entry.stage == Stage::Sent && entry.call.progress)
        else {
            self.counters.dropped.add();
            return;
        };
        if let (Some(extend), Some(deadline)) = (entry.call.extend, entry.deadline) {
            let extended = (now + extend.by)
                .min(entry.started + extend.cap)
                .max(deadline);
            entry.deadline = Some(extended);
            self.timers.set(Timer::Deadline(id), extended);
        }
        self.actions.push_back(Action::Progress { id, params });
    }

    /// Returns the call that a log message belongs to, if it is known and the call wants log messages.
    pub(super) fn logging_call(&self, via: Option<u64>) -> Option<u64> {
        let id = via.or_else(|| self.only_request())?;
        let entry = self.calls.get(&id)?;
        (entry.stage == Stage::Sent && entry.call.logs).then_some(id)
    }

    /// Returns the request in flight, if it is the only one apart from [`HOUSEKEEPING`].
    fn only_request(&self) -> Option<u64> {
        let works = |entry: &Entry| {
            entry.stage == Stage::Sent && !HOUSEKEEPING.contains(&&*entry.call.method)
        };
        let mut under_way = self.calls.iter().filter(|(_, entry)| works(entry));
        let only = under_way.next().filter(|_| under_way.next().is_none());
        only.map(|(id, _)| *id)
    }

    /// Fails all calls. The ids that the server has received are remembered.
    pub(super) fn fail_all(&mut self, now: Moment, error: impl Fn(bool) -> CallError) {
        let mut ids: Vec<u64> = self.calls.keys().copied().collect();
        ids.sort_unstable();
        // Drop the frames first, so that the end of one call does not offer the frame of the next.
        self.forget_frames();
        for id in ids {
            let sent = self.is_sent(id);
            if sent {
                self.bury(now, id);
            }
            self.end_call(now, id, error(sent));
        }
    }

    /// Ends a call that had no response.
    pub(super) fn end_call(&mut self, now: Moment, id: u64, error: CallError) {
        if let Some(entry) = self.remove_call(id) {
            self.reply(now, id, entry.started, Err(error));
        }
    }

    pub(super) fn sweep(&mut self, now: Moment) {
        self.tombstones.sweep(now);
        if self.tombstones.len() > 0 {
            self.timers
                .set(Timer::Sweep, now + self.settings.sweep_interval);
        }
    }

    fn is_sent(&self, id: u64) -> bool {
        self.calls
            .get(&id)
            .is_some_and(|entry| entry.stage == Stage::Sent)
    }

    /// Notifies the server, once, that a call is cancelled. Does nothing if the call was not sent.
    fn withdraw(&mut self, now: Moment, id: u64, reason: Option<&str>) {
        if !self.is_sent(id) {
            return;
        }
        self.bury(now, id);
        let reason = reason.map(|reason| ("reason", Raw::string(reason)));
        let params = Raw::object([("requestId", Raw::number(id))].into_iter().chain(reason));
        let outgoing = Outgoing {
            frame: encode::notification(method::CANCELLED, Some(&params)),
            kind: OutgoingKind::Cancel { id },
            headers: Arc::from([]),
        };
        self.post(Lane::Cancel(id), Purpose::Cancel, outgoing);
    }

    fn bury(&mut self, now: Moment, id: u64) {
        if self.tombstones.len() == 0 {
            self.timers
                .set(Timer::Sweep, now + self.settings.sweep_interval);
        }
        self.tombstones.insert(now, id);
    }

    /// Removes a call, its timer and its frame.
    fn remove_call(&mut self, id: u64) -> Option<Entry> {
        let entry = self.calls.remove(&id)?;
        self.timers.stop(Timer::Deadline(id));
        match entry.stage {
            Stage::Waiting => self.waiting.retain(|waiting| *waiting != id),
            Stage::Posted(ticket) => self.leave_outbox(ticket),
            Stage::Sent => {}
        }
        Some(entry)
    }

    fn reply(&mut self, now: Moment, id: u64, started: Moment, outcome: Result<Reply, CallError>) {
        let after = now - started;
        let telemetry = match &outcome {
            Ok(_) => {
                self.counters.answered.add();
                Telemetry::CallAnswered { id, after }
            }
            Err(error) => {
                self.counters.failed.add();
                if let CallError::Backpressure { .. } = error {
                    self.counters.backpressure.add();
                }
                let error = error.clone();
                Telemetry::CallFailed { id, after, error }
            }
        };
        self.actions.push_back(Action::Emit(telemetry));
        self.actions.push_back(Action::Reply { id, outcome });
    }

    fn encode(&self, session: &Session, id: u64, call: &Call) -> Result<Bytes, RawError> {
        let mut members = Vec::new();
        if call.kind == CallKind::Request {
            if session.revision.era() == Era::Modern {
                members.extend(handshake::modern_meta(&self.settings, session.revision));
                members.extend(call.log_level.clone().map(|level| (meta::LOG_LEVEL, level)));
            }
            if call.progress {
                members.push((meta::PROGRESS_TOKEN, Raw::number(id)));
            }
        }
        members.extend(call.trace.clone().map(|trace| (meta::TRACEPARENT, trace)));
        // Members that the caller sets itself are kept, except for the ones that the connection relies on.
        // They are looked up only if necessary, because that is a pass over all parameters.
        if !members.is_empty()
            && let Some(own) = call
                .params
                .as_ref()
                .and_then(|params| params.member(meta::META))
        {
            let ours = [meta::PROTOCOL_VERSION, meta::PROGRESS_TOKEN];
            members.retain(|(name, _)| ours.contains(name) || own.member(name).is_none());
        }
        let stamped = if members.is_empty() {
            call.params.clone()
        } else {
            Some(meta::stamp(call.params.as_ref(), &members)?)
        };
        Ok(match call.kind {
            CallKind::Request => encode::request(&Id::from(id), &call.method, stamped.as_ref()),
            CallKind::Notification => encode::notification(&call.method, stamped.as_ref()),
        })
    }
}
