//! The graph in the engine: relations between entities, and the memories that mention them.

use rusqlite::{OptionalExtension, params};

use super::super::{Database, SqliteError, signed, unsigned};
use super::reads::{ENTITY, RELATION, at_most, entity, relation};
use crate::types::memory::{Entity, Relation, Version};

impl Database {
    /// Returns the entities with these rows, in this order, skipping deleted ones, each with the
    /// number of current versions that mention it.
    pub(crate) fn entities(&self, rows: &[u64]) -> Result<Vec<(Entity, u64)>, SqliteError> {
        let mut found = self
            .connection
            .prepare(&format!("{ENTITY} WHERE e.row = ?1"))?;
        let mut mentions = self.connection.prepare(
            "SELECT count(*) FROM memory_mentions m JOIN memory_versions v ON v.row = m.version \
             WHERE m.entity = ?1 AND v.learned_until IS NULL",
        )?;
        let mut entities = Vec::new();
        for row in rows {
            if let Some(entity) = found.query_row([signed(*row)], entity).optional()? {
                let count = mentions.query_row([signed(*row)], |row| row.get(0))?;
                entities.push((entity, unsigned(count)));
            }
        }
        Ok(entities)
    }

    /// Returns the relations from and to these entities: entity by entity, the strongest first.
    pub(crate) fn relations_of(
        &self,
        rows: &[u64],
        limit: usize,
    ) -> Result<Vec<Relation>, SqliteError> {
        let sql = format!("{RELATION} WHERE source = ?1 OR target = ?1 ORDER BY weight DESC, row");
        let mut statement = self.connection.prepare(&sql)?;
        let mut found: Vec<Relation> = Vec::new();
        for row in rows {
            for one in statement.query_map([signed(*row)], relation)? {
                if found.len() >= limit {
                    return Ok(found);
                }
                let one = one?;
                if found.iter().all(|known| known.row != one.row) {
                    found.push(one);
                }
            }
        }
        Ok(found)
    }

    /// Returns the current versions that mention these entities, the last stored first.
    pub(crate) fn mentioning(
        &self,
        rows: &[u64],
        limit: usize,
    ) -> Result<Vec<Version>, SqliteError> {
        let mut statement = self.connection.prepare(
            "SELECT v.row FROM memory_mentions m JOIN memory_versions v ON v.row = m.version \
             WHERE m.entity = ?1 AND v.learned_until IS NULL ORDER BY v.row DESC LIMIT ?2",
        )?;
        let mut found: Vec<u64> = Vec::new();
        for row in rows {
            let versions = params![signed(*row), at_most(limit)];
            for version in statement.query_map(versions, |row| row.get(0).map(unsigned))? {
                found.push(version?);
            }
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.dedup();
        found.truncate(limit);
        self.versions(&found)
    }
}
