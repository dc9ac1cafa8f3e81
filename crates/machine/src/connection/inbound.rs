//! The messages of the server: responses, requests and notifications, each passed on to its receiver.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_wire::{
    EnvelopeError, ErrorObject, Frame, Id, Message, Notification, Raw, Request, Response, code,
    encode, method, visible,
};

use super::{Machine, Phase};
use crate::{
    error::RequestFailure,
    event::{Action, Inbound, Outgoing, OutgoingKind, Telemetry},
    outbox::{Lane, Purpose},
    time::Moment,
};

impl Machine {
    pub(super) fn frame(&mut self, now: Moment, frame: &Bytes, via: Option<u64>) {
        match self.phase {
            Phase::Initializing { .. } | Phase::Ready(_) => {}
            Phase::Starting
            | Phase::Backoff
            | Phase::Failed { .. }
            | Phase::Closing
            | Phase::Exited => return,
        }
        match Frame::parse(frame.clone()) {
            Ok(Frame::Single(message)) => self.dispatch(now, message, via, frame.len()),
            Ok(Frame::Batch(messages)) => {
                for message in messages {
                    // An earlier message of the batch may have ended the connection; the rest is then
                    // dropped.
                    if !self.live {
                        break;
                    }
                    match message {
                        Ok(message) => self.dispatch(now, message, via, frame.len()),
                        Err(error) => self.malformed(&error.to_string(), frame),
                    }
                }
            }
            Err(error) => {
                self.garbage.get_or_insert_with(|| sample(frame));
                self.malformed(&error.to_string(), frame);
                if let EnvelopeError::TooDeep { answers: Some(id) } = error {
                    let failure = RequestFailure {
                        status: None,
                        message: format!("the response cannot be parsed: {error}").into(),
                        said: None,
                        sent: true,
                        challenged: false,
                    };
                    self.request_failed(now, id, failure);
                }
            }
        }
        self.arm();
    }

    /// Handles a message. `bytes` is the size of its frame, which stays in memory for as long as any part of
    /// it.
    pub(super) fn dispatch(
        &mut self,
        now: Moment,
        message: Message,
        via: Option<u64>,
        bytes: usize,
    ) {
        match message {
            Message::Response(response) => self.response(now, response),
            Message::Request(request) => self.request(request, via, bytes),
            Message::Notification(notification) => self.notification(now, notification, via, bytes),
        }
    }

    /// Sends the owner's response. Dropped if the server no longer waits for it.
    pub(super) fn answer(&mut self, id: &Id, answer: Result<Raw, ErrorObject>) {
        if matches!(self.phase, Phase::Ready(_)) && self.forget_server_request(id) {
            self.send_answer(id, answer);
        }
    }

    /// Requests the next frame, as long as the connection can handle it.
    pub(super) fn arm(&mut self) {
        if self.live && matches!(self.phase, Phase::Initializing { .. } | Phase::Ready(_)) {
            self.actions.push_back(Action::Arm { epoch: self.epoch });
        }
    }

    fn response(&mut self, now: Moment, response: Response) {
        let Some(id) = response.id.clone() else {
            self.unknown(None);
            return;
        };
        let Some(number) = id.as_u64() else {
            self.unknown(Some(id));
            return;
        };
        if self.handshake_answered(now, number, &response.outcome) {
            return;
        }
        if self.call_answered(now, number, response).is_none() {
            return;
        }
        if self.tombstones.contains(now, number) {
            self.counters.late.add();
            self.actions
                .push_back(Action::Emit(Telemetry::LateResponse { id }));
        } else {
            self.unknown(Some(id));
        }
    }

    fn request(&mut self, request: Request, via: Option<u64>, bytes: usize) {
        let pings = match &self.phase {
            Phase::Ready(session) => session.revision.facts().ping,
            Phase::Initializing { .. } => true,
            Phase::Starting
            | Phase::Backoff
            | Phase::Failed { .. }
            | Phase::Closing
            | Phase::Exited => return,
        };
        if request.method == method::PING && pings {
            self.counters.server_requests.add();
            self.send_answer(&request.id, Ok(Raw::empty_object()));
        } else if matches!(self.phase, Phase::Initializing { .. }) {
            self.hold(Message::Request(request), via, bytes);
        } else if !pings {
            self.violation("a request from a server, which this revision does not allow");
            // The server may still wait for a response.
            let why = "a server of this revision must ask through its results";
            self.send_answer(
                &request.id,
                Err(ErrorObject::new(code::METHOD_NOT_FOUND, why)),
            );
        } else if self.server_requests.iter().any(|(id, _)| *id == request.id) {
            self.violation("two requests with the same ID");
        } else {
            self.counters.server_requests.add();
            let waiting: usize = self.server_requests.iter().map(|(_, bytes)| bytes).sum();
            if bytes > self.settings.server_request_bytes {
                self.refuse(&request.id, "the request is too long");
                return;
            }
            if self.server_requests.len() >= self.settings.server_requests_max
                || waiting + bytes > self.settings.server_requests_bytes
            {
                self.too_many_requests(&request.id);
                return;
            }
            self.server_requests.push((request.id.clone(), bytes));
            let epoch = self.epoch;
            let asked = Inbound::Request {
                epoch,
                request,
                via,
            };
            self.actions.push_back(Action::Deliver(asked));
        }
    }

    fn too_many_requests(&mut self, id: &Id) {
        self.refuse(id, "too many requests are pending");
    }

    fn refuse(&mut self, id: &Id, why: &str) {
        self.counters.dropped.add();
        self.send_answer(id, Err(ErrorObject::new(code::INTERNAL, why)));
    }

    fn notification(
        &mut self,
        now: Moment,
        notification: Notification,
        via: Option<u64>,
        bytes: usize,
    ) {
        if matches!(self.phase, Phase::Initializing { .. })
            && notification.method != method::LOG_MESSAGE
        {
            self.hold(Message::Notification(notification), via, bytes);
            return;
        }
        self.counters.notifications.add();
        let method = notification.method.clone();
        self.actions
            .push_back(Action::Emit(Telemetry::Notification { method }));
        match (notification.method.as_str(), &notification.params) {
            (method::PROGRESS, Some(params)) => self.progressed(now, params.clone()),
            (method::LOG_MESSAGE, Some(params)) if let Some(id) = self.logging_call(via) => {
                self.actions.push_back(Action::Log {
                    id,
                    params: params.clone(),
                    is_named: via.is_some(),
                });
            }
            (method::CANCELLED, Some(params)) => {
                let Some(id) = params.member("requestId").and_then(Id::from_raw) else {
                    self.violation("a cancellation without a request ID");
                    return;
                };
                if self.forget_server_request(&id) {
                    let cancelled = Inbound::RequestCancelled { id };
                    self.actions.push_back(Action::Deliver(cancelled));
                } else if let Some(number) = id.as_u64() {
                    self.cancelled_by_server(now, number);
                }
            }
            _ => {
                let news = Inbound::Notification { notification, via };
                self.actions.push_back(Action::Deliver(news));
            }
        }
    }

    /// Removes a request from the pending ones. Returns `true` if it was there.
    fn forget_server_request(&mut self, id: &Id) -> bool {
        let at = self
            .server_requests
            .iter()
            .position(|(waits, _)| waits == id);
        at.map(|at| self.server_requests.remove(at)).is_some()
    }

    fn hold(&mut self, message: Message, via: Option<u64>, bytes: usize) {
        let Phase::Initializing { held, .. } = &mut self.phase else {
            return;
        };
        let held_bytes: usize = held.iter().map(|(_, _, bytes)| bytes).sum();
        let fits = held_bytes + bytes <= self.settings.server_requests_bytes;
        if held.len() < self.settings.held_max && fits {
            held.push((message, via, bytes));
        } else if let Message::Request(request) = message {
            self.too_many_requests(&request.id);
        } else {
            self.counters.dropped.add();
        }
    }

    fn send_answer(&mut self, id: &Id, answer: Result<Raw, ErrorObject>) {
        // Otherwise, a server that sends requests but reads nothing would make us queue all the responses.
        if self.outbox.len_of(Lane::Own) >= self.settings.server_requests_max {
            self.counters.dropped.add();
            return;
        }
        let frame = match answer {
            Ok(result) => encode::result(id, &result),
            Err(error) => encode::error(Some(id), &error),
        };
        let outgoing = Outgoing {
            frame,
            kind: OutgoingKind::Answer,
            headers: Arc::from([]),
        };
        self.post(Lane::Own, Purpose::Answer, outgoing);
    }

    fn unknown(&mut self, id: Option<Id>) {
        self.counters.unknown.add();
        self.actions
            .push_back(Action::Emit(Telemetry::UnknownResponse { id }));
    }

    fn malformed(&mut self, reason: &str, frame: &Bytes) {
        self.counters.malformed.add();
        self.emit_violation(reason, Some(frame));
    }
}

/// Returns the beginning of a frame, enough to recognise it, with control characters escaped. If the frame
/// was cut, the sample ends with an ellipsis, so that a truncated secret can be distinguished from a complete
/// one.
fn sample(frame: &[u8]) -> Arc<str> {
    let Some((start, _)) = frame.split_at_checked(SAMPLE_BYTES) else {
        return visible(&String::from_utf8_lossy(frame)).into();
    };
    // The last character may have been truncated.
    let start = String::from_utf8_lossy(start);
    let start = start.trim_end_matches(char::REPLACEMENT_CHARACTER);
    format!("{}…", visible(start)).into()
}

const SAMPLE_BYTES: usize = 60;
