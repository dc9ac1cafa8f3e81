//! [`Document`]: a version of a memory to be indexed.

use crate::Scope;

/// One version of a memory, to be added to the library.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Row of the version, never reused.
    pub row: u64,
    /// Scope of the memory.
    pub scope: Scope<'a>,
    /// Kind of the memory.
    pub kind: &'a str,
    /// Text of the memory.
    pub content: &'a str,
    /// Importance, from 0 to 1.
    pub importance: f32,
    /// Time from which it is true, in microseconds since 1970.
    pub valid_from: Option<i64>,
    /// Time at which it stops being true.
    pub valid_until: Option<i64>,
    /// Time at which it was learned.
    pub learned_at: i64,
    /// Time at which it was replaced by a newer version.
    pub learned_until: Option<i64>,
    /// Rows of the entities that it mentions.
    pub mentions: &'a [u64],
}
