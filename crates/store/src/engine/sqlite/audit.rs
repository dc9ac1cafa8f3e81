//! The audit log in the engine: queries, and verification of a file that another process may have open.

use std::io;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::{Database, LOCK_WAIT, SqliteError, check_owner, signed, time_of, unsigned};
use crate::types::audit::{Anchor, Audited, Broken, Entry, Flaw, Verdict, link};
use crate::types::limits::{BYTES_PER_ANSWER, ROWS_PER_ANSWER};

const READ: &str =
    "SELECT seq, at, what, subject, body, hash FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2";

impl Database {
    /// Returns the entries after number `since`, oldest first.
    pub(crate) fn audit(&self, since: u64, limit: usize) -> Result<Vec<Audited>, SqliteError> {
        let limit = limit.min(ROWS_PER_ANSWER);
        let mut statement = self.connection.prepare(READ)?;
        let mut rows = statement.query(params![signed(since), signed(limit)])?;
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        while let Some(row) = rows.next()? {
            let audited = read(row)?;
            bytes = bytes.saturating_add(audited.entry.body.len());
            if bytes > BYTES_PER_ANSWER && !found.is_empty() {
                break;
            }
            found.push(audited);
        }
        Ok(found)
    }
}

/// A file opened for reading only. All reads see one snapshot, regardless of concurrent writes.
#[derive(Debug)]
pub(crate) struct Reader {
    connection: Connection,
}

/// The reason why an export ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    SqliteError(SqliteError),
    /// The callback that receives the entries failed.
    Refused(io::Error),
}

impl<E: Into<SqliteError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::SqliteError(error.into())
    }
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Self, SqliteError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        check_owner(&connection)?;
        connection.execute_batch("BEGIN")?;
        Ok(Self { connection })
    }

    pub(crate) fn verify(&self) -> Result<Verdict, SqliteError> {
        let anchor = self.anchor()?;
        let mut verdict = Verdict {
            entries: anchor.seq,
            archived: anchor.seq,
            head: anchor.hash,
            broken: None,
        };
        if self.is_older()? {
            return Ok(verdict);
        }
        let noted = self.noted_end()?;
        if self.has("audit")? {
            verdict.broken = self.walk(&mut verdict)?;
        }
        if verdict.broken.is_none() {
            verdict.broken = compare(&verdict, noted);
        }
        Ok(verdict)
    }

    pub(crate) fn export(
        &self,
        since: u64,
        mut each: impl FnMut(Audited) -> io::Result<()>,
    ) -> Result<(), Stop> {
        if self.is_older()? {
            return Ok(());
        }
        let mut statement = self.connection.prepare(READ)?;
        let mut rows = statement.query(params![signed(since), i64::MAX])?;
        while let Some(row) = rows.next()? {
            each(read(row)?).map_err(Stop::Refused)?;
        }
        Ok(())
    }

    /// Walks the entries for as long as each follows from the one before.
    fn walk(&self, verdict: &mut Verdict) -> Result<Option<Broken>, SqliteError> {
        let mut statement = self.connection.prepare(READ)?;
        let mut rows = statement.query(params![i64::MIN, i64::MAX])?;
        while let Some(row) = rows.next()? {
            let seq = verdict.entries.saturating_add(1);
            let broken = |why| Ok(Some(Broken { seq, why }));
            let found: i64 = row.get(0)?;
            if found > signed(seq) {
                return broken(Flaw::Missing);
            }
            if found < signed(seq) {
                return broken(Flaw::Added);
            }
            match follows(row, found, &verdict.head) {
                Ok(Some(hash)) => verdict.head = hash,
                Ok(None) => return broken(Flaw::Changed),
                Err(error) => match error.into() {
                    SqliteError::Unreadable(_) => return broken(Flaw::Changed),
                    trouble => return Err(trouble),
                },
            }
            verdict.entries = seq;
        }
        Ok(None)
    }

    /// Returns the number and hash of the last entry, as recorded separately from the log.
    fn noted_end(&self) -> Result<Option<(u64, [u8; 32])>, SqliteError> {
        if !self.has("audit_head")? {
            return Ok(None);
        }
        let noted = self
            .connection
            .query_row("SELECT seq, hash FROM audit_head", [], |row| {
                Ok((unsigned(row.get(0)?), row.get(1)?))
            })
            .optional()
            .map_err(SqliteError::from);
        match noted {
            Err(SqliteError::Unreadable(_)) => Ok(None),
            other => other,
        }
    }

    /// Returns the last archived entry.
    pub(crate) fn anchor(&self) -> Result<Anchor, SqliteError> {
        if !self.has("audit_anchor")? {
            return Ok(Anchor::default());
        }
        let sql = "SELECT seq, hash FROM audit_anchor";
        let read = |row: &Row<'_>| {
            Ok(Anchor {
                seq: unsigned(row.get(0)?),
                hash: row.get(1)?,
            })
        };
        let found = self.connection.query_row(sql, [], read).optional()?;
        Ok(found.unwrap_or_default())
    }

    /// Returns the number of entries that are not archived.
    pub(crate) fn length(&self) -> Result<u64, SqliteError> {
        let end = self.noted_end()?.map_or(0, |(end, _)| end);
        Ok(end.saturating_sub(self.anchor()?.seq))
    }

    /// Returns `true` if the file predates the audit log.
    fn is_older(&self) -> rusqlite::Result<bool> {
        Ok(super::version(&self.connection)? < 2)
    }

    fn has(&self, table: &str) -> rusqlite::Result<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let count: i64 = self.connection.query_row(sql, [table], |row| row.get(0))?;
        Ok(count > 0)
    }
}

/// Returns the hash of an entry if it follows from the one before.
fn follows(row: &Row<'_>, seq: i64, previous: &[u8; 32]) -> rusqlite::Result<Option<[u8; 32]>> {
    let text = |index| row.get_ref(index)?.as_str().map_err(Into::into);
    let texts: [rusqlite::Result<&str>; 3] = [text(2), text(3), text(4)];
    let [what, subject, body] = texts;
    let hash = link(previous, seq, row.get(1)?, [what?, subject?, body?]);
    let written: [u8; 32] = row.get(5)?;
    Ok((hash == written).then_some(hash))
}

/// Compares a log that is consistent in itself with the recorded end.
fn compare(verdict: &Verdict, noted: Option<(u64, [u8; 32])>) -> Option<Broken> {
    let entries = verdict.entries;
    let next = entries.saturating_add(1);
    let (seq, why) = match noted {
        None => (next, Flaw::Unended),
        Some((end, _)) if end > entries => (next, Flaw::Cut),
        Some((end, _)) if end < entries => (end.saturating_add(1), Flaw::Added),
        Some((_, hash)) if hash != verdict.head => (entries, Flaw::Changed),
        Some(_) => return None,
    };
    Some(Broken { seq, why })
}

fn read(row: &Row<'_>) -> rusqlite::Result<Audited> {
    Ok(Audited {
        seq: unsigned(row.get(0)?),
        entry: Entry {
            at: time_of(row.get(1)?),
            what: row.get(2)?,
            subject: row.get(3)?,
            body: row.get(4)?,
        },
        hash: row.get(5)?,
    })
}
