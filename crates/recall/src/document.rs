//! [`Document`]: a version of a memory, on its way into the library.

use crate::Scope;

/// One version of a memory, as it is handed in.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The version's number, never used twice.
    pub row: u64,
    /// Whose it is.
    pub scope: Scope<'a>,
    /// Of what kind.
    pub kind: &'a str,
    /// What it says.
    pub content: &'a str,
    /// How important it is, 0 to 1.
    pub importance: f32,
    /// Since when it is true, in microseconds since 1970.
    pub valid_from: Option<i64>,
    /// Until when it is true.
    pub valid_until: Option<i64>,
    /// When it was learned.
    pub learned_at: i64,
    /// When something else was learned in its place.
    pub learned_until: Option<i64>,
    /// The rows of the entities that it mentions.
    pub mentions: &'a [u64],
}
