//! Why a question got no answer.

use std::sync::Arc;

/// Why the store did not give what was asked for.
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
    /// Too many questions wait already.
    #[error("the store has too many questions waiting; ask again in a moment")]
    Busy,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same question may well be answered a little later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Busy => true,
            Self::Closed => false,
        }
    }
}
