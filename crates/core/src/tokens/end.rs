//! The end of a token, for which each request of its clients waits.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use slab::Slab;
use switchboard_tokens::Rejected;

/// The end of a token. A `watch` channel would do the same, but took 1 % of the time of a call.
#[derive(Debug, Default)]
pub(super) struct End {
    state: Mutex<State>,
    /// There is a reason in the state.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    why: Option<Rejected>,
    /// The requests in flight.
    waiting: Slab<Waker>,
}

impl End {
    /// The reason why the token has ended.
    pub(super) fn why(&self) -> Option<Rejected> {
        // Nearly every request can do without the lock.
        let is_over = self.is_over.load(SeqCst);
        is_over.then(|| self.state.lock().why).flatten()
    }

    /// Ends the token, or with `None` lets it be valid again.
    pub(super) fn set(&self, why: Option<Rejected>) {
        let mut state = self.state.lock();
        state.why = why;
        self.is_over.store(why.is_some(), SeqCst);
        if why.is_some() {
            for (_, waker) in &state.waiting {
                waker.wake_by_ref();
            }
        }
    }
}

/// Waits for the end of a token, and returns the reason.
#[derive(Debug)]
pub(super) struct Ended<T: AsRef<End>> {
    of: T,
    /// Its key among the requests in flight, and its waker there.
    waits: Option<(usize, Waker)>,
}

impl<T: AsRef<End>> Ended<T> {
    pub(super) fn new(of: T) -> Self {
        Self { of, waits: None }
    }
}

impl<T: AsRef<End> + Unpin> Future for Ended<T> {
    type Output = Rejected;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rejected> {
        let Self { of, waits } = self.get_mut();
        let end = (*of).as_ref();
        let is_known = |(_, waker): &(usize, Waker)| waker.will_wake(cx.waker());
        if waits.as_ref().is_some_and(is_known) {
            return end.why().map_or(Poll::Pending, Poll::Ready);
        }
        let mut state = end.state.lock();
        if let Some(why) = state.why {
            return Poll::Ready(why);
        }
        let waker = cx.waker().clone();
        match waits {
            Some((key, known)) => {
                state.waiting[*key].clone_from(&waker);
                *known = waker;
            }
            None => *waits = Some((state.waiting.insert(waker.clone()), waker)),
        }
        Poll::Pending
    }
}

impl<T: AsRef<End>> Drop for Ended<T> {
    fn drop(&mut self) {
        if let Some((key, _)) = self.waits {
            self.of.as_ref().state.lock().waiting.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{task::yield_now, time::timeout};

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Token(Arc<End>);

    impl AsRef<End> for Token {
        fn as_ref(&self) -> &End {
            &self.0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn end_wakes_all_that_wait() {
        let token = Token::default();
        let waiting: Vec<_> = (0..3)
            .map(|_| tokio::spawn(Ended::new(token.clone())))
            .collect();
        yield_now().await;
        let patience = Duration::from_secs(1);
        let still = timeout(patience, Ended::new(token.clone())).await;
        assert!(still.is_err());
        token.0.set(Some(Rejected::Expired));
        for waiting in waiting {
            assert_eq!(waiting.await.unwrap(), Rejected::Expired);
        }
        assert_eq!(Ended::new(token.clone()).await, Rejected::Expired);
        assert!(token.0.state.lock().waiting.is_empty());
        token.0.set(None);
        assert!(timeout(patience, Ended::new(token)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn moved_future_is_woken_by_its_new_task() {
        let token = Token::default();
        let mut ended = Ended::new(token.clone());
        let moment = Duration::from_millis(1);
        assert!(timeout(moment, &mut ended).await.is_err());
        let elsewhere = tokio::spawn(ended);
        yield_now().await;
        token.0.set(Some(Rejected::Unknown));
        assert_eq!(elsewhere.await.unwrap(), Rejected::Unknown);
    }
}
