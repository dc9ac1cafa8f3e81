//! The events of the gateway, as they happen.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{extract::State, response::Response};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body, Frame},
};
use switchboard_base::events::{Reader, Since, Told};
use switchboard_inbound::problem::Problem;
use switchboard_rest::events::{EventsQuery, LaggedEvent};
use tokio::time::Interval;

use super::{
    ask::{Asked, number},
    sse,
};
use crate::admin::Admin;

/// The header with which a reader that reconnects names the last event that it saw.
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn follow(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
    Asked(EventsQuery { kind, since }): Asked<EventsQuery>,
) -> Result<Response, Problem> {
    let since = number("since", since)?.map_or(Since::Now, Since::Event);
    Ok(sse::response(Stream {
        reader: admin.core.events.read(last_seen(&headers).unwrap_or(since)),
        kinds: Kinds::new(&kind.unwrap_or_default()),
        alive: sse::alive(),
    }))
}

/// The last event that a reader saw before it reconnected. It is newer than `since` in the address.
fn last_seen(headers: &HeaderMap) -> Option<Since> {
    let id = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty())?;
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    Some(id.map_or(Since::Unknown, Since::Event))
}

/// The kinds of events that are wanted: all if none is named. One that ends with a dot is a prefix.
struct Kinds(Vec<String>);

impl Kinds {
    fn new(said: &str) -> Self {
        let kinds = said.split(',').map(str::trim);
        Self(
            kinds
                .filter(|kind| !kind.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    fn have(&self, kind: &str) -> bool {
        self.0.is_empty()
            || self
                .0
                .iter()
                .any(|wanted| wanted == kind || (wanted.ends_with('.') && kind.starts_with(wanted)))
    }
}

/// Delivers each event when the reader's connection has room for it: unread events stay in the ring of all
/// events, and nowhere else.
struct Stream {
    reader: Reader,
    kinds: Kinds,
    alive: Interval,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self {
            reader,
            kinds,
            alive,
        } = self.get_mut();
        let frame = match reader.poll_next(cx, |kind| kinds.have(kind)) {
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Told::Event(frame))) => frame,
            Poll::Ready(Some(Told::Lagged { missed, last })) => {
                // Plain data always serializes.
                let data = serde_json::to_string(&LaggedEvent { missed }).unwrap_or_default();
                format!("event: lagged\nid: {last}\ndata: {data}\n\n").into()
            }
            Poll::Pending => {
                ready!(alive.poll_tick(cx));
                sse::PING
            }
        };
        alive.reset();
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, time::Duration};

    use serde_json::json;
    use switchboard_base::events::Events;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ping_is_sent_when_the_stream_is_idle() {
        let events = Events::default();
        let mut stream = pin!(Stream {
            reader: events.read(Since::Now),
            kinds: Kinds::new(""),
            alive: sse::alive(),
        });
        let started = Instant::now();
        let mut next = async || {
            let frame = poll_fn(|cx| stream.as_mut().poll_frame(cx)).await;
            let frame = frame.unwrap().unwrap().into_data().unwrap();
            (started.elapsed().as_secs(), frame)
        };
        assert_eq!(next().await, (15, sse::PING));
        assert_eq!(next().await, (30, sse::PING));
        sleep(Duration::from_secs(10)).await;
        events.tell("a", || json!({}));
        let (at, frame) = next().await;
        assert!(at == 40 && frame.starts_with(b"event: a\n"), "{frame:?}");
        assert_eq!(next().await, (55, sse::PING));
    }

    #[test]
    fn kinds_match_exactly_or_by_prefix() {
        for (said, have, not) in [
            ("", &["a", "approval.created"][..], &[][..]),
            (",", &["a"], &[]),
            ("a", &["a"], &["ab", "a.b", ""]),
            ("a.", &["a.b", "a.b.c", "a."], &["a", "ab"]),
            (" a., b ,c.d", &["a.x", "b", "c.d"], &["b.x", "c.e", "x"]),
        ] {
            let kinds = Kinds::new(said);
            assert!(have.iter().all(|kind| kinds.have(kind)), "{said}");
            assert!(!not.iter().any(|kind| kinds.have(kind)), "{said}");
        }
    }
}
