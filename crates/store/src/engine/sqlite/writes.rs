//! Durable writes in the engine: each is atomic, and many share one commit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::{OptionalExtension, Params, Row, Statement, Transaction, params};

use super::{SqliteError, signed};
use crate::types::approval::Approval;
use crate::types::audit::{Entry, link};
use crate::types::change::Change;
use crate::types::error::{Fate, StoreError};
use crate::types::micros_since_1970;

/// The context in which the writes of one commit run.
#[derive(Debug)]
pub(crate) struct Commit<'a> {
    transaction: &'a Transaction<'a>,
    /// Statements used so far: preparing one costs more than running most of them.
    statements: HashMap<&'static str, Statement<'a>>,
    /// End of the audit log, once an entry was added.
    head: Option<Head>,
    /// Damaged files whose memories have not been restored.
    aside: Option<Arc<str>>,
    effects: Effects,
}

/// A write to run within a commit.
pub(crate) trait CommitTask {
    /// Returns `true` if it must be on disk before it is answered.
    fn is_lasting(&self) -> bool;

    /// Runs the write; `Ok(false)` means that its effects are to be rolled back. After an error, it can
    /// be run again.
    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError>;
}

/// The changes of a commit to the state that the engine caches.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Effects {
    /// Change in the number of closed approvals.
    pub(super) closed: i64,
    /// The damaged files were dealt with.
    pub(super) mended: bool,
    /// There may be newly retired models whose vectors must be removed.
    pub(super) retired: bool,
}

/// The last entry of the audit log.
#[derive(Debug, Clone, Copy)]
struct Head {
    seq: i64,
    hash: [u8; 32],
}

/// Applies every write that does not conflict.
pub(super) fn apply(
    transaction: &Transaction<'_>,
    writes: &mut [impl CommitTask],
    aside: Option<&Arc<str>>,
) -> Result<Effects, SqliteError> {
    let mut commit = Commit {
        transaction,
        statements: HashMap::new(),
        head: None,
        aside: aside.cloned(),
        effects: Effects::default(),
    };
    for write in writes {
        commit.one(write)?;
    }
    commit.end()
}

/// Removes expired rules.
pub(super) fn forget_ended(transaction: &Transaction<'_>, now: SystemTime) -> rusqlite::Result<()> {
    let now = micros_since_1970(now);
    transaction.execute("DELETE FROM rules WHERE expires <= ?1", [now])?;
    Ok(())
}

impl<'a> Commit<'a> {
    /// Applies these changes in order, up to the first that conflicts.
    pub(crate) fn changes(&mut self, changes: &[Change]) -> Result<Fate<()>, SqliteError> {
        for change in changes {
            match change {
                Change::Approval { row, was } => {
                    if !self.put(row, *was)? {
                        return Ok(Err(StoreError::Conflict));
                    }
                }
                Change::Remember(rule) => {
                    let expires = rule.expires.map(micros_since_1970);
                    let created = micros_since_1970(rule.created);
                    self.execute(
                        "INSERT OR REPLACE INTO rules (id, created, expires, body) \
                         VALUES (?1, ?2, ?3, ?4)",
                        params![&*rule.id, created, expires, &*rule.body],
                    )?;
                }
                Change::Forget(id) => {
                    self.execute("DELETE FROM rules WHERE id = ?1", [&**id])?;
                }
                Change::Audit(entry) => self.note(entry)?,
            }
        }
        Ok(Ok(()))
    }

    /// The changes of this commit to the state that the engine caches.
    pub(super) fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    /// Damaged files whose memories have not been restored.
    pub(super) fn aside(&self) -> Option<Arc<str>> {
        if self.effects.mended {
            return None;
        }
        self.aside.clone()
    }

    /// Executes a statement and returns the number of rows it changed.
    pub(super) fn execute(
        &mut self,
        sql: &'static str,
        params: impl Params,
    ) -> rusqlite::Result<usize> {
        self.statement(sql)?.execute(params)
    }

    /// Returns the first row that a query finds.
    pub(super) fn find<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.statement(sql)?.query_row(params, read).optional()
    }

    /// Returns all rows that a query finds.
    pub(super) fn all<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.statement(sql)?.query_map(params, read)?.collect()
    }

    /// Row number of the last insertion.
    pub(super) fn last_row(&self) -> i64 {
        self.transaction.last_insert_rowid()
    }

    pub(super) fn transaction(&self) -> &'a Transaction<'a> {
        self.transaction
    }

    fn statement(&mut self, sql: &'static str) -> rusqlite::Result<&mut Statement<'a>> {
        use std::collections::hash_map::Entry::{Occupied, Vacant};

        match self.statements.entry(sql) {
            Occupied(known) => Ok(known.into_mut()),
            Vacant(new) => Ok(new.insert(self.transaction.prepare(sql)?)),
        }
    }

    /// Applies a write, or rolls back all of its effects.
    fn one(&mut self, write: &mut impl CommitTask) -> Result<(), SqliteError> {
        self.execute("SAVEPOINT one", [])?;
        let before = (self.head, self.effects);
        if !write.make(self)? {
            (self.head, self.effects) = before;
            self.execute("ROLLBACK TO one", [])?;
        }
        self.execute("RELEASE one", [])?;
        Ok(())
    }

    /// Records the new end of the audit log.
    fn end(mut self) -> Result<Effects, SqliteError> {
        if let Some(Head { seq, hash }) = self.head {
            self.execute(
                "INSERT INTO audit_head (one, seq, hash) VALUES (1, ?1, ?2) \
                 ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
                params![seq, hash],
            )?;
        }
        Ok(self.effects)
    }

    /// Inserts or updates an approval. Returns `false` if the stored version is not `was`, or the new
    /// one is not greater.
    fn put(&mut self, row: &Approval, was: u64) -> rusqlite::Result<bool> {
        let found: Option<(i64, bool)> = self.find(
            "SELECT version, open FROM approvals WHERE id = ?1",
            [&*row.id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let (version, was_open) = found.unwrap_or((0, true));
        if version != signed(was) || row.version <= was {
            return Ok(false);
        }
        let sql = match found {
            None => {
                "INSERT INTO approvals \
                 (id, kind, status, open, server, created, changed, version, body) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
            }
            Some(_) => {
                "UPDATE approvals SET kind = ?2, status = ?3, open = ?4, server = ?5, \
                 created = ?6, changed = ?7, version = ?8, body = ?9 WHERE id = ?1"
            }
        };
        self.execute(
            sql,
            params![
                &*row.id,
                &*row.kind,
                &*row.status,
                row.open,
                &*row.server,
                micros_since_1970(row.created),
                micros_since_1970(row.changed),
                signed(row.version),
                &*row.body,
            ],
        )?;
        let closed = i64::from(was_open) - i64::from(row.open);
        self.effects.closed = self.effects.closed.saturating_add(closed);
        Ok(true)
    }

    /// Adds an entry to the audit log.
    fn note(&mut self, entry: &Entry) -> Result<(), SqliteError> {
        let last = match self.head {
            Some(head) => head,
            None => self.last_entry()?,
        };
        let seq = last.seq.saturating_add(1);
        let at = micros_since_1970(entry.at);
        let texts = [&*entry.what, &*entry.subject, &*entry.body];
        let hash = link(&last.hash, seq, at, texts);
        let [what, subject, body] = texts;
        self.execute(
            "INSERT INTO audit (seq, at, what, subject, body, hash) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![seq, at, what, subject, body, hash],
        )?;
        self.head = Some(Head { seq, hash });
        Ok(())
    }

    /// Returns the entry after which the log continues. If an entry was added after the recorded end,
    /// or that record was removed, the log continues after the last entry all the same; verification
    /// then reports the defect.
    fn last_entry(&mut self) -> rusqlite::Result<Head> {
        let noted = self.find("SELECT seq, hash FROM audit_head", [], |row| {
            Ok(Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            })
        })?;
        let mut head = noted.unwrap_or(Head {
            seq: 0,
            hash: [0; 32],
        });
        let last = self.find("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
        head.seq = head.seq.max(last.flatten().unwrap_or(0));
        Ok(head)
    }
}
