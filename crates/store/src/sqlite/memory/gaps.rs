//! Reading a table of which parts cannot be read.
//!
//! The rows are read from the front until that fails, then from the back until that fails. What lies
//! between is halved and tried again, down to single rows.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params};

use crate::limits::SALVAGE_ATTEMPTS;

/// A table with a column `row` that numbers its rows.
pub(super) struct Table<'a> {
    connection: &'a Connection,
    name: &'static str,
    columns: &'static str,
}

/// Takes a row that could be read: its number, and what stands in it from column 1 on.
type Take<'a> = dyn FnMut(i64, &Row<'_>) -> rusqlite::Result<()> + 'a;

/// How reading from one end went.
struct Pass {
    /// The last row that was read.
    reached: Option<i64>,
    /// How many rows could be read but not understood.
    lost: u64,
    /// Whether it came to the other end.
    whole: bool,
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        name: &'static str,
        columns: &'static str,
    ) -> Self {
        Self {
            connection,
            name,
            columns,
        }
    }

    /// Gives every row that can be read to `take`. Says how many at most could not be; nothing if there
    /// is no such table.
    pub(super) fn read(&self, take: &mut Take<'_>) -> Option<u64> {
        let mut up = self.connection.prepare(&self.sql(Direction::Up)).ok()?;
        let mut down = self.connection.prepare(&self.sql(Direction::Down)).ok()?;
        let mut lost = 0_u64;
        let mut attempts = SALVAGE_ATTEMPTS;
        let mut parts = vec![(0, self.last())];
        while let Some((first, last)) = parts.pop() {
            let Some(left) = attempts.checked_sub(1) else {
                lost = lost.saturating_add(last.abs_diff(first));
                continue;
            };
            attempts = left;
            let pass = walk(&mut up, first, last, take);
            lost = lost.saturating_add(pass.lost);
            if pass.whole {
                continue;
            }
            let first = pass.reached.unwrap_or(first);
            let pass = walk(&mut down, first, last, take);
            lost = lost.saturating_add(pass.lost);
            if pass.whole {
                continue;
            }
            let last = pass.reached.map_or(last, |row| row.saturating_sub(1));
            match last.saturating_sub(first) {
                ..=0 => {}
                1 => lost = lost.saturating_add(1),
                between => {
                    let middle = first.saturating_add(between / 2);
                    parts.extend([(middle, last), (first, middle)]);
                }
            }
        }
        Some(lost)
    }

    fn sql(&self, direction: Direction) -> String {
        let Self { name, columns, .. } = self;
        let order = match direction {
            Direction::Up => "ASC",
            Direction::Down => "DESC",
        };
        format!(
            "SELECT row, {columns} FROM {name} WHERE row > ?1 AND row <= ?2 ORDER BY row {order}"
        )
    }

    /// The greatest number that a row may have.
    fn last(&self) -> i64 {
        let find = |sql: &str| -> Option<i64> {
            let found = self.connection.query_row(sql, [], |row| row.get(0)).ok()?;
            match found {
                Value::Integer(number) => Some(number),
                _ => None,
            }
        };
        let given = format!(
            "SELECT seq FROM sqlite_sequence WHERE name = '{}'",
            self.name
        );
        let there = format!("SELECT max(row) FROM {}", self.name);
        let (given, there) = (find(&given), find(&there));
        given.max(there).unwrap_or(i64::MAX)
    }
}

/// Reads from one end until the other, or until that fails.
fn walk(
    statement: &mut rusqlite::Statement<'_>,
    first: i64,
    last: i64,
    take: &mut Take<'_>,
) -> Pass {
    let mut pass = Pass {
        reached: None,
        lost: 0,
        whole: false,
    };
    let Ok(mut rows) = statement.query(params![first, last]) else {
        return pass;
    };
    loop {
        match rows.next() {
            Err(_) => return pass,
            Ok(None) => {
                pass.whole = true;
                return pass;
            }
            Ok(Some(row)) => {
                let Ok(place) = row.get(0) else {
                    return pass;
                };
                pass.reached = Some(place);
                if take(place, row).is_err() {
                    pass.lost = pass.lost.saturating_add(1);
                }
            }
        }
    }
}
