//! Why a question got no answer, or a write was not made.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// Why the store did not do what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be used at present.
    #[error("{message}")]
    Unavailable {
        /// What is wrong.
        message: Arc<str>,
        /// What to do about it.
        action: Arc<str>,
    },
    /// An approval or a memory does not have the version that was to be replaced, or what was to be
    /// new is there, or what was to be there is gone. Nothing was written.
    #[error("what is kept was changed by somebody else meanwhile")]
    Conflict,
    /// The memories are in a damaged file that was put aside. Everything else works.
    #[error("the memories are in a damaged file that was put aside ({aside})")]
    Damaged {
        /// Where the damaged file is; several are separated by commas.
        aside: Arc<str>,
    },
    /// What was to be written makes no sense.
    #[error("{why}")]
    Invalid {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Too many questions or writes wait already.
    #[error("the store has too many questions or writes waiting")]
    Busy,
    /// More than is ever taken at once.
    #[error("{what} is more than the store takes at once ({most})")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is taken.
        most: usize,
    },
    /// Whoever took the exported entries failed.
    #[error("the exported entries could not be passed on")]
    Export(#[source] Arc<io::Error>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Unavailable { action, .. } => (&**action).into(),
            Self::Conflict => "read it again and decide anew".into(),
            Self::Damaged { .. } => "run `switchboard memory repair` to bring back what can be read of them, or to begin without them".into(),
            Self::Invalid { .. } => "correct it and try again".into(),
            Self::Busy => "ask again in a moment".into(),
            Self::TooLarge { .. } => "ask for less".into(),
            Self::Export(_) => "check where they go".into(),
            Self::Closed => return None,
        })
    }

    /// Whether the same may well succeed a little later.
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

/// The outcome of a write or a query that the engine could carry out.
pub(crate) type Fate<T> = Result<T, StoreError>;
