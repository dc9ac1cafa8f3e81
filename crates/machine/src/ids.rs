//! Request ids, never used twice.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// A source of request ids. Its clones draw from one row of numbers, so that connections which
/// share it never use an id twice.
#[derive(Debug, Clone)]
pub struct Ids(Arc<AtomicU64>);

impl Ids {
    /// A row of its own, from 1.
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1)))
    }

    /// The next id.
    pub fn draw(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

impl Default for Ids {
    fn default() -> Self {
        Self::new()
    }
}
