//! [`Memory`]: the store, the library and the model together.

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

/// What makes vectors of texts.
pub type Model = Arc<dyn Embedder>;

/// What can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether people and things are found in what is stored, beside those that are named.
    pub extract: bool,
    /// How long a call waits for a part that is not ready.
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

/// What is done about an index that could not be made.
const REMADE: &str = "it is made again when it is next needed";

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
    /// That memories are in a damaged file, if they are.
    damage: Mutex<Option<Error>>,
    /// How many connections there are. Held while what they need is begun or let go.
    connections: Mutex<usize>,
}

impl Memory {
    /// The memory in this store. Nothing is opened or read before somebody needs it. `model` gives the model
    /// that is wanted at present, if there is one; it may take its time, and is called on a thread of its
    /// own.
    ///
    /// It has to be called within a runtime.
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

    /// Other settings from now on.
    pub fn set(&self, settings: Settings) {
        *self.inner.settings.lock() = settings;
    }

    /// Another model may be wanted than before.
    pub fn model_changed(&self) {
        if *self.inner.connections.lock() > 0 {
            self.inner.backfill.nudge();
        }
    }

    /// Brings back what can be read of a damaged file; then the memory works again.
    pub async fn repair(&self) -> Result<Salvaged, StoreError> {
        let salvaged = self.inner.memories.repair(|_| ()).await?;
        self.renew();
        Ok(salvaged)
    }

    /// Begins without what a damaged file holds; then the memory works again.
    pub async fn discard_damaged(&self) -> Result<(), StoreError> {
        self.inner.memories.discard_damaged().await?;
        self.renew();
        Ok(())
    }

    /// What is wrong with it that is not wrong with the whole store, and what to do about it, as far as that
    /// was noticed.
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

    /// Looks whether memories are in a damaged file, once the store has been opened.
    pub async fn look_for_damage(&self) {
        let mut status = self.inner.store.watch();
        if status.wait_for(Status::is_ready).await.is_ok() {
            // What is wrong is noted by asking.
            let _ = self.ready().await;
        }
    }

    /// What is in memory is made anew of the store.
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

    /// Somebody connects: what makes it quick is made ready.
    pub(crate) fn begin(&self) {
        let mut connections = self.inner.connections.lock();
        *connections += 1;
        self.inner.index.wake();
        self.inner.backfill.nudge();
    }

    /// Somebody leaves. After the last one what can be made again is let go.
    pub(crate) fn end(&self) {
        let mut connections = self.inner.connections.lock();
        *connections = connections.saturating_sub(1);
        if *connections == 0 {
            self.inner.backfill.rest();
            self.inner.index.rest();
        }
    }

    /// Waits for an answer of the store, within bounds.
    pub(crate) async fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Error> {
        match timeout(self.settings().wait, answer).await {
            Ok(answer) => answer.map_err(|error| self.trouble(error)),
            Err(_) => Err(Error::Initializing { part: "store" }),
        }
    }

    /// What an error of the store means here.
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

    /// Waits for an answer of the library, within bounds.
    pub(crate) async fn consult<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match timeout(self.settings().wait, answer).await {
            Ok(Err(Error::Initializing { .. })) | Err(_) => Err(self.no_index()),
            Ok(answer) => answer,
        }
    }

    /// Why the library cannot be asked.
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

    /// Makes these changes, all or none, durably, and has the library follow.
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
        // Whoever is told to try again should not have stored something already: what is given to a store that
        // works is waited for.
        if !self.inner.store.status().is_ready() {
            self.ready().await?;
        }
        written.await.map_err(|error| self.trouble(error))
    }

    /// What a text means to the model whose vectors are in use.
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

/// What a change means for the library.
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
