//! Why something did not work, as a value.

use switchboard_machine::{CallError, ErrorKind};
use switchboard_wire::ErrorObject;

/// Why a call did not give what was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call ended without an answer of the server.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Server(ErrorObject),
    /// The server answered, but not in a way that the method allows.
    #[error("the answer to `{method}` cannot be read")]
    UnexpectedAnswer {
        /// What was asked.
        method: String,
        /// What the reader said.
        #[source]
        source: serde_json::Error,
    },
    /// The server went on asking for input, or for pages, beyond any reason.
    #[error("the answer to `{method}` has no end: {reason}")]
    Endless {
        /// What was asked.
        method: String,
        /// In which way.
        reason: &'static str,
    },
    /// The server needs input that this client has no handler for, or whose handler refused.
    #[error("the server needs input for `{method}` that it did not get: {reason}")]
    InputRefused {
        /// What was asked.
        method: String,
        /// Why it was not given.
        reason: String,
    },
    /// What was handed in cannot be sent.
    #[error("{what} cannot be written as JSON")]
    InvalidArgument {
        /// Which part.
        what: &'static str,
        /// Why.
        #[source]
        source: switchboard_wire::RawError,
    },
    /// The server does not offer what was asked for.
    #[error("the server does not offer {what}")]
    NotOffered {
        /// What was asked for.
        what: String,
    },
}

impl Error {
    pub(crate) fn unexpected(method: &str, what: impl std::fmt::Display) -> Self {
        Self::UnexpectedAnswer {
            method: method.to_owned(),
            source: serde::de::Error::custom(what),
        }
    }

    /// What kind of trouble this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Call(error) => error.kind(),
            Self::Server(_) => ErrorKind::Server,
            Self::UnexpectedAnswer { .. } | Self::Endless { .. } => ErrorKind::Protocol,
            Self::InputRefused { .. } => ErrorKind::Cancelled,
            Self::InvalidArgument { .. } | Self::NotOffered { .. } => ErrorKind::Usage,
        }
    }

    /// Whether the same call may well succeed a little later. It says nothing of whether the
    /// server has acted already.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Call(error) => error.is_retryable(),
            _ => false,
        }
    }
}
