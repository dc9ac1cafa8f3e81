//! The handle that everybody holds.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::activity::{Activity, Query};
use crate::error::StoreError;
use crate::keeper::Keeper;
use crate::queue::Queue;
use crate::status::Status;

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
        let keeper = Keeper::new(path, retention, Arc::clone(&queue), status);
        let thread = thread::Builder::new().name("store".to_owned());
        // Should the thread not start, the keeper goes with it and says so as it goes.
        let resting = Arc::clone(&queue);
        let spawned = thread.spawn(move || {
            resting.rest(rest);
            keeper.run();
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
        if let Status::Failed {
            message, action, ..
        } = self.status()
        {
            return Err(StoreError::Unavailable { message, action });
        }
        let (answer, answered) = oneshot::channel();
        self.handle.queue.ask(query, answer)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
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
