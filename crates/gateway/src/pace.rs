//! The pace at which servers are started that no call waits for.
//!
//! Fifty servers started at once would take the machine from the client that is being answered, and from
//! each other: their handshakes would time out. So they start after the first answers, about as many at a
//! time as there are cores. A server that a call waits for does not wait its turn.

use std::{num::NonZero, sync::Arc, thread::available_parallelism, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout_at},
};

/// Work that no client waits for begins this long after the start, when the first clients have their
/// answers.
pub(crate) const AFTER_FIRST_ANSWERS: Duration = Duration::from_millis(200);
/// The longest that one start keeps its place. A start that takes longer waits for a network or hangs, and goes on
/// beside the others.
const PLACE_LIMIT: Duration = Duration::from_secs(10);
/// The least number of starts at a time: one that hangs must not hold up the rest.
const PLACES_MIN: usize = 2;

#[derive(Debug)]
pub(crate) struct Pace {
    opens: Instant,
    /// Whether a client waits for the first starts.
    hurried: watch::Sender<bool>,
    places: Arc<Semaphore>,
}

/// The right to use the machine for one start. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    /// When it has to be given back.
    pub(crate) until: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        let cores = available_parallelism().map_or(PLACES_MIN, NonZero::get);
        Self::with_places(cores.max(PLACES_MIN))
    }

    fn with_places(places: usize) -> Self {
        Self {
            opens: Instant::now() + AFTER_FIRST_ANSWERS,
            hurried: watch::Sender::new(false),
            places: Arc::new(Semaphore::new(places)),
        }
    }

    /// Waits for the turn of a server that costs this machine nothing: it runs elsewhere.
    pub(crate) async fn open(&self) {
        let mut hurried = self.hurried.subscribe();
        // Whichever comes first.
        let _ = timeout_at(self.opens, hurried.wait_for(|hurried| *hurried)).await;
    }

    /// Waits for a place. The first to wait is the first to get one; a server that gives up waiting costs the
    /// others nothing.
    pub(crate) async fn turn(&self) -> Place {
        self.open().await;
        // The semaphore is never closed.
        let permit = Arc::clone(&self.places).acquire_owned().await.ok();
        Place {
            _permit: permit,
            until: Instant::now() + PLACE_LIMIT,
        }
    }

    /// A client waits for what the first starts bring: they begin now.
    pub(crate) fn hurry(&self) {
        self.hurried.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn starts_wait_for_first_answers_and_for_places() {
        let began = Instant::now();
        let pace = Pace::with_places(2);
        let gave_up = tokio::time::timeout(Duration::from_millis(100), pace.turn()).await;
        assert!(gave_up.is_err());
        let one = pace.turn().await;
        let _two = pace.turn().await;
        assert_eq!(began.elapsed(), AFTER_FIRST_ANSWERS);
        let waiting = tokio::time::timeout(Duration::from_secs(1), pace.turn()).await;
        assert!(waiting.is_err());
        // A server elsewhere needs no place.
        pace.open().await;
        drop(one);
        let three = pace.turn().await;
        assert_eq!(three.until, Instant::now() + PLACE_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn starts_that_a_client_waits_for_begin_at_once() {
        let began = Instant::now();
        let pace = Pace::with_places(2);
        pace.hurry();
        let _place = pace.turn().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
