//! What servers of 2026-07-28 let the gateway keep: how fresh their lists are, and resources that have
//! been read.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use switchboard_base::caller::Principal;
use switchboard_catalog::Kind;
use switchboard_client::{CacheHints, Raw};

use crate::subscriptions::covers;

/// How fresh the lists of one server are.
#[derive(Debug, Default)]
pub struct Freshness(Mutex<[Option<Fresh>; Kind::ALL.len()]>);

/// How fresh a list is.
#[derive(Debug, Clone, Copy)]
pub struct Fresh {
    at: Instant,
    hints: CacheHints,
}

/// However short a time a server gives its lists, it is not asked for them more often than this.
const LEAST: Duration = Duration::from_secs(1);

impl Freshness {
    /// A list has been had, with these hints.
    pub(crate) fn set(&self, kind: Kind, hints: Option<CacheHints>) {
        let fresh = hints.map(|hints| Fresh {
            at: Instant::now(),
            hints,
        });
        self.0.lock()[kind as usize] = fresh;
    }

    /// How fresh the list is, if its server said how long it stays so.
    pub fn of(&self, kind: Kind) -> Option<Fresh> {
        self.0.lock()[kind as usize]
    }
}

impl Fresh {
    /// Whether the list is to be asked for anew. `told` if the server tells when it changes.
    pub(crate) fn is_over(&self, told: bool) -> bool {
        let ttl = self.hints.ttl;
        !(told && ttl.is_zero()) && self.at.elapsed() > ttl.max(LEAST)
    }

    /// What a client may be told of it now.
    pub fn hints(&self) -> (Duration, bool) {
        let left = self.hints.ttl.saturating_sub(self.at.elapsed());
        (left, self.hints.public)
    }
}

/// Resources that have been read, and may be kept.
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
    /// Whose it is, if not everybody's.
    principal: Option<Principal>,
}

#[derive(Debug)]
struct Read {
    result: Raw,
    until: Instant,
}

/// The most that is kept of one resource, of all, and how many.
const READ_BYTES: usize = 1024 * 1024;
const READS_BYTES: usize = 16 * 1024 * 1024;
const READS_MAX: usize = 1_024;

impl Reads {
    /// What was read, if it may still be used by this principal, and for how long.
    pub fn get(
        &self,
        server: &Arc<str>,
        uri: &Arc<str>,
        principal: Principal,
    ) -> Option<(Raw, Duration)> {
        let entries = self.0.lock();
        if entries.by_key.is_empty() {
            return None;
        }
        let now = Instant::now();
        [None, Some(principal)].into_iter().find_map(|principal| {
            let read = entries.by_key.get(&Key {
                server: Arc::clone(server),
                uri: Arc::clone(uri),
                principal,
            })?;
            let left = read.until.checked_duration_since(now)?;
            Some((read.result.clone(), left))
        })
    }

    /// Tells what was asked for before a change from what was asked for after it.
    pub fn generation(&self) -> u64 {
        self.1.load(Relaxed)
    }

    /// Keeps what was read, if its server allows it and nothing has changed since it was asked for.
    pub fn put(
        &self,
        generation: u64,
        server: &Arc<str>,
        uri: &Arc<str>,
        principal: Principal,
        result: &Raw,
    ) {
        let size = result.as_bytes().len();
        if size > READ_BYTES {
            return;
        }
        let Some(hints) = CacheHints::of(result).filter(|hints| !hints.ttl.is_zero()) else {
            return;
        };
        let now = Instant::now();
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
            principal: (!hints.public).then_some(principal),
        };
        let read = Read {
            // A copy of its own: the bytes of a frame would keep the buffer that they came in.
            result: result.detached(),
            until: now + hints.ttl,
        };
        entries.bytes += size;
        if let Some(old) = entries.by_key.insert(key, read) {
            entries.bytes -= old.result.as_bytes().len();
        }
    }

    /// A resource has changed, or a part of it.
    pub(crate) fn changed(&self, server: &str, uri: &str) {
        let mut entries = self.0.lock();
        self.1.fetch_add(1, Relaxed);
        entries.retain(|key, _| {
            *key.server != *server || !(covers(&key.uri, uri) || covers(uri, &key.uri))
        });
    }

    /// Nothing that is known of this server holds any more.
    pub(crate) fn forget(&self, server: &str) {
        let mut entries = self.0.lock();
        self.1.fetch_add(1, Relaxed);
        entries.retain(|key, _| *key.server != *server);
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

    const OWNER: Principal = Principal::Owner;

    fn result(scope: &str, ttl: u64) -> Raw {
        Raw::object([
            ("ttlMs", Raw::number(ttl)),
            ("cacheScope", Raw::string(scope)),
        ])
    }

    #[test]
    fn what_is_private_is_kept_for_who_read_it_and_what_is_public_for_all() {
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
        let has = |uri, principal| reads.get(&server, uri, principal).is_some();
        assert!(has(&mine, OWNER) && has(&ours, OWNER));
        assert!(!has(&mine, Principal::Anyone));
        assert!(has(&ours, Principal::Anyone));
        reads.changed("s", "x:ours#part");
        assert!(!has(&ours, OWNER) && has(&mine, OWNER));
        reads.forget("other");
        assert!(has(&mine, OWNER));
        reads.forget("s");
        assert!(!has(&mine, OWNER));
        assert_eq!(reads.0.lock().bytes, 0);
        // What was asked for before the change may be from before it.
        let before = reads.generation();
        reads.changed("s", "x:mine");
        reads.put(before, &server, &mine, OWNER, &result("private", 60_000));
        assert!(!has(&mine, OWNER));
    }

    #[test]
    fn what_may_not_be_kept_is_not() {
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
    fn there_is_an_end_to_what_is_kept() {
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
    fn a_list_is_asked_for_anew_when_its_time_is_over() {
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
        // The server says when it changes, and has nothing against its being kept until then.
        assert!(!old.is_over(true));
    }
}
