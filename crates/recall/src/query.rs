//! Queries and hits.

use crate::Scope;

/// A query.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Text of the query.
    pub text: &'a str,
    /// Vector of the query, with the fingerprint of its model. It is compared only with vectors of the same
    /// model.
    pub meaning: Option<(&'a str, &'a [f32])>,
    /// Filter for the memories to search.
    pub filter: Filter<'a>,
    /// The most hits to return.
    pub limit: usize,
    /// Channels to use.
    pub channels: Channels,
}

/// A filter for memories. The default: all current ones, at time 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Only memories whose scope has exactly these names.
    pub scope: Scope<'a>,
    /// Only memories of this kind.
    pub kind: Option<&'a str>,
    /// Only memories that were true at this time, in microseconds since 1970.
    pub as_of: Option<i64>,
    /// Only versions that were current at this time; if not set, the ones that are current now.
    pub known_at: Option<i64>,
    /// The current time. Words such as `yesterday` in a query are relative to it.
    pub now: i64,
    /// Includes memories that have stopped being true. Has no effect with [`as_of`](Self::as_of).
    pub ended: bool,
}

/// The channels through which memories are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Finds memories by their words.
    pub lexical: bool,
    /// Finds memories by their vectors.
    pub vector: bool,
    /// Finds memories by the entities that they mention, and the ones related to them.
    pub graph: bool,
}

impl Channels {
    /// Returns `true` if only the lexical channel is on.
    pub const fn is_words_alone(self) -> bool {
        self.lexical && !self.vector && !self.graph
    }
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            lexical: true,
            vector: true,
            graph: true,
        }
    }
}

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Row of the version.
    pub row: u64,
    /// Total score, from 0 to 1, which does not depend on the number of memories.
    pub score: f32,
    /// Score by its words and those of its neighbours, if any match.
    pub lexical: Option<f32>,
    /// Score by its vector, if it has one: half its own similarity, half the mean with its neighbours'.
    pub vector: Option<f32>,
    /// Score by its entities, if any match.
    pub graph: Option<f32>,
    /// Words of the query that it contains.
    pub words: Vec<String>,
    /// Names through which it was found.
    pub entities: Vec<String>,
}
