//! Server-sent events: a response body without an end of its own.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body as AxumBody,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use hyper::{
    body::{Body, Frame},
    header::{CONTENT_TYPE, HeaderValue},
};
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, interval_at},
};

/// The most events that wait for the reader. Then the sender waits.
const DEPTH: usize = 64;
/// The interval of pings, which show the reader and proxies that the connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A ping.
pub(super) const PING: Bytes = Bytes::from_static(b": ping\n\n");

/// The sending end of a stream of events.
pub(super) struct Sender(mpsc::Sender<Bytes>);

/// The reader has disconnected.
pub(super) struct Gone;

/// Creates a stream of events, and its sender.
pub(super) fn stream() -> (Sender, Response) {
    let (sender, events) = mpsc::channel(DEPTH);
    let body = Stream {
        events,
        alive: alive(),
    };
    (Sender(sender), response(body))
}

/// A response whose body is a stream of events.
pub(super) fn response(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response {
    let kind = HeaderValue::from_static("text/event-stream");
    ([(CONTENT_TYPE, kind)], AxumBody::new(body)).into_response()
}

/// Ticks when a ping is due.
pub(super) fn alive() -> Interval {
    interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE)
}

impl Sender {
    /// Sends one event with a line of text. A carriage return in the text would end the line for the reader,
    /// so the rest becomes another line of the same event.
    pub(super) async fn line(&self, kind: &str, line: &str) -> Result<(), Gone> {
        self.0.send(event(kind, line)).await.map_err(|_| Gone)
    }

    /// Sends an event without waiting. Returns `true` if there was room for it.
    pub(super) fn offer(&self, kind: &str, line: &str) -> bool {
        self.0.try_send(event(kind, line)).is_ok()
    }

    /// Waits until the reader has disconnected.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

fn event(kind: &str, line: &str) -> Bytes {
    let line = line.replace(['\r', '\n'], "\ndata: ");
    format!("event: {kind}\ndata: {line}\n\n").into()
}

struct Stream {
    events: mpsc::Receiver<Bytes>,
    alive: Interval,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Poll::Ready(event) = self.events.poll_recv(cx) {
            self.alive.reset();
            return Poll::Ready(event.map(|event| Ok(Frame::data(event))));
        }
        std::task::ready!(self.alive.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(PING))))
    }
}
