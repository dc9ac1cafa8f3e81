//! How a call can end without an answer.

use std::{fmt, sync::Arc, time::Duration};

/// How a call ended without an answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The transport did not take the message, or too many calls were in flight. Try again later.
    Backpressure {
        /// How often the message was offered; 0 if it was turned away before.
        attempts: u32,
    },
    /// The deadline passed. The server may or may not have acted.
    Timeout {
        /// How long the call had been under way.
        after: Duration,
        /// Whether the server had been sent it.
        sent: bool,
        /// What stood in its way, if that is known: why the last attempt to connect failed.
        reason: Option<Arc<str>>,
    },
    /// The connection went down while the call was under way.
    ConnectionLost {
        /// Why.
        reason: Arc<str>,
        /// Whether the server may have been sent it, and may have acted.
        sent: bool,
    },
    /// The transport could not carry this one call; the connection stands.
    RequestFailed(RequestFailure),
    /// The call was not to wait, and the connection was not ready.
    NotReady {
        /// The name of the state it was in.
        state: &'static str,
    },
    /// The connection has failed for good and waits for a restart.
    Failed {
        /// Why.
        reason: Arc<str>,
    },
    /// The caller withdrew the call.
    Cancelled,
    /// The server ended the call without an answer (2026-07-28, listen streams).
    CancelledByServer,
    /// The client is stopping or has stopped.
    Shutdown {
        /// Whether the server may have been sent it, and may have acted.
        sent: bool,
    },
    /// The parameters cannot be sent: they are not an object, or name `_meta` twice.
    InvalidParams {
        /// What is wrong.
        reason: Arc<str>,
    },
}

/// Why a transport could not carry one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What happened, in words of our own.
    pub message: Arc<str>,
    /// The beginning of what the server said, for people only. It may hold anything, also secrets.
    pub said: Option<Arc<str>>,
    /// Whether the server may have got it, and may have acted.
    pub sent: bool,
    /// Whether the server says how to authenticate (`WWW-Authenticate`).
    pub challenged: bool,
}

/// With what the server said.
impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.said {
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

/// What kind of trouble an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Between us and the server: try again.
    Transport,
    /// It took too long.
    Timeout,
    /// The connection was not in the state that was asked for.
    State,
    /// Withdrawn.
    Cancelled,
    /// The client is stopping.
    Shutdown,
    /// The peer broke the protocol.
    Protocol,
    /// The server answered with an error.
    Server,
    /// The caller asked for something that cannot be.
    Usage,
}

impl CallError {
    /// What kind of trouble this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Backpressure { .. } | Self::ConnectionLost { .. } | Self::RequestFailed(_) => {
                ErrorKind::Transport
            }
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::NotReady { .. } | Self::Failed { .. } => ErrorKind::State,
            Self::Cancelled | Self::CancelledByServer => ErrorKind::Cancelled,
            Self::Shutdown { .. } => ErrorKind::Shutdown,
            Self::InvalidParams { .. } => ErrorKind::Usage,
        }
    }
}

impl CallError {
    /// Whether the same call may well succeed a little later. It says nothing of whether the server
    /// has acted already.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RequestFailed(RequestFailure {
                status: Some(status),
                ..
            }) => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Backpressure { .. }
            | Self::ConnectionLost { .. }
            | Self::RequestFailed(_)
            | Self::Timeout { .. }
            | Self::NotReady { .. } => true,
            Self::Failed { .. }
            | Self::Cancelled
            | Self::CancelledByServer
            | Self::Shutdown { .. }
            | Self::InvalidParams { .. } => false,
        }
    }
}

impl CallError {
    /// Whether it is certain that the server has not got the call: to send it again cannot make it act
    /// twice.
    pub const fn is_unsent(&self) -> bool {
        match self {
            Self::ConnectionLost { sent, .. }
            | Self::Shutdown { sent }
            | Self::RequestFailed(RequestFailure { sent, .. })
            | Self::Timeout { sent, .. } => !*sent,
            Self::Backpressure { .. }
            | Self::NotReady { .. }
            | Self::Failed { .. }
            | Self::InvalidParams { .. } => true,
            Self::Cancelled | Self::CancelledByServer => false,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backpressure { attempts: 0 } => f.write_str("too many calls in flight"),
            Self::Backpressure { attempts } => {
                write!(f, "transport busy after {attempts} attempts")
            }
            Self::Timeout {
                after, sent: true, ..
            } => write!(f, "no answer within {after:.1?}"),
            Self::Timeout { after, reason, .. } => {
                write!(f, "connection not ready within {after:.1?}")?;
                reason
                    .as_ref()
                    .map_or(Ok(()), |reason| write!(f, ": {reason}"))
            }
            Self::ConnectionLost { reason, .. } => write!(f, "connection lost: {reason}"),
            Self::RequestFailed(failure) => failure.fmt(f),
            Self::NotReady { state } => write!(f, "connection not ready ({state})"),
            Self::Failed { reason } => {
                write!(f, "connection failed and waits for a restart: {reason}")
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::CancelledByServer => f.write_str("cancelled by the server"),
            Self::Shutdown { .. } => f.write_str("client shutting down"),
            Self::InvalidParams { reason } => write!(f, "parameters cannot be sent: {reason}"),
        }
    }
}

impl std::error::Error for CallError {}
