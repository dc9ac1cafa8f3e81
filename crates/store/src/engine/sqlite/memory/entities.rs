//! Scopes, entities and relations in the engine: creating and deleting them.

use std::sync::Arc;

use rusqlite::params;

use super::super::{Commit, signed, unsigned};
use super::writes::{Step, Stop, deleted};
use crate::types::memory::{Entity, Made, Scope};

/// An entity to create or update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft<'a> {
    pub(super) id: &'a Arc<str>,
    pub(super) key: &'a Arc<str>,
    pub(super) name: &'a Arc<str>,
    pub(super) kind: Option<&'a Arc<str>>,
    pub(super) description: Option<&'a Arc<str>>,
    pub(super) learned_at: i64,
    pub(super) found: bool,
}

/// The rule for the kind of an existing entity when a new kind is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The new kind wins.
    Replaced,
    /// The new kind is used only if the entity has none.
    FilledIn,
}

/// The stored entity.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) row: i64,
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) created: bool,
}

impl Draft<'_> {
    /// Returns the entity that was created from this draft.
    pub(super) fn entity(&self, row: i64, scope: &Scope) -> Entity {
        Entity {
            row: unsigned(row),
            id: self.id.clone(),
            scope: scope.clone(),
            name: self.name.clone(),
            key: self.key.clone(),
            kind: self.kind.cloned(),
            description: self.description.cloned(),
            learned_at: self.learned_at,
            found: self.found,
        }
    }
}

impl Commit<'_> {
    /// Returns the row of a scope, which is created if it does not exist.
    pub(super) fn scope(&mut self, scope: &Scope) -> rusqlite::Result<i64> {
        let [namespace, user, agent, run] = scope.names().map(|name| name.map(|name| &**name));
        let names = params![namespace, user, agent, run];
        let known = self.find(
            "SELECT row FROM memory_scopes WHERE ifnull(namespace, 0) = ifnull(?1, 0) \
             AND ifnull(user, 0) = ifnull(?2, 0) AND ifnull(agent, 0) = ifnull(?3, 0) \
             AND ifnull(run, 0) = ifnull(?4, 0)",
            names,
            |row| row.get(0),
        )?;
        if let Some(row) = known {
            return Ok(row);
        }
        self.execute(
            "INSERT INTO memory_scopes (namespace, user, agent, run) VALUES (?1, ?2, ?3, ?4)",
            names,
        )?;
        Ok(self.last_row())
    }

    /// Deletes a scope that is empty, with its names.
    pub(super) fn tidy(&mut self, scope: i64) -> rusqlite::Result<()> {
        self.execute(
            "DELETE FROM memory_scopes WHERE row = ?1 \
             AND NOT EXISTS (SELECT 1 FROM memory_versions WHERE scope = ?1) \
             AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE scope = ?1)",
            [scope],
        )?;
        Ok(())
    }

    /// Finds an entity and updates it, or creates it.
    pub(super) fn place(&mut self, draft: &Draft<'_>, scope: i64, kind: Kind) -> Step<Placed> {
        type Known = (i64, Arc<str>, Arc<str>, Option<Arc<str>>, bool);
        let known: Option<Known> = self.find(
            "SELECT row, id, name, kind, found FROM memory_entities \
             WHERE key = ?1 AND scope = ?2",
            params![&**draft.key, scope],
            |row| {
                let kind = row.get(3)?;
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, kind, row.get(4)?))
            },
        )?;
        let Some((row, id, name, known_kind, was_found)) = known else {
            return self.make(draft, scope);
        };
        let new_kind = match kind {
            Kind::Replaced => draft.kind.or(known_kind.as_ref()),
            Kind::FilledIn => known_kind.as_ref().or(draft.kind),
        };
        let stays = was_found && !draft.found;
        if stays || new_kind != known_kind.as_ref() || draft.description.is_some() {
            self.execute(
                "UPDATE memory_entities SET kind = ?2, found = ?3, \
                 description = ifnull(?4, description) WHERE row = ?1",
                params![
                    row,
                    new_kind.map(|kind| &**kind),
                    was_found && draft.found,
                    draft.description.map(|text| &**text),
                ],
            )?;
        }
        Ok(Placed {
            row,
            id,
            name,
            created: false,
        })
    }

    /// Creates a relation, or updates its weight.
    pub(super) fn relate(
        &mut self,
        id: &Arc<str>,
        (from, to): (i64, i64),
        kind: &str,
        (weight, learned_at): (f32, i64),
    ) -> Step<Made> {
        for end in [from, to] {
            // Found in a text or not, the caller has now named it.
            let there =
                self.execute("UPDATE memory_entities SET found = 0 WHERE row = ?1", [end])?;
            if there == 0 {
                return Err(Stop::Conflict);
            }
        }
        let known: Option<(i64, Arc<str>)> = self.find(
            "UPDATE memory_relations SET weight = ?4 \
             WHERE source = ?1 AND target = ?2 AND kind = ?3 RETURNING row, id",
            params![from, to, kind, weight],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if let Some((row, id)) = known {
            return Ok(Made::Relation {
                row: unsigned(row),
                id,
                created: false,
            });
        }
        self.execute(
            "INSERT INTO memory_relations (id, source, target, kind, weight, learned_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![&**id, from, to, kind, weight, learned_at],
        )?;
        Ok(Made::Relation {
            row: unsigned(self.last_row()),
            id: id.clone(),
            created: true,
        })
    }

    /// Deletes an entity and its relations.
    pub(super) fn delete_entity(&mut self, row: u64) -> Step<Made> {
        let place = signed(row);
        let scope: Option<i64> = self.find(
            "SELECT scope FROM memory_entities WHERE row = ?1",
            [place],
            |row| row.get(0),
        )?;
        let Some(scope) = scope else {
            return Ok(Made::Nothing);
        };
        let relations = self.all(
            "SELECT row FROM memory_relations WHERE source = ?1 \
             UNION SELECT row FROM memory_relations WHERE target = ?1",
            [place],
            |row| row.get(0).map(unsigned),
        )?;
        self.execute("DELETE FROM memory_entities WHERE row = ?1", [place])?;
        self.tidy(scope)?;
        Ok(deleted(Vec::new(), vec![row], relations))
    }

    fn make(&mut self, draft: &Draft<'_>, scope: i64) -> Step<Placed> {
        self.execute(
            "INSERT INTO memory_entities (id, scope, key, name, kind, learned_at, found, \
             description) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                &**draft.id,
                scope,
                &**draft.key,
                &**draft.name,
                draft.kind.map(|kind| &**kind),
                draft.learned_at,
                draft.found,
                draft.description.map(|text| &**text),
            ],
        )?;
        Ok(Placed {
            row: self.last_row(),
            id: draft.id.clone(),
            name: draft.name.clone(),
            created: true,
        })
    }
}
