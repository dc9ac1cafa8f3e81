//! Stored memories, and queries for them.

use std::sync::Arc;

use crate::types::limits::SALVAGED_NAMESPACE;

/// The owner of a memory or an entity. In a filter, fields that are not set match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// A separate part of the memory.
    pub namespace: Option<Arc<str>>,
    /// Person that it is about.
    pub user: Option<Arc<str>>,
    /// Agent that learned it.
    pub agent: Option<Arc<str>>,
    /// Run in which it was learned.
    pub run: Option<Arc<str>>,
}

impl Scope {
    /// The scope of a salvaged version whose own scope cannot be read.
    pub(crate) fn lost() -> Self {
        Self {
            namespace: Some(SALVAGED_NAMESPACE.into()),
            ..Self::default()
        }
    }

    /// The four names, in their fixed order.
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
    /// Row number, unique among all versions of all memories and never reused in a file.
    pub row: u64,
    /// ID of the memory.
    pub id: Arc<str>,
    /// Number of the version, from 1.
    pub version: u32,
    /// Scope of the memory.
    pub scope: Scope,
    /// Kind of memory.
    pub kind: Arc<str>,
    /// Text of the memory.
    pub content: Arc<str>,
    /// Importance, from 0 to 1.
    pub importance: f32,
    /// JSON that the store does not interpret.
    pub metadata: Option<Arc<str>>,
    /// Time from which it is true; unbounded if not set.
    pub valid_from: Option<i64>,
    /// Time at which it stops being true (exclusive); unbounded if not set.
    pub valid_until: Option<i64>,
    /// Time at which it was learned.
    pub learned_at: i64,
    /// Time at which the next version was learned; not set for the current version.
    pub learned_until: Option<i64>,
    /// Reason for the change.
    pub reason: Option<Arc<str>>,
    /// ID of the memory that replaced it.
    pub superseded_by: Option<Arc<str>>,
    /// Entities that it mentions, by row.
    pub mentions: Vec<Mention>,
}

/// A version's mention of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Row of the entity.
    pub entity: u64,
    /// Name of the entity.
    pub name: Arc<str>,
    /// `true` if the caller named the entity; `false` if it was found in the text.
    pub explicit: bool,
}

/// A person or thing that memories mention. Each pair of scope and key has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Row number, unique among all entities and never reused in a file.
    pub row: u64,
    /// ID chosen by the caller.
    pub id: Arc<str>,
    /// Scope of the entity.
    pub scope: Scope,
    /// Name of the entity.
    pub name: Arc<str>,
    /// The name, normalised for comparison.
    pub key: Arc<str>,
    /// Kind of the entity.
    pub kind: Option<Arc<str>>,
    /// Description of the entity.
    pub description: Option<Arc<str>>,
    /// Time at which it was learned.
    pub learned_at: i64,
    /// `true` if the entity was only found in the texts of memories. It is deleted with the last
    /// memory that mentions it.
    pub found: bool,
}

/// A relation between two entities. Each pair has at most one of each kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Row number, unique among all relations and never reused in a file.
    pub row: u64,
    /// ID chosen by the caller.
    pub id: Arc<str>,
    /// Row of the entity that it starts from.
    pub from: u64,
    /// Row of the entity that it points to.
    pub to: u64,
    /// Kind of the relation.
    pub kind: Arc<str>,
    /// Strength of the relation, from 0 to 1.
    pub weight: f32,
    /// Time at which it was learned.
    pub learned_at: i64,
}

/// A filter for memories. Fields that are not set match everything; the default selects the newest
/// hundred current versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Only memories whose scope has these names.
    pub scope: Scope,
    /// Only memories of this kind.
    pub kind: Option<Arc<str>>,
    /// Only memories that were true at this time.
    pub as_of: Option<i64>,
    /// Selects the versions that were current at this time, instead of the ones that are current
    /// now.
    pub known_at: Option<i64>,
    /// Leaves out memories that had stopped being true by this time.
    pub ended_by: Option<i64>,
    /// Only versions learned after this time.
    pub learned_after: Option<i64>,
    /// Only versions learned before this time.
    pub learned_before: Option<i64>,
    /// The most versions to return, capped at [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
    pub limit: usize,
    /// Number of versions to skip.
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
    /// The versions, the last learned first; of two learned at the same time, the one with the
    /// greater row. Long versions can make a page shorter than the limit
    /// ([`BYTES_PER_ANSWER`](crate::BYTES_PER_ANSWER)).
    pub versions: Vec<Version>,
    /// Length of the whole list.
    pub total: u64,
}

/// An embedding model known to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRow {
    /// Fingerprint that identifies the model.
    pub fingerprint: Arc<str>,
    /// Length of its vectors.
    pub dimensions: u32,
    /// Number of versions that have a vector of this model.
    pub vectors: u64,
    /// `true` if searches use this model.
    pub active: bool,
}

/// The embedding of a version, quantised.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// Row of the version.
    pub row: u64,
    /// Factor by which each number is multiplied.
    pub scale: f32,
    /// The numbers, one for each dimension of the model.
    pub numbers: Vec<i8>,
}

/// The number of stored objects.
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
    /// Versions with a vector of the active model.
    pub vectors_of_active: u64,
    /// Versions without a vector of the active model.
    pub lacking: u64,
}
