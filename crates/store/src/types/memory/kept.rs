//! What is kept of memory, and how to ask for it.

use std::sync::Arc;

use crate::types::limits::SALVAGED_NAMESPACE;

/// Whose something is. As a filter: what is not set does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// A part of the memory that is kept apart.
    pub namespace: Option<Arc<str>>,
    /// The person it is about.
    pub user: Option<Arc<str>>,
    /// The agent that learned it.
    pub agent: Option<Arc<str>>,
    /// The run in which it was learned.
    pub run: Option<Arc<str>>,
}

impl Scope {
    /// The scope of a version that is read of a damaged file without its own.
    pub(crate) fn lost() -> Self {
        Self {
            namespace: Some(SALVAGED_NAMESPACE.into()),
            ..Self::default()
        }
    }

    /// The four, in the order in which they are always named.
    pub(crate) fn names(&self) -> [Option<&Arc<str>>; 4] {
        let Self {
            namespace,
            user,
            agent,
            run,
        } = self;
        [namespace, user, agent, run].map(Option::as_ref)
    }
}

/// One version of a memory. All times are microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its number among all versions of all memories, which is never given twice in a file.
    pub row: u64,
    /// The memory that it is a version of.
    pub id: Arc<str>,
    /// Which version of it, from 1.
    pub version: u32,
    /// Whose it is.
    pub scope: Scope,
    /// What kind of memory it is.
    pub kind: Arc<str>,
    /// What is remembered.
    pub content: Arc<str>,
    /// How much it matters, 0 to 1.
    pub importance: f32,
    /// JSON that the store does not read.
    pub metadata: Option<Arc<str>>,
    /// Since when it is true; since always, if not set.
    pub valid_from: Option<i64>,
    /// Up to when it is true, and not then any more; for ever, if not set.
    pub valid_until: Option<i64>,
    /// When it was learned.
    pub learned_at: i64,
    /// When the next version was learned. The current version has none.
    pub learned_until: Option<i64>,
    /// Why it was changed.
    pub reason: Option<Arc<str>>,
    /// The memory that took its place.
    pub superseded_by: Option<Arc<str>>,
    /// The entities that it speaks of, by their rows.
    pub mentions: Vec<Mention>,
}

/// That a version speaks of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The entity's row.
    pub entity: u64,
    /// The entity's name.
    pub name: Arc<str>,
    /// Whether somebody said so; else it was found in the text.
    pub explicit: bool,
}

/// Somebody or something that memories speak of. There is one for each scope and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its number among all entities, which is never given twice in a file.
    pub row: u64,
    /// Its id, given by the caller.
    pub id: Arc<str>,
    /// Whose it is.
    pub scope: Scope,
    /// Its name.
    pub name: Arc<str>,
    /// The name as names are compared.
    pub key: Arc<str>,
    /// What kind of thing it is.
    pub kind: Option<Arc<str>>,
    /// More about it.
    pub description: Option<Arc<str>>,
    /// When it was learned of.
    pub learned_at: i64,
    /// Whether nobody named it but the text of memories. It goes with the last of them.
    pub found: bool,
}

/// How one entity stands to another. There is one for each pair and kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Its number among all relations, which is never given twice in a file.
    pub row: u64,
    /// Its id, given by the caller.
    pub id: Arc<str>,
    /// The row of the entity that it begins at.
    pub from: u64,
    /// The row of the entity that it leads to.
    pub to: u64,
    /// What it says.
    pub kind: Arc<str>,
    /// How strong it is, 0 to 1.
    pub weight: f32,
    /// When it was learned.
    pub learned_at: i64,
}

/// Which memories to list. What is not set does not matter; the default is the newest hundred of the
/// current versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Only those that have what is set here.
    pub scope: Scope,
    /// Only those of this kind.
    pub kind: Option<Arc<str>>,
    /// Only what was true at this time.
    pub as_of: Option<i64>,
    /// The versions that were current at this time, in place of those that are now.
    pub known_at: Option<i64>,
    /// Not those that were true no more at this time.
    pub ended_by: Option<i64>,
    /// Only versions learned after this.
    pub learned_after: Option<i64>,
    /// Only versions learned before this.
    pub learned_before: Option<i64>,
    /// At most so many, and never more than [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
    pub limit: usize,
    /// How many to pass over.
    pub offset: usize,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            kind: None,
            as_of: None,
            known_at: None,
            ended_by: None,
            learned_after: None,
            learned_before: None,
            limit: 100,
            offset: 0,
        }
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Newest learned first, and of two learned at the same time the one with the greater row. There
    /// may be fewer than the limit if they are long ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)).
    pub versions: Vec<Version>,
    /// How many the whole list has.
    pub total: u64,
}

/// A model that there are vectors of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    /// What tells it from every other.
    pub fingerprint: Arc<str>,
    /// How many numbers its vectors have.
    pub dimensions: u32,
    /// How many versions have a vector of it.
    pub vectors: u64,
    /// Whether it is the one that is searched with.
    pub active: bool,
}

/// What a version means, as numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The version's row.
    pub row: u64,
    /// What each number is to be multiplied by.
    pub scale: f32,
    /// As many as the model has dimensions.
    pub numbers: Vec<i8>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Memories that have a current version.
    pub memories: u64,
    /// Versions of all memories.
    pub versions: u64,
    /// Entities.
    pub entities: u64,
    /// Relations.
    pub relations: u64,
    /// Versions with a vector of the model that is searched with.
    pub vectors_of_active: u64,
    /// Versions without one.
    pub lacking: u64,
}
