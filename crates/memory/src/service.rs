//! [`Memory`]: the store, the library and the model combined.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use switchboard_embed::{Embedder, Role};
use switchboard_store::{
    Status, Store, StoreError,
    memory::{Made, Memories, MemoryChange, Salvaged},
};
use tokio::{runtime::Handle, time::timeout};

use crate::{
    backfill::Backfill,
    error::Error,
    index_thread::{IndexState, IndexThread, News, Node},
};

/// A source of embeddings.
pub type Model = Arc<dyn Embedder>;

/// The settings of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Entities are extracted from stored texts, in addition to the ones named by the caller.
    pub extract: bool,
    /// Time that a call waits for a part that is not ready.
    pub wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            extract: true,
            wait: Duration::from_secs(5),
        }
    }
}

/// The advice for an index that could not be built.
const REMADE: &str = "the index is built again when it is next needed";

/// The memory of one home. Cloning it is cheap.
#[derive(Clone)]
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) memories: Memories,
    pub(crate) index: IndexThread,
    pub(crate) backfill: Backfill,
    settings: Mutex<Settings>,
    /// Error to report if the memories are in a damaged file.
    damage: Mutex<Option<Error>>,
    /// Number of connections. Locked while the index and the backfill are started or stopped.
    connections: Mutex<usize>,
}

impl Memory {
    /// Creates the memory of this store. Nothing is opened or read before it is needed. `model` returns the
    /// model that is wanted at present, if any; it may block, and is called on a thread of its own.
    ///
    /// Must be called within a runtime.
    pub fn new(
        store: Store,
        settings: Settings,
        model: impl Fn() -> Option<Model> + Send + Sync + 'static,
    ) -> Self {
        let memories = store.memories();
        let index = IndexThread::new(memories.clone(), Handle::current());
        let backfill = Backfill::new(memories.clone(), index.clone(), Box::new(model));
        Self {
            inner: Arc::new(Inner {
                store,
                memories,
                index,
                backfill,
                settings: Mutex::new(settings),
                damage: Mutex::default(),
                connections: Mutex::new(0),
            }),
        }
    }

    /// Changes the settings.
    pub fn set(&self, settings: Settings) {
        *self.inner.settings.lock() = settings;
    }

    /// Notifies the memory that a different model may be wanted.
    pub fn model_changed(&self) {
        if *self.inner.connections.lock() > 0 {
            self.inner.backfill.nudge();
        }
    }

    /// Restores everything that can be read from a damaged file; after that, the memory works again.
    pub async fn repair(&self) -> Result<Salvaged, StoreError> {
        let salvaged = self.inner.memories.repair(|_| ()).await?;
        self.renew();
        Ok(salvaged)
    }

    /// Starts without the contents of a damaged file; after that, the memory works again.
    pub async fn discard_damaged(&self) -> Result<(), StoreError> {
        self.inner.memories.discard_damaged().await?;
        self.renew();
        Ok(())
    }

    /// Returns a problem of the memory that does not concern the whole store, and advice, if one was
    /// noticed.
    pub fn problem(&self) -> Option<(Arc<str>, Arc<str>)> {
        if let Some(Error::Failed {
            message, action, ..
        }) = &*self.inner.damage.lock()
        {
            return Some((Arc::clone(message), Arc::clone(action)));
        }
        match self.inner.index.state() {
            IndexState::Failed(why) => Some((why, REMADE.into())),
            IndexState::Resting | IndexState::Loading(_) | IndexState::Ready => None,
        }
    }

    /// Checks if memories are in a damaged file, once the store has been opened.
    pub async fn look_for_damage(&self) {
        let mut status = self.inner.store.watch();
        if status.wait_for(Status::is_ready).await.is_ok() {
            // The query records the problem.
            let _ = self.ready().await;
        }
    }

    /// Rebuilds the in-memory state from the store.
    fn renew(&self) {
        *self.inner.damage.lock() = None;
        let connections = self.inner.connections.lock();
        self.inner.index.rest();
        if *connections > 0 {
            self.inner.index.wake();
            self.inner.backfill.nudge();
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        *self.inner.settings.lock()
    }

    /// Counts a new connection, and starts the index and the backfill.
    pub(crate) fn begin(&self) {
        let mut connections = self.inner.connections.lock();
        *connections += 1;
        self.inner.index.wake();
        self.inner.backfill.nudge();
    }

    /// Counts a closed connection. After the last one, drops the state that can be rebuilt.
    pub(crate) fn end(&self) {
        let mut connections = self.inner.connections.lock();
        *connections = connections.saturating_sub(1);
        if *connections == 0 {
            self.inner.backfill.rest();
            self.inner.index.rest();
        }
    }

    /// Waits for an answer of the store, up to the time limit.
    pub(crate) async fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Error> {
        match timeout(self.settings().wait, answer).await {
            Ok(answer) => answer.map_err(|error| self.trouble(error)),
            Err(_) => Err(Error::Initializing { part: "store" }),
        }
    }

    /// Converts an error of the store, and records damage.
    fn trouble(&self, error: StoreError) -> Error {
        let is_damage = matches!(error, StoreError::Damaged { .. });
        let mut trouble = Error::from(error);
        if is_damage {
            *self.inner.damage.lock() = Some(trouble.clone());
        }
        if let Error::Failed { retried, .. } = &mut trouble
            && matches!(
                self.inner.store.status(),
                Status::Failed {
                    retrying: false,
                    ..
                }
            )
        {
            *retried = false;
        }
        trouble
    }

    /// Waits for an answer of the library, up to the time limit.
    pub(crate) async fn consult<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match timeout(self.settings().wait, answer).await {
            Ok(Err(Error::Initializing { .. })) | Err(_) => Err(self.no_index()),
            Ok(answer) => answer,
        }
    }

    /// Returns the reason why the library cannot answer.
    fn no_index(&self) -> Error {
        match self.inner.index.state() {
            IndexState::Failed(message) => Error::Failed {
                part: "index",
                message,
                action: REMADE.into(),
                retried: true,
            },
            IndexState::Resting | IndexState::Loading(_) | IndexState::Ready => {
                Error::Initializing { part: "index" }
            }
        }
    }

    /// Applies these changes durably, all or none, and updates the library.
    pub(crate) async fn write(&self, changes: Vec<MemoryChange>) -> Result<Vec<Made>, Error> {
        let index = self.inner.index.clone();
        let inner = Arc::clone(&self.inner);
        let written = self
            .inner
            .memories
            .write_followed(changes, move |changes, made| {
                let mut is_new = false;
                for (change, made) in changes.iter().zip(made) {
                    is_new |= matches!(made, Made::Version { .. });
                    if let Some(news) = news(change, made) {
                        index.tell(news);
                    }
                }
                if is_new && *inner.connections.lock() > 0 {
                    inner.backfill.nudge();
                }
            });
        // A caller that is asked to retry must not have stored anything already, so a write to a store that
        // works is awaited without a time limit.
        if !self.inner.store.status().is_ready() {
            self.ready().await?;
        }
        written.await.map_err(|error| self.trouble(error))
    }

    /// Returns the vector of a text, by the model in use.
    pub(crate) async fn meaning(&self, text: &str) -> Option<(Arc<str>, Vec<f32>)> {
        let model = self.inner.backfill.serving()?;
        let text = text.to_owned();
        let embedding = tokio::task::spawn_blocking(move || {
            let vector = model.embed(Role::Query, &text).ok().flatten()?;
            Some((model.fingerprint().into(), vector))
        });
        embedding.await.ok().flatten()
    }
}

/// Converts a change to an update of the library.
fn news(change: &MemoryChange, made: &Made) -> Option<News> {
    Some(match (change, made) {
        (
            MemoryChange::Add { version, .. } | MemoryChange::Revise { version, .. },
            Made::Version {
                row,
                closed,
                mentions,
                new_entities,
                ..
            },
        ) => News::Version {
            row: *row,
            version: Box::new(version.clone()),
            mentions: mentions.iter().map(|mention| mention.entity).collect(),
            entities: new_entities.iter().map(Node::of).collect(),
            closed: *closed,
        },
        (MemoryChange::Entity { scope, .. }, Made::Entity { row, name, .. }) => {
            News::Entity(Node {
                row: *row,
                scope: scope.clone(),
                name: Arc::clone(name),
            })
        }
        (
            MemoryChange::Relation {
                from, to, weight, ..
            },
            Made::Relation { row, .. },
        ) => News::Relation {
            row: *row,
            from: *from,
            to: *to,
            weight: *weight,
        },
        (MemoryChange::Clear, _) => News::Cleared,
        (
            _,
            Made::Deleted {
                rows,
                entities,
                relations,
            },
        ) => News::Gone {
            rows: rows.clone(),
            entities: entities.clone(),
            relations: relations.clone(),
        },
        _ => return None,
    })
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("index", &self.inner.index)
            .finish_non_exhaustive()
    }
}
