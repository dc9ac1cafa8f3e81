//! The state of the store.

use std::sync::Arc;

/// The state of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The file is being opened or migrated.
    Initializing,
    /// The store works.
    Ready {
        /// A message for the user about a damaged file that was set aside, with its path.
        note: Option<Arc<str>>,
    },
    /// The store does not work. Records are queued until the queue is full.
    Failed {
        /// Description of the problem.
        message: Arc<str>,
        /// Advice for the user.
        action: Arc<str>,
        /// `true` if the store keeps retrying on its own.
        retrying: bool,
        /// `true` if stored data can still be read, as on a full disk.
        readable: bool,
    },
    /// The store is closed.
    Closed,
}

impl Status {
    /// Returns `true` if the store works.
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
