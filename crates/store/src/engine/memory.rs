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

/// A handle to what is remembered. Cloning it is cheap; it keeps the store open.
#[derive(Debug, Clone)]
pub struct Memories {
    store: Store,
}

impl Memories {
    pub(crate) fn of(store: Store) -> Self {
        Self { store }
    }

    /// Makes all of these changes or none, and says what became of each. They are on the disk when this
    /// answers `Ok`. Whoever stops waiting for the answer does not stop the write.
    ///
    /// [`StoreError::Conflict`], [`StoreError::TooLarge`] and [`StoreError::Invalid`]: nothing of this
    /// write was made.
    pub async fn write(&self, changes: Vec<MemoryChange>) -> Result<Vec<Made>, StoreError> {
        self.write_followed(changes, |_, _| ()).await
    }

    /// The same, with somebody who is told once it is committed: on the thread of the store, before this
    /// answers, and in the order of commits, so that what follows the store is never ahead or behind.
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

    /// The current version of a memory.
    pub async fn get(&self, id: &str) -> Result<Option<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.memory(&id)).await
    }

    /// The version of a memory that was known at a time.
    pub async fn known(&self, id: &str, at: i64) -> Result<Option<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.known(&id, at)).await
    }

    /// All versions of a memory, oldest first. Of more than
    /// [`ROWS_PER_ANSWER`], the newest, and likewise of those that are long.
    pub async fn history(&self, id: &str) -> Result<Vec<Version>, StoreError> {
        let id: Arc<str> = id.into();
        self.ask(move |database| database.history(&id)).await
    }

    /// The versions that match.
    pub async fn list(&self, which: Listing) -> Result<Listed, StoreError> {
        which.scope.check()?;
        self.ask(move |database| database.list(&which)).await
    }

    /// The versions with these rows, in this order, without those that are gone. At most
    /// [`ROWS_PER_ANSWER`] rows; the last may be left out if they are long
    /// ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)).
    pub async fn versions(&self, rows: Vec<u64>) -> Result<Vec<Version>, StoreError> {
        bounded("the number of rows", rows.len(), ROWS_PER_ANSWER)?;
        self.ask(move |database| database.versions(&rows)).await
    }

    /// The versions after this row, by their rows. At most so many, and never more than
    /// [`ROWS_PER_ANSWER`]; fewer if they are long: only an empty answer is the
    /// end.
    pub async fn versions_after(&self, row: u64, limit: usize) -> Result<Vec<Version>, StoreError> {
        self.ask(move |database| database.versions_after(row, limit))
            .await
    }

    /// The entities after this row, by their rows. At most so many, and never more than
    /// [`ROWS_PER_ANSWER`]: only an empty answer is the end.
    pub async fn entities_after(&self, row: u64, limit: usize) -> Result<Vec<Entity>, StoreError> {
        self.ask(move |database| database.entities_after(row, limit))
            .await
    }

    /// The relations after this row, likewise.
    pub async fn relations_after(
        &self,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, StoreError> {
        self.ask(move |database| database.relations_after(row, limit))
            .await
    }

    /// The entities that have this id or key, in the scopes that have what is set, by their rows. At most
    /// [`ROWS_PER_ANSWER`].
    pub async fn entity(&self, scope: &Scope, key_or_id: &str) -> Result<Vec<Entity>, StoreError> {
        scope.check()?;
        let (scope, name): (Scope, Arc<str>) = (scope.clone(), key_or_id.into());
        self.ask(move |database| database.entities_named(&scope, &name))
            .await
    }

    /// How much there is. This is kept, not counted.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.ask(Database::memory_counts).await
    }

    /// The models that there are vectors of, or will be.
    pub async fn models(&self) -> Result<Vec<ModelRow>, StoreError> {
        self.ask(Database::models).await
    }

    /// Says that there will be vectors of this model. It is no error if that is known.
    /// [`StoreError::Invalid`] if its vectors are known to have other dimensions.
    pub async fn add_model(&self, fingerprint: &str, dimensions: u32) -> Result<(), StoreError> {
        bounded("a fingerprint in bytes", fingerprint.len(), NAME_BYTES)?;
        let most = DIMENSIONS;
        let numbers = usize::try_from(dimensions).unwrap_or(usize::MAX);
        bounded("the number of dimensions", numbers, most)?;
        let model: Arc<str> = fingerprint.into();
        let (write, answered) = Write::new(model.len(), move |commit| {
            commit.add_model(&model, dimensions)
        });
        self.store.submit(write, answered).await
    }

    /// From now on this model is searched with. All others go, and their vectors bit by bit.
    /// [`StoreError::Conflict`] if it was not added.
    pub async fn activate(&self, fingerprint: &str) -> Result<(), StoreError> {
        let model: Arc<str> = fingerprint.into();
        let (write, answered) = Write::new(model.len(), move |commit| commit.activate(&model));
        self.store.submit(write, answered).await
    }

    /// Keeps vectors of this model, in place of those that were there; those of versions that are gone
    /// are passed over. A loss of power may undo this: they can be made again.
    /// [`StoreError::Conflict`] if the model was not added, or is gone.
    pub async fn put_vectors(
        &self,
        fingerprint: &str,
        vectors: Vec<Vector>,
    ) -> Result<(), StoreError> {
        bounded("the number of vectors", vectors.len(), VECTORS_PER_WRITE)?;
        if vectors.iter().any(|vector| !vector.scale.is_finite()) {
            let why = "the scale of a vector is no number";
            return Err(StoreError::Invalid { why });
        }
        let numbers: usize = vectors.iter().map(|vector| vector.numbers.len()).sum();
        let bytes = numbers + vectors.len() * size_of::<Vector>();
        let model: Arc<str> = fingerprint.into();
        let (write, answered) =
            Write::new(bytes, move |commit| commit.put_vectors(&model, &vectors));
        self.store.submit(write.passing(), answered).await
    }

    /// The vectors of this model after this row, by their rows. At most so many, and never more than
    /// [`ROWS_PER_ANSWER`]: only an empty answer is the end. There are none of
    /// a model that was not added.
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

    /// The rows and contents of versions after this row that have no vector of this model, by their
    /// rows. At most so many, and never more than [`ROWS_PER_ANSWER`]; fewer if
    /// they are long: only an empty answer is the end. There are none of a model that was not added.
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

    /// The scopes with the most memories, and how many each has. At most so many, and never more than
    /// [`ROWS_PER_ANSWER`].
    pub async fn scopes(&self, limit: usize) -> Result<Vec<(Scope, u64)>, StoreError> {
        self.ask(move |database| database.scopes(limit)).await
    }

    /// Asks, unless the memories are missed.
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
