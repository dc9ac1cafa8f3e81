//! What is remembered of one call, and how to ask for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::types::limits::{ERROR_BYTES, NAME_BYTES};

/// One call that went through the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Its place in the order of recording. The store gives it out when it commits and never twice;
    /// what the caller puts here is not looked at.
    pub id: u64,
    /// When it began; kept to the microsecond.
    pub at: SystemTime,
    /// Which server it went to.
    pub server: Arc<str>,
    /// The MCP method.
    pub method: Arc<str>,
    /// The tool, prompt or resource.
    pub name: Arc<str>,
    /// Who called.
    pub client: Arc<str>,
    /// How long it took; kept to the microsecond.
    pub duration: Duration,
    /// How much of that it waited for people, or for its client to answer; kept to the microsecond.
    pub waited: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong, in words.
    pub error: Option<Arc<str>>,
    /// The size of the question.
    pub request_bytes: u64,
    /// The size of the answer.
    pub response_bytes: u64,
}

impl Activity {
    /// The same with no text longer than is kept.
    pub(crate) fn bounded(mut self) -> Self {
        for name in [
            &mut self.server,
            &mut self.method,
            &mut self.name,
            &mut self.client,
        ] {
            cut(name, NAME_BYTES);
        }
        if let Some(error) = &mut self.error {
            cut(error, ERROR_BYTES);
        }
        self
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Ok,
    /// With an answer in which the tool says that it failed.
    ToolError,
    /// With an error.
    Error {
        /// The JSON-RPC code.
        code: i64,
    },
    /// It was withdrawn.
    Cancelled,
    /// It took too long.
    Timeout,
}

impl Outcome {
    /// The outcome without its details.
    pub const fn kind(self) -> OutcomeKind {
        match self {
            Self::Ok => OutcomeKind::Ok,
            Self::ToolError => OutcomeKind::ToolError,
            Self::Error { .. } => OutcomeKind::Error,
            Self::Cancelled => OutcomeKind::Cancelled,
            Self::Timeout => OutcomeKind::Timeout,
        }
    }
}

/// An [`Outcome`] without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// See [`Outcome::Ok`].
    Ok,
    /// See [`Outcome::ToolError`].
    ToolError,
    /// See [`Outcome::Error`].
    Error,
    /// See [`Outcome::Cancelled`].
    Cancelled,
    /// See [`Outcome::Timeout`].
    Timeout,
}

impl OutcomeKind {
    /// Every kind there is.
    pub const ALL: [Self; 5] = [
        Self::Ok,
        Self::ToolError,
        Self::Error,
        Self::Cancelled,
        Self::Timeout,
    ];

    /// The word for it, in the file and elsewhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }
}

/// Which calls to show. What is not set does not matter; the default is the newest hundred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Only calls to this server.
    pub server: Option<String>,
    /// Only calls to this tool, prompt or resource.
    pub name: Option<String>,
    /// Only calls that ended in one of these ways; in any way if there is none.
    pub outcomes: Vec<OutcomeKind>,
    /// Only calls recorded after this one.
    pub since: Option<u64>,
    /// Only calls recorded before this one.
    pub before: Option<u64>,
    /// Only calls with this text in the server, method, name, client or error; the case of
    /// the letters A to Z does not matter.
    pub text: Option<String>,
    /// At most so many, and never more than [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
    pub limit: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            server: None,
            name: None,
            outcomes: Vec::new(),
            since: None,
            before: None,
            text: None,
            limit: 100,
        }
    }
}

/// The longest beginning of `text` that has at most `bytes` bytes.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn cut(text: &mut Arc<str>, bytes: usize) {
    if text.len() > bytes {
        *text = beginning(text, bytes).into();
    }
}
