//! What can be changed of memory, and what becomes of it.

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
    /// A memory is new. [`StoreError::Conflict`] if there is one with its id.
    Add {
        /// Its first version.
        version: NewVersion,
        /// What that speaks of.
        mentions: Vec<NewMention>,
    },
    /// A memory gets another version.
    Revise {
        /// Which memory.
        id: Arc<str>,
        /// The version that is its last so far; else [`StoreError::Conflict`]. If that is current, it is
        /// closed at the time that the new one was learned.
        was: u32,
        /// The new version, with the same id.
        version: NewVersion,
        /// What that speaks of.
        mentions: Vec<NewMention>,
    },
    /// A memory goes, with all its versions, their mentions and vectors, and the entities that only
    /// their texts named. It is no error if there is none.
    Delete {
        /// Which memory.
        id: Arc<str>,
    },
    /// An entity is made; or, if there is one with its scope and key, gets the kind and description that
    /// are given here.
    Entity {
        /// Its id, if it is new.
        id: Arc<str>,
        /// Whose it is.
        scope: Scope,
        /// Its name, if it is new.
        name: Arc<str>,
        /// The name as names are compared.
        key: Arc<str>,
        /// What kind of thing it is.
        kind: Option<Arc<str>>,
        /// More about it.
        description: Option<Arc<str>>,
        /// When it was learned of, if it is new.
        learned_at: i64,
        /// Whether it was only found in a text. One that is not stays, also when it was found before.
        found: bool,
    },
    /// A relation is made; or, if there is one of this kind between the two, gets this weight. Its ends
    /// stay from now on, also if they were only found in a text. [`StoreError::Conflict`] if one of
    /// them is not there.
    Relation {
        /// Its id, if it is new.
        id: Arc<str>,
        /// The row of the entity that it begins at.
        from: u64,
        /// The row of the entity that it leads to.
        to: u64,
        /// What it says.
        kind: Arc<str>,
        /// How strong it is, 0 to 1.
        weight: f32,
        /// When it was learned, if it is new.
        learned_at: i64,
    },
    /// An entity goes, with its relations and all mentions of it. It is no error if there is none.
    DeleteEntity {
        /// Its row.
        row: u64,
    },
    /// A relation goes. It is no error if there is none.
    DeleteRelation {
        /// Its row.
        row: u64,
    },
    /// All memories, entities, relations and vectors go; the models stay.
    Clear,
}

/// A version as it is to be kept: a [`Version`](super::Version) without what the store knows by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    /// The memory's id, given by the caller.
    pub id: Arc<str>,
    /// Which version it is, where history is brought in: at least 1 and greater than the one before.
    /// Else the next.
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
    /// Where history is brought in: when the next version was learned.
    pub learned_until: Option<i64>,
    /// See [`Version::reason`](super::Version::reason).
    pub reason: Option<Arc<str>>,
    /// See [`Version::superseded_by`](super::Version::superseded_by).
    pub superseded_by: Option<Arc<str>>,
}

/// That a new version speaks of an entity of its own scope, which is made if it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMention {
    /// The entity's id, if it is new.
    pub id: Arc<str>,
    /// The entity's name, if it is new.
    pub name: Arc<str>,
    /// The name as names are compared.
    pub key: Arc<str>,
    /// What kind of thing it is, if that is not known yet.
    pub kind: Option<Arc<str>>,
    /// Whether somebody said so; the entity stays then. Else it was found in the text.
    pub explicit: bool,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// There is a new version.
    Version {
        /// Its row.
        row: u64,
        /// Which version it is.
        version: u32,
        /// The row of the version that was closed by it.
        closed: Option<u64>,
        /// What it speaks of, by the rows of the entities.
        mentions: Vec<Mention>,
        /// The entities that were made for it.
        new_entities: Vec<Entity>,
    },
    /// There is an entity.
    Entity {
        /// Its row.
        row: u64,
        /// Its id; not the given one if it was there before.
        id: Arc<str>,
        /// Its name, likewise.
        name: Arc<str>,
        /// Whether it is new.
        created: bool,
    },
    /// There is a relation.
    Relation {
        /// Its row.
        row: u64,
        /// Its id; not the given one if it was there before.
        id: Arc<str>,
        /// Whether it is new.
        created: bool,
    },
    /// Something is gone. After [`MemoryChange::Clear`] everything is, and nothing is listed here.
    Deleted {
        /// The rows of the versions that went.
        rows: Vec<u64>,
        /// The rows of the entities that went.
        entities: Vec<u64>,
        /// The rows of the relations that went.
        relations: Vec<u64>,
    },
    /// There was nothing to delete.
    Nothing,
}

/// Refuses what is more than is kept, and numbers that are none.
pub(crate) fn check(changes: &[MemoryChange]) -> Result<(), StoreError> {
    bounded("the number of changes", changes.len(), CHANGES_PER_WRITE)?;
    changes.iter().try_for_each(MemoryChange::check)
}

impl MemoryChange {
    /// About how much room it takes while it waits.
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

    /// Refuses what is more than is kept, and numbers that are none, as a write would.
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
                    return invalid("a memory's new version has another id than the memory");
                }
                if version.version.is_some_and(|next| next <= *was) {
                    return invalid("a memory's new version has no greater number than its last");
                }
                version.check(mentions)
            }
            Self::Delete { id } => name("an id", id),
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
                    name("a name of an entity", text)?;
                }
                let description = length(description.as_ref());
                bounded("a description in bytes", description, DESCRIPTION_BYTES)?;
                scope.check()
            }
            Self::Relation {
                id, kind, weight, ..
            } => {
                name("an id", id)?;
                name("a kind of relation", kind)?;
                fraction("the weight of a relation is not between 0 and 1", *weight)
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
            name("an id or a kind", text)?;
        }
        bounded("a memory in bytes", self.content.len(), CONTENT_BYTES)?;
        let metadata = length(self.metadata.as_ref());
        bounded("the metadata in bytes", metadata, METADATA_BYTES)?;
        let reason = length(self.reason.as_ref());
        bounded("the reason in bytes", reason, REASON_BYTES)?;
        fraction("the importance is not between 0 and 1", self.importance)?;
        if self.version == Some(0) {
            return invalid("the versions of a memory begin with 1");
        }
        let most = MENTIONS_PER_VERSION;
        bounded("the number of entities mentioned", mentions.len(), most)?;
        for mention in mentions {
            let NewMention {
                id,
                name: called,
                key,
                kind,
                ..
            } = mention;
            for text in [id, called, key].into_iter().chain(kind) {
                name("a name of an entity", text)?;
            }
        }
        self.scope.check()
    }
}

impl Scope {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let mut names = self.names().into_iter().flatten();
        names.try_for_each(|text| name("a name of a scope", text))
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
