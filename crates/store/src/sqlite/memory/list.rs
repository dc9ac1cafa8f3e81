//! Lists of memories in the engine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::super::{Database, Trouble, unsigned};
use super::filter;
use crate::limits::ROWS_PER_ANSWER;
use crate::memory::{Listed, Listing};

impl Database {
    /// The versions that match, newest first.
    pub(crate) fn list(&self, which: &Listing) -> Result<Listed, Trouble> {
        let (conditions, values) = conditions(which);
        let sql = format!("SELECT learned_at, row FROM memory_versions WHERE {conditions}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut places = statement.query(params_from_iter(&values))?;
        // All have to be counted, so the newest of them are found on the way: the page asked for, and
        // those before it. The contents of the others are never read.
        let limit = which.limit.min(ROWS_PER_ANSWER);
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
        let rows: Vec<u64> = page
            .iter()
            .map(|Reverse((_, row))| unsigned(*row))
            .collect();
        Ok(Listed {
            versions: self.versions(&rows)?,
            total,
        })
    }
}

/// What the versions of a list have in common: a condition, and the values in it.
fn conditions(which: &Listing) -> (String, Vec<Value>) {
    let mut conditions = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    if let Some((condition, names)) = filter(&which.scope) {
        conditions.push(format!(
            "scope IN (SELECT row FROM memory_scopes WHERE {condition})"
        ));
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
    use crate::memory::Scope;

    fn plan(sql: &str, values: &[Value]) -> String {
        let connection = Connection::open_in_memory().unwrap();
        for migration in crate::sqlite::MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = connection.prepare(&sql).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get(3));
        let steps: Result<Vec<String>, _> = steps.unwrap().collect();
        steps.unwrap().join("; ")
    }

    #[test]
    fn every_list_is_made_from_an_index_alone() {
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
            let (conditions, values) = conditions(&which);
            let sql = format!("SELECT learned_at, row FROM memory_versions WHERE {conditions}");
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
