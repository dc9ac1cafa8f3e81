//! Changes of memory in the engine.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{ErrorCode, params};

use super::super::{Commit, SqliteError, signed, unsigned};
use super::entities::{Draft, Kind};
use crate::types::error::Fate;
use crate::types::error::StoreError;
use crate::types::memory::{Entity, Made, MemoryChange, Mention, NewMention, NewVersion};

/// Why a change is not made.
pub(super) enum Stop {
    /// It is not what was expected.
    Conflict,
    /// The engine failed.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // An id that somebody else has, or an end that is not there.
            Some(ErrorCode::ConstraintViolation) => Self::Conflict,
            _ => Self::Failed(error),
        }
    }
}

pub(super) type Step<T> = Result<T, Stop>;

impl Commit<'_> {
    /// Makes these changes one after the other, up to the first that is in conflict.
    pub(crate) fn memories(
        &mut self,
        changes: &[MemoryChange],
    ) -> Result<Fate<Vec<Made>>, SqliteError> {
        if let Some(damage) = self.damage() {
            return Ok(Err(damage));
        }
        let made: Step<Vec<Made>> = changes.iter().map(|change| self.memory(change)).collect();
        match made {
            Ok(made) => Ok(Ok(made)),
            Err(Stop::Conflict) => Ok(Err(StoreError::Conflict)),
            Err(Stop::Failed(error)) => Err(error.into()),
        }
    }

    fn memory(&mut self, change: &MemoryChange) -> Step<Made> {
        match change {
            MemoryChange::Add { version, mentions } => {
                if self.last_version(&version.id)?.is_some() {
                    return Err(Stop::Conflict);
                }
                let number = version.version.unwrap_or(1);
                self.add_version(version, number, None, mentions)
            }
            MemoryChange::Revise {
                id,
                was,
                version,
                mentions,
            } => {
                let closed = self.close(id, *was, version.learned_at)?;
                let next = was.checked_add(1).ok_or(Stop::Conflict)?;
                let number = version.version.unwrap_or(next);
                self.add_version(version, number, closed, mentions)
            }
            MemoryChange::Delete { id } => self.delete_memory(id),
            MemoryChange::Entity {
                id,
                scope,
                name,
                key,
                kind,
                description,
                learned_at,
                found,
            } => {
                let scope = self.scope(scope)?;
                let draft = Draft {
                    id,
                    key,
                    name,
                    kind: kind.as_ref(),
                    description: description.as_ref(),
                    learned_at: *learned_at,
                    found: *found,
                };
                let placed = self.place(&draft, scope, Kind::Replaced)?;
                Ok(Made::Entity {
                    row: unsigned(placed.row),
                    id: placed.id,
                    name: placed.name,
                    created: placed.created,
                })
            }
            MemoryChange::Relation {
                id,
                from,
                to,
                kind,
                weight,
                learned_at,
            } => self.relate(
                id,
                (signed(*from), signed(*to)),
                kind,
                (*weight, *learned_at),
            ),
            MemoryChange::DeleteEntity { row } => self.delete_entity(*row),
            MemoryChange::DeleteRelation { row } => {
                let gone = self.execute(
                    "DELETE FROM memory_relations WHERE row = ?1",
                    [signed(*row)],
                )?;
                Ok(deleted(Vec::new(), Vec::new(), vec![*row; gone]))
            }
            MemoryChange::Clear => self.clear(),
        }
    }

    /// The row and number of a memory's last version, and whether that is current.
    fn last_version(&mut self, id: &str) -> rusqlite::Result<Option<(i64, u32, bool)>> {
        self.find(
            "SELECT row, version, learned_until IS NULL FROM memory_versions \
             WHERE id = ?1 ORDER BY version DESC LIMIT 1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
    }

    /// Closes a memory's last version, which must be this one. Says which row that was, unless it was
    /// closed before.
    fn close(&mut self, id: &str, was: u32, at: i64) -> Step<Option<u64>> {
        let (row, number, current) = self.last_version(id)?.ok_or(Stop::Conflict)?;
        if number != was {
            return Err(Stop::Conflict);
        }
        if !current {
            return Ok(None);
        }
        self.execute(
            "UPDATE memory_versions SET learned_until = ?2 WHERE row = ?1",
            params![row, at],
        )?;
        Ok(Some(unsigned(row)))
    }

    pub(super) fn add_version(
        &mut self,
        new: &NewVersion,
        number: u32,
        closed: Option<u64>,
        mentions: &[NewMention],
    ) -> Step<Made> {
        let scope = self.scope(&new.scope)?;
        self.execute(
            "INSERT INTO memory_versions (id, version, scope, kind, importance, valid_from, \
             valid_until, learned_at, learned_until, superseded_by, reason, metadata, content) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            params![
                &*new.id,
                number,
                scope,
                &*new.kind,
                new.importance,
                new.valid_from,
                new.valid_until,
                new.learned_at,
                new.learned_until,
                new.superseded_by.as_deref(),
                new.reason.as_deref(),
                new.metadata.as_deref(),
                &*new.content,
            ],
        )?;
        let row = self.last_row();
        let (mentions, new_entities) = self.mention(row, scope, new, mentions)?;
        Ok(Made::Version {
            row: unsigned(row),
            version: number,
            closed,
            mentions,
            new_entities,
        })
    }

    /// Notes what a version speaks of. Says so, and which entities had to be made for it.
    fn mention(
        &mut self,
        version: i64,
        scope: i64,
        new: &NewVersion,
        mentions: &[NewMention],
    ) -> Step<(Vec<Mention>, Vec<Entity>)> {
        // The same may be named twice, found and said.
        let mut drafts: BTreeMap<&str, Draft<'_>> = BTreeMap::new();
        for mention in mentions {
            let draft = Draft {
                id: &mention.id,
                key: &mention.key,
                name: &mention.name,
                kind: mention.kind.as_ref(),
                description: None,
                learned_at: new.learned_at,
                found: !mention.explicit,
            };
            let known = drafts.entry(&mention.key).or_insert(draft);
            known.found &= draft.found;
            known.kind = known.kind.or(draft.kind);
        }
        let mut made = Vec::with_capacity(drafts.len());
        let mut new_entities = Vec::new();
        // In the order in which they are named, so that those made get their rows in it.
        for NewMention { key, .. } in mentions {
            let Some(draft) = drafts.remove(&**key) else {
                continue;
            };
            let placed = self.place(&draft, scope, Kind::FilledIn)?;
            if placed.created {
                new_entities.push(draft.entity(placed.row, &new.scope));
            }
            self.execute(
                "INSERT INTO memory_mentions (version, entity, explicit) VALUES (?1, ?2, ?3)",
                params![version, placed.row, !draft.found],
            )?;
            made.push(Mention {
                entity: unsigned(placed.row),
                name: placed.name,
                explicit: !draft.found,
            });
        }
        made.sort_by_key(|mention| mention.entity);
        Ok((made, new_entities))
    }

    /// Removes a memory, and the entities that nobody else speaks of.
    fn delete_memory(&mut self, id: &str) -> Step<Made> {
        let versions: Vec<(i64, i64)> = self.all(
            "SELECT row, scope FROM memory_versions WHERE id = ?1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut found = BTreeSet::new();
        for (row, _) in &versions {
            found.extend(self.all::<i64>(
                "SELECT e.row FROM memory_mentions m JOIN memory_entities e ON e.row = m.entity \
                 WHERE m.version = ?1 AND e.found = 1",
                [row],
                |row| row.get(0),
            )?);
        }
        for (row, _) in &versions {
            self.execute("DELETE FROM memory_versions WHERE row = ?1", [row])?;
        }
        let mut entities = Vec::new();
        for row in found {
            let gone = self.execute(
                "DELETE FROM memory_entities WHERE row = ?1 \
                 AND NOT EXISTS (SELECT 1 FROM memory_mentions WHERE entity = ?1)",
                [row],
            )?;
            entities.extend(std::iter::repeat_n(unsigned(row), gone));
        }
        let scopes: BTreeSet<i64> = versions.iter().map(|(_, scope)| *scope).collect();
        for scope in scopes {
            self.tidy(scope)?;
        }
        let rows = versions.iter().map(|(row, _)| unsigned(*row)).collect();
        // A relation makes its ends stay, so none goes here.
        Ok(deleted(rows, entities, Vec::new()))
    }

    /// Removes everything. The tables are dropped and made anew: to remove a great many rows one by one
    /// would keep everybody else waiting for seconds.
    fn clear(&mut self) -> Step<Made> {
        let given: Vec<(String, i64)> =
            self.all("SELECT name, seq FROM sqlite_sequence", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        // Each before what it refers to, and none made anew before all are gone: otherwise the engine
        // would look for what refers to each of their rows.
        let tables = [
            "memory_vectors",
            "memory_mentions",
            "memory_relations",
            "memory_versions",
            "memory_entities",
            "memory_scopes",
        ];
        let mut parts: Vec<String> = Vec::new();
        for table in tables {
            parts.extend(self.all(
                "SELECT sql FROM sqlite_schema WHERE tbl_name = ?1 AND sql IS NOT NULL \
                 ORDER BY rowid",
                [table],
                |row| row.get(0),
            )?);
        }
        for table in tables {
            let sql = format!("DROP TABLE {table}");
            self.transaction().execute_batch(&sql)?;
        }
        for part in parts {
            self.transaction().execute_batch(&part)?;
        }
        for (name, last) in given {
            // No number is given twice.
            self.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [&name])?;
            self.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                params![name, last],
            )?;
        }
        self.execute(
            "UPDATE memory_counts SET memories = 0, versions = 0, entities = 0, relations = 0",
            [],
        )?;
        self.execute("UPDATE memory_models SET vectors = 0", [])?;
        Ok(Made::Deleted {
            rows: Vec::new(),
            entities: Vec::new(),
            relations: Vec::new(),
        })
    }
}

pub(super) fn deleted(rows: Vec<u64>, entities: Vec<u64>, relations: Vec<u64>) -> Made {
    if rows.is_empty() && entities.is_empty() && relations.is_empty() {
        return Made::Nothing;
    }
    Made::Deleted {
        rows,
        entities,
        relations,
    }
}
