//! A POST, from the message to the last part of its response.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use bytes::Bytes;
use reqwest::{Method, Response, StatusCode, header::WWW_AUTHENTICATE};
use switchboard_wire::{header, method};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    super::{DownKind, Outgoing, OutgoingKind, RequestFailure, TransportEvent, sse},
    EventStream, RequestError,
    body::{
        Body, Next, Resume, answered, content_type, is_event_stream, message, read_body,
        read_refusal,
    },
    error_reply::{ErrorReply, refusal},
    failure::{cause, failure, said},
    headers::{EVENTS, JSON, Modern},
    peer::{Deaf, Peer, Report, is_transient},
};

/// Time that the server may take to accept a message that has no response.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which everything else waits for the notification that the session is open.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to continue reading after the response, so that the connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// The most attempts to resume a stream without a new event.
const RESUMES: u32 = 5;
/// Time that a server of the older transport may take to open its stream.
const FALLBACK_TIMEOUT: Duration = Duration::from_secs(8);

/// Opens when the sender is dropped.
pub(super) type Gate = watch::Receiver<()>;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) peer: Peer,
    pub(super) outgoing: Outgoing,
    pub(super) modern: Option<Modern>,
    /// The gate to wait for first.
    pub(super) gate: Option<Gate>,
}

/// The ways in which a request can fail.
#[derive(Debug)]
enum End {
    /// Only this request failed.
    Failed(RequestFailure),
    /// The server cannot be reached.
    Unreachable(RequestFailure),
    /// The server no longer knows the session.
    SessionGone,
    /// The transport is gone.
    Deaf,
}

impl From<Deaf> for End {
    fn from(_: Deaf) -> Self {
        Self::Deaf
    }
}

impl Post {
    /// Sends a request and handles its response or failure. Returns its id.
    pub(super) async fn request(mut self, id: u64) -> Option<u64> {
        if let Err(end) = self.carry(id).await {
            // An error means that the transport is gone, and there is nothing to report to.
            let _ = self.report(id, end).await;
        }
        Some(id)
    }

    /// Sends a message that has no response.
    pub(super) async fn message(self) -> Option<u64> {
        self.deliver(MESSAGE_TIMEOUT).await;
        None
    }

    /// Sends the notification that the session is open. Dropping `hold` releases the messages that wait for
    /// it.
    pub(super) async fn confirm(self, hold: watch::Sender<()>) -> Option<u64> {
        self.deliver(CONFIRM_TIMEOUT).await;
        drop(hold);
        None
    }

    async fn deliver(self, limit: Duration) {
        let outcome = within(limit, self.send()).await;
        let problem = match outcome {
            Some(Ok(response)) if response.status().is_success() => return,
            Some(Ok(response)) if self.lost_session(&response) => {
                let _ = self.peer.session_gone().await;
                return;
            }
            Some(Ok(response)) => self.failed(Some(response.status()), ""),
            Some(Err(trouble @ RequestError::Unreachable(_))) => {
                let failure = trouble.failure(self.what(), &self.peer.endpoint);
                let _ = self
                    .peer
                    .down(DownKind::Unreachable, &failure.message)
                    .await;
                return;
            }
            Some(Err(trouble)) => trouble.failure(self.what(), &self.peer.endpoint),
            None => self.failed(None, &format!("not accepted within {limit:?}")),
        };
        self.peer.endpoint.undelivered.report(|missed| {
            tracing::warn!(target: "switchboard::transport", problem = &*problem.message, missed, "Message not delivered.");
        });
    }

    async fn report(&self, id: u64, end: End) -> Result<(), Deaf> {
        match end {
            End::Failed(failure) => {
                self.peer
                    .event(TransportEvent::RequestFailed { id, failure })
                    .await
            }
            End::Unreachable(failure) => {
                let message = failure.message.clone();
                self.peer
                    .event(TransportEvent::RequestFailed { id, failure })
                    .await?;
                self.peer.down(DownKind::Unreachable, &message).await
            }
            End::SessionGone => self.peer.session_gone().await,
            End::Deaf => Ok(()),
        }
    }

    async fn carry(&mut self, id: u64) -> Result<(), End> {
        let response = self.send().await.map_err(|trouble| {
            let failure = trouble.failure(self.what(), &self.peer.endpoint);
            match trouble {
                RequestError::Unreachable(_) => End::Unreachable(failure),
                RequestError::Failed { .. } => End::Failed(failure),
            }
        })?;
        if !response.status().is_success() {
            return self.refused(id, response).await;
        }
        if self.what() == method::INITIALIZE
            && let Some(session) = response.headers().get(header::SESSION_ID)
        {
            let mut session = session.clone();
            // The session id grants access to the session.
            session.set_sensitive(true);
            self.peer.standing.session = Some(session.clone());
            self.peer.report(Report::Session(session)).await?;
        }
        let status = response.status();
        match content_type(&response).as_deref() {
            Some(EVENTS) => self.follow(id, response).await,
            Some(JSON) | None => self.take(id, response).await,
            Some(_) if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                Err(self.end(Some(status), "accepted without a response"))
            }
            Some(other) => {
                let reason =
                    "the response is neither JSON nor an event stream; is this an MCP server?";
                let failure = self.failed(Some(status), reason);
                Err(saying(failure, other.as_bytes()))
            }
        }
    }

    /// Sends the message and waits for the head of the response.
    async fn send(&self) -> Result<Response, RequestError> {
        if let Some(mut gate) = self.gate.clone() {
            // The value never changes: the gate opens with an error.
            let _ = gate.changed().await;
        }
        let headers = self
            .peer
            .standing
            .headers(&self.outgoing, self.modern.as_ref());
        let headers = headers.map_err(|reason| RequestError::Failed {
            status: None,
            reason,
            said: None,
        })?;
        let endpoint = &self.peer.endpoint;
        let frame = self.outgoing.frame.clone();
        endpoint
            .request(Method::POST, endpoint.url(), headers, frame)
            .await
    }

    /// Handles a response that is a JSON document.
    async fn take(&self, id: u64, response: Response) -> Result<(), End> {
        let status = Some(response.status());
        let limit = self.peer.endpoint.limit;
        let body = match read_body(response, limit).await {
            Ok(Body::Whole(body)) => body,
            Ok(Body::TooLarge) => {
                return Ok(self
                    .peer
                    .event(TransportEvent::FrameTooLarge { limit })
                    .await?);
            }
            Err(error) => {
                return Err(self.end(
                    status,
                    &format!("the response was cut off: {}", cause(&error)),
                ));
            }
        };
        if body.trim_ascii().is_empty() {
            return Err(self.end(status, "accepted without a response"));
        }
        if answered(&body).contains(&id) {
            return Ok(self.frame(id, body).await?);
        }
        let end = saying(
            self.failed(status, "not the response to this request"),
            &body,
        );
        self.frame(id, body).await?;
        Err(end)
    }

    /// Handles a response that is the last event of a stream, or of several: a stream whose events have ids
    /// can be resumed where it broke.
    async fn follow(&self, id: u64, mut response: Response) -> Result<(), End> {
        let mut resume = Resume::default();
        let mut fruitless = 0;
        loop {
            let mut since = Instant::now();
            let before = resume.events;
            let Some(mut reason) = self.read(id, response, &mut resume).await? else {
                return Ok(());
            };
            if resume.events > before {
                fruitless = 0;
            }
            response = loop {
                let last = resume.last.clone();
                let Some(last) = last.filter(|_| self.modern.is_none() && fruitless < RESUMES)
                else {
                    return Err(self.end(None, &reason));
                };
                fruitless += 1;
                sleep(resume.delay(since.elapsed())).await;
                since = Instant::now();
                match self.peer.get(Some(&last)).await {
                    Ok(response) if is_event_stream(&response) => break response,
                    Ok(response) if self.lost_session(&response) => return Err(End::SessionGone),
                    Ok(response) => {
                        let status = response.status();
                        reason =
                            format!("the stream broke and could not be resumed: HTTP {status}");
                        if !is_transient(status) {
                            return Err(self.end(None, &reason));
                        }
                    }
                    Err(
                        RequestError::Unreachable(cause)
                        | RequestError::Failed { reason: cause, .. },
                    ) => {
                        reason = format!("the stream broke and could not be resumed: {cause}");
                    }
                }
            };
        }
    }

    /// Reads a stream up to the response. Returns the reason if the response does not arrive.
    async fn read(
        &self,
        id: u64,
        response: Response,
        resume: &mut Resume,
    ) -> Result<Option<String>, End> {
        let mut events = EventStream::new(response, self.peer.endpoint.limit);
        loop {
            match events.next().await {
                Next::Event(event) => {
                    resume.note(&event);
                    let Some(frame) = message(event) else {
                        continue;
                    };
                    let done = answered(&frame).contains(&id);
                    self.frame(id, frame).await?;
                    if done {
                        within(DRAIN_TIMEOUT, self.drain(id, events)).await;
                        return Ok(None);
                    }
                }
                Next::TooLarge { limit } => {
                    self.peer
                        .event(TransportEvent::FrameTooLarge { limit })
                        .await?;
                }
                Next::End(None) => {
                    return Ok(Some("the stream ended before the response".to_owned()));
                }
                Next::End(Some(error)) => {
                    let cause = cause(&error);
                    return Ok(Some(format!(
                        "the stream broke before the response: {cause}"
                    )));
                }
            }
        }
    }

    async fn drain(&self, id: u64, mut events: EventStream) {
        while let Next::Event(event) = events.next().await {
            if let Some(frame) = message(event)
                && self.frame(id, frame).await.is_err()
            {
                return;
            }
        }
    }

    /// Passes on a frame that arrived on the stream of this request, or instead of one.
    async fn frame(&self, id: u64, frame: Bytes) -> Result<(), Deaf> {
        let via = Some(id);
        self.peer.event(TransportEvent::Frame { frame, via }).await
    }

    /// Handles an error status. If the body is a JSON-RPC error, it is the response.
    async fn refused(&self, id: u64, response: Response) -> Result<(), End> {
        let status = response.status();
        if self.lost_session(&response) {
            return Err(End::SessionGone);
        }
        let challenged = response.headers().contains_key(WWW_AUTHENTICATE);
        let body = read_refusal(response, self.peer.endpoint.limit).await;
        let failure = RequestFailure {
            challenged,
            ..self.failed(Some(status), "")
        };
        let end = saying(failure, &body);
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(end);
        }
        match refusal(&body, id) {
            Some(ErrorReply::Session(_))
                if status == StatusCode::BAD_REQUEST && self.names_session() =>
            {
                return Err(End::SessionGone);
            }
            Some(ErrorReply::Request(frame) | ErrorReply::Session(frame)) => {
                return Ok(self.frame(id, frame).await?);
            }
            None => {}
        }
        let is_older = matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
        );
        if self.what() == method::INITIALIZE && is_older {
            let opening = sse::open(self.peer.endpoint.clone());
            match within(FALLBACK_TIMEOUT, opening).await {
                Some(Ok(opened)) => {
                    let fallback = Report::Fallback(Box::new(opened), self.outgoing.clone());
                    return Ok(self.peer.report(fallback).await?);
                }
                Some(Err(down)) => {
                    let reason = tracing::field::display(&down);
                    tracing::debug!(target: "switchboard::transport", reason, "The server does not support HTTP+SSE either.");
                }
                None => {
                    tracing::debug!(target: "switchboard::transport", "The server did not respond to GET either.");
                }
            }
        }
        Err(end)
    }

    /// Returns `true` if the message names a session.
    fn names_session(&self) -> bool {
        self.modern.is_none()
            && self.peer.standing.session.is_some()
            && self.what() != method::INITIALIZE
    }

    /// Returns `true` if the response says that the session of the request is gone.
    fn lost_session(&self, response: &Response) -> bool {
        response.status() == StatusCode::NOT_FOUND && self.names_session()
    }

    /// Returns the name of the message, for error messages.
    fn what(&self) -> &str {
        match &self.outgoing.kind {
            OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => method,
            OutgoingKind::Cancel { .. } => method::CANCELLED,
            OutgoingKind::Answer => "answer",
        }
    }

    fn failed(&self, status: Option<StatusCode>, reason: &str) -> RequestFailure {
        failure(self.what(), &self.peer.endpoint, status, reason)
    }

    fn end(&self, status: Option<StatusCode>, reason: &str) -> End {
        End::Failed(self.failed(status, reason))
    }
}

/// Returns the failure of a request, with the beginning of the server's message.
fn saying(failure: RequestFailure, body: &[u8]) -> End {
    End::Failed(RequestFailure {
        said: said(body),
        ..failure
    })
}

/// Returns the output of the future, or `None` after the limit.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    timeout(limit, future).await.ok()
}
