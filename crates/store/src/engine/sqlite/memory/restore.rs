//! What was read of a damaged file, brought into a whole one.

use std::collections::HashMap;

use rusqlite::params;

use super::super::{Commit, SqliteError, signed, unsigned};
use super::entities::{Draft, Kind};
use super::writes::{Step, Stop};
use crate::types::error::Fate;
use crate::types::memory::{Entity, Made, NewVersion, Piece, Relation, Version};

/// What was brought in of some pieces.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) versions: u64,
    pub(crate) entities: u64,
    pub(crate) relations: u64,
    /// The rows of the entities: where they were, and where they are.
    pub(crate) entity_rows: Vec<(u64, u64)>,
}

impl Commit<'_> {
    /// Brings in those that are not there yet. `rows` tells where the entities of before are now.
    pub(crate) fn bring_back(
        &mut self,
        pieces: &[Piece],
        rows: &HashMap<u64, u64>,
    ) -> Result<Fate<Brought>, SqliteError> {
        let mut brought = Brought::default();
        let mut known = HashMap::new();
        for piece in pieces {
            let step = match piece {
                Piece::Entity(entity) => self.bring_entity(entity, &mut known, &mut brought),
                Piece::Version(version) => {
                    let now = |row| known.get(&row).or_else(|| rows.get(&row)).copied();
                    self.bring_version(version, now, &mut brought)
                }
                Piece::Relation(relation) => {
                    let now = |row| known.get(&row).or_else(|| rows.get(&row)).copied();
                    self.bring_relation(relation, now, &mut brought)
                }
            };
            match step {
                // What does not fit to the rest is left out.
                Ok(()) | Err(Stop::Conflict) => {}
                Err(Stop::Failed(error)) => return Err(error.into()),
            }
        }
        brought.entity_rows = known.into_iter().collect();
        Ok(Ok(brought))
    }

    fn bring_entity(
        &mut self,
        entity: &Entity,
        known: &mut HashMap<u64, u64>,
        brought: &mut Brought,
    ) -> Step<()> {
        let scope = self.scope(&entity.scope)?;
        let draft = Draft {
            id: &entity.id,
            key: &entity.key,
            name: &entity.name,
            kind: entity.kind.as_ref(),
            description: entity.description.as_ref(),
            learned_at: entity.learned_at,
            found: entity.found,
        };
        let placed = self.place(&draft, scope, Kind::FilledIn)?;
        known.insert(entity.row, unsigned(placed.row));
        brought.entities = brought.entities.saturating_add(1);
        Ok(())
    }

    fn bring_version(
        &mut self,
        version: &Version,
        now: impl Fn(u64) -> Option<u64>,
        brought: &mut Brought,
    ) -> Step<()> {
        brought.versions = brought.versions.saturating_add(1);
        let there = self.find(
            "SELECT 1 FROM memory_versions WHERE id = ?1 AND version = ?2",
            params![&*version.id, version.version],
            |_| Ok(()),
        )?;
        if there.is_some() {
            return Ok(());
        }
        let new = NewVersion {
            id: version.id.clone(),
            version: Some(version.version),
            scope: version.scope.clone(),
            kind: version.kind.clone(),
            content: version.content.clone(),
            importance: version.importance,
            metadata: version.metadata.clone(),
            valid_from: version.valid_from,
            valid_until: version.valid_until,
            learned_at: version.learned_at,
            learned_until: version.learned_until,
            reason: version.reason.clone(),
            superseded_by: version.superseded_by.clone(),
        };
        let made = self.add_version(&new, version.version, None, &[])?;
        let Made::Version { row, .. } = made else {
            return Ok(());
        };
        for mention in &version.mentions {
            if let Some(entity) = now(mention.entity) {
                self.execute(
                    "INSERT OR IGNORE INTO memory_mentions (version, entity, explicit) \
                     VALUES (?1, ?2, ?3)",
                    params![signed(row), signed(entity), mention.explicit],
                )?;
            }
        }
        // Only the last version may be current, whatever the file said.
        self.execute(
            "UPDATE memory_versions AS old SET learned_until = \
             (SELECT new.learned_at FROM memory_versions AS new \
              WHERE new.id = ?1 ORDER BY new.version DESC LIMIT 1) \
             WHERE old.id = ?1 AND old.learned_until IS NULL AND old.version < \
             (SELECT max(version) FROM memory_versions WHERE id = ?1)",
            [&*version.id],
        )?;
        Ok(())
    }

    fn bring_relation(
        &mut self,
        relation: &Relation,
        now: impl Fn(u64) -> Option<u64>,
        brought: &mut Brought,
    ) -> Step<()> {
        let from = now(relation.from).ok_or(Stop::Conflict)?;
        let to = now(relation.to).ok_or(Stop::Conflict)?;
        let ends = (signed(from), signed(to));
        let rest = (relation.weight, relation.learned_at);
        self.relate(&relation.id, ends, &relation.kind, rest)?;
        brought.relations = brought.relations.saturating_add(1);
        Ok(())
    }
}
