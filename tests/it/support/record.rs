//! Records of events, in order, that tests can wait for.

use std::fmt::Debug;

use tokio::{sync::watch, time::timeout};

use super::PATIENCE;

/// All events of one kind so far. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Record<T>(watch::Sender<Vec<T>>);

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl<T: Clone + Debug> Record<T> {
    pub(crate) fn push(&self, item: T) {
        self.0.send_modify(|items| items.push(item));
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Waits for an event that `find` accepts, past or future.
    pub(crate) async fn wait<R>(&self, what: &str, find: impl FnMut(&T) -> Option<R>) -> R {
        self.wait_from(0, what, find).await
    }

    /// Waits for an event that `find` accepts, after the first `skipped` events.
    pub(crate) async fn wait_from<R>(
        &self,
        skipped: usize,
        what: &str,
        mut find: impl FnMut(&T) -> Option<R>,
    ) -> R {
        let mut receiver = self.0.subscribe();
        let mut found = None;
        let search = receiver.wait_for(|items| {
            found = items.iter().skip(skipped).find_map(&mut find);
            found.is_some()
        });
        let in_time = timeout(PATIENCE, search).await.is_ok();
        assert!(
            in_time,
            "{what} did not happen; all that did: {:#?}",
            self.all()
        );
        found.expect("it was found")
    }
}

impl Record<String> {
    /// Waits for a line that contains this text.
    pub(crate) async fn wait_line(&self, part: &str) -> String {
        self.wait(part, |line| line.contains(part).then(|| line.clone()))
            .await
    }
}
