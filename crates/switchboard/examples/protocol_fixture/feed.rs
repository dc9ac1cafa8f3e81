//! A stream of messages to the client, which may be read more than once.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// Messages in the order in which they were sent, each with its place.
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<String>,
    /// The place of the first message that is still held.
    first: usize,
    /// The place up to which somebody has read.
    read: usize,
    ended: bool,
    cuts: u32,
}

/// What a reader gets.
pub(crate) enum Next {
    Message(String),
    /// Nothing more will come.
    Ended,
    /// The connection is closed here, though more will come.
    Cut,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub(crate) fn push(&self, message: String) {
        held(&self.state).messages.push_back(message);
        self.changed.send_replace(());
    }

    pub(crate) fn end(&self) {
        held(&self.state).ended = true;
        self.changed.send_replace(());
    }

    /// Sends whoever reads away; they may come back.
    pub(crate) fn cut(&self) {
        held(&self.state).cuts += 1;
        self.changed.send_replace(());
    }

    pub(crate) fn cuts(&self) -> u32 {
        held(&self.state).cuts
    }

    pub(crate) fn read(&self) -> usize {
        held(&self.state).read
    }

    /// Forgets the messages before this place, which nobody will read again.
    pub(crate) fn forget(&self, before: usize) {
        let mut state = held(&self.state);
        while state.first < before && state.messages.pop_front().is_some() {
            state.first += 1;
        }
    }

    /// The message at this place, as soon as it is there; `cuts` is what [`Self::cuts`] was when the
    /// reader came.
    pub(crate) async fn next(&self, place: usize, cuts: u32) -> Next {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let mut state = held(&self.state);
                let index = place.saturating_sub(state.first);
                if let Some(message) = state.messages.get(index).cloned() {
                    state.read = state.read.max(place + 1);
                    return Next::Message(message);
                }
                if state.ended {
                    return Next::Ended;
                }
                if state.cuts != cuts {
                    return Next::Cut;
                }
            }
            if changed.changed().await.is_err() {
                return Next::Ended;
            }
        }
    }
}

/// A lock that outlives a panic, because nothing here leaves a thing half done.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
