//! Places for connections: few for those that have not shown who they are, many for the others.
//!
//! A connection that has shown nothing never keeps another one out: with no place left, the oldest of them is
//! closed. So accepting never waits.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};

/// The most connections that have shown who they are.
const KNOWN_MAX: usize = 8_192;
/// The most connections that have not.
const STRANGERS_MAX: usize = 1_024;
/// Errors of accepting are logged once in this time.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The connections of one door.
#[derive(Debug)]
pub(crate) struct Places {
    strangers: Mutex<Strangers>,
    strangers_max: usize,
    known: Arc<Semaphore>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    /// The oldest first.
    by_age: BTreeMap<u64, Arc<Notify>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    evicted: Arc<Notify>,
    known: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Places {
    /// Places for a process that may have this many open files. Servers, the store and the other door need some.
    pub(crate) fn for_open_files(limit: Option<u64>) -> Arc<Self> {
        let limit = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        Arc::new(Self {
            strangers: Mutex::default(),
            strangers_max: (limit / 8).clamp(1, STRANGERS_MAX),
            known: Arc::new(Semaphore::new((limit / 4).clamp(1, KNOWN_MAX))),
            count: watch::Sender::new(0),
        })
    }

    /// A place for a new connection. It may cost the oldest stranger its own.
    pub(crate) fn take(self: &Arc<Self>) -> Place {
        let evicted = Arc::new(Notify::new());
        let mut strangers = self.strangers();
        while strangers.by_age.len() >= self.strangers_max {
            strangers.evict();
        }
        let number = strangers.next;
        strangers.next += 1;
        strangers.by_age.insert(number, Arc::clone(&evicted));
        drop(strangers);
        self.count.send_modify(|count| *count += 1);
        Place {
            places: Arc::clone(self),
            number,
            evicted,
            known: Mutex::default(),
        }
    }

    /// Closes the oldest stranger, to have its file descriptor.
    pub(crate) fn evict(&self) {
        self.strangers().evict();
    }

    /// Waits until every connection is closed.
    pub(crate) async fn empty(&self) {
        let mut count = self.count.subscribe();
        // The sender is here.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Strangers {
    fn evict(&mut self) {
        if let Some((_, oldest)) = self.by_age.pop_first() {
            oldest.notify_one();
        }
    }
}

impl Place {
    /// The connection has shown who it is, and keeps its place. `false` if there are too many of those.
    pub(crate) fn know(&self) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some() {
            return true;
        }
        let Ok(permit) = Arc::clone(&self.places.known).try_acquire_owned() else {
            return false;
        };
        *known = Some(permit);
        self.places.strangers().by_age.remove(&self.number);
        true
    }

    /// Waits until another connection gets the place.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
        if self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
        {
            // It became known in the same moment.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.strangers().by_age.remove(&self.number);
        self.places.count.send_modify(|count| *count -= 1);
    }
}

/// Errors that come in crowds, logged now and then.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    last: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// Counts one. If it is time to log: how many there were since the last time.
    pub(crate) fn count(&mut self) -> Option<u64> {
        self.unsaid += 1;
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < LOG_EVERY) {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    async fn is_evicted(place: &Place) -> bool {
        timeout(Duration::from_millis(1), place.evicted())
            .await
            .is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_stranger_makes_room() {
        let places = Places::for_open_files(Some(24));
        let known = places.take();
        assert!(known.know());
        let first: Vec<_> = (0..3).map(|_| places.take()).collect();
        assert!(!is_evicted(&first[0]).await);
        let _next = places.take();
        assert!(is_evicted(&first[0]).await);
        assert!(!is_evicted(&first[1]).await);
        assert!(!is_evicted(&known).await);
        places.evict();
        assert!(is_evicted(&first[1]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn known_connections_are_bounded_and_counted() {
        let places = Places::for_open_files(Some(8));
        let (first, second) = (places.take(), places.take());
        let third = places.take();
        assert!(first.know() && first.know() && second.know());
        assert!(!third.know());
        drop(first);
        assert!(third.know());
        drop((second, third));
        timeout(Duration::from_secs(1), places.empty())
            .await
            .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn many_errors_are_logged_once_with_their_number() {
        let mut seldom = Seldom::default();
        assert_eq!(seldom.count(), Some(1));
        for _ in 0..99 {
            assert_eq!(seldom.count(), None);
        }
        advance(LOG_EVERY).await;
        assert_eq!(seldom.count(), Some(100));
    }
}
