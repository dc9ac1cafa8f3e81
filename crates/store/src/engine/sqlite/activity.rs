//! Activity in the engine: insertion, queries, and the removal of old rows.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::types::Value;
use rusqlite::{Row, Transaction, params, params_from_iter};

use super::{Database, SqliteError, begin, signed, time_of, unsigned};
use crate::types::activity::{Activity, Outcome, OutcomeKind, Query, beginning};
use crate::types::limits::{ROWS_PER_ANSWER, ROWS_PER_TRIM, SEARCH_BYTES};
use crate::types::micros_since_1970;

pub(super) fn append(
    transaction: &Transaction<'_>,
    activities: &[Activity],
) -> rusqlite::Result<()> {
    let count = signed(activities.len());
    let last: i64 = transaction.query_row(
        "UPDATE activity_counter SET last = last + ?1 RETURNING last",
        [count],
        |row| row.get(0),
    )?;
    let ids = last.saturating_sub(count).saturating_add(1)..;
    let mut insert = transaction.prepare(
        "INSERT INTO activity (id, at, server, method, name, client, duration, outcome, code, \
         error, request_bytes, response_bytes, waited, principal, door) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    for (id, activity) in ids.zip(activities) {
        let code = match activity.outcome {
            Outcome::Error { code } => Some(code),
            Outcome::Ok | Outcome::ToolError | Outcome::Cancelled | Outcome::Timeout => None,
        };
        insert.execute(params![
            id,
            micros_since_1970(activity.at),
            &*activity.server,
            &*activity.method,
            &*activity.name,
            &*activity.client,
            signed(activity.duration.as_micros()),
            activity.outcome.kind().as_str(),
            code,
            activity.error.as_deref(),
            signed(activity.request_bytes),
            signed(activity.response_bytes),
            signed(activity.waited.as_micros()),
            &*activity.principal,
            activity.door.as_ref(),
        ])?;
    }
    Ok(())
}

impl Database {
    /// Returns the rows that match, newest first.
    pub(crate) fn activity(&self, query: &Query) -> Result<Vec<Activity>, SqliteError> {
        let (sql, values) = select(query);
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes a batch of rows that are too many or too old. Returns `true` if there may be more.
    pub(crate) fn trim(&mut self, most_rows: u64, oldest: SystemTime) -> Result<bool, SqliteError> {
        let rows = match self.rows {
            Some(rows) => rows,
            None => self
                .connection
                .query_row("SELECT count(*) FROM activity", [], |row| row.get(0))
                .map(unsigned)?,
        };
        self.rows = Some(rows);
        let excess = signed(rows.saturating_sub(most_rows).min(ROWS_PER_TRIM as u64));
        let oldest = micros_since_1970(oldest);
        let first: Option<i64> =
            self.connection
                .query_row("SELECT min(id) FROM activity", [], |row| row.get(0))?;
        let Some(first) = first else {
            return Ok(false);
        };
        let first_is_old: bool = self.connection.query_row(
            "SELECT at < ?2 FROM activity WHERE id = ?1",
            params![first, oldest],
            |row| row.get(0),
        )?;
        if excess == 0 && !first_is_old {
            return Ok(false);
        }
        self.sync_commits(false)?;
        let transaction = begin(&mut self.connection)?;
        let mut removed = transaction.execute(
            "DELETE FROM activity WHERE id IN (SELECT id FROM activity ORDER BY id LIMIT ?1)",
            [excess],
        )?;
        removed += transaction.execute(
            "DELETE FROM activity WHERE at < ?2 \
             AND id IN (SELECT id FROM activity ORDER BY id LIMIT ?1)",
            params![signed(ROWS_PER_TRIM), oldest],
        )?;
        transaction.commit()?;
        self.rows = Some(rows.saturating_sub(removed as u64));
        Ok(removed >= ROWS_PER_TRIM)
    }
}

fn select(query: &Query) -> (String, Vec<Value>) {
    let mut conditions = vec!["1".to_owned()];
    let mut values = Vec::new();
    let mut only = |condition: &str, value: Value| {
        conditions.push(condition.to_owned());
        values.push(value);
    };
    if let Some(server) = &query.server {
        only("server = ?", server.clone().into());
    }
    if let Some(name) = &query.name {
        only("name = ?", name.clone().into());
    }
    if let Some(since) = query.since {
        only("id > ?", signed(since).into());
    }
    if let Some(before) = query.before {
        only("id < ?", signed(before).into());
    }
    if let Some(text) = &query.text {
        only(
            "(server || char(10) || method || char(10) || name || char(10) || client || char(10) || principal || char(10) \
             || ifnull(error, '')) LIKE ? ESCAPE '\\'",
            like(beginning(text, SEARCH_BYTES)).into(),
        );
    }
    if !query.outcomes.is_empty() {
        let words = query.outcomes.iter().map(|kind| kind.as_str().to_owned());
        values.extend(words.map(Value::from));
        let places = vec!["?"; query.outcomes.len()].join(", ");
        conditions.push(format!("outcome IN ({places})"));
    }
    let limit = query.limit.min(ROWS_PER_ANSWER);
    let sql = format!(
        "SELECT id, at, server, method, name, client, duration, outcome, code, error, \
         request_bytes, response_bytes, waited, principal, door FROM activity WHERE {} ORDER BY id DESC LIMIT {limit}",
        conditions.join(" AND ")
    );
    (sql, values)
}

fn like(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

fn read(row: &Row<'_>) -> rusqlite::Result<Activity> {
    let text = |index| -> rusqlite::Result<Arc<str>> { row.get(index) };
    let outcome = text(7)?;
    let outcome = OutcomeKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == &*outcome);
    let code: Option<i64> = row.get(8)?;
    Ok(Activity {
        id: unsigned(row.get(0)?),
        at: time_of(row.get(1)?),
        server: text(2)?,
        method: text(3)?,
        name: text(4)?,
        client: text(5)?,
        duration: Duration::from_micros(unsigned(row.get(6)?)),
        outcome: match outcome {
            Some(OutcomeKind::Ok) => Outcome::Ok,
            Some(OutcomeKind::ToolError) => Outcome::ToolError,
            Some(OutcomeKind::Cancelled) => Outcome::Cancelled,
            Some(OutcomeKind::Timeout) => Outcome::Timeout,
            Some(OutcomeKind::Error) | None => Outcome::Error {
                code: code.unwrap_or_default(),
            },
        },
        error: row.get(9)?,
        request_bytes: unsigned(row.get(10)?),
        response_bytes: unsigned(row.get(11)?),
        waited: Duration::from_micros(unsigned(row.get(12)?)),
        principal: text(13)?,
        door: row.get::<_, String>(14)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_wildcards_are_escaped() {
        assert_eq!(like(r"50%_\o"), r"%50\%\_\\o%");
    }
}
