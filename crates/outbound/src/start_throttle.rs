//! Throttles the starts of servers that no call waits for.
//!
//! Fifty simultaneous starts would slow down the client that is being served, and each other: their
//! handshakes would time out. So they begin after the first responses, about as many at a time as there are
//! cores. A server that a call waits for is not throttled.

use std::{num::NonZero, sync::Arc, thread::available_parallelism, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};

/// Time after the start of the gateway at which background work begins, when the first clients have their
/// responses.
pub const AFTER_FIRST_ANSWERS: Duration = Duration::from_millis(200);
/// The longest time for which one start holds its permit. A start that takes longer waits for the network or
/// hangs, and continues alongside the others.
const PLACE_LIMIT: Duration = Duration::from_secs(10);
/// The least number of concurrent starts, so that one that hangs does not block the rest.
const PLACES_MIN: usize = 2;

/// Schedules the starts of servers.
#[derive(Debug)]
pub struct StartThrottle {
    opens: Instant,
    /// A client waits for the first starts.
    hurried: watch::Sender<bool>,
    /// Starts are paused.
    paused: watch::Sender<bool>,
    places: Arc<Semaphore>,
    /// The number of waiting starts of first priority.
    hopeful: watch::Sender<usize>,
}

/// The priority of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    First,
    /// An earlier attempt failed, so other servers go first.
    Last,
}

/// A permit for one start, returned when dropped.
#[derive(Debug)]
pub(crate) struct StartPermit {
    _permit: Option<OwnedSemaphorePermit>,
    /// Time at which it has to be returned.
    pub(crate) until: Instant,
}

impl Default for StartThrottle {
    fn default() -> Self {
        let cores = available_parallelism().map_or(PLACES_MIN, NonZero::get);
        Self::with_places(cores.max(PLACES_MIN))
    }
}

impl StartThrottle {
    fn with_places(places: usize) -> Self {
        Self {
            opens: Instant::now() + AFTER_FIRST_ANSWERS,
            hurried: watch::Sender::new(false),
            paused: watch::Sender::new(false),
            places: Arc::new(Semaphore::new(places)),
            hopeful: watch::Sender::new(0),
        }
    }

    /// Waits for the turn of a remote server, which needs no resources of this machine. `begin` is called
    /// when the turn has come, and never after [`pause`](Self::pause) has returned.
    pub(crate) async fn open(&self, begin: impl Fn()) {
        self.opened().await;
        loop {
            self.resumed().await;
            if self.begins(&begin) {
                return;
            }
        }
    }

    /// Waits for a permit. Permits are granted in order of arrival, unless starts are paused meanwhile; a
    /// server that stops waiting costs the others nothing. `begin` is called as by [`open`](Self::open).
    pub(crate) async fn turn(&self, order: Priority, begin: impl Fn()) -> StartPermit {
        let hope = (order == Priority::First).then(|| Hope::new(&self.hopeful));
        self.opened().await;
        loop {
            self.resumed().await;
            if hope.is_none() {
                let mut hopeful = self.hopeful.subscribe();
                // The sender is in `self`.
                let _ = hopeful.wait_for(|hopeful| *hopeful == 0).await;
            }
            // The semaphore is never closed.
            let permit = Arc::clone(&self.places).acquire_owned().await.ok();
            if self.begins(&begin) {
                return StartPermit {
                    _permit: permit,
                    until: Instant::now() + PLACE_LIMIT,
                };
            }
        }
    }

    /// Lets the first starts begin now, because a client waits for their results.
    pub(crate) fn hurry(&self) {
        self.hurried.send_replace(true);
    }

    /// Pauses all starts until `resume`, because no client is connected.
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    pub(crate) fn resume(&self) {
        self.paused.send_replace(false);
    }

    async fn opened(&self) {
        let mut hurried = self.hurried.subscribe();
        // Returns at the opening time, or earlier if hurried.
        let _ = timeout_at(self.opens, hurried.wait_for(|hurried| *hurried)).await;
    }

    async fn resumed(&self) {
        let mut paused = self.paused.subscribe();
        // The sender is in `self`.
        let _ = paused.wait_for(|paused| !*paused).await;
    }

    /// Begins a start, unless starts are paused. Returns `true` if it began.
    fn begins(&self, begin: impl Fn()) -> bool {
        // Borrowed while it begins, so that a pause happens either before or after.
        let paused = self.paused.borrow();
        if !*paused {
            begin();
        }
        !*paused
    }
}

/// A waiting start of first priority.
struct Hope<'a>(&'a watch::Sender<usize>);

impl<'a> Hope<'a> {
    fn new(hopeful: &'a watch::Sender<usize>) -> Self {
        hopeful.send_modify(|hopeful| *hopeful += 1);
        Self(hopeful)
    }
}

impl Drop for Hope<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|hopeful| *hopeful -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    async fn turn(start_throttle: &StartThrottle) -> StartPermit {
        start_throttle.turn(Priority::First, || ()).await
    }

    #[tokio::test(start_paused = true)]
    async fn starts_wait_for_first_responses_and_permits() {
        let began = Instant::now();
        let start_throttle = StartThrottle::with_places(2);
        let gave_up = timeout(Duration::from_millis(100), turn(&start_throttle)).await;
        assert!(gave_up.is_err());
        let one = turn(&start_throttle).await;
        let _two = turn(&start_throttle).await;
        assert_eq!(began.elapsed(), AFTER_FIRST_ANSWERS);
        let waiting = timeout(Duration::from_secs(1), turn(&start_throttle)).await;
        assert!(waiting.is_err());
        // A remote server needs no permit.
        start_throttle.open(|| ()).await;
        drop(one);
        let three = turn(&start_throttle).await;
        assert_eq!(three.until, Instant::now() + PLACE_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn awaited_starts_begin_at_once() {
        let began = Instant::now();
        let start_throttle = StartThrottle::with_places(2);
        start_throttle.hurry();
        let _place = turn(&start_throttle).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn servers_tried_before_start_last() {
        let start_throttle = StartThrottle::with_places(1);
        let held = turn(&start_throttle).await;
        let order = std::cell::RefCell::new(Vec::new());
        let note = |name| {
            let order = &order;
            move || order.borrow_mut().push(name)
        };
        tokio::join!(
            async { drop(start_throttle.turn(Priority::First, note("a")).await) },
            async { drop(start_throttle.turn(Priority::Last, note("tried")).await) },
            async { drop(start_throttle.turn(Priority::First, note("b")).await) },
            async { drop(held) },
        );
        assert_eq!(order.into_inner(), ["a", "b", "tried"]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_start_begins_while_paused() {
        let start_throttle = StartThrottle::with_places(1);
        let held = turn(&start_throttle).await;
        let begun = std::cell::Cell::new(0);
        let begin = || begun.set(begun.get() + 1);
        let starts = async {
            tokio::join!(
                start_throttle.turn(Priority::First, begin),
                start_throttle.open(begin)
            );
        };
        let mut starts = std::pin::pin!(starts);
        // One start already waits for a permit.
        let mut waiting = std::pin::pin!(start_throttle.turn(Priority::First, begin));
        assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
        start_throttle.pause();
        drop(held);
        assert!(timeout(Duration::from_mins(1), &mut waiting).await.is_err());
        assert!(timeout(Duration::from_mins(1), &mut starts).await.is_err());
        assert_eq!(begun.get(), 0);
        start_throttle.resume();
        drop(waiting.await);
        starts.await;
        assert_eq!(begun.get(), 3);
    }
}
