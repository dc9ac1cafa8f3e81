//! The `SQLite` engine. All SQL is in this module, the modules below it, and `migrations/`.

mod activity;
mod approvals;
mod archive;
mod audit;
mod memory;
mod writes;

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

pub(crate) use self::audit::{Reader, Stop};
pub(crate) use self::memory::{Ending, read_damaged, rename_aside};
pub(crate) use self::writes::{Commit, CommitTask};
use crate::types::activity::Activity;
use crate::types::limits::LOCK_WAIT;

/// Migrations from each version of the file to the next; `user_version` counts the ones applied.
const MIGRATIONS: [&str; 6] = [
    include_str!("migrations/0001_activity.sql"),
    include_str!("migrations/0002_approvals.sql"),
    include_str!("migrations/0003_memory.sql"),
    include_str!("migrations/0004_archive.sql"),
    include_str!("migrations/0005_waited.sql"),
    include_str!("migrations/0006_principal.sql"),
];

/// The application ID of our files; it reads `SwBd`.
const APPLICATION: i64 = 0x5377_4264;

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqliteError {
    #[error("another program has locked it")]
    Locked,
    #[error("it is damaged")]
    Damaged(#[source] rusqlite::Error),
    #[error(
        "a newer version of Switchboard wrote it (file version {found}, this program reads up to {known})"
    )]
    Newer { found: i64, known: usize },
    #[error("it is the database of another program")]
    Foreign,
    #[error("the disk is full")]
    Full,
    #[error("it is read-only")]
    ReadOnly,
    #[error("it cannot be created")]
    Make(#[source] io::Error),
    #[error("it cannot be read or copied")]
    Read(#[source] io::Error),
    /// The file is intact, but a value in it has an unexpected type or range.
    #[error("a value in it is invalid")]
    Unreadable(#[source] rusqlite::Error),
    #[error("{0}")]
    Other(rusqlite::Error),
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(_) => Self::Other(error),
            None => Self::unreadable(error),
        }
    }
}

impl SqliteError {
    /// Returns `true` if an open file can still be read.
    pub(crate) const fn leaves_reading(&self) -> bool {
        matches!(self, Self::Full | Self::Locked | Self::ReadOnly)
    }

    /// Classifies an error that is not from `SQLite` itself: it may concern a value in the file.
    fn unreadable(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Self::Unreadable(error),
            _ => Self::Other(error),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    connection: Connection,
    /// Commits wait until the data is on disk.
    syncs: bool,
    /// Number of rows of activity; `None` until they are first counted.
    rows: Option<u64>,
    /// Number of closed approvals; `None` until they are first counted.
    closed: Option<u64>,
    /// Damaged files whose memories have not been restored.
    aside: Option<Arc<str>>,
    /// Progress of removing the vectors of retired models.
    vectors: memory::Trim,
    /// A model, and the row up to which every version is known to have a vector of it.
    filled: Cell<(i64, i64)>,
}

impl Database {
    /// Opens or creates the file, and migrates it.
    pub(crate) fn open(path: &Path) -> Result<Self, SqliteError> {
        make(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        check_owner(&connection)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        // On macOS, `fsync` alone does not force the disk to write its cache.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection, path)?;
        Ok(Self {
            path: path.to_owned(),
            aside: memory::aside(&connection, path)?,
            vectors: memory::Trim::default(),
            filled: Cell::default(),
            connection,
            syncs: false,
            rows: None,
            closed: None,
        })
    }

    /// Commits all of this, except for writes that conflict. Afterwards each write has its result.
    pub(crate) fn commit(
        &mut self,
        activities: &[Activity],
        writes: &mut [impl CommitTask],
    ) -> Result<(), SqliteError> {
        self.sync_commits(writes.iter().any(CommitTask::is_lasting))?;
        let transaction = begin(&mut self.connection)?;
        if !activities.is_empty() {
            activity::append(&transaction, activities)?;
        }
        let effects = writes::apply(&transaction, writes, self.aside.as_ref())?;
        transaction.commit()?;
        if let Some(rows) = &mut self.rows {
            *rows = rows.saturating_add(activities.len() as u64);
        }
        if let Some(closed) = &mut self.closed {
            *closed = closed.saturating_add_signed(effects.closed);
        }
        if effects.mended {
            self.aside = None;
        }
        if effects.retired {
            self.vectors = memory::Trim::default();
        }
        Ok(())
    }

    /// Rewrites a page of the file unchanged, to test if the file can be written to.
    pub(crate) fn probe(&mut self) -> Result<(), SqliteError> {
        let version = version(&self.connection)?;
        let transaction = begin(&mut self.connection)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
        Ok(())
    }

    /// Sets whether commits wait for the disk; if not, a loss of power may undo the last ones.
    fn sync_commits(&mut self, syncs: bool) -> rusqlite::Result<()> {
        if self.syncs != syncs {
            let level = if syncs { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.syncs = syncs;
        }
        Ok(())
    }

    /// Moves the log into the database file and closes it.
    pub(crate) fn close(self) {
        // If another process is reading, the log stays beside the file; nothing is lost.
        let emptied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = emptied {
            tracing::debug!(%error, "The write-ahead log of the store stays beside its file.");
        }
    }
}

/// Sets a damaged file aside, with its log, so that data can be salvaged from it.
pub(crate) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut aside = with_suffix(path, &format!("{}{}", memory::DAMAGED, now.as_secs()));
    if aside.try_exists()? {
        aside = with_suffix(path, &format!("{}{}", memory::DAMAGED, now.as_nanos()));
    }
    rename(path, &aside)?;
    Ok(aside)
}

/// Renames a file and its log.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    for log in ["-wal", "-shm"] {
        match std::fs::rename(with_suffix(from, log), with_suffix(to, log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Creates an empty file that only its owner can read, because error texts may contain anything.
/// `SQLite` gives the log beside it the same mode.
fn make(path: &Path) -> Result<(), SqliteError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(SqliteError::Make)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(SqliteError::Make(error)),
        _ => Ok(()),
    }
}

/// Refuses a file of another program or a newer version, before anything in it is changed.
fn check_owner(connection: &Connection) -> Result<(), SqliteError> {
    let version = version(connection)?;
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let refusal = if application != APPLICATION && (version, application, objects) != (0, 0, 0) {
        SqliteError::Foreign
    } else if usize::try_from(version).is_ok_and(|version| version <= MIGRATIONS.len()) {
        return Ok(());
    } else {
        SqliteError::Newer {
            found: version,
            known: MIGRATIONS.len(),
        }
    };
    // Even a checkpoint on close would be a change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Err(refusal)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), SqliteError> {
    // This transaction runs even if no migration is due: it tests that the file can be written to.
    let transaction = begin(connection)?;
    // Another process may have migrated the file meanwhile, so the version is read again.
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(migration)?;
    }
    if done < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", signed(MIGRATIONS.len()))?;
    }
    if done == 0 {
        memory::note(&transaction, path)?;
    }
    writes::forget_ended(&transaction, SystemTime::now())?;
    transaction.commit()?;
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Takes the write lock at the start, so that a transaction cannot fail half-way for lack of it.
fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Converts to the signed integers of `SQLite`; no count in this crate comes near their limit.
fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    number.try_into().unwrap_or(0)
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
    use crate::types::micros_since_1970;

    #[test]
    fn times_before_and_after_1970_round_trip() {
        for micros in [0, 1, -1, 1_794_718_800_123_456, -62_000_000_000_000_000] {
            assert_eq!(micros_since_1970(time_of(micros)), micros);
        }
    }
}
