//! The handle that everybody holds.

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

/// A handle to the store. Cloning it is cheap; when the last one goes, the store closes.
#[derive(Debug, Clone)]
pub struct Store {
    handle: Arc<Handle>,
}

/// How much is kept. Whatever is more goes bit by bit, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most rows.
    pub rows: u64,
    /// The greatest age.
    pub age: Duration,
}

impl Retention {
    /// How much is kept of approvals that are closed, since they were. Open ones are always kept.
    pub const APPROVALS: Self = Self {
        rows: 10_000,
        age: Duration::from_hours(90 * 24),
    };

    /// The beginning of what is kept.
    pub(crate) fn oldest(self) -> SystemTime {
        let oldest = SystemTime::now().checked_sub(self.age);
        oldest.unwrap_or(UNIX_EPOCH)
    }
}

/// How much is kept of activity.
impl Default for Retention {
    fn default() -> Self {
        Self {
            rows: 100_000,
            age: Duration::from_hours(30 * 24),
        }
    }
}

impl Store {
    /// Opens the file, or makes it, in the background.
    pub fn open(path: PathBuf) -> Self {
        Self::open_keeping(path, Retention::default())
    }

    /// Like [`open`](Self::open), but leaves the machine to others first: for so long, unless somebody
    /// asks for something.
    pub fn open_after(path: PathBuf, rest: Duration) -> Self {
        Self::start(path, Retention::default(), rest)
    }

    /// Like [`open`](Self::open), for another amount.
    pub fn open_keeping(path: PathBuf, retention: Retention) -> Self {
        Self::start(path, retention, Duration::ZERO)
    }

    fn start(path: PathBuf, retention: Retention, rest: Duration) -> Self {
        let queue = Arc::new(Queue::default());
        let (status, watcher) = watch::channel(Status::Initializing);
        let writer = WriterThread::new(path, retention, Arc::clone(&queue), status);
        let thread = thread::Builder::new().name("store".to_owned());
        // If the thread does not start, the writer is dropped, which sets the status.
        let resting = Arc::clone(&queue);
        let spawned = thread.spawn(move || {
            resting.rest(rest);
            writer.run();
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "The thread of the store cannot be started.");
        }
        let handle = Arc::new(Handle { queue, watcher });
        Self { handle }
    }

    /// Where the store stands.
    pub fn status(&self) -> Status {
        self.handle.watcher.borrow().clone()
    }

    /// To be told when the status changes.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.handle.watcher.clone()
    }

    /// Remembers a call. It never waits; `false` says that the call was dropped because too many
    /// wait for the disk or because the store is closed.
    pub fn record(&self, activity: Activity) -> bool {
        self.handle.queue.push(activity.bounded())
    }

    /// The calls that match, newest first, with everything recorded so far.
    pub async fn activity(&self, query: Query) -> Result<Vec<Activity>, StoreError> {
        self.ask(move |database| database.activity(&query)).await
    }

    /// Makes all of these changes or none; they are on the disk when this answers `Ok`, and survive
    /// even a loss of power. Whoever stops waiting for the answer does not stop the write.
    ///
    /// [`StoreError::Conflict`]: an approval has another version than the one to be replaced, or
    /// is to get one that is not greater. Nothing of this write was made then.
    /// [`StoreError::Unavailable`] where the disk failed in the middle of it: it was not made as far
    /// as can be told, but only reading it again after the trouble makes that certain.
    pub async fn write(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        let bytes = changes.iter().map(Change::bytes).sum();
        let (write, answered) = Write::new(bytes, move |commit| commit.changes(&changes));
        self.submit(write, answered).await
    }

    /// What is remembered for agents.
    pub fn memories(&self) -> Memories {
        Memories::of(self.clone())
    }

    /// The approvals that match, newest first, and of two created at the same time the one with the
    /// greater id first. There may be fewer than the limit if they are long
    /// ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)): only an empty answer is the end.
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

    /// The approval with this id.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.approval(&id)).await
    }

    /// All remembered rules, oldest first, also those that have ended since the store was opened.
    pub async fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        self.ask(Database::rules).await
    }

    /// The entries of the audit log after number `since`, oldest first. At most so many, and never
    /// more than [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER); fewer if they are long, as with
    /// [`approvals`](Self::approvals).
    pub async fn audit(&self, since: u64, limit: usize) -> Result<Vec<Audited>, StoreError> {
        self.ask(move |database| database.audit(since, limit)).await
    }

    /// How many records were dropped since the store was opened.
    pub fn dropped(&self) -> u64 {
        self.handle.queue.dropped()
    }

    /// Asks the store to commit what is queued and to close. Nothing is taken any more.
    pub fn close(&self) {
        self.handle.queue.close();
    }

    /// Waits until the store is closed, or has given up. Once [`close`](Self::close) was called,
    /// only a disk that does not answer makes this last.
    pub async fn closed(&self) {
        let mut watcher = self.watch();
        // An error means that the thread is gone, which is closed too.
        drop(watcher.wait_for(is_over).await);
    }

    /// Has this written, and waits for its answer.
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

    /// Refuses at once what the store cannot do at present.
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
