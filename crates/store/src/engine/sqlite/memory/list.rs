//! Lists of memories in the engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::super::{Database, SqliteError, signed, unsigned};
use super::filter;
use crate::types::limits::ROWS_PER_ANSWER;
use crate::types::memory::{Listed, Listing};

impl Database {
    /// Returns the versions that match, newest first.
    pub(crate) fn list(&self, which: &Listing) -> Result<Listed, SqliteError> {
        let limit = which.limit.min(ROWS_PER_ANSWER);
        let wanted = which.offset.saturating_add(limit);
        let (total, rows) = match self.current(which)? {
            Some(walk) if walk.is_short(wanted) => {
                let total = walk.current.saturating_sub(self.ended(which)?);
                (total, self.newest(which, limit)?)
            }
            _ => self.search(which, limit)?,
        };
        // Selects the rows first, so that the contents of other versions are never read.
        Ok(Listed {
            versions: self.versions(&rows)?,
            total,
        })
    }

    /// Returns the number of matches, including ended ones, if it can be determined without looking at
    /// each version: that is, if nothing but the scope and `ended_by` is set.
    fn current(&self, which: &Listing) -> Result<Option<Walk>, SqliteError> {
        let Listing {
            scope,
            kind: None,
            as_of: None,
            known_at: None,
            learned_after: None,
            learned_before: None,
            ..
        } = which
        else {
            return Ok(None);
        };
        let mut walk = self.connection.query_row(
            "SELECT versions, memories FROM memory_counts",
            [],
            |row| {
                Ok(Walk {
                    versions: unsigned(row.get(0)?),
                    current: unsigned(row.get(1)?),
                })
            },
        )?;
        if let Some((condition, names)) = filter(scope) {
            let sql =
                format!("SELECT ifnull(sum(memories), 0) FROM memory_scopes WHERE {condition}");
            walk.current = self
                .connection
                .query_row(&sql, params_from_iter(names), |row| row.get(0))
                .map(unsigned)?;
        }
        Ok(Some(walk))
    }

    /// Returns the number of current versions that do not match because they have ended.
    fn ended(&self, which: &Listing) -> Result<u64, SqliteError> {
        let Some(at) = which.ended_by else {
            return Ok(0);
        };
        let mut sql = "SELECT count(*) FROM memory_versions INDEXED BY memory_versions_ending \
             WHERE learned_until IS NULL AND valid_until IS NOT NULL AND valid_until <= ?"
            .to_owned();
        let mut values = vec![at.into()];
        if let Some((condition, names)) = filter(&which.scope) {
            sql = format!("{sql} AND {}", in_scopes(&condition));
            values.extend(names);
        }
        let ended = self
            .connection
            .query_row(&sql, params_from_iter(values), |row| row.get(0))?;
        Ok(unsigned(ended))
    }

    /// Returns the rows of a page by walking back from the newest of all versions.
    fn newest(&self, which: &Listing, limit: usize) -> Result<Vec<u64>, SqliteError> {
        let (conditions, values) = conditions(which);
        let sql = format!(
            "SELECT row FROM memory_versions INDEXED BY memory_versions_by_time \
             WHERE {conditions} ORDER BY learned_at DESC, row DESC LIMIT {limit} OFFSET {}",
            signed(which.offset)
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows =
            statement.query_map(params_from_iter(&values), |row| row.get(0).map(unsigned))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the number of matches and the rows of a page, by looking at each match.
    fn search(&self, which: &Listing, limit: usize) -> Result<(u64, Vec<u64>), SqliteError> {
        let (sql, values) = search(which);
        let mut statement = self.connection.prepare(&sql)?;
        let mut places = statement.query(params_from_iter(&values))?;
        // All matches must be counted, so the newest are collected on the way: the requested page and the
        // ones before it.
        let most = which.offset.saturating_add(limit);
        let mut newest: BinaryHeap<Reverse<(i64, i64)>> = BinaryHeap::new();
        let mut total = 0_u64;
        while let Some(row) = places.next()? {
            total = total.saturating_add(1);
            let place = (row.get(0)?, row.get(1)?);
            if newest.len() < most {
                newest.push(Reverse(place));
            } else if let Some(mut last) = newest.peek_mut()
                && last.0 < place
            {
                *last = Reverse(place);
            }
        }
        let newest = newest.into_sorted_vec();
        let page = newest.get(which.offset..).unwrap_or_default();
        let rows = page.iter().map(|Reverse((_, row))| unsigned(*row));
        Ok((total, rows.collect()))
    }
}

/// The cost of a step that reads a row, relative to a step in the index.
const STEP: u128 = 16;

/// The numbers that decide between the two ways to make a list.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// Number of versions of all memories.
    versions: u64,
    /// Upper bound for the number of matches.
    current: u64,
}

impl Walk {
    /// Returns `true` if this many matches are likely to be found sooner than it takes to visit all
    /// matches in the index.
    fn is_short(self, rows: usize) -> bool {
        let steps = u128::from(self.versions) * (rows as u128) * STEP;
        steps < u128::from(self.current) * u128::from(self.current)
    }
}

/// The query for all versions that match, and its values.
fn search(which: &Listing) -> (String, Vec<Value>) {
    let (conditions, values) = conditions(which);
    let sql = format!(
        "SELECT learned_at, row FROM memory_versions INDEXED BY memory_versions_by_scope \
         WHERE {conditions}"
    );
    (sql, values)
}

fn in_scopes(condition: &str) -> String {
    format!("scope IN (SELECT row FROM memory_scopes WHERE {condition})")
}

/// The condition that the versions of a list satisfy, and its values.
fn conditions(which: &Listing) -> (String, Vec<Value>) {
    let mut conditions = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    if let Some((condition, names)) = filter(&which.scope) {
        conditions.push(in_scopes(&condition));
        values.extend(names);
    }
    let mut only = |condition: &str, with: &[Value]| {
        conditions.push(condition.to_owned());
        values.extend_from_slice(with);
    };
    match which.known_at {
        None => only("learned_until IS NULL", &[]),
        Some(at) => only(
            "learned_at <= ? AND (learned_until IS NULL OR learned_until > ?)",
            &[at.into(), at.into()],
        ),
    }
    if let Some(kind) = &which.kind {
        only("kind = ?", &[kind.to_string().into()]);
    }
    if let Some(at) = which.as_of {
        only(
            "(valid_from IS NULL OR valid_from <= ?) AND (valid_until IS NULL OR valid_until > ?)",
            &[at.into(), at.into()],
        );
    }
    if let Some(at) = which.ended_by {
        only("(valid_until IS NULL OR valid_until > ?)", &[at.into()]);
    }
    if let Some(after) = which.learned_after {
        only("learned_at > ?", &[after.into()]);
    }
    if let Some(before) = which.learned_before {
        only("learned_at < ?", &[before.into()]);
    }
    (conditions.join(" AND "), values)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::types::memory::Scope;

    fn plan(sql: &str, values: &[Value]) -> String {
        let connection = Connection::open_in_memory().unwrap();
        for migration in crate::engine::sqlite::MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = connection.prepare(&sql).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get(3));
        let steps: Result<Vec<String>, _> = steps.unwrap().collect();
        steps.unwrap().join("; ")
    }

    #[test]
    fn every_list_uses_a_covering_index() {
        for bits in 0..256_u32 {
            let set = |bit: u32| bits & (1 << bit) != 0;
            let time = |bit| set(bit).then_some(7);
            let which = Listing {
                scope: Scope {
                    user: set(0).then(|| "ada".into()),
                    run: set(1).then(|| "r1".into()),
                    ..Scope::default()
                },
                kind: set(2).then(|| "semantic".into()),
                as_of: time(3),
                known_at: time(4),
                ended_by: time(5),
                learned_after: time(6),
                learned_before: time(7),
                ..Listing::default()
            };
            let (sql, values) = search(&which);
            let plan = plan(&sql, &values);
            let index = "USING COVERING INDEX memory_versions_by_scope";
            assert!(plan.contains(index), "{which:?}: {plan}");
            if set(0) || set(1) {
                assert!(plan.contains("(scope=?"), "{which:?}: {plan}");
                assert!(!plan.contains("SCAN"), "{which:?}: {plan}");
            }
        }
    }
}
