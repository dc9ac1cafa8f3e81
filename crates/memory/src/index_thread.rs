//! The index thread, which owns the library: the in-memory index of everything that can be searched.
//!
//! The library is built from the store when a call first needs it, and follows the store from then on:
//! the store reports its commits in order, and a query sees everything that was committed before it was
//! made.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use parking_lot::Mutex;
use switchboard_embed::Quantised;
use switchboard_recall::{Document, Library};
use switchboard_store::{
    StoreError,
    memory::{Entity, Memories, NewVersion, Scope, Vector, Version},
};
use switchboard_wire::with_hint;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
};

use crate::{error::Error, scope};

/// The most messages queued for the thread. If the commits of the store exceed it, the library is rebuilt
/// instead of being kept incomplete.
const ORDERS: usize = 16_384;
/// The most bytes in the queue.
const ORDER_BYTES: usize = 64 * 1024 * 1024;
/// The number of messages between two measurements of the library's size, which take milliseconds if it
/// is large.
const WEIGHED_EVERY: u32 = 256;
/// The most rows that are read at once, so that concurrent writes do not wait for long.
const ROWS: usize = 1_000;

/// The state of the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexState {
    /// Not needed so far.
    Resting,
    /// Being built, with the number of versions so far.
    Loading(u64),
    Ready,
    /// Cannot be built at present.
    Failed(Arc<str>),
}

/// A handle to the thread, for queries and for updates from the store.
#[derive(Clone)]
pub(crate) struct IndexThread {
    shared: Arc<Shared>,
}

struct Shared {
    memories: Memories,
    runtime: Handle,
    /// Channel to the thread, while it runs.
    orders: Mutex<Option<SyncSender<Order>>>,
    /// Size of the queue in bytes.
    waiting: AtomicUsize,
    /// Updates were lost: the library has to be rebuilt.
    overrun: AtomicBool,
    state: watch::Sender<IndexState>,
    /// Approximate memory use of the library in bytes.
    bytes: AtomicU64,
}

enum Order {
    /// The store has committed a change.
    News(News),
    Question(Box<dyn FnOnce(&mut Library) + Send>),
}

/// A committed change, in the terms of the library.
#[derive(Debug)]
pub(crate) enum News {
    Version {
        row: u64,
        version: Box<NewVersion>,
        /// Rows of the entities that it mentions, and the entities that are new.
        mentions: Vec<u64>,
        entities: Vec<Node>,
        /// Row of the version that it replaces.
        closed: Option<u64>,
    },
    Gone {
        rows: Vec<u64>,
        entities: Vec<u64>,
        relations: Vec<u64>,
    },
    Entity(Node),
    Relation {
        row: u64,
        from: u64,
        to: u64,
        weight: f32,
    },
    Vectors(Arc<str>, Vec<Vector>),
    Cleared,
}

impl News {
    /// Approximate size of the queued update, in bytes.
    fn bytes(&self) -> usize {
        let more = match self {
            Self::Version {
                version, entities, ..
            } => version.content.len() + entities.len() * size_of::<Node>(),
            Self::Gone { rows, .. } => size_of_val(&**rows),
            Self::Vectors(_, vectors) => vectors.iter().map(|vector| vector.numbers.len()).sum(),
            Self::Entity(_) | Self::Relation { .. } | Self::Cleared => 0,
        };
        size_of::<Self>() + more
    }
}

/// The part of an entity that the library stores.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) row: u64,
    pub(crate) scope: Scope,
    pub(crate) name: Arc<str>,
}

impl Node {
    pub(crate) fn of(entity: &Entity) -> Self {
        Self {
            row: entity.row,
            scope: entity.scope.clone(),
            name: Arc::clone(&entity.name),
        }
    }
}

impl IndexThread {
    pub(crate) fn new(memories: Memories, runtime: Handle) -> Self {
        let shared = Arc::new(Shared {
            memories,
            runtime,
            orders: Mutex::default(),
            waiting: AtomicUsize::new(0),
            overrun: AtomicBool::new(false),
            state: watch::Sender::new(IndexState::Resting),
            bytes: AtomicU64::new(0),
        });
        Self { shared }
    }

    /// Starts to build the library, unless it exists.
    pub(crate) fn wake(&self) {
        let mut orders = self.shared.orders.lock();
        if orders.is_some() {
            return;
        }
        let (sender, receiver) = sync_channel(ORDERS);
        let shared = Arc::clone(&self.shared);
        shared.state.send_replace(IndexState::Loading(0));
        let spawned = thread::Builder::new()
            .name("memory".to_owned())
            .spawn(move || shared.keep(&receiver));
        match spawned {
            Ok(_) => *orders = Some(sender),
            Err(error) => {
                let why = format!("cannot start the thread of the index: {error}");
                self.shared
                    .state
                    .send_replace(IndexState::Failed(why.into()));
            }
        }
    }

    /// Drops the library; it is rebuilt when it is needed again.
    pub(crate) fn rest(&self) {
        // The thread ends when its channel closes.
        self.shared.orders.lock().take();
    }

    /// Reports a commit of the store, without ever waiting.
    pub(crate) fn tell(&self, news: News) {
        let Some(orders) = &*self.shared.orders.lock() else {
            return;
        };
        let (bytes, waiting) = (news.bytes(), &self.shared.waiting);
        let has_room = waiting.fetch_add(bytes, Relaxed) + bytes <= ORDER_BYTES;
        if !has_room || orders.try_send(Order::News(news)).is_err() {
            waiting.fetch_sub(bytes, Relaxed);
            self.shared.overrun.store(true, Relaxed);
        }
    }

    /// Runs a query, once the library is built.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Library) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.wake();
        let (answer, answered) = oneshot::channel();
        let question = move |library: &mut Library| {
            // The caller may have stopped waiting.
            if !answer.is_closed() {
                drop(answer.send(question(library)));
            }
        };
        let sent = match &*self.shared.orders.lock() {
            Some(orders) => orders.try_send(Order::Question(Box::new(question))).is_ok(),
            None => false,
        };
        if !sent {
            return Err(Error::Initializing { part: "index" });
        }
        answered
            .await
            .map_err(|_| Error::Initializing { part: "index" })
    }

    pub(crate) fn state(&self) -> IndexState {
        self.shared.state.borrow().clone()
    }

    /// Returns the approximate memory use of the library in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }
}

impl fmt::Debug for IndexThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexThread")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Runs the thread.
    fn keep(&self, orders: &Receiver<Order>) {
        let mut library = self.try_load();
        let mut kept = VecDeque::new();
        let mut since_weighed = 0;
        while let Some(order) = kept.pop_front().or_else(|| orders.recv().ok()) {
            self.take(&order);
            if self.overrun.swap(false, Relaxed) {
                // Updates in the queue are older than the state that is read next, so they are dropped.
                let later = orders.try_iter().inspect(|order| self.take(order));
                let all = std::iter::once(order).chain(later);
                kept.extend(all.filter(|order| matches!(order, Order::Question(_))));
                library = None;
                continue;
            }
            // If the store could not be read before, it may be readable now.
            if library.is_none() {
                library = self.try_load();
            }
            let Some(library) = &mut library else {
                // Dropping the query reports the failure to its caller.
                continue;
            };
            match order {
                Order::News(news) => apply(library, news),
                Order::Question(question) => question(library),
            }
            since_weighed += 1;
            if since_weighed >= WEIGHED_EVERY {
                since_weighed = 0;
                self.weigh(library);
            }
        }
        // Unless another thread has started meanwhile.
        if self.orders.lock().is_none() {
            self.state.send_replace(IndexState::Resting);
            self.bytes.store(0, Relaxed);
        }
    }

    /// Subtracts a message from the size of the queue.
    fn take(&self, order: &Order) {
        if let Order::News(news) = order {
            self.waiting.fetch_sub(news.bytes(), Relaxed);
        }
    }

    fn try_load(&self) -> Option<Library> {
        match self.load() {
            Ok(library) => {
                self.weigh(&library);
                self.state.send_replace(IndexState::Ready);
                Some(library)
            }
            Err(error) => {
                let why = with_hint(&error, error.hint()).into();
                self.state.send_replace(IndexState::Failed(why));
                None
            }
        }
    }

    fn weigh(&self, library: &Library) {
        self.bytes.store(library.bytes() as u64, Relaxed);
    }

    /// Builds the library from the store.
    fn load(&self) -> Result<Library, StoreError> {
        let memories = &self.memories;
        let mut library = Library::default();
        self.state.send_replace(IndexState::Loading(0));
        let mut after = 0;
        loop {
            let entities = self
                .runtime
                .block_on(memories.entities_after(after, ROWS))?;
            let Some(last) = entities.last() else { break };
            after = last.row;
            for entity in &entities {
                library.put_entity(entity.row, scope::parts(&entity.scope), &entity.name);
            }
        }
        after = 0;
        loop {
            let relations = self
                .runtime
                .block_on(memories.relations_after(after, ROWS))?;
            let Some(last) = relations.last() else { break };
            after = last.row;
            for relation in &relations {
                library.put_relation(relation.row, relation.from, relation.to, relation.weight);
            }
        }
        let last = self.load_versions(&mut library, 0)?;
        let models = self.runtime.block_on(memories.models())?;
        if let Some(active) = models.into_iter().find(|model| model.active) {
            self.load_model(&mut library, &active.fingerprint, active.dimensions)?;
            // A version may have been added meanwhile, and got a vector before the model was in use; such
            // vectors are not reported.
            self.load_versions(&mut library, last)?;
            self.load_vectors(&mut library, &active.fingerprint, last)?;
        }
        Ok(library)
    }

    /// Adds the versions after this row. Returns the row of the last one.
    fn load_versions(&self, library: &mut Library, mut after: u64) -> Result<u64, StoreError> {
        loop {
            let versions = self
                .runtime
                .block_on(self.memories.versions_after(after, ROWS))?;
            let Some(last) = versions.last() else {
                return Ok(after);
            };
            after = last.row;
            for version in &versions {
                add(library, version);
            }
            self.state
                .send_replace(IndexState::Loading(library.len() as u64));
        }
    }

    fn load_model(
        &self,
        library: &mut Library,
        model: &Arc<str>,
        dimensions: u32,
    ) -> Result<(), StoreError> {
        library.add_model(model, dimensions as usize);
        self.load_vectors(library, model, 0)?;
        library.use_model(model);
        Ok(())
    }

    /// Sets the vectors of the versions after this row.
    fn load_vectors(
        &self,
        library: &mut Library,
        model: &Arc<str>,
        mut after: u64,
    ) -> Result<(), StoreError> {
        loop {
            let read = self.memories.vectors_after(model, after, ROWS);
            let vectors = self.runtime.block_on(read)?;
            let Some(last) = vectors.last() else {
                return Ok(());
            };
            after = last.row;
            set_vectors(library, model, vectors);
        }
    }
}

impl IndexThread {
    /// Makes the library use the vectors that the store has of another model; `then` is called before the
    /// next query is answered.
    pub(crate) async fn use_model(
        &self,
        model: Arc<str>,
        dimensions: u32,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let used = self.ask(move |library| {
            shared.load_model(library, &model, dimensions)?;
            then();
            Ok::<_, StoreError>(())
        });
        used.await?.map_err(Error::from)
    }
}

fn apply(library: &mut Library, news: News) {
    match news {
        News::Version {
            row,
            version,
            mentions,
            entities,
            closed,
        } => {
            if let Some(closed) = closed {
                library.close(closed, version.learned_at);
            }
            for entity in entities {
                library.put_entity(entity.row, scope::parts(&entity.scope), &entity.name);
            }
            // A version does not change: one that was loaded before its update arrived may have its
            // vector already.
            if library.has(row) {
                return;
            }
            library.add(&Document {
                row,
                scope: scope::parts(&version.scope),
                kind: &version.kind,
                content: &version.content,
                importance: version.importance,
                valid_from: version.valid_from,
                valid_until: version.valid_until,
                learned_at: version.learned_at,
                learned_until: version.learned_until,
                mentions: &mentions,
            });
        }
        News::Gone {
            rows,
            entities,
            relations,
        } => {
            for row in rows {
                library.remove(row);
            }
            for row in relations {
                library.remove_relation(row);
            }
            for row in entities {
                library.remove_entity(row);
            }
        }
        News::Entity(entity) => {
            library.put_entity(entity.row, scope::parts(&entity.scope), &entity.name);
        }
        News::Relation {
            row,
            from,
            to,
            weight,
        } => library.put_relation(row, from, to, weight),
        News::Vectors(model, vectors) => set_vectors(library, &model, vectors),
        News::Cleared => library.clear(),
    }
}

fn add(library: &mut Library, version: &Version) {
    let mentions: Vec<u64> = version.mentions.iter().map(|of| of.entity).collect();
    library.add(&Document {
        row: version.row,
        scope: scope::parts(&version.scope),
        kind: &version.kind,
        content: &version.content,
        importance: version.importance,
        valid_from: version.valid_from,
        valid_until: version.valid_until,
        learned_at: version.learned_at,
        learned_until: version.learned_until,
        mentions: &mentions,
    });
}

fn set_vectors(library: &mut Library, model: &str, vectors: Vec<Vector>) {
    for Vector {
        row,
        scale,
        numbers,
    } in vectors
    {
        library.set_vector(model, row, &Quantised { scale, numbers });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in tests this is how failures are told")]

    use switchboard_recall::{Channels, Filter, Query};
    use switchboard_store::{
        Store,
        memory::{Made, MemoryChange},
    };

    use super::*;
    use crate::remember::{fresh, next};

    fn anything() -> Filter<'static> {
        Filter {
            scope: [None; 4],
            kind: None,
            as_of: None,
            known_at: None,
            now: 0,
            ended: true,
        }
    }

    fn found(library: &Library) -> usize {
        let hits = library.recall(&Query {
            text: "apple",
            meaning: None,
            filter: anything(),
            limit: 10,
            channels: Channels::default(),
        });
        hits.len()
    }

    fn told(version: &NewVersion, made: &Made) -> News {
        let Made::Version { row, closed, .. } = made else {
            unreachable!()
        };
        News::Version {
            row: *row,
            version: Box::new(version.clone()),
            mentions: Vec::new(),
            entities: Vec::new(),
            closed: *closed,
        }
    }

    #[tokio::test]
    async fn library_is_rebuilt_after_a_queue_overrun() {
        let folder = tempfile::tempdir().unwrap();
        let memories = Store::open(folder.path().join("switchboard.db")).memories();
        let index = IndexThread::new(memories.clone(), Handle::current());
        index.ask(|library| library.len()).await.unwrap();
        // Keep the thread busy.
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = index.clone();
        let busy = tokio::spawn(async move { busy.ask(move |_| released.recv().unwrap()).await });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;

        let first = fresh("m".into(), Scope::default(), "an apple".into(), 1);
        let add = |version: &NewVersion| MemoryChange::Add {
            version: version.clone(),
            mentions: Vec::new(),
        };
        let made = memories.write(vec![add(&first)]).await.unwrap();
        index.tell(told(&first, &made[0]));
        for _ in 0..ORDERS {
            index.tell(News::Gone {
                rows: Vec::new(),
                entities: Vec::new(),
                relations: Vec::new(),
            });
        }
        // This update does not fit into the queue.
        let current = memories.get("m").await.unwrap().unwrap();
        let mut second = next(&current, 2);
        second.content = "a pear".into();
        let revised = MemoryChange::Revise {
            id: "m".into(),
            was: 1,
            version: second.clone(),
            mentions: Vec::new(),
        };
        let made = memories.write(vec![revised]).await.unwrap();
        index.tell(told(&second, &made[0]));

        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        let mut apples = usize::MAX;
        for _ in 0..100 {
            if let Ok(found) = index.ask(|library| found(library)).await {
                apples = found;
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(apples, 0, "the memory says \"a pear\" now");
    }

    #[test]
    fn late_update_of_a_version_keeps_its_vector() {
        let version = fresh("m".into(), Scope::default(), "an apple".into(), 1);
        let news = || News::Version {
            row: 1,
            version: Box::new(version.clone()),
            mentions: Vec::new(),
            entities: Vec::new(),
            closed: None,
        };
        let mut library = Library::default();
        library.add_model("model", 2);
        apply(&mut library, news());
        let Quantised { scale, numbers } = Quantised::from_vector(&[1.0, 0.0]);
        let vector = Vector {
            row: 1,
            scale,
            numbers,
        };
        set_vectors(&mut library, "model", vec![vector]);
        apply(&mut library, news());
        let hits = library.recall(&Query {
            text: "unknown words",
            meaning: Some(("model", &[1.0, 0.0])),
            filter: anything(),
            limit: 10,
            channels: Channels {
                lexical: false,
                vector: true,
                graph: false,
            },
        });
        assert_eq!(hits.len(), 1);
    }
}
