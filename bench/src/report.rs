//! The results: tables for people, JSON for programs.

use std::{fmt, fs, io::Write, path::Path};

use serde_json::{Value, json};

use crate::Result;

/// The results of one run.
pub(crate) struct Report {
    pub(crate) tables: Vec<Table>,
    /// Notes that are needed to read the figures.
    pub(crate) notes: Vec<String>,
}

/// One table; the first cells of a row name it.
pub(crate) struct Table {
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Text(String),
    /// A number that is part of the row's name.
    Count(usize),
    /// A figure, shown with three significant digits.
    Number(f64),
    /// Not measured, or not available on this system.
    Nothing,
}

impl Report {
    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        for table in &self.tables {
            writeln!(out, "{table}")?;
        }
        for note in &self.notes {
            writeln!(out, "* {note}")?;
        }
        Ok(())
    }

    pub(crate) fn write_json(&self, file: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.to_json())?;
        text.push(b'\n');
        fs::write(file, text)?;
        Ok(())
    }

    fn to_json(&self) -> Value {
        let tables: Vec<Value> = self.tables.iter().map(Table::to_json).collect();
        json!({"tables": tables, "notes": self.notes})
    }
}

impl Table {
    fn to_json(&self) -> Value {
        let row = |row: &Vec<Cell>| -> Value {
            let names = self.columns.iter().map(ToString::to_string);
            Value::Object(names.zip(row.iter().map(Cell::to_json)).collect())
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        json!({"title": self.title, "rows": rows})
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let head: Vec<String> = self.columns.iter().map(ToString::to_string).collect();
        let body = self
            .rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect());
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for line in &lines {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                // Names are aligned left, figures right.
                match self.rows.first().and_then(|row| row.get(column)) {
                    Some(Cell::Text(_)) => write!(f, "  {cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Cell {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Count(count) => (*count).into(),
            Self::Number(number) => (*number).into(),
            Self::Nothing => Value::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) if number.abs() >= 100.0 => write!(f, "{number:.0}"),
            Self::Number(number) if number.abs() >= 10.0 => write!(f, "{number:.1}"),
            Self::Number(number) if number.abs() >= 1.0 => write!(f, "{number:.2}"),
            Self::Number(number) => write!(f, "{number:.3}"),
            Self::Nothing => f.write_str("-"),
        }
    }
}
