//! Where the store stands.

use std::sync::Arc;

/// Where the store stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The file is being opened or brought up to date.
    Initializing,
    /// It works.
    Ready {
        /// What a person should know all the same: that a damaged file was put aside, and where.
        note: Option<Arc<str>>,
    },
    /// It does not work. What is recorded is queued as far as there is room.
    Failed {
        /// What is wrong.
        message: Arc<str>,
        /// What to do about it.
        action: Arc<str>,
        /// Whether the store goes on trying by itself.
        retrying: bool,
        /// Whether what is kept can still be read, as on a full disk.
        readable: bool,
    },
    /// It was closed.
    Closed,
}

impl Status {
    /// Whether it works.
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
