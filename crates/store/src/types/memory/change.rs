//! Changes of memories, and their results.

use std::sync::Arc;

use super::kept::{Entity, Mention, Scope};
use crate::types::error::StoreError;
use crate::types::limits::{
    CHANGE_BYTES, CHANGES_PER_WRITE, CONTENT_BYTES, DESCRIPTION_BYTES, MENTIONS_PER_VERSION,
    METADATA_BYTES, NAME_BYTES, REASON_BYTES,
};

/// One part of a [`write`](crate::memory::Memories::write).
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryChange {
    /// Adds a memory. [`StoreError::Conflict`] if its ID exists already.
    Add {
        /// The first version.
        version: NewVersion,
        /// Entities that the version mentions.
        mentions: Vec<NewMention>,
    },
    /// Adds a version to a memory.
    Revise {
        /// ID of the memory.
        id: Arc<str>,
        /// Number of the memory's last version; [`StoreError::Conflict`] if it is a different one. If
        /// that version is current, it is closed at the time the new one was learned.
        was: u32,
        /// The new version, with the same ID.
        version: NewVersion,
        /// Entities that the version mentions.
        mentions: Vec<NewMention>,
    },
    /// Deletes a memory with all its versions, their mentions and vectors, and the entities that were
    /// found in their texts only. An unknown ID is not an error.
    Delete {
        /// ID of the memory.
        id: Arc<str>,
    },
    /// Creates an entity. If one exists with this scope and key, sets its kind and description to the
    /// ones given.
    Entity {
        /// ID of the entity, if it is new.
        id: Arc<str>,
        /// Scope of the entity.
        scope: Scope,
        /// Name of the entity, if it is new.
        name: Arc<str>,
        /// The name, normalised for comparison.
        key: Arc<str>,
        /// Kind of the entity.
        kind: Option<Arc<str>>,
        /// Description of the entity.
        description: Option<Arc<str>>,
        /// Time at which it was learned, if it is new.
        learned_at: i64,
        /// `true` if the entity was only found in a text. `false` makes it permanent, even if it was
        /// found before.
        found: bool,
    },
    /// Creates a relation. If one of this kind exists between the two entities, sets its weight. Makes
    /// both entities permanent, even if they were only found in a text. [`StoreError::Conflict`] if one
    /// of them does not exist.
    Relation {
        /// ID of the relation, if it is new.
        id: Arc<str>,
        /// Row of the entity that it starts from.
        from: u64,
        /// Row of the entity that it points to.
        to: u64,
        /// Kind of the relation.
        kind: Arc<str>,
        /// Strength of the relation, from 0 to 1.
        weight: f32,
        /// Time at which it was learned, if it is new.
        learned_at: i64,
    },
    /// Deletes an entity with its relations and all mentions of it. An unknown row is not an error.
    DeleteEntity {
        /// Row of the entity.
        row: u64,
    },
    /// Deletes a relation. An unknown row is not an error.
    DeleteRelation {
        /// Row of the relation.
        row: u64,
    },
    /// Deletes all memories, entities, relations and vectors; models are kept.
    Clear,
}

/// A new version: a [`Version`](super::Version) without the fields that the store fills in.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    /// ID of the memory, chosen by the caller.
    pub id: Arc<str>,
    /// Version number when history is imported: at least 1 and greater than the one before. Otherwise,
    /// the store assigns the next.
    pub version: Option<u32>,
    /// See [`Version::scope`](super::Version::scope).
    pub scope: Scope,
    /// See [`Version::kind`](super::Version::kind).
    pub kind: Arc<str>,
    /// See [`Version::content`](super::Version::content).
    pub content: Arc<str>,
    /// See [`Version::importance`](super::Version::importance).
    pub importance: f32,
    /// See [`Version::metadata`](super::Version::metadata).
    pub metadata: Option<Arc<str>>,
    /// See [`Version::valid_from`](super::Version::valid_from).
    pub valid_from: Option<i64>,
    /// See [`Version::valid_until`](super::Version::valid_until).
    pub valid_until: Option<i64>,
    /// See [`Version::learned_at`](super::Version::learned_at).
    pub learned_at: i64,
    /// Time at which the next version was learned, when history is imported.
    pub learned_until: Option<i64>,
    /// See [`Version::reason`](super::Version::reason).
    pub reason: Option<Arc<str>>,
    /// See [`Version::superseded_by`](super::Version::superseded_by).
    pub superseded_by: Option<Arc<str>>,
}

/// A mention of an entity in the new version's scope. The entity is created if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMention {
    /// ID of the entity, if it is new.
    pub id: Arc<str>,
    /// Name of the entity, if it is new.
    pub name: Arc<str>,
    /// The name, normalised for comparison.
    pub key: Arc<str>,
    /// Kind of the entity, if it has none yet.
    pub kind: Option<Arc<str>>,
    /// `true` if the caller named the entity, which makes it permanent; `false` if it was found in the
    /// text.
    pub explicit: bool,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// A version was added.
    Version {
        /// Row of the version.
        row: u64,
        /// Number of the version.
        version: u32,
        /// Row of the version that it closed.
        closed: Option<u64>,
        /// Entities that it mentions, by row.
        mentions: Vec<Mention>,
        /// Entities that were created for it.
        new_entities: Vec<Entity>,
    },
    /// An entity was created or updated.
    Entity {
        /// Row of the entity.
        row: u64,
        /// ID of the entity; if it existed before, the ID it already had.
        id: Arc<str>,
        /// Name of the entity; if it existed before, the name it already had.
        name: Arc<str>,
        /// `true` if the entity is new.
        created: bool,
    },
    /// A relation was created or updated.
    Relation {
        /// Row of the relation.
        row: u64,
        /// ID of the relation; if it existed before, the ID it already had.
        id: Arc<str>,
        /// `true` if the relation is new.
        created: bool,
    },
    /// Rows were deleted. [`MemoryChange::Clear`] deletes everything and lists no rows.
    Deleted {
        /// Rows of the deleted versions.
        rows: Vec<u64>,
        /// Rows of the deleted entities.
        entities: Vec<u64>,
        /// Rows of the deleted relations.
        relations: Vec<u64>,
    },
    /// Nothing matched.
    Nothing,
}

/// Checks that all changes are within the limits and that their numbers are valid.
pub(crate) fn check(changes: &[MemoryChange]) -> Result<(), StoreError> {
    bounded("the number of changes", changes.len(), CHANGES_PER_WRITE)?;
    changes.iter().try_for_each(MemoryChange::check)
}

impl MemoryChange {
    /// Approximate size of the queued change, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            Self::Add { version, mentions } => version.bytes() + mention_bytes(mentions),
            Self::Revise {
                id,
                version,
                mentions,
                ..
            } => id.len() + version.bytes() + mention_bytes(mentions),
            Self::Delete { id } => id.len(),
            Self::Entity {
                id,
                scope,
                name,
                key,
                kind,
                description,
                ..
            } => {
                let optional = length(kind.as_ref()) + length(description.as_ref());
                id.len() + scope_bytes(scope) + name.len() + key.len() + optional
            }
            Self::Relation { id, kind, .. } => id.len() + kind.len(),
            Self::DeleteEntity { .. } | Self::DeleteRelation { .. } | Self::Clear => 0,
        };
        CHANGE_BYTES.saturating_add(texts)
    }

    /// Checks that the change is within the limits and that its numbers are valid, as a write does.
    pub fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Add { version, mentions } => version.check(mentions),
            Self::Revise {
                id,
                was,
                version,
                mentions,
            } => {
                if version.id != *id {
                    return invalid("the new version of a memory has a different ID");
                }
                if version.version.is_some_and(|next| next <= *was) {
                    return invalid(
                        "the number of a new version must be greater than that of the last version",
                    );
                }
                version.check(mentions)
            }
            Self::Delete { id } => name("the length of an ID in bytes", id),
            Self::Entity {
                id,
                scope,
                name: called,
                key,
                kind,
                description,
                ..
            } => {
                for text in [id, called, key].into_iter().chain(kind) {
                    name("the length of an entity name in bytes", text)?;
                }
                let description = length(description.as_ref());
                bounded(
                    "the length of a description in bytes",
                    description,
                    DESCRIPTION_BYTES,
                )?;
                scope.check()
            }
            Self::Relation {
                id, kind, weight, ..
            } => {
                name("the length of an ID in bytes", id)?;
                name("the length of a relation type in bytes", kind)?;
                fraction("the weight of a relation must be from 0 to 1", *weight)
            }
            Self::DeleteEntity { .. } | Self::DeleteRelation { .. } | Self::Clear => Ok(()),
        }
    }
}

impl NewVersion {
    fn bytes(&self) -> usize {
        let optional = [&self.metadata, &self.reason, &self.superseded_by];
        let optional: usize = optional.iter().map(|text| length(text.as_ref())).sum();
        self.id.len() + self.kind.len() + self.content.len() + optional + scope_bytes(&self.scope)
    }

    fn check(&self, mentions: &[NewMention]) -> Result<(), StoreError> {
        for text in [&self.id, &self.kind]
            .into_iter()
            .chain(&self.superseded_by)
        {
            name("the length of an ID or type in bytes", text)?;
        }
        bounded(
            "the length of a memory in bytes",
            self.content.len(),
            CONTENT_BYTES,
        )?;
        let metadata = length(self.metadata.as_ref());
        bounded(
            "the length of the metadata in bytes",
            metadata,
            METADATA_BYTES,
        )?;
        let reason = length(self.reason.as_ref());
        bounded("the length of the reason in bytes", reason, REASON_BYTES)?;
        fraction("the importance must be from 0 to 1", self.importance)?;
        if self.version == Some(0) {
            return invalid("the version numbers of a memory start at 1");
        }
        let most = MENTIONS_PER_VERSION;
        bounded("the number of mentioned entities", mentions.len(), most)?;
        for mention in mentions {
            let NewMention {
                id,
                name: called,
                key,
                kind,
                ..
            } = mention;
            for text in [id, called, key].into_iter().chain(kind) {
                name("the length of an entity name in bytes", text)?;
            }
        }
        self.scope.check()
    }
}

impl Scope {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let mut names = self.names().into_iter().flatten();
        names.try_for_each(|text| name("the length of a scope name in bytes", text))
    }
}

fn mention_bytes(mentions: &[NewMention]) -> usize {
    let bytes = |mention: &NewMention| {
        let kind = length(mention.kind.as_ref());
        size_of::<NewMention>() + mention.id.len() + mention.name.len() + mention.key.len() + kind
    };
    mentions.iter().map(bytes).sum()
}

fn scope_bytes(scope: &Scope) -> usize {
    scope.names().into_iter().map(length).sum()
}

fn length(text: Option<&Arc<str>>) -> usize {
    text.map_or(0, |text| text.len())
}

fn name(what: &'static str, text: &str) -> Result<(), StoreError> {
    bounded(what, text.len(), NAME_BYTES)
}

pub(crate) fn bounded(what: &'static str, found: usize, most: usize) -> Result<(), StoreError> {
    if found > most {
        return Err(StoreError::TooLarge { what, most });
    }
    Ok(())
}

fn fraction(why: &'static str, number: f32) -> Result<(), StoreError> {
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    invalid(why)
}

fn invalid(why: &'static str) -> Result<(), StoreError> {
    Err(StoreError::Invalid { why })
}
