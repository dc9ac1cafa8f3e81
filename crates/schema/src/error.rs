//! Mismatches between a value and its schema, in words.

use std::fmt;

use crate::limits::{MISMATCHES, PATH_BYTES};
use crate::text;

/// One mismatch between a value and its schema.
///
/// It is displayed as one sentence: `arguments.limit must be an integer, not "ten"`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationError {
    /// Position: `arguments.filter.limit`, `arguments.edits[0]`.
    pub path: String,
    /// Description of the mismatch: `must be an integer, not "ten"`.
    pub message: String,
    /// Suggested correction: `did you mean path?`.
    pub hint: Option<String>,
}

/// The mismatches of a value, at most [`MISMATCHES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// Returns the mismatches in the order in which they were found.
    pub fn as_slice(&self) -> &[ValidationError] {
        &self.0
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Formats one sentence per line.
impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, mismatch) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            mismatch.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValidationErrors {}

/// A mismatch, with the data needed to choose between several.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) mismatch: ValidationError,
    /// Depth of the mismatch in the value.
    pub(crate) depth: usize,
    /// Set if the value itself is of the wrong kind.
    pub(crate) kind: Option<Kind>,
}

/// The expected kind and the actual value.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) expected: String,
    pub(crate) shown: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be {}, not {}", self.expected, self.shown)
    }
}

pub(crate) fn mismatches(findings: Vec<Finding>) -> ValidationErrors {
    let found = findings.into_iter().take(MISMATCHES);
    let mut found: Vec<ValidationError> = found.map(|finding| finding.mismatch).collect();
    if found.is_empty() {
        // The steps did not suffice for an explanation.
        found.push(ValidationError {
            path: path(std::iter::empty()),
            message: "do not match the schema of the tool".to_owned(),
            hint: None,
        });
    }
    ValidationErrors(found)
}

/// One step into a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Segment<'v> {
    Name(&'v str),
    Index(usize),
}

/// Formats the path of a value as in a program.
pub(crate) fn path<'v>(segments: impl Iterator<Item = Segment<'v>>) -> String {
    let mut out = String::from("arguments");
    for segment in segments {
        if out.len() > PATH_BYTES {
            out.push('…');
            break;
        }
        match segment {
            Segment::Index(index) => out.extend(["[", &index.to_string(), "]"]),
            Segment::Name(name) => {
                let shown = text::name(name);
                if shown.starts_with('"') {
                    out.extend(["[", &shown, "]"]);
                } else {
                    out.extend([".", &shown]);
                }
            }
        }
    }
    out
}
