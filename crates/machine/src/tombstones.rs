//! Ids of calls that have ended, to distinguish a late response from one to an unknown request.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::time::Moment;

/// A bounded set of ids, each with an expiry.
#[derive(Debug)]
pub(crate) struct Tombstones {
    ttl: Duration,
    max: usize,
    ends: HashMap<u64, Moment>,
    /// The oldest first. All have the same lifetime, so they also expire in this order.
    order: VecDeque<u64>,
}

impl Tombstones {
    pub(crate) fn new(ttl: Duration, max: usize) -> Self {
        Self {
            ttl,
            max,
            ends: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(crate) fn insert(&mut self, now: Moment, id: u64) {
        if self.ends.insert(id, now + self.ttl).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > self.max {
            self.remove_oldest();
        }
    }

    pub(crate) fn contains(&self, now: Moment, id: u64) -> bool {
        self.ends.get(&id).is_some_and(|end| *end > now)
    }

    pub(crate) fn sweep(&mut self, now: Moment) {
        while let Some(oldest) = self.order.front() {
            if self.contains(now, *oldest) {
                return;
            }
            self.remove_oldest();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    fn remove_oldest(&mut self) {
        if let Some(id) = self.order.pop_front() {
            self.ends.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_expire_and_are_bounded() {
        let at = |seconds| Moment::after_start(Duration::from_secs(seconds));
        let mut tombstones = Tombstones::new(Duration::from_secs(75), 3);
        for id in 0..5 {
            tombstones.insert(at(id), id);
        }
        assert_eq!(tombstones.len(), 3);
        assert!(!tombstones.contains(at(5), 1));
        assert!(tombstones.contains(at(76), 2));
        assert!(
            !tombstones.contains(at(77), 2),
            "a look-up checks the end too"
        );
        tombstones.sweep(at(78));
        assert_eq!(tombstones.len(), 1);
        tombstones.sweep(at(100));
        assert_eq!(tombstones.len(), 0);
    }
}
