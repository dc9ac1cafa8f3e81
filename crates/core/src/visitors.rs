//! The clients of 2026-07-28. They have no sessions: each of their requests names its client.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;
use switchboard_base::{
    caller::{Caller, Principal},
    view::View,
};

/// The time after its last request for which a client over HTTP is listed.
const SEEN: Duration = Duration::from_mins(2);
/// The most clients that are remembered, half of them without the gateway's own token. Further ones are served, and
/// not listed.
const VISITORS_MAX: usize = 4_096;

/// The clients of 2026-07-28 that are connected, or have sent a request lately.
#[derive(Debug, Default)]
pub struct Visitors(Arc<Mutex<ByPerson>>);

type ByPerson = HashMap<u64, Entry, FxBuildHasher>;

#[derive(Debug)]
struct Entry {
    view: View,
    caller: Caller,
    since: SystemTime,
    seen: Instant,
    /// Its pipes and open streams.
    stays: usize,
    in_flight: Arc<AtomicUsize>,
}

impl Entry {
    fn is_here(&self) -> bool {
        let is_recent = self.caller.holder.is_web && self.seen.elapsed() < SEEN;
        self.stays > 0 || is_recent || self.in_flight.load(Relaxed) > 0
    }
}

/// A client of 2026-07-28.
#[derive(Debug)]
pub struct Visitor {
    /// The servers that its last request could see.
    pub view: View,
    /// The client as a caller.
    pub caller: Caller,
    /// The time of its first request.
    pub since: SystemTime,
    /// The number of its requests in flight.
    pub in_flight: usize,
}

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub struct Visit(Arc<AtomicUsize>);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A connection or stream of a client, until it is dropped.
#[derive(Debug)]
pub struct Stay {
    visitors: Arc<Mutex<ByPerson>>,
    person: u64,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut visitors = self.visitors.lock();
        if let Some(entry) = visitors.get_mut(&self.person) {
            entry.stays -= 1;
            entry.seen = Instant::now();
            if !entry.is_here() {
                visitors.remove(&self.person);
            }
        }
    }
}

impl Visitors {
    /// Notes a request of a client, which is in flight until the visit is dropped.
    pub fn visit(&self, caller: &Caller, view: &View) -> Visit {
        let in_flight = self.note(caller, view, |entry| Arc::clone(&entry.in_flight));
        let in_flight = in_flight.unwrap_or_default();
        in_flight.fetch_add(1, Relaxed);
        Visit(in_flight)
    }

    /// Notes a client on a pipe or a stream of its own; `None` if there are too many.
    pub fn stay(&self, caller: &Caller, view: &View) -> Option<Stay> {
        self.note(caller, view, |entry| entry.stays += 1)?;
        Some(Stay {
            visitors: Arc::clone(&self.0),
            person: caller.person,
        })
    }

    fn note<T>(
        &self,
        caller: &Caller,
        view: &View,
        then: impl FnOnce(&mut Entry) -> T,
    ) -> Option<T> {
        let mut visitors = self.0.lock();
        if let Some(entry) = visitors.get_mut(&caller.person) {
            entry.seen = Instant::now();
            if entry.view != *view {
                entry.view = view.clone();
            }
            return Some(then(entry));
        }
        let room = match caller.realm.principal {
            Principal::Owner => VISITORS_MAX,
            Principal::Token(_) | Principal::Anyone => VISITORS_MAX / 2,
        };
        if visitors.len() >= room {
            visitors.retain(|_, entry| entry.is_here());
            if visitors.len() >= room {
                return None;
            }
        }
        let entry = visitors.entry(caller.person).or_insert_with(|| Entry {
            view: view.clone(),
            caller: caller.clone(),
            since: SystemTime::now(),
            seen: Instant::now(),
            stays: 0,
            in_flight: Arc::default(),
        });
        Some(then(entry))
    }

    /// The clients that are connected, or have sent a request lately.
    pub fn list(&self) -> Vec<Visitor> {
        let mut visitors = self.0.lock();
        visitors.retain(|_, entry| entry.is_here());
        let all = visitors.values().map(|entry| Visitor {
            view: entry.view.clone(),
            caller: entry.caller.clone(),
            since: entry.since,
            in_flight: entry.in_flight.load(Relaxed),
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use switchboard_base::{caller::Realm, view::Face};

    use super::*;

    const VIEW: View = View::All(Face::Configured);

    fn caller(key: u64) -> Caller {
        Caller::new(key, "a".into(), Realm::OWNER)
    }

    #[test]
    fn client_on_pipe_is_listed_until_it_leaves() {
        let visitors = Visitors::default();
        let stay = visitors.stay(&caller(1), &VIEW);
        let visit = visitors.visit(&caller(1), &View::All(Face::Direct));
        let listed = visitors.list();
        assert_eq!((listed.len(), listed[0].in_flight), (1, 1));
        assert_eq!(listed[0].view, View::All(Face::Direct));
        drop(visit);
        assert_eq!(visitors.list()[0].in_flight, 0);
        drop(stay);
        assert_eq!(visitors.list().len(), 0);
    }

    #[test]
    fn client_over_http_is_listed_after_its_request() {
        let visitors = Visitors::default();
        drop(visitors.visit(&caller(1).over_http("tcp"), &VIEW));
        assert_eq!(visitors.list().len(), 1);
    }

    #[test]
    fn visitors_are_bounded() {
        let visitors = Visitors::default();
        let stays: Vec<_> = (0..=VISITORS_MAX as u64)
            .map(|key| visitors.stay(&caller(key), &VIEW))
            .collect();
        assert!(stays[VISITORS_MAX].is_none());
        assert_eq!(visitors.list().len(), VISITORS_MAX);
        drop(stays);
        assert_eq!(visitors.list().len(), 0);
    }
}
