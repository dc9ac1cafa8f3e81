//! Tracks which lists of a connection have been judged, and the calls that wait for a judgement.
//!
//! A list becomes due when the connection is made, and again when the server reports a change. The lists to
//! fetch are the ones that became due since they were last fetched; there is no second record of changes. A
//! call needs a judgement of a list that was fetched after it last became due before the call arrived. Later
//! changes do not delay the call, so a server that reports changes constantly delays a call by one fetch at
//! most.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Instant,
};

use switchboard_base::health::Reason;
use switchboard_catalog::Kind;
use tokio::{sync::watch, time::timeout_at};

use crate::discovery::Lists;

/// The number of lists, which become due independently.
const LISTS: usize = Kind::ALL.len();

/// For each list, the number of times that it has become due.
pub(crate) type Due = [u64; LISTS];

/// The judgements of one connection's lists.
#[derive(Debug)]
pub(crate) struct Judgements {
    due: [AtomicU64; LISTS],
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    lists: [Done; LISTS],
    /// The connection is no longer used.
    ended: bool,
}

#[derive(Debug, Default)]
struct Done {
    /// Value of the `due` counter when the list was last fetched.
    asked: u64,
    /// Value of the `due` counter at the fetch that was last judged.
    judged: u64,
    /// Value of the `due` counter at the last failed fetch, and the reason.
    failed: Option<(u64, Reason)>,
}

/// The outcome of waiting for a judgement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Yes,
    /// The list has not arrived in time.
    NotYet,
    /// The list could not be fetched.
    Failed(Reason),
    /// The connection has ended meanwhile.
    Ended,
}

impl Judgements {
    pub(crate) fn new() -> Self {
        Self {
            // Each list is due for the first time.
            due: Kind::ALL.map(|_| AtomicU64::new(1)),
            state: watch::Sender::default(),
        }
    }

    /// Marks these lists as due.
    pub(crate) fn change(&self, lists: Lists) {
        for kind in lists.kinds() {
            self.due[kind as usize].fetch_add(1, SeqCst);
        }
    }

    /// The lists that became due since they were last fetched.
    pub(crate) fn unasked(&self) -> Lists {
        let due = self.due();
        let state = self.state.borrow();
        let unasked = |kind: &Kind| state.lists[*kind as usize].asked < due[*kind as usize];
        Kind::ALL.into_iter().filter(unasked).collect()
    }

    /// Records that these lists are about to be fetched. Returns the current `due` counters.
    pub(crate) fn ask(&self, lists: Lists) -> Due {
        let due = self.due();
        self.state.send_if_modified(|state| {
            for kind in lists.kinds() {
                state.lists[kind as usize].asked = due[kind as usize];
            }
            // No task waits for this change.
            false
        });
        due
    }

    fn due(&self) -> Due {
        Kind::ALL.map(|kind| self.due[kind as usize].load(SeqCst))
    }

    /// Records that these lists, fetched at these `due` counters, have been judged, except the missing ones.
    pub(crate) fn finish(&self, lists: Lists, due: Due, missing: &[(Kind, Reason)]) {
        self.state.send_modify(|state| {
            for kind in lists.kinds() {
                let (done, due) = (&mut state.lists[kind as usize], due[kind as usize]);
                let missing = missing.iter().find(|(missing, _)| *missing == kind);
                done.failed = missing.map(|(_, why)| (due, why.clone()));
                if missing.is_none() {
                    done.judged = due;
                }
            }
        });
    }

    /// Records that the connection is no longer used, which wakes all waiters.
    pub(crate) fn end(&self) {
        self.state.send_modify(|state| state.ended = true);
    }

    /// The judgement of the list of this kind in its current state, if it is available without waiting.
    pub(crate) fn now(&self, kind: Kind) -> Option<Judged> {
        let due = self.due[kind as usize].load(SeqCst);
        self.state.borrow().judged(kind, due)
    }

    /// Tests if the list of this kind has ever been judged.
    pub(crate) fn has_been(&self, kind: Kind) -> bool {
        self.state.borrow().lists[kind as usize].judged > 0
    }

    /// Waits until the list of this kind, in its current state, has been judged.
    pub(crate) async fn wait(&self, kind: Kind, until: Instant) -> Judged {
        let due = self.due[kind as usize].load(SeqCst);
        let mut state = self.state.subscribe();
        let waiting = state.wait_for(|state| state.judged(kind, due).is_some());
        match timeout_at(until.into(), waiting).await {
            Ok(Ok(state)) => state.judged(kind, due).unwrap_or(Judged::Ended),
            Ok(Err(_)) => Judged::Ended,
            Err(_) => Judged::NotYet,
        }
    }
}

impl State {
    /// The judgement of a list at this `due` counter, if there is one.
    fn judged(&self, kind: Kind, due: u64) -> Option<Judged> {
        let done = &self.lists[kind as usize];
        if done.judged >= due {
            return Some(Judged::Yes);
        }
        if self.ended {
            return Some(Judged::Ended);
        }
        let failed = done.failed.as_ref().filter(|(at, _)| *at >= due);
        failed.map(|(_, why)| Judged::Failed(why.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    const TOOLS: Lists = Lists::of(Kind::Tool);

    fn all() -> Lists {
        Kind::ALL.into_iter().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn change_during_a_fetch_causes_another_fetch() {
        let judgements = Judgements::new();
        assert_eq!(judgements.unasked(), all());
        let due = judgements.ask(all());
        assert_eq!(judgements.unasked(), Lists::NONE);
        // The change arrives between the fetch and its result, when it may go unnoticed.
        judgements.change(TOOLS);
        judgements.finish(all(), due, &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::NotYet);
        assert_eq!(judgements.unasked(), TOOLS);
        let due = judgements.ask(judgements.unasked());
        judgements.finish(TOOLS, due, &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Yes);
        assert_eq!(judgements.unasked(), Lists::NONE);
    }

    #[tokio::test(start_paused = true)]
    async fn resources_are_judged_without_their_templates() {
        let judgements = Judgements::new();
        let due = judgements.due();
        let missing = [(Kind::Template, Reason::plain("broken"))];
        judgements.finish(all(), due, &missing);
        assert_eq!(now(&judgements, Kind::Resource).await, Judged::Yes);
        let failed = Judged::Failed(Reason::plain("broken"));
        assert_eq!(now(&judgements, Kind::Template).await, failed);
    }

    async fn now(judgements: &Judgements, kind: Kind) -> Judged {
        judgements
            .wait(kind, Instant::now() + Duration::from_millis(1))
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_judged_independently() {
        let judgements = Judgements::new();
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::NotYet);
        judgements.finish(TOOLS, judgements.due(), &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Yes);
        assert_eq!(judgements.now(Kind::Tool), Some(Judged::Yes));
        assert_eq!(judgements.now(Kind::Prompt), None);
        assert_eq!(now(&judgements, Kind::Prompt).await, Judged::NotYet);
    }

    #[tokio::test(start_paused = true)]
    async fn list_fetched_before_a_change_is_insufficient() {
        let judgements = Judgements::new();
        let due = judgements.due();
        judgements.change(TOOLS);
        judgements.finish(all(), due, &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::NotYet);
        assert_eq!(now(&judgements, Kind::Resource).await, Judged::Yes);
        judgements.finish(TOOLS, judgements.due(), &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Yes);
    }

    #[tokio::test(start_paused = true)]
    async fn later_changes_do_not_delay_a_call() {
        let judgements = Arc::new(Judgements::new());
        let waiting = tokio::spawn({
            let judgements = Arc::clone(&judgements);
            let until = Instant::now() + Duration::from_secs(5);
            async move { judgements.wait(Kind::Tool, until).await }
        });
        tokio::task::yield_now().await;
        let due = judgements.due();
        judgements.change(TOOLS);
        judgements.finish(TOOLS, due, &[]);
        assert_eq!(waiting.await.unwrap(), Judged::Yes);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::NotYet);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_and_disconnects_are_reported_at_once() {
        let judgements = Judgements::new();
        let missing = [(Kind::Tool, Reason::plain("broken"))];
        judgements.finish(all(), judgements.due(), &missing);
        let failed = Judged::Failed(Reason::plain("broken"));
        assert_eq!(now(&judgements, Kind::Tool).await, failed);
        assert_eq!(now(&judgements, Kind::Prompt).await, Judged::Yes);
        judgements.finish(TOOLS, judgements.due(), &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Yes);
        judgements.change(TOOLS);
        judgements.end();
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Ended);
    }
}
