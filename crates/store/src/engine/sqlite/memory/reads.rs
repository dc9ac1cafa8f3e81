//! Versions, entities and relations in the engine: reading them.

use rusqlite::{OptionalExtension, Row, Statement, params, params_from_iter};

use super::super::{Database, SqliteError, signed, unsigned};
use super::{filter, scope};
use crate::types::limits::{BYTES_PER_ANSWER, ROWS_PER_ANSWER};
use crate::types::memory::{Counts, Entity, Mention, Relation, Scope, Version};

const VERSION: &str = "SELECT v.row, v.id, v.version, v.kind, v.importance, v.valid_from, \
     v.valid_until, v.learned_at, v.learned_until, v.superseded_by, v.reason, v.metadata, \
     v.content, s.namespace, s.user, s.agent, s.run \
     FROM memory_versions v JOIN memory_scopes s ON s.row = v.scope";

pub(super) const ENTITY: &str = "SELECT e.row, e.id, e.key, e.name, e.kind, e.description, e.learned_at, \
     e.found, s.namespace, s.user, s.agent, s.run \
     FROM memory_entities e JOIN memory_scopes s ON s.row = e.scope";

const MENTIONS: &str = "SELECT m.entity, e.name, m.explicit FROM memory_mentions m \
     JOIN memory_entities e ON e.row = m.entity WHERE m.version = ?1 ORDER BY m.entity";

pub(super) const RELATION: &str =
    "SELECT row, id, source, target, kind, weight, learned_at FROM memory_relations";

impl Database {
    /// Returns the current version of a memory.
    pub(crate) fn memory(&self, id: &str) -> Result<Option<Version>, SqliteError> {
        let sql = format!(
            "{VERSION} WHERE v.id = ?1 AND v.learned_until IS NULL ORDER BY v.version DESC LIMIT 1"
        );
        let found = self.connection.query_row(&sql, [id], version).optional()?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        found.mentions = mentions(&mut self.connection.prepare(MENTIONS)?, found.row)?;
        Ok(Some(found))
    }

    /// Returns the version of a memory that was known at a time.
    pub(crate) fn known(&self, id: &str, at: i64) -> Result<Option<Version>, SqliteError> {
        let sql = format!(
            "{VERSION} WHERE v.id = ?1 AND v.learned_at <= ?2 \
             AND (v.learned_until IS NULL OR v.learned_until > ?2) ORDER BY v.version DESC LIMIT 1"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let found = self.collect(statement.query_map(params![id, at], version)?)?;
        Ok(found.into_iter().next())
    }

    /// Returns the last versions of a memory, oldest first.
    pub(crate) fn history(&self, id: &str) -> Result<Vec<Version>, SqliteError> {
        let limit = ROWS_PER_ANSWER;
        let sql = format!("{VERSION} WHERE v.id = ?1 ORDER BY v.version DESC LIMIT {limit}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = self.collect(statement.query_map([id], version)?)?;
        found.reverse();
        Ok(found)
    }

    /// Returns the versions with these rows, in this order, skipping deleted ones.
    pub(crate) fn versions(&self, rows: &[u64]) -> Result<Vec<Version>, SqliteError> {
        let mut statement = self
            .connection
            .prepare(&format!("{VERSION} WHERE v.row = ?1"))?;
        let found = rows.iter().filter_map(|row| {
            let found = statement.query_row([signed(*row)], version);
            found.optional().transpose()
        });
        self.collect(found)
    }

    /// Returns the versions after this row, ordered by row.
    pub(crate) fn versions_after(
        &self,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Version>, SqliteError> {
        let sql = format!("{VERSION} WHERE v.row > ?1 ORDER BY v.row LIMIT ?2");
        let mut statement = self.connection.prepare(&sql)?;
        let found = statement.query_map(params![signed(row), at_most(limit)], version)?;
        self.collect(found)
    }

    /// Returns the entities after this row, ordered by row.
    pub(crate) fn entities_after(
        &self,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Entity>, SqliteError> {
        let sql = format!("{ENTITY} WHERE e.row > ?1 ORDER BY e.row LIMIT ?2");
        let mut statement = self.connection.prepare(&sql)?;
        let found = statement.query_map(params![signed(row), at_most(limit)], entity)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns the relations after this row, ordered by row.
    pub(crate) fn relations_after(
        &self,
        row: u64,
        limit: usize,
    ) -> Result<Vec<Relation>, SqliteError> {
        let sql = format!("{RELATION} WHERE row > ?1 ORDER BY row LIMIT ?2");
        let mut statement = self.connection.prepare(&sql)?;
        let found = statement.query_map(params![signed(row), at_most(limit)], relation)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns the entities with this ID or key, ordered by row.
    pub(crate) fn entities_named(
        &self,
        of: &Scope,
        name: &str,
    ) -> Result<Vec<Entity>, SqliteError> {
        let mut condition = "(e.id = ? OR e.key = ?)".to_owned();
        let mut values = vec![name.to_owned().into(), name.to_owned().into()];
        if let Some((scope, names)) = filter(of) {
            condition = format!("{condition} AND {scope}");
            values.extend(names);
        }
        let limit = ROWS_PER_ANSWER;
        let sql = format!("{ENTITY} WHERE {condition} ORDER BY e.row LIMIT {limit}");
        let mut statement = self.connection.prepare(&sql)?;
        let found = statement.query_map(params_from_iter(values), entity)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Returns the number of stored objects.
    pub(crate) fn memory_counts(&self) -> Result<Counts, SqliteError> {
        let mut counts = self.connection.query_row(
            "SELECT memories, versions, entities, relations FROM memory_counts",
            [],
            |row| {
                Ok(Counts {
                    memories: unsigned(row.get(0)?),
                    versions: unsigned(row.get(1)?),
                    entities: unsigned(row.get(2)?),
                    relations: unsigned(row.get(3)?),
                    ..Counts::default()
                })
            },
        )?;
        let vectors = self
            .connection
            .query_row(
                "SELECT vectors FROM memory_models WHERE active = 1",
                [],
                |row| row.get(0).map(unsigned),
            )
            .optional()?;
        counts.vectors_of_active = vectors.unwrap_or(0);
        counts.lacking = counts.versions.saturating_sub(counts.vectors_of_active);
        Ok(counts)
    }

    /// Returns the scopes with the most memories.
    pub(crate) fn scopes(&self, limit: usize) -> Result<Vec<(Scope, u64)>, SqliteError> {
        let mut statement = self.connection.prepare(
            "SELECT namespace, user, agent, run, memories FROM memory_scopes \
             WHERE memories > 0 ORDER BY memories DESC, row LIMIT ?1",
        )?;
        let found = statement.query_map([at_most(limit)], |row| {
            Ok((scope(row, 0)?, unsigned(row.get(4)?)))
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Collects versions up to the size limit of an answer, and adds their mentions.
    fn collect(
        &self,
        versions: impl Iterator<Item = rusqlite::Result<Version>>,
    ) -> Result<Vec<Version>, SqliteError> {
        let mut statement = self.connection.prepare(MENTIONS)?;
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        for version in versions {
            let mut version = version?;
            let metadata = version.metadata.as_ref().map_or(0, |text| text.len());
            bytes = bytes.saturating_add(version.content.len() + metadata);
            if bytes > BYTES_PER_ANSWER && !found.is_empty() {
                break;
            }
            version.mentions = mentions(&mut statement, version.row)?;
            found.push(version);
        }
        Ok(found)
    }
}

pub(super) fn at_most(limit: usize) -> i64 {
    signed(limit.min(ROWS_PER_ANSWER))
}

fn mentions(statement: &mut Statement<'_>, row: u64) -> rusqlite::Result<Vec<Mention>> {
    let found = statement.query_map([signed(row)], |row| {
        Ok(Mention {
            entity: unsigned(row.get(0)?),
            name: row.get(1)?,
            explicit: row.get(2)?,
        })
    })?;
    found.collect()
}

/// Reads a version, without its mentions.
pub(super) fn version(row: &Row<'_>) -> rusqlite::Result<Version> {
    Ok(Version {
        row: unsigned(row.get(0)?),
        id: row.get(1)?,
        version: row.get(2)?,
        kind: row.get(3)?,
        importance: row.get(4)?,
        valid_from: row.get(5)?,
        valid_until: row.get(6)?,
        learned_at: row.get(7)?,
        learned_until: row.get(8)?,
        superseded_by: row.get(9)?,
        reason: row.get(10)?,
        metadata: row.get(11)?,
        content: row.get(12)?,
        scope: scope(row, 13)?,
        mentions: Vec::new(),
    })
}

pub(super) fn entity(row: &Row<'_>) -> rusqlite::Result<Entity> {
    Ok(Entity {
        row: unsigned(row.get(0)?),
        id: row.get(1)?,
        key: row.get(2)?,
        name: row.get(3)?,
        kind: row.get(4)?,
        description: row.get(5)?,
        learned_at: row.get(6)?,
        found: row.get(7)?,
        scope: scope(row, 8)?,
    })
}

pub(super) fn relation(row: &Row<'_>) -> rusqlite::Result<Relation> {
    Ok(Relation {
        row: unsigned(row.get(0)?),
        id: row.get(1)?,
        from: unsigned(row.get(2)?),
        to: unsigned(row.get(3)?),
        kind: row.get(4)?,
        weight: row.get(5)?,
        learned_at: row.get(6)?,
    })
}
