//! The lists of one connection that have been judged, and the calls that wait for that.
//!
//! A list is due when the connection is made, and again when the server says that it has changed. Lists that
//! are due and were not asked for since are the ones to ask for: there is no second record of changes. A call
//! needs a judgement of a list that was asked for after it was last due when the call came; changes after
//! that do not hold the call up, so that a server which reports changes without end delays a call by one
//! list and no more.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Instant,
};

use switchboard_base::health::Reason;
use switchboard_catalog::Kind;
use tokio::{sync::watch, time::timeout_at};

use crate::discovery::Lists;

/// The kinds of lists that are due on their own.
const LISTS: usize = Kind::ALL.len();

/// How often each list was due at one moment.
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
    /// The list was asked for as of so many times due.
    asked: u64,
    /// The list was judged as of so many times due.
    judged: u64,
    /// It could not be had as of so many times due, and why.
    failed: Option<(u64, Reason)>,
}

/// The end of waiting for a judgement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Yes,
    /// The list has not come in time.
    NotYet,
    /// The list could not be had.
    Failed(Reason),
    /// The connection has ended meanwhile.
    Ended,
}

impl Judgements {
    pub(crate) fn new() -> Self {
        Self {
            // Each is due for the first time.
            due: Kind::ALL.map(|_| AtomicU64::new(1)),
            state: watch::Sender::default(),
        }
    }

    /// These lists are due.
    pub(crate) fn change(&self, lists: Lists) {
        for kind in lists.kinds() {
            self.due[kind as usize].fetch_add(1, SeqCst);
        }
    }

    /// The lists that were not asked for since they were last due.
    pub(crate) fn unasked(&self) -> Lists {
        let due = self.due();
        let state = self.state.borrow();
        let unasked = |kind: &Kind| state.lists[*kind as usize].asked < due[*kind as usize];
        Kind::ALL.into_iter().filter(unasked).collect()
    }

    /// These lists are about to be asked for. Says how often each list is due now.
    pub(crate) fn ask(&self, lists: Lists) -> Due {
        let due = self.due();
        self.state.send_if_modified(|state| {
            for kind in lists.kinds() {
                state.lists[kind as usize].asked = due[kind as usize];
            }
            // Nobody waits for that.
            false
        });
        due
    }

    fn due(&self) -> Due {
        Kind::ALL.map(|kind| self.due[kind as usize].load(SeqCst))
    }

    /// These lists, asked for when they were due so often, have been judged, but for the missing ones.
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

    /// The connection is no longer used: nobody has to wait.
    pub(crate) fn end(&self) {
        self.state.send_modify(|state| state.ended = true);
    }

    /// The judgement of the list of this kind as it is now, if there is no need to wait.
    pub(crate) fn now(&self, kind: Kind) -> Option<Judged> {
        let due = self.due[kind as usize].load(SeqCst);
        self.state.borrow().judged(kind, due)
    }

    /// Whether the list of this kind has ever been judged.
    pub(crate) fn has_been(&self, kind: Kind) -> bool {
        self.state.borrow().lists[kind as usize].judged > 0
    }

    /// Waits until the list of this kind has been judged, as it is now.
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
    /// The judgement of a list that was due so often, if there is one.
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
    async fn a_change_during_a_question_is_asked_for_again() {
        let judgements = Judgements::new();
        assert_eq!(judgements.unasked(), all());
        let due = judgements.ask(all());
        assert_eq!(judgements.unasked(), Lists::NONE);
        // It comes between the question and its answer, when nobody may be told of it.
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
    async fn a_list_is_judged_on_its_own() {
        let judgements = Judgements::new();
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::NotYet);
        judgements.finish(TOOLS, judgements.due(), &[]);
        assert_eq!(now(&judgements, Kind::Tool).await, Judged::Yes);
        assert_eq!(judgements.now(Kind::Tool), Some(Judged::Yes));
        assert_eq!(judgements.now(Kind::Prompt), None);
        assert_eq!(now(&judgements, Kind::Prompt).await, Judged::NotYet);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_asked_for_before_a_change_is_not_enough() {
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
    async fn later_changes_do_not_hold_a_call_up() {
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
    async fn failures_and_ends_are_told_at_once() {
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
