//! Lists of memories in the engine.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::super::{Database, Trouble, signed, unsigned};
use super::filter;
use crate::limits::ROWS_PER_ANSWER;
use crate::memory::{Listed, Listing};

impl Database {
    /// The versions that match, newest first.
    pub(crate) fn list(&self, which: &Listing) -> Result<Listed, Trouble> {
        let (conditions, values) = conditions(which);
        let sql = format!("SELECT count(*) FROM memory_versions WHERE {conditions}");
        let total = self
            .connection
            .query_row(&sql, params_from_iter(&values), |row| row.get(0))?;
        // First which, then what: the contents of those left out are never read.
        let limit = signed(which.limit.min(ROWS_PER_ANSWER));
        let offset = signed(which.offset);
        let sql = format!(
            "SELECT row FROM memory_versions WHERE {conditions} \
             ORDER BY learned_at DESC, row DESC LIMIT {limit} OFFSET {offset}"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement
            .query_map(params_from_iter(&values), |row| row.get(0).map(unsigned))?
            .collect::<Result<Vec<u64>, _>>()?;
        Ok(Listed {
            versions: self.versions(&rows)?,
            total: unsigned(total),
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
