//! The error type of the crate.

use switchboard_machine::{CallError, ErrorKind};
use switchboard_wire::ErrorObject;

/// The reason why a call did not return the requested value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call ended without a response from the server.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server responded with an error.
    #[error("the server returned an error: {0}")]
    Server(ErrorObject),
    /// The server responded, but the response is not valid for the method.
    #[error("the response to `{method}` is invalid")]
    UnexpectedAnswer {
        /// The method of the call.
        method: String,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// The server kept asking for input, or returning pages, without end.
    #[error("the response to `{method}` does not end: {reason}")]
    Endless {
        /// The method of the call.
        method: String,
        /// A description of the loop.
        reason: &'static str,
    },
    /// The server needs input for which this client has no handler, or whose handler refused.
    #[error("the server did not get the input that it needs for `{method}`: {reason}")]
    InputRefused {
        /// The method of the call.
        method: String,
        /// The reason why there is no input.
        reason: String,
    },
    /// An argument cannot be sent.
    #[error("cannot encode {what} as JSON")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// The cause.
        #[source]
        source: switchboard_wire::RawError,
    },
    /// The server does not offer the requested feature.
    #[error("the server does not offer {what}")]
    NotOffered {
        /// The requested feature.
        what: String,
    },
    /// The client was built without this feature.
    #[error("this client was built without {what}")]
    NotDeclared {
        /// The feature.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn unexpected(method: &str, what: impl std::fmt::Display) -> Self {
        Self::UnexpectedAnswer {
            method: method.to_owned(),
            source: serde::de::Error::custom(what),
        }
    }

    /// Returns the category of the error.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Call(error) => error.kind(),
            Self::Server(_) => ErrorKind::Server,
            Self::UnexpectedAnswer { .. } | Self::Endless { .. } => ErrorKind::Protocol,
            Self::InputRefused { .. } => ErrorKind::Cancelled,
            Self::InvalidArgument { .. } | Self::NotOffered { .. } | Self::NotDeclared { .. } => {
                ErrorKind::Usage
            }
        }
    }

    /// Returns `true` if the same call may succeed a little later. The server may already have
    /// processed the call.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Call(error) => error.is_retryable(),
            _ => false,
        }
    }
}
