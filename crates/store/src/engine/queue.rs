//! The bounded queue between the callers and the thread. Its lock is only ever held for a push or a
//! swap.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::engine::question::Question;
use crate::engine::write::Write;
use crate::types::activity::Activity;
use crate::types::error::StoreError;
use crate::types::limits::{
    GROUP_WAIT, QUEUED_QUERIES, QUEUED_RECORDS, QUEUED_WRITE_BYTES, QUEUED_WRITES,
    RECORDS_PER_COMMIT,
};

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Signalled when the thread should look at the queue.
    stirred: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<Activity>,
    /// Time at which the oldest record arrived; its batch is due [`GROUP_WAIT`] later.
    since: Option<Instant>,
    /// Queued writes, which are due at once.
    writes: Vec<Write>,
    write_bytes: usize,
    questions: Vec<Box<dyn Question>>,
    closing: bool,
}

/// The next batch of work for the thread.
#[derive(Debug)]
pub(crate) struct Work {
    /// At most one commit of records, oldest first.
    pub(crate) records: Vec<Activity>,
    /// All queued writes, oldest first, even if more than one commit of records is queued.
    pub(crate) writes: Vec<Write>,
    /// Queries, to be answered once all records from before are committed. Empty while more records are
    /// queued.
    pub(crate) questions: Vec<Box<dyn Question>>,
    /// The store should close. Not set while more records are queued.
    pub(crate) closing: bool,
}

impl Queue {
    pub(crate) fn push(&self, activity: Activity) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.closing || waiting.records.len() >= QUEUED_RECORDS {
            drop(waiting);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        waiting.records.push_back(activity);
        waiting.since.get_or_insert_with(Instant::now);
        // Waking the thread for every record would cost the caller more than the push itself.
        let worth_waking = matches!(waiting.records.len(), 1 | RECORDS_PER_COMMIT);
        drop(waiting);
        if worth_waking {
            self.stirred.notify_one();
        }
        true
    }

    /// Sleeps for up to `time`, or until a query, a write or a request to close arrives.
    pub(crate) fn rest(&self, time: Duration) {
        let mut waiting = self.waiting.lock();
        let nobody = |waiting: &mut Waiting| !waiting.is_urgent();
        self.stirred.wait_while_for(&mut waiting, nobody, time);
    }

    pub(crate) fn ask(&self, question: Box<dyn Question>) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock();
        if waiting.closing {
            return Err(StoreError::Closed);
        }
        waiting.questions.retain(|question| !question.is_gone());
        if waiting.questions.len() >= QUEUED_QUERIES {
            return Err(StoreError::Busy);
        }
        waiting.questions.push(question);
        drop(waiting);
        self.stirred.notify_one();
        Ok(())
    }

    pub(crate) fn write(&self, write: Write) -> Result<(), StoreError> {
        if write.bytes() > QUEUED_WRITE_BYTES {
            return Err(StoreError::TooLarge {
                what: "the size of a write in bytes",
                most: QUEUED_WRITE_BYTES,
            });
        }
        let mut waiting = self.waiting.lock();
        if waiting.closing {
            return Err(StoreError::Closed);
        }
        let bytes = waiting.write_bytes.saturating_add(write.bytes());
        if waiting.writes.len() >= QUEUED_WRITES || bytes > QUEUED_WRITE_BYTES {
            return Err(StoreError::Busy);
        }
        waiting.write_bytes = bytes;
        waiting.writes.push(write);
        drop(waiting);
        self.stirred.notify_one();
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.waiting.lock().closing = true;
        self.stirred.notify_one();
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Sleeps until there is work.
    pub(crate) fn next(&self) -> Work {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.is_urgent() || waiting.records.len() >= RECORDS_PER_COMMIT {
                return waiting.take();
            }
            let Some(since) = waiting.since else {
                self.sleep(&mut waiting, None);
                continue;
            };
            let waited = since.elapsed();
            if waited >= GROUP_WAIT {
                return waiting.take();
            }
            self.sleep(&mut waiting, Some(GROUP_WAIT.saturating_sub(waited)));
        }
    }

    /// Returns the work that is queued now, without sleeping.
    pub(crate) fn next_now(&self) -> Work {
        self.waiting.lock().take()
    }

    /// Puts back work that failed. This may exceed the limits of the queue by one commit, which is
    /// better than losing accepted work.
    pub(crate) fn put_back(&self, work: Work) {
        let mut waiting = self.waiting.lock();
        for activity in work.records.into_iter().rev() {
            waiting.records.push_front(activity);
        }
        if !waiting.records.is_empty() {
            waiting.since.get_or_insert_with(Instant::now);
        }
        let bytes: usize = work.writes.iter().map(Write::bytes).sum();
        waiting.write_bytes = waiting.write_bytes.saturating_add(bytes);
        let newer = mem::replace(&mut waiting.writes, work.writes);
        waiting.writes.extend(newer);
        drop(waiting);
        self.ask_again(work.questions);
    }

    /// Puts back queries that could not be answered.
    pub(crate) fn ask_again(&self, questions: Vec<Box<dyn Question>>) {
        let mut waiting = self.waiting.lock();
        let newer = mem::replace(&mut waiting.questions, questions);
        waiting.questions.extend(newer);
    }

    /// Sleeps for `pause` while the store does not work, answering every query and write with this
    /// error. Returns `true` if the store was closed meanwhile.
    pub(crate) fn refuse_for(&self, pause: Duration, error: &StoreError) -> bool {
        let start = Instant::now();
        let mut waiting = self.waiting.lock();
        loop {
            waiting.refuse(error);
            let left = pause.saturating_sub(start.elapsed());
            if waiting.closing || left.is_zero() {
                return waiting.closing;
            }
            self.sleep(&mut waiting, Some(left));
        }
    }

    /// Returns the queries that are queued, or that arrive until this time; an empty list once it has
    /// passed. Writes are answered with this error. Returns `None` if the store is to be closed.
    pub(crate) fn questions_until(
        &self,
        until: Instant,
        error: &StoreError,
    ) -> Option<Vec<Box<dyn Question>>> {
        let mut waiting = self.waiting.lock();
        loop {
            waiting.refuse_writes(error);
            let left = until.saturating_duration_since(Instant::now());
            if waiting.closing {
                return None;
            }
            if !waiting.questions.is_empty() || left.is_zero() {
                return Some(mem::take(&mut waiting.questions));
            }
            self.sleep(&mut waiting, Some(left));
        }
    }

    /// Shuts the queue and counts the remaining records as dropped.
    pub(crate) fn abandon(&self, error: &StoreError) {
        let mut waiting = self.waiting.lock();
        waiting.closing = true;
        let left = mem::take(&mut waiting.records).len();
        waiting.refuse(error);
        drop(waiting);
        self.dropped
            .fetch_add(u64::try_from(left).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn sleep(&self, waiting: &mut MutexGuard<'_, Waiting>, longest: Option<Duration>) {
        match longest {
            None => self.stirred.wait(waiting),
            Some(longest) => {
                self.stirred.wait_for(waiting, longest);
            }
        }
    }
}

impl Waiting {
    /// Returns `true` if a caller waits.
    fn is_urgent(&self) -> bool {
        self.closing || !self.questions.is_empty() || !self.writes.is_empty()
    }

    fn refuse(&mut self, error: &StoreError) {
        for mut question in mem::take(&mut self.questions) {
            question.refuse(error.clone());
        }
        self.refuse_writes(error);
    }

    fn refuse_writes(&mut self, error: &StoreError) {
        self.write_bytes = 0;
        for write in mem::take(&mut self.writes) {
            write.refuse(error.clone());
        }
    }

    fn take(&mut self) -> Work {
        let count = self.records.len().min(RECORDS_PER_COMMIT);
        let records = self.records.drain(..count).collect();
        let drained = self.records.is_empty();
        if drained {
            self.since = None;
            // Free the memory of a burst.
            self.records.shrink_to(RECORDS_PER_COMMIT);
        }
        self.write_bytes = 0;
        Work {
            records,
            writes: mem::take(&mut self.writes),
            questions: if drained {
                mem::take(&mut self.questions)
            } else {
                Vec::new()
            },
            closing: drained && self.closing,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::types::change::Change;
    use crate::types::error::Fate;

    fn forget(ids: &[Arc<str>]) -> (Write, oneshot::Receiver<Fate<()>>) {
        let changes: Vec<_> = ids.iter().cloned().map(Change::Forget).collect();
        let bytes = changes.iter().map(Change::bytes).sum();
        Write::new(bytes, move |commit| commit.changes(&changes))
    }

    /// Nothing takes work out of this queue, so the limit is certain to be reached.
    #[test]
    fn excess_write_is_refused_until_the_queue_drains() {
        let queue = Queue::default();
        let mut answers = Vec::new();
        let mut write = || {
            let (write, answer) = forget(&["r".into()]);
            answers.push(answer);
            queue.write(write)
        };
        for _ in 0..QUEUED_WRITES {
            assert!(write().is_ok());
        }
        assert!(matches!(write(), Err(StoreError::Busy)));
        assert_eq!(queue.next().writes.len(), QUEUED_WRITES);
        assert!(write().is_ok());
    }

    #[test]
    fn writes_with_too_many_bytes_are_refused() {
        let queue = Queue::default();
        let long: Arc<str> = "x".repeat(QUEUED_WRITE_BYTES / 2 - 1000).into();
        let write = |id: &Arc<str>| queue.write(forget(std::slice::from_ref(id)).0);
        assert!(write(&long).is_ok());
        assert!(write(&long).is_ok());
        assert!(matches!(write(&long), Err(StoreError::Busy)));
        queue.refuse_for(Duration::ZERO, &StoreError::Closed);
        assert!(write(&long).is_ok(), "what was refused gives its room back");
        queue.next_now();
        assert!(write(&long).is_ok());

        let (twice, _answer) = forget(&[long.clone(), long.clone(), long]);
        let refused = queue.write(twice);
        assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    }
}
