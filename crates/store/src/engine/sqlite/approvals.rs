//! Approvals and rules in the engine: queries, and the removal of old closed approvals.

use std::time::SystemTime;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};

use super::{Database, SqliteError, begin, signed, time_of, unsigned};
use crate::types::approval::{Approval, Rule, Which};
use crate::types::limits::{BYTES_PER_ANSWER, ROWS_PER_ANSWER, ROWS_PER_TRIM};
use crate::types::micros_since_1970;

impl Database {
    /// Returns the approvals that match, newest first.
    pub(crate) fn approvals(&self, which: &Which) -> Result<Vec<Approval>, SqliteError> {
        let before = match &which.before {
            None => None,
            Some(id) => match self.created(id)? {
                Some(created) => Some((created, id.to_string())),
                None => return Ok(Vec::new()),
            },
        };
        // Selects the rows first, so that the bodies of other approvals are never read.
        let (sql, values) = select(which, before);
        let mut statement = self.connection.prepare(&sql)?;
        let places = statement
            .query_map(params_from_iter(values), |row| row.get(0))?
            .collect::<Result<Vec<i64>, _>>()?;
        let mut statement = self
            .connection
            .prepare(&format!("{READ} WHERE rowid = ?1"))?;
        let mut found: Vec<Approval> = Vec::with_capacity(places.len());
        let mut bytes = 0_usize;
        for place in places {
            let Some(approval) = statement.query_row([place], read).optional()? else {
                continue;
            };
            bytes = bytes.saturating_add(approval.body.len());
            if bytes > BYTES_PER_ANSWER && !found.is_empty() {
                break;
            }
            found.push(approval);
        }
        Ok(found)
    }

    /// Returns the approval with this ID.
    pub(crate) fn approval(&self, id: &str) -> Result<Option<Approval>, SqliteError> {
        let sql = format!("{READ} WHERE id = ?1");
        let found = self.connection.query_row(&sql, [id], read).optional()?;
        Ok(found)
    }

    /// Returns all rules, oldest first.
    pub(crate) fn rules(&self) -> Result<Vec<Rule>, SqliteError> {
        let mut statement = self
            .connection
            .prepare("SELECT id, created, expires, body FROM rules ORDER BY created, id")?;
        let rows = statement.query_map([], |row| {
            Ok(Rule {
                id: row.get(0)?,
                created: time_of(row.get(1)?),
                expires: row.get::<_, Option<i64>>(2)?.map(time_of),
                body: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes a batch of closed approvals that are too many or too old. Returns `true` if there may
    /// be more.
    pub(crate) fn trim_approvals(
        &mut self,
        most_rows: u64,
        oldest: SystemTime,
    ) -> Result<bool, SqliteError> {
        let closed = match self.closed {
            Some(closed) => closed,
            None => self
                .connection
                .query_row("SELECT count(*) FROM approvals WHERE open = 0", [], |row| {
                    row.get(0)
                })
                .map(unsigned)?,
        };
        self.closed = Some(closed);
        let excess = signed(closed.saturating_sub(most_rows).min(ROWS_PER_TRIM as u64));
        let oldest = micros_since_1970(oldest);
        let first: Option<i64> = self.connection.query_row(
            "SELECT min(changed) FROM approvals WHERE open = 0",
            [],
            |row| row.get(0),
        )?;
        if excess == 0 && first.is_none_or(|first| first >= oldest) {
            return Ok(false);
        }
        self.sync_commits(false)?;
        let transaction = begin(&mut self.connection)?;
        let mut removed = transaction.execute(
            "DELETE FROM approvals WHERE rowid IN \
             (SELECT rowid FROM approvals WHERE open = 0 ORDER BY changed LIMIT ?1)",
            [excess],
        )?;
        removed += transaction.execute(
            "DELETE FROM approvals WHERE rowid IN (SELECT rowid FROM approvals \
             WHERE open = 0 AND changed < ?2 ORDER BY changed LIMIT ?1)",
            params![signed(ROWS_PER_TRIM), oldest],
        )?;
        transaction.commit()?;
        self.closed = Some(closed.saturating_sub(removed as u64));
        Ok(removed >= ROWS_PER_TRIM)
    }

    fn created(&self, id: &str) -> rusqlite::Result<Option<i64>> {
        let sql = "SELECT created FROM approvals WHERE id = ?1";
        self.connection
            .query_row(sql, [id], |row| row.get(0))
            .optional()
    }
}

const READ: &str =
    "SELECT id, kind, status, open, server, created, changed, version, body FROM approvals";

/// The query for the row numbers of all matches, in order.
fn select(which: &Which, before: Option<(i64, String)>) -> (String, Vec<Value>) {
    let mut conditions = vec!["1".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    if !which.statuses.is_empty() {
        let marks = vec!["?"; which.statuses.len()].join(", ");
        conditions.push(format!("status IN ({marks})"));
        let statuses = which.statuses.iter();
        values.extend(statuses.map(|status| Value::from(status.to_string())));
    }
    let mut only = |condition: &str, value: Value| {
        conditions.push(condition.to_owned());
        values.push(value);
    };
    if let Some(open) = which.open {
        only("open = ?", open.into());
    }
    if let Some(kind) = &which.kind {
        only("kind = ?", kind.to_string().into());
    }
    if let Some(server) = &which.server {
        only("server = ?", server.to_string().into());
    }
    if let Some((created, id)) = before {
        conditions.push("(created, id) < (?, ?)".to_owned());
        values.extend([Value::from(created), Value::from(id)]);
    }
    let limit = which.limit.min(ROWS_PER_ANSWER);
    let sql = format!(
        "SELECT rowid FROM approvals WHERE {} ORDER BY created DESC, id DESC LIMIT {limit}",
        conditions.join(" AND ")
    );
    (sql, values)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Approval> {
    Ok(Approval {
        id: row.get(0)?,
        kind: row.get(1)?,
        status: row.get(2)?,
        open: row.get(3)?,
        server: row.get(4)?,
        created: time_of(row.get(5)?),
        changed: time_of(row.get(6)?),
        version: unsigned(row.get(7)?),
        body: row.get(8)?,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn plan(which: &Which, before: Option<(i64, String)>) -> String {
        let connection = Connection::open_in_memory().unwrap();
        for migration in crate::engine::sqlite::MIGRATIONS {
            connection.execute_batch(migration).unwrap();
        }
        let (sql, values) = select(which, before);
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = connection.prepare(&sql).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get(3));
        let steps: Result<Vec<String>, _> = steps.unwrap().collect();
        steps.unwrap().join("; ")
    }

    #[test]
    fn every_list_uses_a_covering_index() {
        for bits in 0..64_u32 {
            let set = |bit: u32| bits & (1 << bit) != 0;
            let mut statuses = vec!["pending".into(), "orphaned".into()];
            statuses.truncate(usize::from(set(0)) + usize::from(set(1)));
            let which = Which {
                statuses,
                open: set(2).then_some(true),
                kind: set(3).then(|| "trust".into()),
                server: set(4).then(|| "files".into()),
                ..Which::default()
            };
            let plan = plan(&which, set(5).then(|| (5, "k1".to_owned())));
            assert!(plan.contains("USING COVERING INDEX"), "{which:?}: {plan}");
            if which.open.is_none() && which.statuses.len() == 1 {
                assert!(plan.contains("approvals_by_status (status=?"), "{plan}");
            }
            if which.statuses.len() < 2 {
                assert!(!plan.contains("TEMP B-TREE"), "{which:?}: {plan}");
            }
        }
    }
}
