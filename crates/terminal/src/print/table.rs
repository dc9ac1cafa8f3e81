//! Tables that fit the terminal: each row is one line, and the least useful parts are cut.

use std::{borrow::Cow, io};

use super::{Colour, clean, data, fold::fold, one_line, paint, terminal_width};
use crate::error::Error;

/// The longest cell, in characters. Some texts come from servers.
const CELL: usize = 500;
/// The narrowest that a column is cut to, in characters.
const NARROWEST: usize = 8;
/// Enough characters to recognise a value.
const COMFORTABLE: usize = 24;
/// Spaces between two columns.
const GAP: usize = 2;
/// Indentation of notes under their row.
const INDENT: &str = "    ";

/// A table: a heading, rows, and notes under rows.
#[derive(Debug)]
pub struct Table {
    heading: Vec<Cell>,
    lines: Vec<Line>,
    /// The column that is cut first. Default: the last one.
    cut_first: usize,
    /// Columns that are cut in the middle, because both ends are informative.
    paths: Vec<usize>,
}

#[derive(Debug)]
enum Line {
    Row(Vec<Cell>),
    /// A line under a row, outside the columns. It is wrapped, never cut.
    Note(String),
}

/// A value in a row.
#[derive(Debug)]
pub struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    /// A cell with this text and colour.
    pub fn coloured(text: &str, colour: Option<Colour>) -> Self {
        Self {
            text: short(&one_line(text)),
            colour,
        }
    }

    /// A cell whose text belongs below that of the row above.
    pub fn indented(text: &str) -> Self {
        Self {
            text: format!("  {}", short(&one_line(text))),
            colour: None,
        }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::coloured(&text, None)
    }
}

impl Table {
    /// A table with these headings and no rows.
    pub fn new(heading: &[&str]) -> Self {
        Self {
            heading: heading
                .iter()
                .map(|cell| Cell::coloured(cell, None))
                .collect(),
            lines: Vec::new(),
            cut_first: heading.len().saturating_sub(1),
            paths: Vec::new(),
        }
    }

    /// Cuts this column first, in the middle: its values are paths, or names with a common prefix.
    #[must_use]
    pub fn cut_path(mut self, column: usize) -> Self {
        self.cut_first = column;
        self.paths.push(column);
        self
    }

    /// Adds a row.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [impl Into<Cell>; COLUMNS]) {
        let cells = cells.map(Into::into);
        self.lines.push(Line::Row(cells.into()));
    }

    /// Adds a line under the last row.
    pub fn note(&mut self, text: &str) {
        self.lines.push(Line::Note(short(&clean(text))));
    }

    /// Prints the table, fitted to the width of the terminal.
    pub fn print(&self) -> Result<(), Error> {
        let width = terminal_width(&io::stdout());
        data(&self.render(width))
    }

    fn rows(&self) -> impl Iterator<Item = &Vec<Cell>> {
        let rows = self.lines.iter().filter_map(|line| match line {
            Line::Row(cells) => Some(cells),
            Line::Note(_) => None,
        });
        std::iter::once(&self.heading).chain(rows)
    }

    /// Renders the table in lines of at most this many characters.
    fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let mut text = String::new();
        self.render_row(&self.heading, &widths, &mut text);
        for line in &self.lines {
            match line {
                Line::Row(cells) => self.render_row(cells, &widths, &mut text),
                Line::Note(note) => {
                    let room = width.map_or(usize::MAX, |width| width - INDENT.len());
                    for line in fold(note, room, 0, 0).lines() {
                        text.push_str(INDENT);
                        text.push_str(line);
                        text.push('\n');
                    }
                }
            }
        }
        text
    }

    /// The width of each column: that of its widest cell, if there is room.
    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.heading.len())
            .map(|column| {
                let cells = self.rows().filter_map(|row| row.get(column));
                cells.map(Cell::width).max().unwrap_or(0)
            })
            .collect();
        let Some(width) = width else {
            return widths;
        };
        let gaps = GAP * widths.len().saturating_sub(1);
        let excess = |widths: &[usize]| (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        let shrink = |widths: &mut [usize], column: usize, least: usize| {
            let cut = widths[column].saturating_sub(excess(widths));
            widths[column] = cut.max(least).min(widths[column]);
        };
        if self.cut_first < widths.len() {
            shrink(&mut widths, self.cut_first, COMFORTABLE);
        }
        // A long value must not take the space of the other columns.
        for column in 0..widths.len() {
            if column != self.cut_first {
                shrink(&mut widths, column, COMFORTABLE.max(width / 3));
            }
        }
        if let Some(heading) = self.heading.get(self.cut_first) {
            shrink(&mut widths, self.cut_first, heading.width().max(NARROWEST));
        }
        // Then the widest column, until everything fits.
        while excess(&widths) > 0 {
            let widest = widths.iter_mut().max();
            match widest {
                Some(widest) if *widest > NARROWEST => *widest -= 1,
                _ => break,
            }
        }
        widths
    }

    fn render_row(&self, row: &[Cell], widths: &[usize], text: &mut String) {
        let mut gap = 0;
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            if cell.text.is_empty() {
                gap += width + GAP;
                continue;
            }
            // The end of a name is as informative as its beginning.
            let is_name = !cell.text.contains(' ');
            let shown = if is_name || self.paths.contains(&column) {
                cut_middle(&cell.text, *width)
            } else {
                cut_end(&cell.text, *width)
            };
            text.extend(std::iter::repeat_n(' ', gap));
            match cell.colour {
                Some(colour) => text.push_str(&paint(&io::stdout(), colour, &shown)),
                None => text.push_str(&shown),
            }
            gap = width.saturating_sub(shown.chars().count()) + GAP;
        }
        text.push('\n');
    }
}

fn short(text: &str) -> String {
    cut_end(text, CELL).into_owned()
}

fn cut_end(text: &str, width: usize) -> Cow<'_, str> {
    if text.chars().count() <= width {
        return text.into();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end()).into()
}

fn cut_middle(text: &str, width: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= width {
        return text.into();
    }
    let room = width.saturating_sub(1);
    let end = room / 2;
    let start: String = text.chars().take(room - end).collect();
    let end: String = text.chars().skip(length - end).collect();
    format!("{start}…{end}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(heading: &[&str], rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(heading);
        for row in rows {
            table.row(row.map(str::to_owned));
        }
        table
    }

    #[test]
    fn columns_are_aligned() {
        let heading = ["NAME", "STATE", "NOTE"];
        let rows = [
            ["a-long-name", "ready", ""],
            ["b", "parked", "tab\there\nmore"],
        ];
        let table = table(&heading, &rows);
        assert_eq!(
            table.render(None),
            "NAME         STATE   NOTE\na-long-name  ready\nb            parked  tab here\n"
        );
        assert_eq!(
            table.render(Some(27)),
            "NAME       STATE   NOTE\na-lo…name  ready\nb          parked  tab here\n"
        );
    }

    #[test]
    fn informative_parts_of_cells_are_kept() {
        let rows = [
            [
                "files",
                "/opt/venvs/tools/bin/mcp-server-filesystem",
                "parked",
            ],
            ["b", "x", "ready"],
        ];
        let table = table(&["NAME", "TARGET", "STATE"], &rows).cut_path(1);
        assert_eq!(
            table.render(Some(34)),
            "NAME   TARGET               STATE\nfiles  /opt/venv…ilesystem  parked\nb      x                    ready\n"
        );
        // Not everything fits; no line is wider than the terminal.
        for width in 40..80 {
            let text = table.render(Some(width));
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
        }
    }

    #[test]
    fn note_is_wrapped_under_its_row() {
        let mut table = Table::new(&["NAME", "TEXT"]);
        table.row([
            "a".to_owned(),
            "a text that is too long for the line".to_owned(),
        ]);
        table.note("a note that is longer than the line, with/a/word/that/is/longer");
        assert_eq!(
            table.render(Some(20)),
            "NAME  TEXT\na     a text that i…\n    a note that is\n    longer than the\n    line,\n    with/a/word/that/is/longer\n"
        );
        assert!(table.render(None).ends_with("/longer\n"));
    }

    #[test]
    fn hidden_characters_are_marked() {
        let mut table = Table::new(&["NAME"]);
        table.row(["rm\u{202e}gpj.\u{200b}x\u{e0041}".to_owned()]);
        assert_eq!(
            table.render(None),
            "NAME\nrm\u{fffd}gpj.\u{fffd}x\u{fffd}\n"
        );
    }
}
