//! Reads a table that is partly unreadable.
//!
//! The rows are read from the front until that fails, then from the back until that fails. The part
//! in between is halved and tried again, down to single rows.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Statement, params};

use crate::types::limits::SALVAGE_ATTEMPTS;

/// A table with a column `row` that numbers its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// All columns after `row`, in table order.
    pub(super) columns: &'static [&'static str],
}

/// A callback that receives the columns of a row, of which the first has no meaning; it returns
/// `None` if the row cannot be decoded.
pub(super) type Take<'a> = dyn FnMut(i64, &[Value]) -> Option<()> + 'a;

/// The unread parts of a table: for each pair, the rows after the first number, up to and including
/// the second.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<(i64, i64)>);

impl Gaps {
    /// The gaps of a table that could not be found.
    pub(super) fn all() -> Self {
        Self(vec![(i64::MIN, i64::MAX)])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, row: i64) -> bool {
        let part = self.0.partition_point(|(_, last)| *last < row);
        self.0.get(part).is_some_and(|(first, _)| *first < row)
    }

    /// Returns an upper bound for the number of unread rows; `None` if it is unknown.
    pub(super) fn rows(&self) -> Option<u64> {
        let sizes = self.0.iter().map(|(first, last)| last.abs_diff(*first));
        let rows = sizes.fold(0_u64, u64::saturating_add);
        (rows < u64::from(u32::MAX)).then_some(rows)
    }

    fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }
}

impl Table {
    /// Passes every row that can be read to `take`. Returns the unread parts.
    pub(super) fn read(self, connection: &Connection, take: &mut Take<'_>) -> Gaps {
        let prepare = |order| connection.prepare(&self.sql(order));
        let (Ok(mut up), Ok(mut down)) = (prepare("ASC"), prepare("DESC")) else {
            return Gaps::all();
        };
        let mut gaps = Gaps::default();
        let mut attempts = SALVAGE_ATTEMPTS;
        let mut parts = vec![(0, self.last(connection))];
        while let Some((first, last)) = parts.pop() {
            let Some(left) = attempts.checked_sub(1) else {
                gaps.0.push((first, last));
                continue;
            };
            attempts = left;
            let pass = self.walk(&mut up, (first, last), take, &mut gaps);
            if pass.whole {
                continue;
            }
            let first = pass.reached.unwrap_or(first);
            let pass = self.walk(&mut down, (first, last), take, &mut gaps);
            if pass.whole {
                continue;
            }
            let last = pass.reached.map_or(last, |row| row.saturating_sub(1));
            match last.saturating_sub(first) {
                ..=0 => {}
                1 => gaps.0.push((first, last)),
                between => {
                    let middle = first.saturating_add(between / 2);
                    parts.extend([(middle, last), (first, middle)]);
                }
            }
        }
        gaps.sorted()
    }

    fn sql(self, order: &str) -> String {
        let columns = self.columns.join(", ");
        format!(
            "SELECT row, {columns} FROM {} WHERE row > ?1 AND row <= ?2 ORDER BY row {order}",
            self.name
        )
    }

    /// The greatest row number that may exist.
    fn last(self, connection: &Connection) -> i64 {
        let find = |sql: &str| -> Option<i64> {
            let found: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).ok()?;
            found
        };
        let given = format!(
            "SELECT seq FROM sqlite_sequence WHERE name = '{}'",
            self.name
        );
        let there = format!("SELECT max(row) FROM {}", self.name);
        find(&given).max(find(&there)).unwrap_or(i64::MAX)
    }

    /// Reads from one end to the other, or until that fails.
    fn walk(
        self,
        statement: &mut Statement<'_>,
        (first, last): (i64, i64),
        take: &mut Take<'_>,
        gaps: &mut Gaps,
    ) -> Pass {
        let mut pass = Pass {
            reached: None,
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
                    let taken = self.values(row).and_then(|values| take(place, &values));
                    if taken.is_none() {
                        gaps.0.push((place.saturating_sub(1), place));
                    }
                }
            }
        }
    }

    fn values(self, row: &Row<'_>) -> Option<Vec<Value>> {
        (0..=self.columns.len())
            .map(|index| row.get(index).ok())
            .collect()
    }
}

/// The result of reading from one end.
struct Pass {
    /// The last row that was read.
    reached: Option<i64>,
    /// The other end was reached.
    whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_excludes_its_first_number() {
        let gaps = Gaps(vec![(9, 10), (0, 3), (5, 6)]).sorted();
        let inside: Vec<i64> = (-1..12).filter(|row| gaps.contains(*row)).collect();
        assert_eq!(inside, [1, 2, 3, 6, 10]);
        assert_eq!(gaps.rows(), Some(5));
        assert!(Gaps::all().contains(7));
        assert_eq!(Gaps::all().rows(), None);
    }
}
