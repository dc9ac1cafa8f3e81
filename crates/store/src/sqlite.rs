//! The engine: one file of the `SQLite` kind. All SQL is here and in `migrations/`.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior, params,
    params_from_iter,
};

use crate::activity::{Activity, Outcome, OutcomeKind, Query, beginning};
use crate::limits::{LOCK_WAIT, ROWS_PER_ANSWER, ROWS_PER_TRIM, SEARCH_BYTES};

/// What brings a file from one version to the next; the file's `user_version` counts them.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/0001_activity.sql")];

/// Marks a file as ours; it reads `SwBd`.
const APPLICATION: i64 = 0x5377_4264;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("another program holds it locked")]
    Locked,
    #[error("it is damaged")]
    Damaged(#[source] rusqlite::Error),
    #[error("it was written by a newer Switchboard (version {found}, this one knows {known})")]
    Newer { found: i64, known: usize },
    #[error("it is the database of another program")]
    Foreign,
    #[error("the disk is full")]
    Full,
    #[error("it may not be written to")]
    ReadOnly,
    #[error("it cannot be made")]
    Make(#[source] io::Error),
    #[error("{0}")]
    Other(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            _ => Self::Other(error),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    /// How many rows there are; `None` until somebody had time to count.
    rows: Option<u64>,
}

impl Database {
    /// Opens the file, or makes it, and brings it up to date.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        make(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        check_owner(&connection)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        migrate(&mut connection)?;
        Ok(Self {
            connection,
            rows: None,
        })
    }

    /// Commits all of these, or none.
    pub(crate) fn append(&mut self, activities: &[Activity]) -> Result<(), Trouble> {
        let transaction = begin(&mut self.connection)?;
        let count = signed(activities.len());
        let last: i64 = transaction.query_row(
            "UPDATE activity_counter SET last = last + ?1 RETURNING last",
            [count],
            |row| row.get(0),
        )?;
        let ids = last.saturating_sub(count).saturating_add(1)..;
        let mut insert = transaction.prepare(
            "INSERT INTO activity (id, at, server, method, name, client, duration, outcome, code, \
             error, request_bytes, response_bytes) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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
            ])?;
        }
        drop(insert);
        transaction.commit()?;
        if let Some(rows) = &mut self.rows {
            *rows = rows.saturating_add(activities.len() as u64);
        }
        Ok(())
    }

    /// The rows that match, newest first.
    pub(crate) fn activity(&self, query: &Query) -> Result<Vec<Activity>, Trouble> {
        let (sql, values) = select(query);
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes a few of the rows that are too many or too old. Says whether there may be more.
    pub(crate) fn trim(&mut self, most_rows: u64, oldest: SystemTime) -> Result<bool, Trouble> {
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

    /// Puts everything into the one file and lets go of it.
    pub(crate) fn close(self) {
        // Where somebody else is reading, the log stays beside the file; nothing is lost by it.
        let emptied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = emptied {
            tracing::debug!(%error, "The log of the store stays beside its file.");
        }
    }
}

/// Puts a damaged file aside, with its log, for whoever wants to rescue something.
pub(crate) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut aside = with_suffix(path, &format!(".damaged-{}", now.as_secs()));
    if aside.try_exists()? {
        aside = with_suffix(path, &format!(".damaged-{}", now.as_nanos()));
    }
    std::fs::rename(path, &aside)?;
    for log in ["-wal", "-shm"] {
        match std::fs::rename(with_suffix(path, log), with_suffix(&aside, log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// Makes an empty file that only its owner can read, because errors may quote anything. The
/// engine gives the log beside it the same mode.
fn make(path: &Path) -> Result<(), Trouble> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(Trouble::Make)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Trouble::Make(error)),
        _ => Ok(()),
    }
}

/// Refuses a file that is not ours to change, before anything of it was changed.
fn check_owner(connection: &Connection) -> Result<(), Trouble> {
    let version = version(connection)?;
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let refusal = if application != APPLICATION && (version, application, objects) != (0, 0, 0) {
        Trouble::Foreign
    } else if usize::try_from(version).is_ok_and(|version| version <= MIGRATIONS.len()) {
        return Ok(());
    } else {
        Trouble::Newer {
            found: version,
            known: MIGRATIONS.len(),
        }
    };
    // Even tidying up the log when letting go would be a change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Err(refusal)
}

fn migrate(connection: &mut Connection) -> Result<(), Trouble> {
    // This is done even when there is nothing to do: it tells whether the file can be written to.
    let transaction = begin(connection)?;
    // Another process may have done it in the meantime, so the version is read again.
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    if done < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", signed(MIGRATIONS.len()))?;
    }
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Begins by taking the lock, so that a transaction cannot fail for it half-way.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn select(query: &Query) -> (String, Vec<Value>) {
    let mut conditions = vec!["1"];
    let mut values = Vec::new();
    let mut only = |condition, value: Value| {
        conditions.push(condition);
        values.push(value);
    };
    if let Some(server) = &query.server {
        only("server = ?", server.clone().into());
    }
    if let Some(name) = &query.name {
        only("name = ?", name.clone().into());
    }
    if let Some(outcome) = query.outcome {
        only("outcome = ?", outcome.as_str().to_owned().into());
    }
    if let Some(since) = query.since {
        only("id > ?", signed(since).into());
    }
    if let Some(before) = query.before {
        only("id < ?", signed(before).into());
    }
    if let Some(text) = &query.text {
        only(
            "(server || char(10) || method || char(10) || name || char(10) || client || char(10) \
             || ifnull(error, '')) LIKE ? ESCAPE '\\'",
            like(beginning(text, SEARCH_BYTES)).into(),
        );
    }
    let limit = query.limit.min(ROWS_PER_ANSWER);
    let sql = format!(
        "SELECT id, at, server, method, name, client, duration, outcome, code, error, \
         request_bytes, response_bytes FROM activity WHERE {} ORDER BY id DESC LIMIT {limit}",
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
    })
}

/// The numbers of the engine are signed; nothing that is counted here comes near their end.
fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    number.try_into().unwrap_or(0)
}

fn micros_since_1970(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => signed(after.as_micros()),
        Err(before) => signed(before.duration().as_micros()).saturating_neg(),
    }
}

fn time_of(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    let time = if micros < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_on_both_sides_of_1970() {
        for micros in [0, 1, -1, 1_794_718_800_123_456, -62_000_000_000_000_000] {
            assert_eq!(micros_since_1970(time_of(micros)), micros);
        }
    }

    #[test]
    fn what_like_means_specially_is_searched_for_as_it_is() {
        assert_eq!(like(r"50%_\o"), r"%50\%\_\\o%");
    }
}
