//! What is asked, and what is found.

use crate::Scope;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// In words.
    pub text: &'a str,
    /// The same as a vector, with the fingerprint of the model that made it. Only vectors of the same model
    /// are compared with it.
    pub meaning: Option<(&'a str, &'a [f32])>,
    /// Among which memories.
    pub filter: Filter<'a>,
    /// How many hits at most.
    pub limit: usize,
    /// By which ways.
    pub channels: Channels,
}

/// Which memories are looked at. The default: all current ones, at the time 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Only those that have exactly what is named here.
    pub scope: Scope<'a>,
    /// Only those of this kind.
    pub kind: Option<&'a str>,
    /// Only what was true then, in microseconds since 1970.
    pub as_of: Option<i64>,
    /// Only versions that were the current ones then; without it, those that are now.
    pub known_at: Option<i64>,
    /// What time it is. Words such as `yesterday` in a query count from here.
    pub now: i64,
    /// Also what is not true any more. With [`as_of`](Self::as_of) this makes no difference.
    pub ended: bool,
}

/// The ways of finding a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// By its words.
    pub lexical: bool,
    /// By its vector.
    pub vector: bool,
    /// By the entities that it mentions, and those related to them.
    pub graph: bool,
}

impl Channels {
    /// Whether nothing but words is asked.
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
    /// The version's row.
    pub row: u64,
    /// How well it fits, 0 to 1. This means the same however many memories there are.
    pub score: f32,
    /// How well by its words and those next to it, if these speak for it.
    pub lexical: Option<f32>,
    /// How well by its vector, if that is known: half its own nearness, half the mean with its neighbours'.
    pub vector: Option<f32>,
    /// How well by its entities, if these speak for it.
    pub graph: Option<f32>,
    /// The words of the query that it has.
    pub words: Vec<String>,
    /// The names through which it was found.
    pub entities: Vec<String>,
}
