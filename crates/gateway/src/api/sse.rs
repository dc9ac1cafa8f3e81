//! Server-sent events: a body that never ends by itself.

use std::{
    convert::Infallible,
    fmt::Write,
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
use serde::Serialize;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, interval_at},
};

/// Events that wait for the reader. Whoever sends more waits.
const DEPTH: usize = 64;
/// Shows the reader, and whatever stands between, that somebody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where events are put.
pub(super) struct Sender(mpsc::Sender<Bytes>);

/// The reader has gone.
pub(super) struct Gone;

/// A stream of events, and where to put them.
pub(super) fn stream() -> (Sender, Response) {
    let (sender, events) = mpsc::channel(DEPTH);
    let alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    let body = AxumBody::new(Stream { events, alive });
    let kind = HeaderValue::from_static("text/event-stream");
    let response = ([(CONTENT_TYPE, kind)], body).into_response();
    (Sender(sender), response)
}

impl Sender {
    /// Sends one event.
    pub(super) async fn send(
        &self,
        kind: &str,
        id: Option<u64>,
        data: &impl Serialize,
    ) -> Result<(), Gone> {
        match serde_json::to_string(data) {
            // JSON on one line needs no splitting.
            Ok(data) => self.put(kind, id, &data).await,
            Err(_) => Ok(()),
        }
    }

    /// Sends one event with a line of text. A carriage return in it would end the line for the reader, so
    /// that what comes after it is made a line of the same event.
    pub(super) async fn line(&self, kind: &str, line: &str) -> Result<(), Gone> {
        self.put(kind, None, &line.replace(['\r', '\n'], "\ndata: "))
            .await
    }

    async fn put(&self, kind: &str, id: Option<u64>, data: &str) -> Result<(), Gone> {
        let mut event = format!("event: {kind}\n");
        if let Some(id) = id {
            // Writing to a string does not fail.
            let _ = writeln!(event, "id: {id}");
        }
        let _ = write!(event, "data: {data}\n\n");
        self.0.send(event.into()).await.map_err(|_| Gone)
    }

    /// Waits until the reader has gone.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
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
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b":\n\n")))))
    }
}
