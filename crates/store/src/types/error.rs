//! Errors of queries and writes.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// An error of the store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be used at present.
    #[error("{message}")]
    Unavailable {
        /// Description of the problem.
        message: Arc<str>,
        /// Advice for the user.
        action: Arc<str>,
    },
    /// An approval or a memory does not have the version to replace, a new ID exists already, or an
    /// object that the change refers to is gone. Nothing was written.
    #[error("another caller has changed the data in the meantime")]
    Conflict,
    /// The memories are in a damaged file that was set aside. Everything else works.
    #[error("the memories are in a damaged file that was set aside ({aside})")]
    Damaged {
        /// Path of the damaged file; several are separated by commas.
        aside: Arc<str>,
    },
    /// The change is invalid.
    #[error("{why}")]
    Invalid {
        /// Reason why it is invalid.
        why: &'static str,
    },
    /// Too many queries or writes are queued.
    #[error("the store is busy: too many reads or writes are queued")]
    Busy,
    /// The request exceeds a limit.
    #[error("{what} exceeds the limit of {most}")]
    TooLarge {
        /// Quantity that exceeds the limit.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// The callback that receives exported entries failed.
    #[error("cannot write the exported entries")]
    Export(#[source] Arc<io::Error>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Advice for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Unavailable { action, .. } => (&**action).into(),
            Self::Conflict => "read it again and retry".into(),
            Self::Damaged { .. } => "run `switchboard memory repair` to recover what can be read, or `switchboard memory repair --discard` to start without them".into(),
            Self::Invalid { .. } => "correct the request and try again".into(),
            Self::Busy => "try again in a moment".into(),
            Self::TooLarge { .. } => "send or request less data at once".into(),
            Self::Export(_) => "check the destination of the export".into(),
            Self::Closed => return None,
        })
    }

    /// Returns `true` if the same request may succeed a little later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Busy => true,
            Self::Conflict
            | Self::Damaged { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::Export(_)
            | Self::Closed => false,
        }
    }
}

/// The result of a write or a query that the engine was able to run.
pub(crate) type Fate<T> = Result<T, StoreError>;
