//! The memories of the store.

mod graph;
mod salvage;

use std::sync::Arc;

pub use self::salvage::{Salvaged, salvage};
use crate::engine::sqlite::{Database, SqliteError};
use crate::engine::store::Store;
use crate::engine::write::Write;
use crate::types::error::StoreError;
use crate::types::limits::{DIMENSIONS, NAME_BYTES, ROWS_PER_ANSWER, VECTORS_PER_WRITE};
use crate::types::memory::{
    Counts, Entity, Listed, Listing, Made, MemoryChange, ModelRow, Relation, Scope, Vector,
    Version, bounded, check,
};

/// A handle to the memories. Cloning it is cheap; it keeps the store open.
#[derive(Debug, Clone)]
pub struct Memories {
    store: Store,
}

impl Memories {
    pub(crate) fn of(store: Store) -> Self {
        Self { store }
    }

    /// Applies all of these changes or none, and returns the result of each. They are on disk when this
    /// returns `Ok`. Dropping the future does not cancel the write.
    ///
    /// After [`StoreError::Conflict`], [`StoreError::TooLarge`] or [`StoreError::Invalid`], no part of
    /// this write was applied.
    pub async fn write(&self, changes: Vec<MemoryChange>) -> Result<Vec<Made>, StoreError> {
        self.write_followed(changes, |_, _| ()).await
    }

    /// Like [`write`](Self::write), but calls `follow` once the changes are committed: on the store's
    /// thread, before this returns, and in commit order. A copy that is updated by `follow` is therefore
    /// never ahead of the store or out of order.
    pub async fn write_followed(
        &self,
        changes: Vec<MemoryChange>,
        follow: impl FnOnce(&[MemoryChange], &[Made]) + Send + 'static,
    ) -> Result<Vec<Made>, StoreError> {
        check(&changes)?;
        let bytes = changes.iter().map(MemoryChange::bytes).sum();
        let changes: Arc<[MemoryChange]> = changes.into();
        let made = Arc::clone(&changes);
        let (write, answered) = Write::followed(
            bytes,
            move |commit| commit.memories(&made),
            move |made: &Vec<Made>| follow(&changes, made),
        );
        self.store.submit(write, answered).await
    }

    /// Returns the current version of a memory.
    pub async fn get(&self, id: &str) -> Result<Option<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.memory(&id)).await
    }

    /// Returns the version of a memory that was known at a time.
    pub async fn known(&self, id: &str, at: i64) -> Result<Option<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.known(&id, at)).await
    }

    /// Returns all versions of a memory, oldest first. If there are more than [`ROWS_PER_ANSWER`], or if
    /// they are long, returns only the newest.
    pub async fn history(&self, id: &str) -> Result<Vec<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.history(&id)).await
    }

    /// Returns the versions that match.
    pub async fn list(&self, which: Listing) -> Result<Listed, StoreError> {
        which.scope.check()?;
        self.ask(move |database| database.list(&which)).await
    }

    /// Returns the versions with these rows, in this order, skipping deleted ones. At most
    /// [`ROWS_PER_ANSWER`] rows; if the versions are long, the last may be left out
    /// ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)).
    pub async fn versions(&self, rows: Vec<u64>) -> Result<Vec<Version>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        self.ask(move |database| database.versions(&rows)).await
    }

    /// Returns up to `limit` versions after this row, ordered by row, and never more than
    /// [`ROWS_PER_ANSWER`]; fewer if they are long. Only an empty answer marks the end.
    pub async fn versions_after(&self, row: u64, limit: usize) -> Result<Vec<Version>, StoreError> {
        self.ask(move |database| database.versions_after(row, limit))
            .await
    }

    /// Returns up to `limit` entities after this row, ordered by row, and never more than
    /// [`ROWS_PER_ANSWER`]. Only an empty answer marks the end.
    pub async fn entities_after(&self, row: u64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.ask(move |database| database.entities_after(row, limit))
            .await
    }

    /// Returns up to `limit` relations after this row, ordered by row, and never more than
    /// [`ROWS_PER_ANSWER`]. Only an empty answer marks the end.
    pub async fn relations_after(
        &self,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, StoreError> {
        self.ask(move |database| database.relations_after(row, limit))
            .await
    }

    /// Returns the entities with this ID or key in the scopes that match, ordered by row. At most
    /// [`ROWS_PER_ANSWER`].
    pub async fn entity(&self, scope: &Scope, key_or_id: &str) -> Result<Vec<Entity>, StoreError> {
        scope.check()?;
        let (scope, name): (Scope, Arc<str>) = (scope.clone(), key_or_id.into());
        self.ask(move |database| database.entities_named(&scope, &name))
            .await
    }

    /// Returns the number of stored objects. The store maintains these counts, so that this is cheap.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.ask(Database::memory_counts).await
    }

    /// Returns the registered models.
    pub async fn models(&self) -> Result<Vec<ModelRow>, StoreError> {
        self.ask(Database::models).await
    }

    /// Registers a model. Registering it again is not an error. [`StoreError::Invalid`] if it is
    /// registered with a different number of dimensions.
    pub async fn add_model(&self, fingerprint: &str, dimensions: u32) -> Result<(), StoreError> {
        bounded(
            "the length of a fingerprint in bytes",
            fingerprint.len(),
            NAME_BYTES,
        )?;
        let most = DIMENSIONS;
        let numbers = usize::try_from(dimensions).unwrap_or(usize::MAX);
        bounded("the number of dimensions", numbers, most)?;
        let model: Arc<str> = fingerprint.into();
        let (write, answered) = Write::new(model.len(), move |commit| {
            commit.add_model(&model, dimensions)
        });
        self.store.submit(write, answered).await
    }

    /// Makes this the model that searches use. All other models are removed at once, and their vectors
    /// step by step. [`StoreError::Conflict`] if the model is not registered.
    pub async fn activate(&self, fingerprint: &str) -> Result<(), StoreError> {
        let model: Arc<str> = fingerprint.into();
        let (write, answered) = Write::new(model.len(), move |commit| commit.activate(&model));
        self.store.submit(write, answered).await
    }

    /// Stores vectors of this model, replacing existing ones; vectors of deleted versions are skipped. A
    /// loss of power may undo this, since vectors can be computed again. [`StoreError::Conflict`] if the
    /// model is not registered, or was removed.
    pub async fn put_vectors(
        &self,
        fingerprint: &str,
        vectors: Vec<Vector>,
    ) -> Result<(), StoreError> {
        bounded("the number of vectors", vectors.len(), VECTORS_PER_WRITE)?;
        if vectors.iter().any(|vector| !vector.scale.is_finite()) {
            let why = "the scale of a vector must be a finite number";
            return Err(StoreError::Invalid { why });
        }
        let numbers: usize = vectors.iter().map(|vector| vector.numbers.len()).sum();
        let bytes = numbers + vectors.len() * size_of::<Vector>();
        let model: Arc<str> = fingerprint.into();
        let (write, answered) =
            Write::new(bytes, move |commit| commit.put_vectors(&model, &vectors));
        self.store.submit(write.passing(), answered).await
    }

    /// Returns up to `limit` vectors of this model after this row, ordered by row, and never more than
    /// [`ROWS_PER_ANSWER`]. Only an empty answer marks the end. An unregistered model has no vectors.
    pub async fn vectors_after(
        &self,
        fingerprint: &str,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Vector>, StoreError> {
        let model: Arc<str> = fingerprint.into();
        self.ask(move |database| database.vectors_after(&model, row, limit))
            .await
    }

    /// Returns the rows and contents of up to `limit` versions after this row that have no vector of this
    /// model, ordered by row, and never more than [`ROWS_PER_ANSWER`]; fewer if they are long. Only an
    /// empty answer marks the end. For an unregistered model, the answer is empty.
    pub async fn lacking(
        &self,
        fingerprint: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Arc<str>)>, StoreError> {
        let model: Arc<str> = fingerprint.into();
        self.ask(move |database| database.lacking(&model, after, limit))
            .await
    }

    /// Returns up to `limit` scopes with the most memories, and the number of memories in each; never
    /// more than [`ROWS_PER_ANSWER`].
    pub async fn scopes(&self, limit: usize) -> Result<Vec<(Scope, u64)>, StoreError> {
        self.ask(move |database| database.scopes(limit)).await
    }

    /// Runs a query, unless memories are missing because of a damaged file.
    async fn ask<T: Send + 'static>(
        &self,
        read: impl Fn(&Database) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.store.ask(move |database| match database.damage() {
            Some(damage) => Ok(Err(damage)),
            None => read(database).map(Ok),
        });
        answer.await?
    }
}
