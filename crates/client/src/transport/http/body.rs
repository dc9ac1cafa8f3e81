//! Reading of responses: JSON up to a limit, or events as they arrive.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use switchboard_wire::{EnvelopeError, Frame, SseEvent, SseParser};
use tokio::time::timeout;

use super::headers::EVENTS;

/// The default delay before a stream is resumed.
const RETRY: Duration = Duration::from_secs(1);
/// The shortest delay, even if the server asks for less, so that it cannot keep the client busy.
const RETRY_MIN: Duration = Duration::from_millis(20);
/// A stream that ends sooner than this without an event was useless.
pub(super) const WORTHWHILE: Duration = Duration::from_secs(10);
/// The most bytes of a refusal that are read, and the time limit for it.
const REFUSAL_BYTES: usize = 1024 * 1024;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the content type of a response, without its parameters, in lower case.
pub(in crate::transport) fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

/// Returns `true` if the response is an event stream.
pub(in crate::transport) fn is_event_stream(response: &Response) -> bool {
    response.status().is_success() && content_type(response).is_some_and(|found| found == EVENTS)
}

/// A body that was read up to a limit.
#[derive(Debug)]
pub(crate) enum Body {
    /// The complete body.
    Whole(Bytes),
    /// The body exceeds the limit.
    TooLarge,
}

/// Reads a body, as long as it is within the limit.
pub(crate) async fn read_body(
    mut response: Response,
    limit: usize,
) -> Result<Body, reqwest::Error> {
    let announced = response.content_length().unwrap_or(0);
    let Some(capacity) = usize::try_from(announced)
        .ok()
        .filter(|bytes| *bytes <= limit)
    else {
        return Ok(Body::TooLarge);
    };
    // The announced length is not reserved at once: announcing a large one costs a server nothing.
    let mut body = BytesMut::with_capacity(capacity.min(64 * 1024));
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(Body::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Body::Whole(body.freeze()))
}

/// Reads the body of a refusal, within limits on size and time. Empty if it exceeds them.
pub(in crate::transport) async fn read_refusal(response: Response, limit: usize) -> Bytes {
    match timeout(
        REFUSAL_TIMEOUT,
        read_body(response, limit.min(REFUSAL_BYTES)),
    )
    .await
    {
        Ok(Ok(Body::Whole(body))) => body,
        Ok(Ok(Body::TooLarge) | Err(_)) | Err(_) => Bytes::new(),
    }
}

/// The events of a response.
#[derive(Debug)]
pub(in crate::transport) struct EventStream {
    response: Response,
    parser: SseParser,
}

/// The next item of a stream.
#[derive(Debug)]
pub(in crate::transport) enum Next {
    /// An event.
    Event(SseEvent),
    /// An event over the limit, which was dropped.
    TooLarge { limit: usize },
    /// The end of the stream, with the error if it broke.
    End(Option<reqwest::Error>),
}

impl EventStream {
    pub(in crate::transport) fn new(response: Response, limit: usize) -> Self {
        Self {
            response,
            parser: SseParser::new(limit),
        }
    }

    pub(in crate::transport) async fn next(&mut self) -> Next {
        loop {
            match self.parser.next_event() {
                Some(Ok(event)) => return Next::Event(event),
                Some(Err(error)) => return Next::TooLarge { limit: error.limit },
                None => {}
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.parser.push(&chunk),
                Ok(None) => return Next::End(None),
                Err(error) => return Next::End(Some(error)),
            }
        }
    }
}

/// Returns the message that an event carries. Events with other names, and events that only have an id or a
/// retry delay, carry none.
pub(in crate::transport) fn message(event: SseEvent) -> Option<Bytes> {
    let named = event.event.is_none_or(|name| name == "message");
    Some(event.data).filter(|data| named && !data.is_empty())
}

/// The point at which a stream can be resumed.
#[derive(Debug, Default)]
pub(super) struct Resume {
    /// The last id that the server sent.
    pub(super) last: Option<HeaderValue>,
    /// Number of events received.
    pub(super) events: u64,
    retry: Option<Duration>,
    /// Number of consecutive streams that ended soon.
    short: u32,
}

impl Resume {
    pub(super) fn note(&mut self, event: &SseEvent) {
        self.events += 1;
        if let Some(id) = &event.id {
            // The empty id resets the previous one. An id that does not fit into a header cannot be sent
            // back.
            self.last = HeaderValue::from_bytes(id.as_bytes())
                .ok()
                .filter(|_| !id.is_empty());
        }
        self.retry = event.retry.or(self.retry);
    }

    /// Returns the delay before the next stream, after one of this duration: the delay that the server asks
    /// for, but not less than a minimum that doubles while streams end soon, up to the default delay.
    pub(super) fn delay(&mut self, lasted: Duration) -> Duration {
        self.short = match lasted {
            lasted if lasted >= WORTHWHILE => 0,
            _ => self.short.saturating_add(1),
        };
        let doubled = RETRY_MIN.saturating_mul(2_u32.saturating_pow(self.short.saturating_sub(1)));
        self.retry.unwrap_or(RETRY).max(doubled.min(RETRY))
    }
}

/// Returns the ids of the requests that a frame answers.
pub(super) fn answered(frame: &Bytes) -> Vec<u64> {
    #[derive(Deserialize)]
    struct View<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        method: Option<IgnoredAny>,
    }
    let views: serde_json::Result<Vec<View<'_>>> = if frame.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(frame)
    } else {
        serde_json::from_slice(frame).map(|view| vec![view])
    };
    let Ok(views) = views else {
        // The connection fails a request whose response is nested too deeply.
        return match Frame::parse(frame.clone()) {
            Err(EnvelopeError::TooDeep { answers }) => answers.into_iter().collect(),
            _ => Vec::new(),
        };
    };
    views
        .into_iter()
        .filter(|view| view.method.is_none())
        .filter_map(|view| serde_json::from_str(view.id?.get()).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_responses_have_answered_ids() {
        for (frame, ids) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &[7][..]),
            (r#" {"error":{"id":8},"id":7}"#, &[7]),
            (
                r#"[{"id":1,"result":{}},{"id":2,"method":"ping"},{"id":3,"error":{}}]"#,
                &[1, 3],
            ),
            (r#"{"id":7,"method":"ping"}"#, &[]),
            (r#"{"id":"7","result":{}}"#, &[]),
            (r#"{"id":null,"error":{}}"#, &[]),
            (r#"{"method":"x"}"#, &[]),
            ("{", &[]),
            ("", &[]),
        ] {
            assert_eq!(answered(&frame.into()), ids, "{frame}");
        }
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{deep}}}"#);
        assert_eq!(answered(&deep.into()), [7]);
    }

    #[test]
    fn stream_is_resumed_after_its_last_id() {
        let event = |id: Option<&str>, retry: Option<u64>| SseEvent {
            id: id.map(str::to_owned),
            retry: retry.map(Duration::from_millis),
            ..SseEvent::default()
        };
        let mut resume = Resume::default();
        assert_eq!(
            (resume.last.clone(), resume.delay(WORTHWHILE)),
            (None, RETRY)
        );
        resume.note(&event(Some("a"), Some(500)));
        resume.note(&event(None, None));
        assert_eq!(resume.last.as_ref().unwrap(), "a");
        assert_eq!(
            (resume.delay(WORTHWHILE), resume.events),
            (Duration::from_millis(500), 2)
        );
        resume.note(&event(Some("é"), Some(0)));
        assert_eq!(resume.last.as_ref().unwrap().as_bytes(), "é".as_bytes());
        assert_eq!(resume.delay(WORTHWHILE), RETRY_MIN);
        for unfit in ["", "a\u{1}"] {
            resume.note(&event(Some("a"), None));
            resume.note(&event(Some(unfit), None));
            assert_eq!(resume.last, None);
        }
    }

    #[test]
    fn streams_that_end_early_are_reopened_less_often() {
        let mut resume = Resume::default();
        resume.note(&SseEvent {
            retry: Some(Duration::ZERO),
            ..SseEvent::default()
        });
        let waits: Vec<u128> = (0..9)
            .map(|_| resume.delay(Duration::ZERO).as_millis())
            .collect();
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
        assert_eq!(resume.delay(WORTHWHILE), RETRY_MIN);
    }

    #[test]
    fn only_message_events_carry_messages() {
        let event = |name: Option<&str>, data: &'static str| SseEvent {
            event: name.map(str::to_owned),
            data: data.into(),
            ..SseEvent::default()
        };
        assert_eq!(message(event(None, "{}")).unwrap(), "{}");
        assert_eq!(message(event(Some("message"), "{}")).unwrap(), "{}");
        assert_eq!(message(event(Some("ping"), "{}")), None);
        assert_eq!(message(event(None, "")), None);
    }
}
