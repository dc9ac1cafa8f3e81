//! Problems of a configuration, with their positions.

use std::{borrow::Cow, fmt};

/// A problem of a configuration, with its position.
///
/// Its display is one line: `switchboard.json:12:7: unknown key "comand" (did you mean "command"?)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file name that was given to the parser.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// The hint, if any.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// The problem with its position, without its hint.
    pub fn alone(&self) -> String {
        let Self {
            file,
            line,
            column,
            message,
            ..
        } = self;
        format!("{file}:{line}:{column}: {message}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.alone())?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// A collector of problems. They are added with byte offsets, and the report converts these to lines and
/// columns.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<(usize, String, Option<String>)>,
    more: usize,
}

impl Problems {
    /// The most problems of a report. More would be useless, and a hostile file could exhaust the
    /// memory.
    pub(crate) const MOST: usize = 100;

    /// Adds a problem at a byte offset.
    pub(crate) fn add(&mut self, at: usize, message: impl Into<String>) {
        self.push(at, message.into(), None);
    }

    /// Adds a problem and a hint.
    pub(crate) fn add_with_hint(
        &mut self,
        at: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(at, message.into(), Some(Cow::Owned(hint.into())));
    }

    /// Adds a problem, with a hint if there is one.
    pub(crate) fn push(&mut self, at: usize, message: String, hint: Option<Cow<'_, str>>) {
        if self.has_room() {
            self.found.push((at, message, hint.map(Cow::into_owned)));
        } else {
            self.one_more();
        }
    }

    /// Adds the problems of another collection.
    pub(crate) fn append(&mut self, other: Self) {
        for (at, message, hint) in other.found {
            self.push(at, message, hint.map(Cow::Owned));
        }
        self.more += other.more;
    }

    /// Counts a problem that does not fit into the report.
    pub(crate) fn one_more(&mut self) {
        self.more += 1;
    }

    /// Tests if the next problem will be in the report.
    pub(crate) fn has_room(&self) -> bool {
        self.found.len() < Self::MOST
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The first problem in the text.
    pub(crate) fn first(self, file: &str, text: &str) -> Option<Diagnostic> {
        let first = self.found.into_iter().min_by_key(|&(at, ..)| at);
        first.map(|(at, message, hint)| problem(file, text, at, message, hint))
    }

    /// Creates the report, in the order of the text.
    pub(crate) fn report(mut self, file: &str, text: &str) -> Vec<Diagnostic> {
        self.found.sort_by_key(|&(at, ..)| at);
        let last = self.found.last().map_or(0, |&(at, ..)| at);
        let mut report: Vec<_> = self
            .found
            .into_iter()
            .map(|(at, message, hint)| problem(file, text, at, message, hint))
            .collect();
        if self.more > 0 {
            let message = match self.more {
                1 => "1 more problem is not shown".to_owned(),
                more => format!("{more} more problems are not shown"),
            };
            report.push(problem(file, text, last, message, None));
        }
        report
    }
}

fn problem(file: &str, text: &str, at: usize, message: String, hint: Option<String>) -> Diagnostic {
    let (line, column) = place(text, at);
    Diagnostic {
        file: file.to_owned(),
        line,
        column,
        message,
        hint,
    }
}

/// The line and the column, in characters, of a byte offset. A byte order mark is not counted, since
/// editors do not show it.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[start..]
        .trim_start_matches('\u{feff}')
        .chars()
        .count()
        + 1;
    (line, column)
}
