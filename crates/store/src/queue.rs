//! What lies between the callers and the thread: a bounded queue that only ever holds its lock for
//! a push or a swap.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::activity::{Activity, Query};
use crate::error::StoreError;
use crate::limits::{GROUP_WAIT, QUEUED_QUERIES, QUEUED_RECORDS, RECORDS_PER_COMMIT};

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Told when the thread has a reason to look.
    stirred: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<Activity>,
    /// When the oldest of the records came: the group is due some time after it.
    since: Option<Instant>,
    questions: Vec<Question>,
    closing: bool,
}

#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) query: Query,
    pub(crate) answer: oneshot::Sender<Result<Vec<Activity>, StoreError>>,
}

/// What the thread has to do next.
#[derive(Debug)]
pub(crate) struct Work {
    /// At most one commit's worth, oldest first.
    pub(crate) records: Vec<Activity>,
    /// To be answered once everything that was recorded before is committed. Empty as long as
    /// there is more to commit.
    pub(crate) questions: Vec<Question>,
    /// Whether to close. Not set as long as there is more to commit.
    pub(crate) closing: bool,
}

impl Queue {
    pub(crate) fn push(&self, activity: Activity) -> bool {
        let mut waiting = self.lock();
        if waiting.closing || waiting.records.len() >= QUEUED_RECORDS {
            drop(waiting);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        waiting.records.push_back(activity);
        waiting.since.get_or_insert_with(Instant::now);
        // Waking the thread for every record would cost the caller more than the record does.
        let worth_waking = matches!(waiting.records.len(), 1 | RECORDS_PER_COMMIT);
        drop(waiting);
        if worth_waking {
            self.stirred.notify_one();
        }
        true
    }

    /// Waits for so long, or until somebody asks or wants to close.
    pub(crate) fn rest(&self, time: Duration) {
        let waiting = self.lock();
        let nobody = |waiting: &mut Waiting| waiting.questions.is_empty() && !waiting.closing;
        // Poisoned or not, the wait is over.
        drop(self.stirred.wait_timeout_while(waiting, time, nobody));
    }

    pub(crate) fn ask(
        &self,
        query: Query,
        answer: oneshot::Sender<Result<Vec<Activity>, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.closing {
            return Err(StoreError::Closed);
        }
        waiting
            .questions
            .retain(|question| !question.answer.is_closed());
        if waiting.questions.len() >= QUEUED_QUERIES {
            return Err(StoreError::Busy);
        }
        waiting.questions.push(Question { query, answer });
        drop(waiting);
        self.stirred.notify_one();
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.stirred.notify_one();
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sleeps until there is something to do.
    pub(crate) fn next(&self) -> Work {
        let mut waiting = self.lock();
        loop {
            if waiting.closing
                || !waiting.questions.is_empty()
                || waiting.records.len() >= RECORDS_PER_COMMIT
            {
                return waiting.take();
            }
            let Some(since) = waiting.since else {
                waiting = self.sleep(waiting, None);
                continue;
            };
            let waited = since.elapsed();
            if waited >= GROUP_WAIT {
                return waiting.take();
            }
            waiting = self.sleep(waiting, Some(GROUP_WAIT.saturating_sub(waited)));
        }
    }

    /// What there is to do, without sleeping.
    pub(crate) fn next_now(&self) -> Work {
        self.lock().take()
    }

    /// Puts back what could not be committed. It may take the queue past its bound by one commit's
    /// worth, which is better than losing what was accepted.
    pub(crate) fn put_back(&self, records: Vec<Activity>) {
        let mut waiting = self.lock();
        for activity in records.into_iter().rev() {
            waiting.records.push_front(activity);
        }
        if !waiting.records.is_empty() {
            waiting.since.get_or_insert_with(Instant::now);
        }
    }

    /// Puts back what could not be answered.
    pub(crate) fn ask_again(&self, questions: Vec<Question>) {
        let mut waiting = self.lock();
        let newer = mem::replace(&mut waiting.questions, questions);
        waiting.questions.extend(newer);
    }

    /// Sleeps for so long while the store does not work, giving everybody who asks this error.
    /// Says whether the store was closed meanwhile.
    pub(crate) fn refuse_for(&self, pause: Duration, error: &StoreError) -> bool {
        let start = Instant::now();
        let mut waiting = self.lock();
        loop {
            for question in mem::take(&mut waiting.questions) {
                // Whoever asked may have gone.
                drop(question.answer.send(Err(error.clone())));
            }
            let left = pause.saturating_sub(start.elapsed());
            if waiting.closing || left.is_zero() {
                return waiting.closing;
            }
            waiting = self.sleep(waiting, Some(left));
        }
    }

    /// Takes nothing any more, and counts as dropped what is left.
    pub(crate) fn abandon(&self, error: &StoreError) {
        let mut waiting = self.lock();
        waiting.closing = true;
        let left = mem::take(&mut waiting.records).len();
        let questions = mem::take(&mut waiting.questions);
        drop(waiting);
        self.dropped
            .fetch_add(u64::try_from(left).unwrap_or(u64::MAX), Ordering::Relaxed);
        for question in questions {
            drop(question.answer.send(Err(error.clone())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep<'a>(
        &self,
        waiting: MutexGuard<'a, Waiting>,
        longest: Option<Duration>,
    ) -> MutexGuard<'a, Waiting> {
        match longest {
            None => self
                .stirred
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                self.stirred
                    .wait_timeout(waiting, longest)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }
}

impl Waiting {
    fn take(&mut self) -> Work {
        let count = self.records.len().min(RECORDS_PER_COMMIT);
        let records = self.records.drain(..count).collect();
        let drained = self.records.is_empty();
        if drained {
            self.since = None;
            // A burst is over: its room goes back.
            self.records.shrink_to(RECORDS_PER_COMMIT);
        }
        Work {
            records,
            questions: if drained {
                mem::take(&mut self.questions)
            } else {
                Vec::new()
            },
            closing: drained && self.closing,
        }
    }
}
