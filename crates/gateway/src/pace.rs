//! The pace at which servers are started that nobody waits for.
//!
//! Fifty servers started at once would take the machine from the client that is being answered. So they
//! start after the first answers, a few at a time. A server that a call waits for does not wait its turn.

use std::time::Duration;

use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until},
};

/// Work that no client waits for begins this long after the start, when the first clients have their
/// answers.
pub(crate) const AFTER_FIRST_ANSWERS: Duration = Duration::from_millis(200);
/// And the next ones so long after each other.
const APART: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Pace {
    /// When the next start may be. Held by whoever waits for it, the others queue behind.
    next: Mutex<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            next: Mutex::new(Instant::now() + AFTER_FIRST_ANSWERS),
        }
    }

    /// Waits for a turn. Whoever gives up waiting costs the others nothing.
    pub(crate) async fn turn(&self) {
        let mut next = self.next.lock().await;
        sleep_until(*next).await;
        *next = Instant::now() + APART;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn starts_are_spread_and_who_gives_up_takes_no_turn() {
        let began = Instant::now();
        let pace = Arc::new(Pace::new());
        let gave_up = tokio::time::timeout(Duration::from_millis(100), pace.turn()).await;
        assert!(gave_up.is_err());
        pace.turn().await;
        assert_eq!(began.elapsed(), AFTER_FIRST_ANSWERS);
        pace.turn().await;
        pace.turn().await;
        assert_eq!(began.elapsed(), AFTER_FIRST_ANSWERS + 2 * APART);
    }
}
