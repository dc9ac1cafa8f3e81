//! The handle to the store.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};

use crate::engine::memory::Memories;
use crate::engine::question::ask;
use crate::engine::queue::Queue;
use crate::engine::sqlite::{Database, SqliteError};
use crate::engine::write::Write;
use crate::engine::writer_thread::WriterThread;
use crate::types::activity::{Activity, Query};
use crate::types::approval::{Approval, Rule, Which};
use crate::types::audit::Audited;
use crate::types::change::Change;
use crate::types::error::{Fate, StoreError};
use crate::types::limits::STATUSES_PER_QUESTION;
use crate::types::status::Status;

/// A handle to the store. Cloning it is cheap; dropping the last one closes the store.
#[derive(Debug, Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

/// Retention limits. Rows beyond them are removed step by step, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most rows.
    pub rows: u64,
    /// The greatest age.
    pub age: Duration,
}

impl Retention {
    /// Retention of closed approvals, counted from the time they were closed. Open ones are always
    /// kept.
    pub const APPROVALS: Self = Self {
        rows: 10_000,
        age: Duration::from_hours(90 * 24),
    };

    /// The oldest time that is kept.
    pub(crate) fn oldest(self) -> SystemTime {
        let oldest = SystemTime::now().checked_sub(self.age);
        oldest.unwrap_or(UNIX_EPOCH)
    }
}

/// Retention of activity.
impl Default for Retention {
    fn default() -> Self {
        Self {
            rows: 100_000,
            age: Duration::from_hours(30 * 24),
        }
    }
}

impl Store {
    /// Opens or creates the file in the background.
    pub fn open(path: PathBuf) -> Self {
        Self::open_keeping(path, Retention::default())
    }

    /// Like [`open`](Self::open), but leaves the machine to other work first: waits for `rest`, or
    /// until the first query, write or request to close.
    pub fn open_after(path: PathBuf, rest: Duration) -> Self {
        Self::start(path, Retention::default(), rest)
    }

    /// Like [`open`](Self::open), with different retention limits.
    pub fn open_keeping(path: PathBuf, retention: Retention) -> Self {
        Self::start(path, retention, Duration::ZERO)
    }

    fn start(path: PathBuf, retention: Retention, rest: Duration) -> Self {
        let queue = Arc::new(Queue::default());
        let (status, watcher) = watch::channel(Status::Initializing);
        let writer = WriterThread::new(path, retention, Arc::clone(&queue), status);
        let thread = thread::Builder::new().name("store".to_owned());
        // If the thread does not start, dropping the writer sets the status.
        let resting = Arc::clone(&queue);
        let spawned = thread.spawn(move || {
            resting.rest(rest);
            writer.run();
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "Cannot start the thread of the store.");
        }
        let handle = Arc::new(Handle { queue, watcher });
        Self { handle }
    }

    /// Returns the state of the store.
    pub fn status(&self) -> Status {
        self.handle.watcher.borrow().clone()
    }

    /// Returns a receiver that is notified when the status changes.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.handle.watcher.clone()
    }

    /// Records a call, without ever waiting. Returns `false` if the call was dropped because the queue
    /// is full or the store is closed.
    pub fn record(&self, activity: Activity) -> bool {
        self.handle.queue.push(activity.bounded())
    }

    /// Returns the calls that match, newest first, including everything recorded so far.
    pub async fn activity(&self, query: Query) -> Result<Vec<Activity>, StoreError> {
        self.ask(move |database| database.activity(&query)).await
    }

    /// Applies all of these changes or none; they are on disk when this returns `Ok`, and survive even
    /// a loss of power. Dropping the future does not cancel the write.
    ///
    /// [`StoreError::Conflict`]: an approval does not have the version to replace, or the new version
    /// is not greater. No part of this write was applied. [`StoreError::Unavailable`], if the disk
    /// failed in the middle of the write: it was probably not applied, but only reading the data again
    /// after the problem is solved can confirm that.
    pub async fn write(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        let bytes = changes.iter().map(Change::bytes).sum();
        let (write, answered) = Write::new(bytes, move |commit| commit.changes(&changes));
        self.submit(write, answered).await
    }

    /// Returns a handle to the memories of agents.
    pub fn memories(&self) -> Memories {
        Memories::of(self.clone())
    }

    /// Returns the approvals that match, newest first; of two created at the same time, the one with
    /// the greater ID comes first. If they are long, there may be fewer than the limit
    /// ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)). Only an empty answer marks the end.
    pub async fn approvals(&self, mut which: Which) -> Result<Vec<Approval>, StoreError> {
        which.statuses.sort();
        which.statuses.dedup();
        if which.statuses.len() > STATUSES_PER_QUESTION {
            return Err(StoreError::TooLarge {
                what: "the number of statuses",
                most: STATUSES_PER_QUESTION,
            });
        }
        self.ask(move |database| database.approvals(&which)).await
    }

    /// Returns the approval with this ID.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.approval(&id)).await
    }

    /// Returns all remembered rules, oldest first, including rules that have expired since the store
    /// was opened.
    pub async fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        self.ask(Database::rules).await
    }

    /// Returns up to `limit` entries of the audit log after number `since`, oldest first, and never
    /// more than [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER); fewer if they are long, as with
    /// [`approvals`](Self::approvals).
    pub async fn audit(&self, since: u64, limit: usize) -> Result<Vec<Audited>, StoreError> {
        self.ask(move |database| database.audit(since, limit)).await
    }

    /// Returns the number of records dropped since the store was opened.
    pub fn dropped(&self) -> u64 {
        self.handle.queue.dropped()
    }

    /// Asks the store to commit everything that is queued and to close. Further requests are refused.
    pub fn close(&self) {
        self.handle.queue.close();
    }

    /// Waits until the store is closed, or has given up. After [`close`](Self::close), only a disk
    /// that does not respond can delay this.
    pub async fn closed(&self) {
        let mut watcher = self.watch();
        // An error means that the thread is gone, which counts as closed.
        drop(watcher.wait_for(is_over).await);
    }

    /// Queues a write and waits for its result.
    pub(crate) async fn submit<T>(
        &self,
        write: Write,
        answered: oneshot::Receiver<Fate<T>>,
    ) -> Result<T, StoreError> {
        self.available(false)?;
        self.handle.queue.write(write)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        read: impl Fn(&Database) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.available(true)?;
        let (question, answered) = ask(read);
        self.handle.queue.ask(question)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Fails at once if the store cannot serve the request at present.
    fn available(&self, to_read: bool) -> Result<(), StoreError> {
        match self.status() {
            Status::Failed { readable: true, .. } if to_read => Ok(()),
            Status::Failed {
                message, action, ..
            } => Err(StoreError::Unavailable { message, action }),
            Status::Initializing | Status::Ready { .. } | Status::Closed => Ok(()),
        }
    }
}

fn is_over(status: &Status) -> bool {
    match status {
        Status::Closed => true,
        Status::Failed { retrying, .. } => !retrying,
        Status::Initializing | Status::Ready { .. } => false,
    }
}

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    watcher: watch::Receiver<Status>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}
