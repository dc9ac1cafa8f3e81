//! What does not fit, in words.

use std::fmt;

use crate::limits::{MISMATCHES, PATH_BYTES};
use crate::text;

/// One thing in a value that its schema does not allow.
///
/// Shown, it is one sentence: `arguments.limit has to be an integer, it is "ten"`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationError {
    /// Where: `arguments.filter.limit`, `arguments.edits[0]`.
    pub path: String,
    /// What is wrong there: `has to be an integer, it is "ten"`.
    pub message: String,
    /// What was probably meant: `did you mean path?`.
    pub hint: Option<String>,
}

/// All that does not fit, as far as it helps: at most [`MISMATCHES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// In the order in which they were found.
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

/// One sentence a line.
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

/// A mismatch and what is needed to choose between several.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) mismatch: ValidationError,
    /// How deep in the value it is.
    pub(crate) depth: usize,
    /// Set if the value as such is of another kind.
    pub(crate) kind: Option<Kind>,
}

/// What a value should be, and is.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) expected: String,
    pub(crate) shown: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has to be {}, it is {}", self.expected, self.shown)
    }
}

pub(crate) fn mismatches(findings: Vec<Finding>) -> ValidationErrors {
    let found = findings.into_iter().take(MISMATCHES);
    let mut found: Vec<ValidationError> = found.map(|finding| finding.mismatch).collect();
    if found.is_empty() {
        // To find words was too much work.
        found.push(ValidationError {
            path: path(std::iter::empty()),
            message: "do not fit the schema of the tool".to_owned(),
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

/// The steps in words, as somebody would write them in a program.
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
