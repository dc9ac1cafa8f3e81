//! The index of results: the owner, place and expiry of each. It knows neither files nor a clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use crate::id::ResultId;
use crate::limits::RESULTS;
use crate::store::Limits;

/// The owner of a result: the digest of a name, so that all owners have the same length.
pub(crate) type Owner = [u8; 32];

/// A change to a kept result that the store has to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Drop it from memory; it is still on disk.
    Release(ResultId),
    /// Remove it from memory and disk.
    Remove(ResultId),
}

/// The place where a result is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    Disk,
}

/// The index entry of a kept result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) owner: Owner,
    pub(crate) bytes: u64,
    pub(crate) expires: SystemTime,
    /// The result is on disk.
    pub(crate) on_disk: bool,
}

#[derive(Debug)]
pub(crate) struct Index {
    limits: Limits,
    entries: HashMap<ResultId, Entry>,
    /// Oldest first: all results are kept for the same time.
    by_age: BTreeSet<(SystemTime, ResultId)>,
    /// The results in memory, least recently used first, and the last use of each.
    by_use: BTreeMap<u64, ResultId>,
    used: HashMap<ResultId, u64>,
    clock: u64,
    memory: u64,
    disk: u64,
}

impl Index {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: HashMap::new(),
            by_age: BTreeSet::new(),
            by_use: BTreeMap::new(),
            used: HashMap::new(),
            clock: 0,
            memory: 0,
            disk: 0,
        }
    }

    /// Tests if a result of this size can be kept, on disk or in memory.
    pub(crate) fn takes(&self, bytes: u64, on_disk: bool) -> bool {
        let most = if on_disk {
            self.limits.disk_bytes
        } else {
            self.limits.memory_bytes
        };
        bytes <= self.limits.each_bytes.min(most)
    }

    /// Adds a result. The oldest results are removed to make room for it.
    pub(crate) fn put(&mut self, id: &ResultId, entry: Entry, now: SystemTime) -> Vec<Change> {
        let mut changes = self.expire(now);
        if entry.on_disk {
            while self.disk + entry.bytes > self.limits.disk_bytes {
                let Some(oldest) = self.oldest(|entry| entry.on_disk) else {
                    break;
                };
                self.remove(&oldest);
                changes.push(Change::Remove(oldest));
            }
            self.disk += entry.bytes;
        }
        while self.entries.len() >= RESULTS {
            let Some(oldest) = self.oldest(|_| true) else {
                break;
            };
            self.remove(&oldest);
            changes.push(Change::Remove(oldest));
        }
        self.entries.insert(id.clone(), entry);
        self.by_age.insert((entry.expires, id.clone()));
        changes
    }

    /// Decides if a result is held in memory from now on, and which results leave memory to make
    /// room. A result that is also on disk is held only if it needs at most a quarter of the memory.
    pub(crate) fn hold(&mut self, id: &ResultId) -> (bool, Vec<Change>) {
        let mut changes = Vec::new();
        let Some(entry) = self.entries.get(id).copied() else {
            return (false, changes);
        };
        if self.used.contains_key(id) {
            self.touch(id);
            return (true, changes);
        }
        let most = if entry.on_disk {
            self.limits.memory_bytes / 4
        } else {
            self.limits.memory_bytes
        };
        if entry.bytes > most {
            return (false, changes);
        }
        while self.memory + entry.bytes > self.limits.memory_bytes {
            let Some((_, unused)) = self.by_use.pop_first() else {
                break;
            };
            changes.push(self.release(&unused));
        }
        self.memory += entry.bytes;
        self.used.insert(id.clone(), 0);
        self.touch(id);
        (true, changes)
    }

    /// The place of a result, if it belongs to this owner and has not expired.
    pub(crate) fn find(&mut self, id: &ResultId, owner: &Owner, now: SystemTime) -> Option<Place> {
        let entry = self.entries.get(id)?;
        if entry.owner != *owner || entry.expires <= now {
            return None;
        }
        if self.used.contains_key(id) {
            self.touch(id);
            Some(Place::Memory)
        } else {
            Some(Place::Disk)
        }
    }

    /// Removes expired results.
    pub(crate) fn expire(&mut self, now: SystemTime) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((expires, id)) = self.by_age.first().cloned() {
            if expires > now {
                break;
            }
            self.remove(&id);
            changes.push(Change::Remove(id));
        }
        changes
    }

    /// Removes a result.
    pub(crate) fn remove(&mut self, id: &ResultId) {
        let Some(entry) = self.entries.remove(id) else {
            return;
        };
        self.by_age.remove(&(entry.expires, id.clone()));
        if entry.on_disk {
            self.disk -= entry.bytes;
        }
        if let Some(at) = self.used.remove(id) {
            self.by_use.remove(&at);
            self.memory -= entry.bytes;
        }
    }

    pub(crate) fn is_held(&self, id: &ResultId) -> bool {
        self.used.contains_key(id)
    }

    pub(crate) fn contains(&self, id: &ResultId) -> bool {
        self.entries.contains_key(id)
    }

    fn oldest(&self, which: impl Fn(&Entry) -> bool) -> Option<ResultId> {
        let mut ids = self.by_age.iter().map(|(_, id)| id);
        ids.find(|id| self.entries.get(*id).is_some_and(&which))
            .cloned()
    }

    /// Releases from memory a result that has already left `by_use`. If the disk does not have it, it
    /// is removed.
    fn release(&mut self, id: &ResultId) -> Change {
        match self.entries.get(id) {
            Some(entry) if entry.on_disk => {
                self.memory -= entry.bytes;
                self.used.remove(id);
                Change::Release(id.clone())
            }
            _ => {
                self.remove(id);
                Change::Remove(id.clone())
            }
        }
    }

    fn touch(&mut self, id: &ResultId) {
        self.clock += 1;
        if let Some(at) = self.used.get_mut(id) {
            self.by_use.remove(at);
            *at = self.clock;
            self.by_use.insert(self.clock, id.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        memory_bytes: 100,
        disk_bytes: 300,
        each_bytes: 200,
        ttl: Duration::from_mins(1),
    };

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000 + second)
    }

    proptest! {
        /// After any sequence of steps, memory and disk are within their limits, the sums are right,
        /// and no lookup finds a result that has expired or belongs to another owner.
        #[test]
        fn accounting_stays_consistent(steps in prop::collection::vec((0_u8..4, 1_u64..220, any::<bool>(), 0_u64..30, 0_usize..20), 1..80)) {
            let mut index = Index::new(LIMITS);
            let mut ids = Vec::new();
            let mut now = 0;
            for (owner, bytes, on_disk, later, which) in steps {
                now += later;
                if index.takes(bytes, on_disk) {
                    let expires = at(now + 60);
                    let id = ResultId::new(expires).unwrap();
                    let entry = Entry { owner: [owner; 32], bytes, expires, on_disk };
                    index.put(&id, entry, at(now));
                    let (held, _) = index.hold(&id);
                    if !held && !on_disk {
                        index.remove(&id);
                    }
                    ids.push((id, owner, expires));
                }
                if let Some((id, owner, expires)) = ids.get(which) {
                    let found = index.find(id, &[*owner; 32], at(now));
                    prop_assert!(found.is_none() || *expires > at(now));
                    prop_assert_eq!(index.find(id, &[99; 32], at(now)), None);
                }
                let sum = |which: &dyn Fn(&ResultId, &Entry) -> bool| {
                    let entries = index.entries.iter().filter(|(id, entry)| which(id, entry));
                    entries.map(|(_, entry)| entry.bytes).sum::<u64>()
                };
                prop_assert_eq!(index.disk, sum(&|_, entry| entry.on_disk));
                prop_assert_eq!(index.memory, sum(&|id, _| index.used.contains_key(id)));
                prop_assert!(index.disk <= 300 && index.memory <= 100);
                prop_assert_eq!(index.by_age.len(), index.entries.len());
                prop_assert_eq!(index.by_use.len(), index.used.len());
            }
            index.expire(at(now + 61));
            prop_assert!(index.entries.is_empty() && index.memory == 0 && index.disk == 0);
        }
    }

    #[test]
    fn oldest_are_removed_and_unused_leave_memory() {
        let mut index = Index::new(LIMITS);
        let mut put = |bytes, second| {
            let expires = at(second + 60);
            let id = ResultId::new(expires).unwrap();
            let entry = Entry {
                owner: [1; 32],
                bytes,
                expires,
                on_disk: true,
            };
            let mut changes = index.put(&id, entry, at(second));
            changes.extend(index.hold(&id).1);
            (id, changes)
        };
        let (first, changes) = put(150, 0);
        assert_eq!(changes, []);
        let (second, changes) = put(25, 1);
        assert_eq!(changes, []);
        let (third, changes) = put(150, 2);
        assert_eq!(changes, [Change::Remove(first)]);
        let small: Vec<_> = (3..6).map(|n| put(25, n)).collect();
        assert!(small.iter().all(|(_, changes)| changes.is_empty()));
        let (_, changes) = put(25, 6);
        assert_eq!(changes, [Change::Release(second.clone())]);
        assert_eq!(index.find(&second, &[1; 32], at(7)), Some(Place::Disk));
        assert_eq!(
            index.find(&small[0].0, &[1; 32], at(7)),
            Some(Place::Memory)
        );
        assert_eq!(index.find(&third, &[1; 32], at(62)), None);
    }
}
