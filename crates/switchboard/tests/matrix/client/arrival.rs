//! The messages that a client received, as they came.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// A message that arrived, or the end of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    /// The stream on which it came: a pipe has one, and each HTTP request has its own.
    pub(crate) stream: u64,
    /// The HTTP status; 200 if there is none.
    pub(crate) status: u16,
    /// `true` if it was an event of a stream rather than a whole body or a line.
    pub(crate) is_event: bool,
    pub(crate) event_id: Option<String>,
    pub(crate) retry: Option<u64>,
    /// The message as it was spelled; empty if there was none.
    pub(crate) text: String,
    /// The message; null if there was none, or if a `Value` cannot represent it.
    pub(crate) message: Value,
    /// Nothing more comes on this stream.
    pub(crate) is_end: bool,
    pub(crate) session: Option<String>,
}

impl Arrival {
    pub(crate) fn message(stream: u64, text: String) -> Self {
        Self {
            stream,
            status: 200,
            message: serde_json::from_str(&text).unwrap_or(Value::Null),
            text,
            ..Self::default()
        }
    }

    pub(crate) fn end(stream: u64, status: u16) -> Self {
        Self {
            stream,
            status,
            is_end: true,
            ..Self::default()
        }
    }

    /// The messages of a batch, one by one.
    pub(crate) fn apart(self) -> Vec<Self> {
        let Value::Array(messages) = &self.message else {
            return vec![self];
        };
        let one = |message: &Value| Self {
            text: message.to_string(),
            message: message.clone(),
            ..self.clone()
        };
        messages.iter().map(one).collect()
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.message["method"].as_str()
    }

    pub(crate) fn is_notification(&self, method: &str) -> bool {
        self.method() == Some(method) && self.message.get("id").is_none()
    }

    pub(crate) fn params(&self) -> &Value {
        &self.message["params"]
    }

    /// The request ID that it answers, as it was spelled.
    pub(crate) fn answers(&self) -> Option<String> {
        let envelope: Envelope<'_> = serde_json::from_str(&self.text).ok()?;
        if envelope.method.is_some() {
            return None;
        }
        envelope.id.map(|id| id.get().to_owned())
    }

    /// The result as it was spelled.
    pub(crate) fn result_text(&self) -> Option<String> {
        let envelope: Envelope<'_> = serde_json::from_str(&self.text).ok()?;
        envelope.result.map(|result| result.get().to_owned())
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}
