//! Server-sent events: a body that never ends by itself.

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

/// Events that wait for the reader. Whoever sends more waits.
const DEPTH: usize = 64;
/// Shows the reader, and whatever stands between, that somebody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// By saying this.
pub(super) const PING: Bytes = Bytes::from_static(b": ping\n\n");

/// Where events are put.
pub(super) struct Sender(mpsc::Sender<Bytes>);

/// The reader has gone.
pub(super) struct Gone;

/// A stream of events, and where to put them.
pub(super) fn stream() -> (Sender, Response) {
    let (sender, events) = mpsc::channel(DEPTH);
    let body = Stream {
        events,
        alive: alive(),
    };
    (Sender(sender), response(body))
}

/// An answer whose body is a stream of events.
pub(super) fn response(
    body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
) -> Response {
    let kind = HeaderValue::from_static("text/event-stream");
    ([(CONTENT_TYPE, kind)], AxumBody::new(body)).into_response()
}

/// Ticks when it is time to show that somebody is there.
pub(super) fn alive() -> Interval {
    interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE)
}

impl Sender {
    /// Sends one event with a line of text. A carriage return in it would end the line for the reader, so
    /// that what comes after it is made a line of the same event.
    pub(super) async fn line(&self, kind: &str, line: &str) -> Result<(), Gone> {
        self.0.send(event(kind, line)).await.map_err(|_| Gone)
    }

    /// The same without waiting. Whether there was room for it.
    pub(super) fn offer(&self, kind: &str, line: &str) -> bool {
        self.0.try_send(event(kind, line)).is_ok()
    }

    /// Waits until the reader has gone.
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
