//! Words to people and data to programs: messages on standard error, data on standard output,
//! tables aligned, colour only where it helps and nobody has asked for none.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write as _},
};

use serde::Serialize;

use crate::failure::Failure;

/// A line for a person. It is no failure if nobody reads it.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr(), "{}", clean(message));
}

/// A line that a person should not overlook.
pub(crate) fn warn(message: &str) {
    let label = paint(&io::stderr(), Colour::Yellow, "warning:");
    let _ = writeln!(io::stderr(), "{label} {}", clean(message));
}

/// What to do next.
pub(crate) fn hint(message: &str) {
    let label = paint(&io::stderr(), Colour::Cyan, "hint:");
    let _ = writeln!(io::stderr(), "{label} {}", clean(message));
}

/// Why a command failed.
pub(crate) fn complain(failure: &Failure) {
    if failure.is_silent() {
        return;
    }
    let label = paint(&io::stderr(), Colour::Red, "error:");
    let _ = writeln!(io::stderr(), "{label} {}", clean(failure.message()));
    if let Some(advice) = failure.advice() {
        hint(advice);
    }
}

/// Data, as it is.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Text from elsewhere: as it is for a program, and without what would take over a terminal for a
/// person.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    if is_terminal() {
        data(&clean(text))
    } else {
        data(text)
    }
}

/// A value, for programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("cannot write the answer as JSON: {error}")))?;
    data(&format!("{text}\n"))
}

/// A difference, with its lines in the usual colours.
pub(crate) fn difference(diff: &str) -> Result<(), Failure> {
    let mut text = String::with_capacity(diff.len());
    for line in diff.lines() {
        let line = clean(line);
        let colour = match line.as_bytes().first() {
            Some(b'+') => Some(Colour::Green),
            Some(b'-') => Some(Colour::Red),
            Some(b'@') => Some(Colour::Cyan),
            _ => None,
        };
        let line = colour.map_or_else(|| line.clone(), |c| paint(&io::stdout(), c, &line));
        text.push_str(&line);
        text.push('\n');
    }
    data(&text)
}

/// Whether a person reads standard output.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Asks on standard error, and takes anything but a yes for a no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let mut to = io::stderr();
    write!(to, "{question} [y/N] ")?;
    to.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self {
            rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()],
        }
    }

    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| one_line(&cell)).into());
    }

    pub(crate) fn print(&self) -> Result<(), Failure> {
        let width = is_terminal().then(terminal_width).flatten();
        data(&self.render(width))
    }

    /// The table; with a width, the last column is cut to it.
    fn render(&self, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a string cannot fail.
                let _ = write!(line, "{cell:width$}  ");
            }
            let line = line.trim_end();
            match width {
                Some(width) if line.chars().count() > width => {
                    text.extend(line.chars().take(width.saturating_sub(1)));
                    text.push('…');
                }
                _ => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }
}

/// Control characters from elsewhere may move the cursor, rename the window or worse.
pub(crate) fn clean(text: &str) -> String {
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| if allowed(c) { c } else { '\u{fffd}' })
        .collect()
}

/// The first line of a text, clean.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    clean(&line.replace('\t', " "))
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
}

/// Coloured, if the stream is a terminal and nobody has asked for none.
pub(crate) fn paint(stream: &impl IsTerminal, colour: Colour, text: &str) -> String {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if refused || !stream.is_terminal() {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Red => 31,
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Cyan => 36,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns >= 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let mut table = Table::new(&["NAME", "STATE", "NOTE"]);
        table.row(["a-long-name".into(), "ready".into(), String::new()]);
        table.row(["b".into(), "parked".into(), "tab\there\nmore".into()]);
        assert_eq!(
            table.render(None),
            "NAME         STATE   NOTE\na-long-name  ready\nb            parked  tab here\n"
        );
        assert_eq!(
            table.render(Some(20)),
            "NAME         STATE …\na-long-name  ready\nb            parked…\n"
        );
    }

    #[test]
    fn nothing_takes_over_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{9b}c\nd"), "a\u{fffd}[2Jb\u{fffd}c\nd");
    }
}
