//! HTTP+SSE, the transport of 2024-11-05, which is deprecated but still in use.
//!
//! A GET opens one event stream. Its first event names the URL for POSTs of messages; all responses
//! arrive on the stream. The end of the stream is the end of the session.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinSet,
    time::timeout,
};

use super::{
    Connect, Connecting, Down, DownKind, Outgoing, OutgoingKind, RequestFailure, SendOutcome,
    Session, Transport, TransportEvent, closed,
    http::{
        Endpoint, EventStream, HttpConfigError, Next, RequestError, Standing, content_type,
        is_event_stream, message, read_refusal, said,
    },
};
use crate::auth::OAuth;

/// The most messages that wait to be sent.
const QUEUE: usize = 64;
/// The most events that wait to be polled before the stream is held.
const EVENTS: usize = 16;
/// Time that the server may take to accept a message. The response arrives on the stream.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects to a server over HTTP+SSE.
///
/// [`Http`](super::http::Http) detects such servers; use this for a server that is known to be one.
#[derive(Clone)]
pub struct Sse {
    endpoint: Endpoint,
}

impl Sse {
    /// Connects to the stream at this URL, `http` or `https`.
    pub fn new(url: &str) -> Result<Self, HttpConfigError> {
        let endpoint = Endpoint::new(url)?;
        Ok(Self { endpoint })
    }

    /// Adds a header to all requests. The value is treated as a secret: it is not printed, and not
    /// sent to any other origin. Headers that the protocol sets itself are rejected.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HttpConfigError> {
        self.endpoint.add_header(name, value)?;
        Ok(self)
    }

    /// Adds the tokens of this sign-in to all requests. It has to be for a server of the same origin.
    pub fn oauth(mut self, oauth: &OAuth) -> Result<Self, HttpConfigError> {
        self.endpoint.set_oauth(oauth)?;
        Ok(self)
    }

    /// Sets the largest message to accept, in bytes. 16 MiB by default.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.endpoint.limit = bytes;
        self
    }
}

impl Connect for Sse {
    fn connect(&self) -> Connecting {
        let endpoint = Arc::new(self.endpoint.clone());
        Box::pin(async move {
            let opened = open(endpoint).await?;
            Ok(Box::new(SseTransport::new(opened)) as Box<dyn Transport>)
        })
    }

    fn describe(&self) -> String {
        self.endpoint.address()
    }
}

impl fmt::Debug for Sse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sse({:?})", self.endpoint)
    }
}

/// A stream that has named the URL for messages.
#[derive(Debug)]
pub(super) struct Opened {
    endpoint: Arc<Endpoint>,
    events: EventStream,
    post_to: Url,
}

/// Opens the stream.
pub(super) async fn open(endpoint: Arc<Endpoint>) -> Result<Opened, Down> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    let url = endpoint.url().clone();
    let response = endpoint
        .request(Method::GET, &url, headers, Bytes::new())
        .await;
    let response = response.map_err(|trouble| down(None, trouble.failure("GET", &endpoint)))?;
    if !is_event_stream(&response) {
        return Err(no_stream(&endpoint, response).await);
    }
    let base = response.url().clone();
    let mut events = EventStream::new(response, endpoint.limit);
    let reference = loop {
        match events.next().await {
            Next::Event(event) if event.event.as_deref() == Some("endpoint") => break event.data,
            Next::Event(event) if event.data.is_empty() => {}
            Next::Event(_) | Next::TooLarge { .. } => {
                return Err(unfit(&endpoint, "the first event is not `endpoint`", None));
            }
            Next::End(_) => {
                return Err(unfit(
                    &endpoint,
                    "the stream ended before it named an endpoint",
                    None,
                ));
            }
        }
    };
    let reference = String::from_utf8_lossy(&reference);
    let post_to = endpoint
        .resolve(&base, reference.trim())
        .map_err(|(reason, said)| unfit(&endpoint, &format!("the endpoint {reason}"), said))?;
    Ok(Opened {
        endpoint,
        events,
        post_to,
    })
}

async fn no_stream(endpoint: &Endpoint, response: Response) -> Down {
    let status = response.status();
    let (reason, said) = match content_type(&response) {
        Some(found) if status.is_success() => (
            "the response is not an event stream; is this an MCP server?",
            said(found.as_bytes()),
        ),
        _ => ("", said(&read_refusal(response, endpoint.limit).await)),
    };
    let status = Some(status);
    let trouble = RequestError::Failed {
        status,
        reason: reason.to_owned(),
        said,
    };
    down(status, trouble.failure("GET", endpoint))
}

fn unfit(endpoint: &Endpoint, reason: &str, said: Option<Arc<str>>) -> Down {
    let trouble = RequestError::Failed {
        status: None,
        reason: reason.to_owned(),
        said,
    };
    down(None, trouble.failure("GET", endpoint))
}

fn down(status: Option<StatusCode>, failure: RequestFailure) -> Down {
    Down {
        kind: match status {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => DownKind::Permanent,
            _ => DownKind::Unreachable,
        },
        message: failure.message,
        said: failure.said,
    }
}

/// A message in the queue.
struct Letter {
    outgoing: Outgoing,
    standing: Standing,
}

/// The queues of messages to send. Responses and cancellations have their own queue: a server that
/// accepts a request only when it has finished processing it may need them to finish.
struct Queues {
    ordinary: mpsc::Sender<Letter>,
    urgent: mpsc::Sender<Letter>,
}

pub(super) struct SseTransport {
    /// `None` once the transport is closed.
    queues: Option<Queues>,
    events: mpsc::Receiver<TransportEvent>,
    reader: JoinSet<()>,
    writer: JoinSet<()>,
    standing: Standing,
    ended: bool,
}

impl SseTransport {
    pub(super) fn new(opened: Opened) -> Self {
        let (ordinary, letters) = mpsc::channel(QUEUE);
        let (urgent, urgent_letters) = mpsc::channel(QUEUE);
        let (sender, events) = mpsc::channel(EVENTS);
        let mut reader = JoinSet::new();
        reader.spawn(read(opened.events, sender.clone()));
        let mut writer = JoinSet::new();
        let post = Writer {
            endpoint: opened.endpoint,
            post_to: opened.post_to,
            events: sender,
        };
        writer.spawn(post.clone().run(letters));
        writer.spawn(post.run(urgent_letters));
        Self {
            queues: Some(Queues { ordinary, urgent }),
            events,
            reader,
            writer,
            standing: Standing::default(),
            ended: false,
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.queues = None;
        self.reader.abort_all();
        self.writer.abort_all();
    }

    /// Sends the queued messages, then ends.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        // Events are discarded, but they must not keep the server from reading the messages.
        while let Poll::Ready(Some(_)) = self.events.poll_recv(cx) {}
        while ready!(self.writer.poll_join_next(cx)).is_some() {}
        self.end();
        Poll::Ready(TransportEvent::Down(closed("closed")))
    }
}

impl Transport for SseTransport {
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        let Some(queues) = &self.queues else {
            return SendOutcome::Closed;
        };
        let queue = match outgoing.kind {
            OutgoingKind::Answer | OutgoingKind::Cancel { .. } => &queues.urgent,
            OutgoingKind::Request { .. } | OutgoingKind::Notification { .. } => &queues.ordinary,
        };
        let standing = self.standing.clone();
        match queue.try_send(Letter { outgoing, standing }) {
            Ok(()) => SendOutcome::Accepted,
            Err(TrySendError::Full(_)) => SendOutcome::Busy,
            Err(TrySendError::Closed(_)) => SendOutcome::Closed,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        if self.ended {
            return Poll::Pending;
        }
        if self.queues.is_none() {
            return self.poll_closed(cx);
        }
        let event = ready!(self.events.poll_recv(cx));
        let event = event.unwrap_or_else(|| TransportEvent::Down(closed("the event stream ended")));
        if let TransportEvent::Down(_) = event {
            self.end();
        }
        Poll::Ready(event)
    }

    fn negotiated(&mut self, session: &Session) {
        self.standing.revision = Some(session.revision);
    }

    fn close(&mut self) {
        self.queues = None;
    }
}

/// Passes on the messages that arrive on the stream, up to its end.
async fn read(mut stream: EventStream, events: mpsc::Sender<TransportEvent>) {
    loop {
        let event = match stream.next().await {
            Next::Event(event) => match message(event) {
                Some(frame) => TransportEvent::Frame { frame, via: None },
                None => continue,
            },
            Next::TooLarge { limit } => TransportEvent::FrameTooLarge { limit },
            Next::End(_) => TransportEvent::Down(closed("the event stream ended")),
        };
        let last = matches!(event, TransportEvent::Down(_));
        if events.send(event).await.is_err() || last {
            return;
        }
    }
}

/// Sends messages, one after another.
#[derive(Clone)]
struct Writer {
    endpoint: Arc<Endpoint>,
    post_to: Url,
    events: mpsc::Sender<TransportEvent>,
}

impl Writer {
    async fn run(self, mut letters: mpsc::Receiver<Letter>) {
        while let Some(letter) = letters.recv().await {
            let Err(trouble) = self.post(&letter).await else {
                continue;
            };
            let what = match &letter.outgoing.kind {
                OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => {
                    method
                }
                OutgoingKind::Cancel { .. } | OutgoingKind::Answer => "message",
            };
            let failure = trouble.failure(what, &self.endpoint);
            let message = failure.message.clone();
            if let OutgoingKind::Request { id, .. } = letter.outgoing.kind {
                let event = TransportEvent::RequestFailed { id, failure };
                if self.events.send(event).await.is_err() {
                    return;
                }
            } else {
                self.endpoint.undelivered.report(|missed| {
                    tracing::warn!(target: "switchboard::transport", problem = &*message, missed, "Message not delivered.");
                });
            }
            if let RequestError::Unreachable(_) = trouble {
                let kind = DownKind::Unreachable;
                let down = Down {
                    kind,
                    message,
                    said: None,
                };
                // An error means that the transport is gone, and there is nothing to report to.
                let _ = self.events.send(TransportEvent::Down(down)).await;
                return;
            }
        }
    }

    /// Sends a message. Any success status is enough: the response arrives on the stream.
    async fn post(&self, letter: &Letter) -> Result<(), RequestError> {
        let headers = letter.standing.headers(&letter.outgoing, None);
        let headers = headers.map_err(|reason| RequestError::Failed {
            status: None,
            reason,
            said: None,
        })?;
        let frame = letter.outgoing.frame.clone();
        let request = self
            .endpoint
            .request(Method::POST, &self.post_to, headers, frame);
        match timeout(POST_TIMEOUT, request).await {
            Ok(Ok(response)) if response.status().is_success() => Ok(()),
            Ok(Ok(response)) => {
                let status = Some(response.status());
                let said = match letter.outgoing.kind {
                    OutgoingKind::Request { .. } => {
                        said(&read_refusal(response, self.endpoint.limit).await)
                    }
                    // There is no caller to report to, so the body would only end up in a log.
                    _ => None,
                };
                Err(RequestError::Failed {
                    status,
                    reason: String::new(),
                    said,
                })
            }
            Ok(Err(trouble)) => Err(trouble),
            Err(_) => Err(RequestError::Failed {
                status: None,
                reason: format!("not accepted within {POST_TIMEOUT:?}"),
                said: None,
            }),
        }
    }
}
