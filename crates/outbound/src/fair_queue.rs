//! A bounded queue in which every client gets its turn.
//!
//! A client with a thousand waiting calls delays another client's first call by one place, not by a
//! thousand.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// A queue with one line per key; the lines are served in turn. A key that was not waiting goes to the
/// end of the round.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    lines: FxHashMap<u64, VecDeque<(u64, T)>>,
    /// The keys with waiting items, in the order in which they are served.
    round: VecDeque<u64>,
    waiting: usize,
    next_ticket: u64,
}

impl<T> FairQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            lines: FxHashMap::default(),
            round: VecDeque::new(),
            waiting: 0,
            next_ticket: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Appends an item to its key's line. The returned ticket removes it again.
    pub(crate) fn push(&mut self, key: u64, item: T) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let line = self.lines.entry(key).or_default();
        if line.is_empty() {
            self.round.push_back(key);
        }
        line.push_back((ticket, item));
        self.waiting += 1;
        ticket
    }

    /// The next item: the first one of the key whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let key = self.round.pop_front()?;
        let line = self.lines.get_mut(&key)?;
        let (_, item) = line.pop_front()?;
        self.waiting -= 1;
        if line.is_empty() {
            self.lines.remove(&key);
        } else {
            self.round.push_back(key);
        }
        Some(item)
    }

    /// Removes an item that no longer waits. `None` if it has been served.
    pub(crate) fn remove(&mut self, key: u64, ticket: u64) -> Option<T> {
        let line = self.lines.get_mut(&key)?;
        let at = line.iter().position(|(other, _)| *other == ticket)?;
        let (_, item) = line.remove(at)?;
        self.waiting -= 1;
        if line.is_empty() {
            self.lines.remove(&key);
            self.round.retain(|other| *other != key);
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn newcomer_waits_one_turn_per_other_client() {
        let mut queue = FairQueue::new();
        for n in 0..100 {
            queue.push(1, n);
        }
        queue.push(2, 1_000);
        assert_eq!(queue.pop(), Some(0));
        assert_eq!(queue.pop(), Some(1_000));
        assert_eq!(queue.pop(), Some(1));
    }

    proptest! {
        /// Compared with a simple model: every item comes out once unless it was removed, each key in
        /// its own order, and no key is served twice while another one that has waited all along is
        /// not served.
        #[test]
        fn every_item_comes_out_once_in_turn(steps in proptest::collection::vec((0_u8..4, 0_u64..5), 0..200)) {
            let mut queue = FairQueue::new();
            let mut waiting: Vec<(u64, u64)> = Vec::new();
            let mut passed_over: FxHashMap<u64, u64> = FxHashMap::default();
            let mut serial = 0;
            for (what, key) in steps {
                match what {
                    0 | 1 => {
                        let ticket = queue.push(key, serial);
                        prop_assert_eq!(ticket, serial);
                        waiting.push((key, serial));
                        serial += 1;
                    }
                    2 => {
                        let popped = queue.pop();
                        prop_assert_eq!(popped.is_none(), waiting.is_empty());
                        if let Some(item) = popped {
                            let at = waiting.iter().position(|(_, other)| *other == item).unwrap();
                            let (key, _) = waiting[at];
                            prop_assert!(waiting.iter().take(at).all(|(other, _)| *other != key));
                            waiting.remove(at);
                            passed_over.remove(&key);
                            for (other, _) in &waiting {
                                if *other != key {
                                    *passed_over.entry(*other).or_default() += 1;
                                }
                            }
                            passed_over.retain(|key, _| waiting.iter().any(|(other, _)| other == key));
                        }
                    }
                    _ => {
                        if let Some(at) = waiting.iter().position(|(other, _)| *other == key) {
                            let (_, ticket) = waiting.remove(at);
                            prop_assert_eq!(queue.remove(key, ticket), Some(ticket));
                            prop_assert_eq!(queue.remove(key, ticket), None);
                        }
                    }
                }
                prop_assert_eq!(queue.len(), waiting.len());
            }
        }
    }
}
