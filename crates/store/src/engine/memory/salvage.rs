//! Salvages memories from a damaged file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::Memories;
use crate::engine::advice::Advice;
use crate::engine::sqlite::{Database, Ending, read_damaged, rename_aside};
use crate::engine::write::Write;
use crate::types::error::StoreError;
use crate::types::limits::{SALVAGE_BATCH, SALVAGE_BATCH_BYTES, SALVAGE_BATCHES};
use crate::types::memory::Piece;

/// The result of reading a damaged file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Number of versions of memories.
    pub versions: u64,
    /// Number of entities.
    pub entities: u64,
    /// Number of relations.
    pub relations: u64,
    /// Descriptions, for the user, of the parts that could not be read.
    pub problems: Vec<Arc<str>>,
}

/// Passes all memory objects that can be read from a damaged file to `each`, regardless of the state of
/// the rest. The file is only read. A version whose scope cannot be read is put into the namespace
/// [`SALVAGED_NAMESPACE`](crate::memory::SALVAGED_NAMESPACE), with no other part of a scope.
pub fn salvage(path: &Path, mut each: impl FnMut(Piece)) -> Result<Salvaged, StoreError> {
    let mut salvaged = Salvaged::default();
    let mut take = |piece: Piece| {
        let count = match piece {
            Piece::Entity(_) => &mut salvaged.entities,
            Piece::Version(_) => &mut salvaged.versions,
            Piece::Relation(_) => &mut salvaged.relations,
        };
        *count = count.saturating_add(1);
        each(piece);
    };
    let problems = read_damaged(path, &mut take)
        .map_err(|trouble| Advice::of_a_reader(path, &trouble).error())?;
    salvaged.problems = problems;
    Ok(salvaged)
}

impl Memories {
    /// Returns the path of the damaged file that was set aside, if the memories are in one. All other
    /// methods return [`StoreError::Damaged`] in that case.
    pub async fn damaged(&self) -> Result<Option<Arc<str>>, StoreError> {
        let damage = |database: &Database| Ok(database.damage());
        match self.store.ask(damage).await? {
            Some(StoreError::Damaged { aside }) => Ok(Some(aside)),
            _ => Ok(None),
        }
    }

    /// Restores everything that can be read from the damaged files; after that, memory works again.
    /// `progress` is called from time to time with the numbers so far. The damaged files are kept under
    /// different names. If this fails half-way, it can be repeated.
    pub async fn repair(
        &self,
        mut progress: impl FnMut(&Salvaged),
    ) -> Result<Salvaged, StoreError> {
        let paths = self.store.ask(Database::missed).await?;
        let mut total = Salvaged::default();
        for path in &paths {
            let file = self.bring_back(path, &mut total, &mut progress).await?;
            total.problems.extend(file.problems);
        }
        self.end_damage(&paths, Ending::Salvaged).await?;
        Ok(total)
    }

    /// Starts without the contents of the damaged files; after that, memory works again. The damaged
    /// files are kept under different names.
    pub async fn discard_damaged(&self) -> Result<(), StoreError> {
        let paths = self.store.ask(Database::missed).await?;
        self.end_damage(&paths, Ending::Discarded).await
    }

    async fn end_damage(&self, paths: &[PathBuf], ending: Ending) -> Result<(), StoreError> {
        let (write, answered) = Write::new(0, |commit| commit.mend().map(Ok));
        self.store.submit(write, answered).await?;
        for path in paths {
            if let Err(error) = rename_aside(path, ending) {
                tracing::warn!(%error, path = %path.display(), "Cannot rename a damaged file.");
            }
        }
        Ok(())
    }

    /// Restores everything that can be read from one file.
    async fn bring_back(
        &self,
        path: &Path,
        total: &mut Salvaged,
        progress: &mut impl FnMut(&Salvaged),
    ) -> Result<Salvaged, StoreError> {
        let (batches, mut received) = mpsc::channel(SALVAGE_BATCHES);
        let (end, ended) = oneshot::channel();
        let file = path.to_owned();
        let reader = thread::Builder::new().name("salvage".to_owned());
        let spawned = reader.spawn(move || {
            let mut batch = Batch::new(batches);
            let salvaged = salvage(&file, |piece| batch.push(piece));
            batch.send();
            // The caller may have stopped waiting.
            drop(end.send(salvaged));
        });
        if let Err(error) = spawned {
            return Err(StoreError::Unavailable {
                message: format!("cannot start a thread to read the damaged file: {error}").into(),
                action: "try again when the machine is less busy".into(),
            });
        }
        let mut rows: HashMap<u64, u64> = HashMap::new();
        while let Some((pieces, bytes)) = received.recv().await {
            let known = Arc::new(std::mem::take(&mut rows));
            let lent = Arc::clone(&known);
            let (write, answered) =
                Write::new(bytes, move |commit| commit.bring_back(&pieces, &lent));
            let brought = self.store.submit(write.passing(), answered).await?;
            // The write is done, so this is the only reference.
            rows = Arc::try_unwrap(known).unwrap_or_else(|known| (*known).clone());
            rows.extend(brought.entity_rows);
            total.versions = total.versions.saturating_add(brought.versions);
            total.entities = total.entities.saturating_add(brought.entities);
            total.relations = total.relations.saturating_add(brought.relations);
            progress(total);
        }
        ended.await.unwrap_or(Err(StoreError::Closed))
    }
}

/// A batch of pieces on its way from the reading thread.
struct Batch {
    pieces: Vec<Piece>,
    bytes: usize,
    to: mpsc::Sender<(Vec<Piece>, usize)>,
}

impl Batch {
    fn new(to: mpsc::Sender<(Vec<Piece>, usize)>) -> Self {
        Self {
            pieces: Vec::new(),
            bytes: 0,
            to,
        }
    }

    fn push(&mut self, piece: Piece) {
        self.bytes += piece.bytes();
        self.pieces.push(piece);
        if self.pieces.len() >= SALVAGE_BATCH || self.bytes >= SALVAGE_BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let pieces = std::mem::take(&mut self.pieces);
        // The caller may have stopped waiting.
        drop(self.to.blocking_send((pieces, bytes)));
    }
}
