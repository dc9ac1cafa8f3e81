//! A lock for each name.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

/// The locks in use, by name.
#[derive(Debug, Default)]
pub(crate) struct KeyedLocks(Mutex<HashMap<String, Arc<Mutex<()>>>>);

impl KeyedLocks {
    /// The lock of this name. Unused locks are dropped.
    pub(crate) fn of(&self, name: &str) -> Arc<Mutex<()>> {
        let mut turns = self.0.lock();
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_one_lock_while_in_use() {
        let turns = KeyedLocks::default();
        let (one, other) = (turns.of("a"), turns.of("b"));
        let held = one.lock();
        assert!(turns.of("a").try_lock().is_none());
        assert!(other.try_lock().is_some());
        drop(held);
        assert!(turns.of("a").try_lock().is_some());
        drop((one, other));
        turns.of("c");
        assert_eq!(turns.0.lock().len(), 1);
    }
}
