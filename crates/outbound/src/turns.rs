//! A lock for each name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The locks that are in use, by name.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<String, Arc<Mutex<()>>>>);

impl Turns {
    /// The lock of this name. Locks that are not in use are dropped.
    pub(crate) fn of(&self, name: &str) -> Arc<Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(name.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_lock_while_it_is_used() {
        let turns = Turns::default();
        let (one, other) = (turns.of("a"), turns.of("b"));
        let held = one.lock().unwrap();
        assert!(turns.of("a").try_lock().is_err());
        assert!(other.try_lock().is_ok());
        drop(held);
        assert!(turns.of("a").try_lock().is_ok());
        drop((one, other));
        turns.of("c");
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
