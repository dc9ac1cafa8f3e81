//! Why a question got no answer, or a write was not made.

use std::io;
use std::sync::Arc;

/// Why the store did not do what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be used at present.
    #[error("{message}; {action}")]
    Unavailable {
        /// What is wrong.
        message: Arc<str>,
        /// What to do about it.
        action: Arc<str>,
    },
    /// An approval does not have the version that was to be replaced. Nothing was written.
    #[error("the approval was changed by somebody else meanwhile; read it again and decide anew")]
    Conflict,
    /// Too many questions or writes wait already.
    #[error("the store has too many questions or writes waiting; ask again in a moment")]
    Busy,
    /// More than is ever taken at once.
    #[error("{what} is more than the store takes at once ({most}); ask for less")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is taken.
        most: usize,
    },
    /// Whoever took the exported entries failed.
    #[error("the exported entries could not be passed on; check where they go")]
    Export(#[source] Arc<io::Error>),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same may well succeed a little later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Busy => true,
            Self::Conflict | Self::TooLarge { .. } | Self::Export(_) | Self::Closed => false,
        }
    }
}
