//! One thing that is wrong with a configuration, and where.

use std::{borrow::Cow, fmt};

/// One thing that is wrong with a configuration, and where.
///
/// Its display is one line: `switchboard.json:12:7: unknown key "comand"; did you mean "command"?`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as it was named to the parser.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// The problem without its advice.
    pub(crate) fn alone(&self) -> String {
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
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Problems on their way to a report: found at byte offsets, given lines and columns at the end.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<(usize, String, Option<String>)>,
    more: usize,
}

impl Problems {
    /// Beyond this many a report helps nobody, and a hostile file could fill the memory with them.
    const MOST: usize = 100;

    /// Notes a problem at a byte offset.
    pub(crate) fn add(&mut self, at: usize, message: impl Into<String>) {
        self.push(at, message.into(), None);
    }

    /// Notes a problem and what to do about it.
    pub(crate) fn add_with_hint(
        &mut self,
        at: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(at, message.into(), Some(Cow::Owned(hint.into())));
    }

    /// Notes a problem, and what to do about it if that is known.
    pub(crate) fn push(&mut self, at: usize, message: String, hint: Option<Cow<'_, str>>) {
        if self.has_room() {
            self.found.push((at, message, hint.map(Cow::into_owned)));
        } else {
            self.one_more();
        }
    }

    /// Counts a problem that the report has no room for.
    pub(crate) fn one_more(&mut self) {
        self.more += 1;
    }

    /// Whether the next problem will be in the report.
    pub(crate) fn has_room(&self) -> bool {
        self.found.len() < Self::MOST
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The report, in the order of the text.
    pub(crate) fn report(mut self, file: &str, text: &str) -> Vec<Diagnostic> {
        self.found.sort_by_key(|&(at, ..)| at);
        let last = self.found.last().map_or(0, |&(at, ..)| at);
        let mut report: Vec<_> = self
            .found
            .into_iter()
            .map(|(at, message, hint)| problem(file, text, at, message, hint))
            .collect();
        if self.more > 0 {
            let message = format!("and {} more problems", self.more);
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

/// The line and the column, in characters, of a byte offset. A mark at the front counts as nothing,
/// as no editor shows it.
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
