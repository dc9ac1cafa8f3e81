//! Models and vectors in the engine.

use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::super::{Commit, Database, SqliteError, begin, signed, unsigned};
use super::reads::at_most;
use crate::types::error::Fate;
use crate::types::error::StoreError;
use crate::types::limits::{BYTES_PER_ANSWER, ROWS_PER_TRIM};
use crate::types::memory::{ModelRow, Vector};

/// The progress of removing the vectors of retired models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::engine::sqlite) enum Trim {
    /// Not known yet if there are any.
    #[default]
    Unknown,
    /// The vectors of this model are removed up to this version.
    Going { model: i64, version: i64 },
    /// There are none left.
    Done,
}

impl Database {
    /// Returns the models that are not retired.
    pub(crate) fn models(&self) -> Result<Vec<ModelRow>, SqliteError> {
        let mut statement = self.connection.prepare(
            "SELECT fingerprint, dimensions, vectors, active FROM memory_models \
             WHERE retired = 0 ORDER BY row",
        )?;
        let found = statement.query_map([], |row| {
            Ok(ModelRow {
                fingerprint: row.get(0)?,
                dimensions: row.get(1)?,
                vectors: unsigned(row.get(2)?),
                active: row.get(3)?,
            })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns the vectors of a model after this row, ordered by row.
    pub(crate) fn vectors_after(
        &self,
        fingerprint: &str,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Vector>, SqliteError> {
        let Some(model) = self.model(fingerprint)? else {
            return Ok(Vec::new());
        };
        let mut statement = self.connection.prepare(
            "SELECT version, scale, numbers FROM memory_vectors \
             WHERE version > ?1 AND model = ?2 ORDER BY version LIMIT ?3",
        )?;
        let found = statement.query_map(params![signed(row), model, at_most(limit)], |row| {
            Ok(Vector {
                row: unsigned(row.get(0)?),
                scale: row.get(1)?,
                numbers: signed_bytes(row.get_ref(2)?.as_blob()?),
            })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns the versions after this row that have no vector of a model, ordered by row.
    pub(crate) fn lacking(
        &self,
        fingerprint: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Arc<str>)>, SqliteError> {
        let Some(model) = self.model(fingerprint)? else {
            return Ok(Vec::new());
        };
        let after = signed(after);
        // Vectors are only deleted with their versions, so rows that were once complete need no second
        // look.
        let filled = match self.filled.get() {
            (of, filled) if of == model => filled,
            _ => 0,
        };
        let start = after.max(filled);
        let (last, whole): (Option<i64>, bool) = self.connection.query_row(
            "SELECT (SELECT max(row) FROM memory_versions), \
             (SELECT versions FROM memory_counts) = m.vectors FROM memory_models m WHERE m.row = ?1",
            [model],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if whole {
            self.filled.set((model, last.unwrap_or(0).max(filled)));
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare(
            "SELECT v.row, v.content FROM memory_versions v WHERE v.row > ?1 AND NOT EXISTS \
             (SELECT 1 FROM memory_vectors x WHERE x.version = v.row AND x.model = ?2) \
             ORDER BY v.row LIMIT ?3",
        )?;
        let mut rows = statement.query(params![start, model, at_most(limit)])?;
        let mut found: Vec<(u64, Arc<str>)> = Vec::new();
        let mut bytes = 0_usize;
        while let Some(row) = rows.next()? {
            let (place, content): (i64, Arc<str>) = (row.get(0)?, row.get(1)?);
            bytes = bytes.saturating_add(content.len());
            if bytes > BYTES_PER_ANSWER && !found.is_empty() {
                break;
            }
            found.push((unsigned(place), content));
        }
        if start == filled && limit > 0 {
            let first = found.first().map(|(row, _)| signed(*row).saturating_sub(1));
            let end = first.or(last).unwrap_or(0);
            self.filled.set((model, end.max(filled)));
        }
        Ok(found)
    }

    /// Removes a batch of the vectors of retired models. Returns `true` if there may be more.
    pub(crate) fn trim_vectors(&mut self) -> Result<bool, SqliteError> {
        let (model, version) = match self.vectors {
            Trim::Done => return Ok(false),
            Trim::Going { model, version } => (model, version),
            Trim::Unknown => {
                let Some(model) = self.retired()? else {
                    self.vectors = Trim::Done;
                    return Ok(false);
                };
                (model, 0)
            }
        };
        self.sync_commits(false)?;
        let transaction = begin(&mut self.connection)?;
        let mut select = transaction.prepare(
            "SELECT rowid, version FROM memory_vectors WHERE version > ?1 AND model = ?2 \
             ORDER BY version LIMIT ?3",
        )?;
        let gone: Vec<(i64, i64)> = select
            .query_map(params![version, model, signed(ROWS_PER_TRIM)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        drop(select);
        let mut delete = transaction.prepare("DELETE FROM memory_vectors WHERE rowid = ?1")?;
        for (row, _) in &gone {
            delete.execute([row])?;
        }
        drop(delete);
        let next = if let Some((_, version)) = gone.last() {
            let version = *version;
            Trim::Going { model, version }
        } else {
            transaction.execute("DELETE FROM memory_models WHERE row = ?1", [model])?;
            Trim::Unknown
        };
        transaction.commit()?;
        self.vectors = next;
        self.filled.set((0, 0));
        Ok(true)
    }

    /// Returns the row of a model that is not retired.
    fn model(&self, fingerprint: &str) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT row FROM memory_models WHERE fingerprint = ?1 AND retired = 0";
        self.connection
            .query_row(sql, [fingerprint], |row| row.get(0))
            .optional()
    }

    /// Returns the row of a retired model.
    fn retired(&self) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT row FROM memory_models WHERE retired = 1 LIMIT 1";
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .optional()
    }
}

impl Commit<'_> {
    /// Adds a model, or reinstates a retired one.
    pub(crate) fn add_model(
        &mut self,
        fingerprint: &str,
        dimensions: u32,
    ) -> Result<Fate<()>, SqliteError> {
        if let Some(damage) = self.damage() {
            return Ok(Err(damage));
        }
        self.execute(
            "INSERT INTO memory_models (fingerprint, dimensions) VALUES (?1, ?2) \
             ON CONFLICT (fingerprint) DO UPDATE SET retired = 0 WHERE retired = 1",
            params![fingerprint, dimensions],
        )?;
        self.effects().retired = true;
        let known: Option<u32> = self.find(
            "SELECT dimensions FROM memory_models WHERE fingerprint = ?1",
            [fingerprint],
            |row| row.get(0),
        )?;
        if known == Some(dimensions) {
            return Ok(Ok(()));
        }
        Ok(Err(StoreError::Invalid {
            why: "the stored vectors of this model have a different number of dimensions",
        }))
    }

    /// Makes this the active model and retires all others.
    pub(crate) fn activate(&mut self, fingerprint: &str) -> Result<Fate<()>, SqliteError> {
        if let Some(damage) = self.damage() {
            return Ok(Err(damage));
        }
        let found = self.execute(
            "UPDATE memory_models SET active = 1 WHERE fingerprint = ?1 AND retired = 0",
            [fingerprint],
        )?;
        if found == 0 {
            return Ok(Err(StoreError::Conflict));
        }
        self.execute(
            "UPDATE memory_models SET active = 0, retired = 1 WHERE fingerprint <> ?1",
            [fingerprint],
        )?;
        self.effects().retired = true;
        Ok(Ok(()))
    }

    /// Stores vectors of a model, replacing existing ones.
    pub(crate) fn put_vectors(
        &mut self,
        fingerprint: &str,
        vectors: &[Vector],
    ) -> Result<Fate<()>, SqliteError> {
        if let Some(damage) = self.damage() {
            return Ok(Err(damage));
        }
        let model: Option<(i64, usize)> = self.find(
            "SELECT row, dimensions FROM memory_models WHERE fingerprint = ?1 AND retired = 0",
            [fingerprint],
            |row| Ok((row.get(0)?, row.get::<_, u32>(1)? as usize)),
        )?;
        let Some((model, dimensions)) = model else {
            return Ok(Err(StoreError::Conflict));
        };
        let mut bytes = Vec::with_capacity(dimensions);
        for vector in vectors {
            if vector.numbers.len() != dimensions {
                return Ok(Err(StoreError::Invalid {
                    why: "a vector does not have the number of dimensions of its model",
                }));
            }
            bytes.clear();
            bytes.extend(vector.numbers.iter().map(|number| number.cast_unsigned()));
            self.execute(
                "INSERT INTO memory_vectors (version, model, scale, numbers) \
                 SELECT row, ?2, ?3, ?4 FROM memory_versions WHERE row = ?1 \
                 ON CONFLICT (version, model) DO UPDATE SET scale = excluded.scale, \
                 numbers = excluded.numbers",
                params![signed(vector.row), model, vector.scale, bytes],
            )?;
        }
        Ok(Ok(()))
    }
}

fn signed_bytes(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| byte.cast_signed()).collect()
}
