//! Limits the number of concurrent calls of a server, and queues the rest.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{clock, fair_queue::FairQueue};

/// The concurrency limit of one server.
#[derive(Debug)]
pub struct Limiter {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    places: usize,
    queue_max: usize,
    taken: usize,
    queue: FairQueue<oneshot::Sender<()>>,
    uses: u64,
    last_used: Instant,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full {
    /// The number of calls that already wait.
    pub waiting: usize,
}

impl Limiter {
    pub(crate) fn new(places: usize, queue_max: usize) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                places,
                queue_max,
                taken: 0,
                queue: FairQueue::new(),
                uses: 0,
                last_used: clock::now(),
            }),
        })
    }

    /// Acquires a permit, or queues for one. `client` is the key of the fair queue.
    pub fn acquire(self: &Arc<Self>, client: u64) -> Result<Acquiring, Full> {
        let mut inner = self.inner.lock();
        inner.uses += 1;
        if inner.taken < inner.places {
            inner.taken += 1;
            drop(inner);
            return Ok(Acquiring::Taken(Some(Permit(Arc::clone(self)))));
        }
        if inner.queue.len() >= inner.queue_max {
            let waiting = inner.queue.len();
            return Err(Full { waiting });
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = inner.queue.push(client, sender);
        drop(inner);
        Ok(Acquiring::Waiting(Waiting {
            limiter: Arc::clone(self),
            client,
            ticket,
            receiver,
            settled: false,
        }))
    }

    /// Changes the limits. Permits that are already held stay valid.
    pub(crate) fn set(&self, places: usize, queue_max: usize) {
        let mut inner = self.inner.lock();
        inner.places = places;
        inner.queue_max = queue_max;
        inner.hand_on();
    }

    /// The number of calls in flight, and of waiting calls.
    pub fn load(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.taken, inner.queue.len())
    }

    /// The total number of calls of [`acquire`](Self::acquire).
    pub(crate) fn uses(&self) -> u64 {
        self.inner.lock().uses
    }

    /// Time at which the last call ended; `None` while a call is in flight or waits.
    pub(crate) fn last_used(&self) -> Option<Instant> {
        let inner = self.inner.lock();
        (inner.taken == 0 && inner.queue.len() == 0).then_some(inner.last_used)
    }
}

impl Inner {
    /// Grants free permits to waiting calls. A waiter that is gone is skipped.
    fn hand_on(&mut self) {
        while self.taken < self.places
            && let Some(next) = self.queue.pop()
        {
            if next.send(()).is_ok() {
                self.taken += 1;
            }
        }
    }
}

/// A permit for one call, returned when dropped.
#[derive(Debug)]
pub struct Permit(Arc<Limiter>);

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.taken -= 1;
        if inner.taken == 0 {
            inner.last_used = clock::now();
        }
        inner.hand_on();
    }
}

/// A permit, granted at once or after a wait.
#[derive(Debug)]
pub enum Acquiring {
    /// It was granted at once.
    Taken(Option<Permit>),
    /// It waits for its turn.
    Waiting(Waiting),
}

/// A call that waits for a permit.
#[derive(Debug)]
pub struct Waiting {
    limiter: Arc<Limiter>,
    client: u64,
    ticket: u64,
    receiver: oneshot::Receiver<()>,
    settled: bool,
}

impl Future for Acquiring {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        match &mut *self {
            Self::Taken(permit) => permit.take().map_or(Poll::Pending, Poll::Ready),
            Self::Waiting(waiting) => {
                if waiting.settled {
                    return Poll::Pending;
                }
                // The sender is in the queue while this waits, and the queue is in the limiter that
                // this holds, so the sender cannot be dropped without sending.
                std::task::ready!(Pin::new(&mut waiting.receiver).poll(cx)).ok();
                waiting.settled = true;
                Poll::Ready(Permit(Arc::clone(&waiting.limiter)))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let mut inner = self.limiter.inner.lock();
        let removed = inner.queue.remove(self.client, self.ticket);
        drop(inner);
        // The permit may have been granted after the last poll; pass it on to the next waiter.
        if removed.is_none() && self.receiver.try_recv().is_ok() {
            drop(Permit(Arc::clone(&self.limiter)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(acquiring: Acquiring) -> Permit {
        match acquiring {
            Acquiring::Taken(Some(permit)) => permit,
            _ => panic!("there was no place"),
        }
    }

    #[tokio::test]
    async fn permits_are_granted_in_turn_and_queue_bounded() {
        let limiter = Limiter::new(1, 2);
        let first = taken(limiter.acquire(1).unwrap());
        let second = limiter.acquire(1).unwrap();
        let third = limiter.acquire(2).unwrap();
        assert_eq!(limiter.acquire(3).err(), Some(Full { waiting: 2 }));
        assert_eq!(limiter.load(), (1, 2));
        drop(first);
        let second = second.await;
        drop(second);
        drop(third.await);
        assert_eq!(limiter.load(), (0, 0));
        assert!(limiter.last_used().is_some());
    }

    #[tokio::test]
    async fn dropped_waiter_passes_on_its_permit() {
        let limiter = Limiter::new(1, 2);
        let first = taken(limiter.acquire(1).unwrap());
        let leaves_early = limiter.acquire(2).unwrap();
        let leaves_late = limiter.acquire(3).unwrap();
        drop(leaves_early);
        drop(first);
        // It was granted the permit and never polled.
        drop(leaves_late);
        assert_eq!(limiter.load(), (0, 0));
    }

    #[tokio::test]
    async fn raised_limit_admits_waiting_calls() {
        let limiter = Limiter::new(1, 8);
        let _first = taken(limiter.acquire(1).unwrap());
        let second = limiter.acquire(1).unwrap();
        limiter.set(2, 8);
        let _second = second.await;
        assert_eq!(limiter.load(), (2, 0));
    }
}
