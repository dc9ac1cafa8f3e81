//! The ways in which a call can end without a response.

use std::{fmt, sync::Arc, time::Duration};

/// The reason why a call ended without a response from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The transport did not accept the message, or too many calls were in flight. Try again later.
    Backpressure {
        /// Number of times that the message was offered to the transport; 0 if it was rejected earlier.
        attempts: u32,
    },
    /// The deadline passed. The server may or may not have processed the call.
    Timeout {
        /// Time since the start of the call.
        after: Duration,
        /// The call was sent to the server.
        sent: bool,
        /// The reason why the last attempt to connect failed, if that delayed the call.
        reason: Option<Arc<str>>,
    },
    /// The connection was lost while the call was in flight.
    ConnectionLost {
        /// The cause.
        reason: Arc<str>,
        /// The server may have received and processed the call.
        sent: bool,
    },
    /// The transport could not carry this one call; the connection is still up.
    RequestFailed(RequestFailure),
    /// The connection was not ready, and the call was made with [`fail_fast`](crate::Call::fail_fast).
    NotReady {
        /// The name of the state of the connection.
        state: &'static str,
    },
    /// The connection has failed permanently and waits for a restart.
    Failed {
        /// The cause.
        reason: Arc<str>,
    },
    /// The caller cancelled the call.
    Cancelled,
    /// The server ended the call without a response (2026-07-28, listen streams).
    CancelledByServer,
    /// The client is shutting down or has shut down.
    Shutdown {
        /// The server may have received and processed the call.
        sent: bool,
    },
    /// The parameters cannot be sent: they are not an object, or contain `_meta` twice.
    InvalidParams {
        /// The fault in the parameters.
        reason: Arc<str>,
    },
}

/// The reason why a transport could not carry one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// Description of the failure, without text from the server.
    pub message: Arc<str>,
    /// The beginning of the server's message, for the user only. It may contain anything, including secrets.
    pub said: Option<Arc<str>>,
    /// The server may have received and processed the request.
    pub sent: bool,
    /// The server asked for authentication (`WWW-Authenticate`).
    pub challenged: bool,
}

/// Includes the server's message.
impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.said {
            Some(said) => write!(f, ": {said}"),
            None => Ok(()),
        }
    }
}

/// The category of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A failure between the client and the server; a retry may help.
    Transport,
    /// The operation took too long.
    Timeout,
    /// The connection was not in the required state.
    State,
    /// The operation was cancelled.
    Cancelled,
    /// The client is shutting down.
    Shutdown,
    /// The peer violated the protocol.
    Protocol,
    /// The server responded with an error.
    Server,
    /// The caller requested something that is not possible.
    Usage,
}

impl CallError {
    /// Returns the category of the error.
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
    /// Returns `true` if the same call may succeed a little later. The server may already have processed the
    /// call; see [`is_unsent`](Self::is_unsent).
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
    /// Returns `true` if it is certain that the server has not received the call, so that sending it again
    /// cannot make the server process it twice. If the server asked for input in its result (2026-07-28), this is
    /// about the last request of the call.
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
            } => write!(f, "no response within {after:.1?}"),
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
                write!(f, "connection failed, and needs a restart: {reason}")
            }
            Self::Cancelled => f.write_str("cancelled"),
            Self::CancelledByServer => f.write_str("cancelled by the server"),
            Self::Shutdown { .. } => f.write_str("client shutting down"),
            Self::InvalidParams { reason } => write!(f, "cannot send the parameters: {reason}"),
        }
    }
}

impl std::error::Error for CallError {}
