//! Slots for connections: few for unauthenticated clients ("strangers"), many for the others.
//!
//! A stranger never keeps another connection out: if no slot is left, the oldest stranger is
//! closed. So accepting never waits.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::AbortHandle,
    time::Instant,
};

/// The most authenticated connections.
const KNOWN_MAX: usize = 8_192;
/// The most strangers.
const STRANGERS_MAX: usize = 1_024;
/// Interval at which errors of accepting are logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The connections of one door.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    strangers: Mutex<Strangers>,
    strangers_max: usize,
    known: Arc<Semaphore>,
    /// The slots among them that clients with tokens can take.
    tokens: Arc<Semaphore>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    /// Oldest first. A connection that is about to start has no task yet.
    by_age: BTreeMap<u64, Option<AbortHandle>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    known: Mutex<Option<Permits>>,
}

/// A slot for an authenticated connection, and one for a client with a token.
type Permits = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl ConnectionSlots {
    /// Slots for a process with this limit on open files. Servers, the store and the other door
    /// need some of them.
    pub(crate) fn for_open_files(limit: Option<u64>) -> Arc<Self> {
        let limit = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let known = (limit / 4).clamp(1, KNOWN_MAX);
        Arc::new(Self {
            strangers: Mutex::default(),
            strangers_max: (limit / 8).clamp(1, STRANGERS_MAX),
            known: Arc::new(Semaphore::new(known)),
            tokens: Arc::new(Semaphore::new(known.div_ceil(2))),
            count: watch::Sender::new(0),
        })
    }

    /// Serves a new connection in a task of its own. It may take the slot of the oldest stranger.
    pub(crate) fn spawn<F>(self: &Arc<Self>, serve: impl FnOnce(ConnectionSlot) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let number = {
            let mut strangers = self.strangers.lock();
            if strangers.by_age.len() >= self.strangers_max {
                strangers.evict();
            }
            let number = strangers.next;
            strangers.next += 1;
            strangers.by_age.insert(number, None);
            number
        };
        self.count.send_modify(|count| *count += 1);
        let task = tokio::spawn(serve(ConnectionSlot {
            slots: Arc::clone(self),
            number,
            known: Mutex::default(),
        }));
        // The connection may be known, or closed, by now.
        if let Some(stranger) = self.strangers.lock().by_age.get_mut(&number) {
            *stranger = Some(task.abort_handle());
        }
    }

    /// Closes the oldest stranger, to free its file descriptor.
    pub(crate) fn evict(&self) {
        self.strangers.lock().evict();
    }

    /// Waits until every connection is closed.
    pub(crate) async fn empty(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

impl Strangers {
    fn evict(&mut self) {
        if let Some(oldest) = self.by_age.first_entry()
            && oldest.get().is_some()
            && let Some(task) = oldest.remove()
        {
            // Cheaper than a signal that each connection would have to poll all the time.
            task.abort();
        }
    }
}

impl ConnectionSlot {
    /// Marks the connection as authenticated, so that it keeps its slot. Returns `false` if there
    /// are too many such connections, or another connection has taken the slot already. Clients with
    /// tokens can take half of the slots.
    pub(crate) fn know(&self, has_token: bool) -> bool {
        let mut known = self.known.lock();
        if known.is_some() {
            return true;
        }
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_owned().ok();
        let of_tokens = take(&self.slots.tokens).filter(|_| has_token);
        if has_token && of_tokens.is_none() {
            return false;
        }
        let Some(permit) = take(&self.slots.known) else {
            return false;
        };
        let is_here = self
            .slots
            .strangers
            .lock()
            .by_age
            .remove(&self.number)
            .is_some();
        *known = is_here.then_some((permit, of_tokens));
        is_here
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.strangers.lock().by_age.remove(&self.number);
        self.slots.count.send_modify(|count| *count -= 1);
    }
}

/// Limits the log lines for errors that come in large numbers.
#[derive(Debug, Default)]
pub(crate) struct LogThrottle {
    last: Option<Instant>,
    unsaid: u64,
}

impl LogThrottle {
    /// Counts an error. When it is time to log, returns the number since the last log line.
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
    use tokio::{
        sync::oneshot,
        time::{advance, timeout},
    };

    use super::*;

    /// A connection that lasts until it is evicted or closed.
    struct Connection {
        slot: Arc<ConnectionSlot>,
        close: oneshot::Sender<()>,
    }

    async fn connect(slots: &Arc<ConnectionSlots>) -> Connection {
        let (started, slot) = oneshot::channel();
        let (close, closed) = oneshot::channel();
        slots.spawn(|slot| async move {
            let slot = Arc::new(slot);
            let _ = started.send(Arc::clone(&slot));
            let _ = closed.await;
        });
        let slot = slot.await.unwrap();
        Connection { slot, close }
    }

    async fn is_evicted(connection: &mut Connection) -> bool {
        let closed = connection.close.closed();
        timeout(Duration::from_millis(1), closed).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_stranger_is_evicted() {
        let slots = ConnectionSlots::for_open_files(Some(24));
        let mut known = connect(&slots).await;
        assert!(known.slot.know(false));
        let mut first = [
            connect(&slots).await,
            connect(&slots).await,
            connect(&slots).await,
        ];
        assert!(!is_evicted(&mut first[0]).await);
        let _next = connect(&slots).await;
        assert!(is_evicted(&mut first[0]).await);
        assert!(!first[0].slot.know(false));
        assert!(!is_evicted(&mut first[1]).await);
        assert!(!is_evicted(&mut known).await);
        slots.evict();
        assert!(is_evicted(&mut first[1]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn known_connections_are_bounded_and_counted() {
        let slots = ConnectionSlots::for_open_files(Some(8));
        let first = connect(&slots).await;
        assert!(first.slot.know(false) && first.slot.know(false));
        let second = connect(&slots).await;
        assert!(second.slot.know(false));
        let third = connect(&slots).await;
        assert!(!third.slot.know(false));
        drop(first);
        tokio::task::yield_now().await;
        assert!(third.slot.know(false));
        drop((second, third));
        timeout(Duration::from_secs(1), slots.empty())
            .await
            .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn many_errors_are_logged_once_with_count() {
        let mut seldom = LogThrottle::default();
        assert_eq!(seldom.count(), Some(1));
        for _ in 0..99 {
            assert_eq!(seldom.count(), None);
        }
        advance(LOG_EVERY).await;
        assert_eq!(seldom.count(), Some(100));
    }
}
