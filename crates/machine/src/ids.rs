//! Request ids that are never reused.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// A source of request ids. Its clones draw from the same sequence, so that connections that share
/// it never use an id twice.
#[derive(Debug, Clone)]
pub struct Ids(Arc<AtomicU64>);

impl Ids {
    /// Creates a new sequence, starting at 1.
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }

    /// Returns the next id.
    pub fn draw(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}
