//! Cached data of 2026-07-28 servers: the freshness of their lists, and resources that were read.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use switchboard_base::caller::Realm;
use switchboard_catalog::Kind;
use switchboard_client::{CacheHints, Raw};

use crate::{clock, subscriptions::covers};

/// The freshness of the lists of one server.
#[derive(Debug, Default)]
pub struct Freshness(Mutex<[Option<Fresh>; Kind::ALL.len()]>);

/// The freshness of one list.
#[derive(Debug, Clone, Copy)]
pub struct Fresh {
    at: Instant,
    hints: CacheHints,
}

/// The least time between two fetches of a list, even if the server gives a shorter lifetime.
const LEAST: Duration = Duration::from_secs(1);

impl Freshness {
    /// Records that a list was fetched, with these hints.
    pub(crate) fn set(&self, kind: Kind, hints: Option<CacheHints>) {
        let fresh = hints.map(|hints| Fresh {
            at: clock::now(),
            hints,
        });
        self.0.lock()[kind as usize] = fresh;
    }

    /// The freshness of the list, if its server gave a lifetime.
    pub fn of(&self, kind: Kind) -> Option<Fresh> {
        self.0.lock()[kind as usize]
    }
}

impl Fresh {
    /// Tests if the list has to be fetched again. `told` is `true` if the server reports changes of
    /// the list.
    pub(crate) fn is_over(&self, told: bool) -> bool {
        let ttl = self.hints.ttl;
        !(told && ttl.is_zero()) && self.age() > ttl.max(LEAST)
    }

    fn age(&self) -> Duration {
        clock::now().saturating_duration_since(self.at)
    }

    /// The remaining lifetime and scope to give to a client now.
    pub fn hints(&self) -> (Duration, bool) {
        let left = self.hints.ttl.saturating_sub(self.age());
        (left, self.hints.public)
    }
}

/// Resources that were read and may be cached.
#[derive(Debug, Default)]
pub struct Reads(Mutex<Entries>, AtomicU64);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, Read>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    uri: Arc<str>,
    /// The realm that the entry belongs to; `None` if it is public.
    realm: Option<Realm>,
}

#[derive(Debug)]
struct Read {
    result: Raw,
    until: Instant,
}

/// The most bytes of one resource, the most bytes of all, and the most entries.
const READ_BYTES: usize = 1024 * 1024;
const READS_BYTES: usize = 16 * 1024 * 1024;
const READS_MAX: usize = 1_024;

impl Reads {
    /// The cached result, if this realm may still use it, and its remaining lifetime.
    pub fn get(&self, server: &Arc<str>, uri: &Arc<str>, realm: Realm) -> Option<(Raw, Duration)> {
        let entries = self.0.lock();
        if entries.by_key.is_empty() {
            return None;
        }
        let now = clock::now();
        [None, Some(realm)].into_iter().find_map(|realm| {
            let read = entries.by_key.get(&Key {
                server: Arc::clone(server),
                uri: Arc::clone(uri),
                realm,
            })?;
            let left = read.until.checked_duration_since(now)?;
            Some((read.result.clone(), left))
        })
    }

    /// A counter that changes with every invalidation, to distinguish reads from before and after it.
    pub fn generation(&self) -> u64 {
        self.1.load(Relaxed)
    }

    /// Caches a result, if its server allows it and nothing was invalidated since the request.
    pub fn put(
        &self,
        generation: u64,
        server: &Arc<str>,
        uri: &Arc<str>,
        realm: Realm,
        result: &Raw,
    ) {
        let size = result.as_bytes().len();
        if size > READ_BYTES {
            return;
        }
        let Some(hints) = CacheHints::of(result).filter(|hints| !hints.ttl.is_zero()) else {
            return;
        };
        let now = clock::now();
        let mut entries = self.0.lock();
        if self.generation() != generation {
            return;
        }
        if entries.bytes + size > READS_BYTES || entries.by_key.len() >= READS_MAX {
            entries.retain(|_, read| read.until > now);
        }
        if entries.bytes + size > READS_BYTES || entries.by_key.len() >= READS_MAX {
            return;
        }
        let key = Key {
            server: Arc::clone(server),
            uri: Arc::clone(uri),
            realm: (!hints.public).then_some(realm),
        };
        let read = Read {
            // A copy, because the bytes of a frame would keep the whole receive buffer alive.
            result: result.detached(),
            until: now + hints.ttl,
        };
        entries.bytes += size;
        if let Some(old) = entries.by_key.insert(key, read) {
            entries.bytes -= old.result.as_bytes().len();
        }
    }

    /// Invalidates a resource and its parts.
    pub(crate) fn changed(&self, server: &str, uri: &str) {
        let mut entries = self.0.lock();
        self.1.fetch_add(1, Relaxed);
        entries.retain(|key, _| {
            *key.server != *server || !(covers(&key.uri, uri) || covers(uri, &key.uri))
        });
    }

    /// Invalidates all entries of this instance and, if it is that of all callers, of the other instances of its
    /// server.
    pub(crate) fn forget(&self, instance: &str) {
        let mut entries = self.0.lock();
        self.1.fetch_add(1, Relaxed);
        let is_its = |id: &str| {
            let rest = id.strip_prefix(instance);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        entries.retain(|key, _| !is_its(&key.server));
    }
}

impl Entries {
    fn retain(&mut self, stays: impl Fn(&Key, &Read) -> bool) {
        let mut bytes = self.bytes;
        self.by_key.retain(|key, read| {
            let stays = stays(key, read);
            if !stays {
                bytes -= read.result.as_bytes().len();
            }
            stays
        });
        self.bytes = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchboard_base::caller::Principal;

    const OWNER: Realm = Realm::OWNER;

    fn result(scope: &str, ttl: u64) -> Raw {
        Raw::object([
            ("ttlMs", Raw::number(ttl)),
            ("cacheScope", Raw::string(scope)),
        ])
    }

    #[test]
    fn private_results_are_cached_per_realm() {
        let reads = Reads::default();
        let (server, mine, ours): (Arc<str>, Arc<str>, Arc<str>) =
            ("s".into(), "x:mine".into(), "x:ours".into());
        reads.put(
            reads.generation(),
            &server,
            &mine,
            OWNER,
            &result("private", 60_000),
        );
        reads.put(
            reads.generation(),
            &server,
            &ours,
            OWNER,
            &result("public", 60_000),
        );
        let has = |uri, realm: Realm| reads.get(&server, uri, realm).is_some();
        assert!(has(&mine, OWNER) && has(&ours, OWNER));
        assert!(!has(&mine, Principal::Anyone.into()));
        assert!(has(&ours, Principal::Anyone.into()));
        reads.changed("s", "x:ours#part");
        assert!(!has(&ours, OWNER) && has(&mine, OWNER));
        reads.forget("other");
        assert!(has(&mine, OWNER));
        reads.forget("s");
        assert!(!has(&mine, OWNER));
        assert_eq!(reads.0.lock().bytes, 0);
        // A result of a request from before the change may be outdated.
        let before = reads.generation();
        reads.changed("s", "x:mine");
        reads.put(before, &server, &mine, OWNER, &result("private", 60_000));
        assert!(!has(&mine, OWNER));
    }

    #[test]
    fn uncacheable_results_are_not_cached() {
        let reads = Reads::default();
        let (server, uri): (Arc<str>, Arc<str>) = ("s".into(), "x:y".into());
        for result in [result("public", 0), Raw::empty_object()] {
            reads.put(reads.generation(), &server, &uri, OWNER, &result);
            assert!(reads.get(&server, &uri, OWNER).is_none());
        }
        let long = "x".repeat(READ_BYTES);
        let long = result("public", 60_000)
            .with_member("text", &Raw::string(&long))
            .unwrap();
        reads.put(reads.generation(), &server, &uri, OWNER, &long);
        assert!(reads.get(&server, &uri, OWNER).is_none());
    }

    #[test]
    fn cache_size_is_bounded() {
        let reads = Reads::default();
        let server: Arc<str> = "s".into();
        for n in 0..READS_MAX * 2 {
            let uri: Arc<str> = format!("x:{n}").into();
            reads.put(
                reads.generation(),
                &server,
                &uri,
                OWNER,
                &result("public", 60_000),
            );
        }
        assert_eq!(reads.0.lock().by_key.len(), READS_MAX);
    }

    #[test]
    fn expired_list_is_fetched_again() {
        let freshness = Freshness::default();
        assert!(freshness.of(Kind::Tool).is_none());
        let hints = CacheHints::of(&result("public", 60_000));
        freshness.set(Kind::Tool, hints);
        let fresh = freshness.of(Kind::Tool).unwrap();
        assert!(!fresh.is_over(false));
        let (left, public) = fresh.hints();
        assert!(left <= Duration::from_mins(1) && public);
        let old = Fresh {
            at: Instant::now().checked_sub(Duration::from_secs(2)).unwrap(),
            hints: CacheHints::of(&result("private", 0)).unwrap(),
        };
        assert!(old.is_over(false));
        // The server reports changes, and allows the list to be kept until then.
        assert!(!old.is_over(true));
    }
}
