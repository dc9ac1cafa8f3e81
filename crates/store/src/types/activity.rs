//! The record of one call, and queries for records.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::types::limits::{ERROR_BYTES, NAME_BYTES};

/// One call that went through the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Position in the order of recording. The store assigns it at commit and never reuses one; a
    /// value set by the caller is ignored.
    pub id: u64,
    /// Time of the call's start, stored to the microsecond.
    pub at: SystemTime,
    /// Server that was called.
    pub server: Arc<str>,
    /// The MCP method.
    pub method: Arc<str>,
    /// The tool, prompt or resource.
    pub name: Arc<str>,
    /// Name that the client gave itself.
    pub client: Arc<str>,
    /// The authenticated party: `owner`, `token` with its name, or `anyone`.
    pub principal: Arc<str>,
    /// The door that it came in by, such as `pipe` or `tcp`.
    pub door: Cow<'static, str>,
    /// Duration of the call, stored to the microsecond.
    pub duration: Duration,
    /// Part of the duration that was spent waiting for people, or for the client to answer; stored
    /// to the microsecond.
    pub waited: Duration,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Text of the error.
    pub error: Option<Arc<str>>,
    /// Size of the request in bytes.
    pub request_bytes: u64,
    /// Size of the response in bytes.
    pub response_bytes: u64,
}

impl Activity {
    /// Truncates every text to the length that the store keeps.
    pub(crate) fn bounded(mut self) -> Self {
        for name in [
            &mut self.server,
            &mut self.method,
            &mut self.name,
            &mut self.client,
            &mut self.principal,
        ] {
            cut(name, NAME_BYTES);
        }
        if let Some(error) = &mut self.error {
            cut(error, ERROR_BYTES);
        }
        self
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The server returned a result.
    Ok,
    /// The server returned a result in which the tool reports a failure.
    ToolError,
    /// The call ended with an error.
    Error {
        /// The JSON-RPC error code.
        code: i64,
    },
    /// The call was cancelled.
    Cancelled,
    /// The call timed out.
    Timeout,
}

impl Outcome {
    /// Returns the outcome without its details.
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
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Ok,
        Self::ToolError,
        Self::Error,
        Self::Cancelled,
        Self::Timeout,
    ];

    /// The name of the kind, as used in the file and elsewhere.
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

/// A filter for calls. Fields that are not set match everything; the default selects the newest
/// hundred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Only calls to this server.
    pub server: Option<String>,
    /// Only calls to this tool, prompt or resource.
    pub name: Option<String>,
    /// Only calls with one of these outcomes; any outcome if empty.
    pub outcomes: Vec<OutcomeKind>,
    /// Only calls recorded after the one with this ID.
    pub since: Option<u64>,
    /// Only calls recorded before the one with this ID.
    pub before: Option<u64>,
    /// Only calls with this text in the server, method, name, client or error; the letters A to Z
    /// match in either case.
    pub text: Option<String>,
    /// The most calls to return, capped at [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
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

/// The longest prefix of `text` with at most `bytes` bytes.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn cut(text: &mut Arc<str>, bytes: usize) {
    if text.len() > bytes {
        *text = beginning(text, bytes).into();
    }
}
