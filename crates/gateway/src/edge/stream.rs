//! Bodies of HTTP answers: a message at once, or events as they come.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body as AxumBody;
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    sync::mpsc,
    time::{Interval, interval_at},
};

/// What an answer is made of.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Events(Events),
    Page(AxumBody),
}

/// Events as they come, and a comment now and then to show that somebody is there.
pub(crate) struct Events {
    messages: mpsc::Receiver<Bytes>,
    alive: Interval,
}

/// Events that wait for a reader. Who sends more waits, or drops.
pub(crate) const EVENTS_DEPTH: usize = 64;
const KEEP_ALIVE: Duration = Duration::from_secs(25);

impl Answer {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    /// A stream and where to put its messages.
    pub(crate) fn events() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, messages) = mpsc::channel(EVENTS_DEPTH);
        let alive = interval_at(tokio::time::Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        (sender, Self::Events(Events { messages, alive }))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events
                .poll_next(cx)
                .map(|next| next.map(|event| Ok(Frame::data(event)))),
            Self::Page(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Events(_) => false,
            Self::Page(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
            Self::Page(body) => body.size_hint(),
        }
    }
}

impl Events {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(message) = self.messages.poll_recv(cx) {
            self.alive.reset();
            return Poll::Ready(message.as_deref().map(event));
        }
        std::task::ready!(self.alive.poll_tick(cx));
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }
}

/// A message as an event. JSON on one line needs no splitting.
fn event(message: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + 24);
    event.put_slice(b"event: message\ndata: ");
    // White space between tokens is all that a line end in a JSON message can be.
    event.extend(message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    }));
    event.put_slice(b"\n\n");
    event.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event() {
        let event = event(b"{\"a\":\n1}\r\n");
        assert_eq!(&event[..], b"event: message\ndata: {\"a\": 1}  \n\n");
    }
}
