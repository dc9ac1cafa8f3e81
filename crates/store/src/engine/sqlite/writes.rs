//! Durable writes in the engine: each whole or not at all, many in one commit.

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

/// What the writes of one commit are made with.
#[derive(Debug)]
pub(crate) struct Commit<'a> {
    transaction: &'a Transaction<'a>,
    /// Those used so far: preparing one costs more than most of them do.
    statements: HashMap<&'static str, Statement<'a>>,
    /// The end of the audit log, once somebody added to it.
    head: Option<Head>,
    /// The damaged files whose memories are missed.
    aside: Option<Arc<str>>,
    effects: Effects,
}

/// A write that waits to be made within a commit.
pub(crate) trait CommitTask {
    /// Tests if it must be on the disk before it is answered.
    fn is_lasting(&self) -> bool;

    /// Makes it; `false` if what it did is to be undone. After an error it can be made again.
    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError>;
}

/// What a commit changes of what the engine knows without asking the file.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Effects {
    /// How many more closed approvals there are.
    pub(super) closed: i64,
    /// Whether the memories of damaged files are not missed any more.
    pub(super) mended: bool,
    /// Whether there may be other models whose vectors go.
    pub(super) retired: bool,
}

/// The last entry of the audit log.
#[derive(Debug, Clone, Copy)]
struct Head {
    seq: i64,
    hash: [u8; 32],
}

/// Makes every write that is not in conflict.
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

/// Removes the rules that have ended.
pub(super) fn forget_ended(transaction: &Transaction<'_>, now: SystemTime) -> rusqlite::Result<()> {
    let now = micros_since_1970(now);
    transaction.execute("DELETE FROM rules WHERE expires <= ?1", [now])?;
    Ok(())
}

impl<'a> Commit<'a> {
    /// Makes these changes one after the other, up to the first that is in conflict.
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

    /// What this commit changes of what the engine knows.
    pub(super) fn effects(&mut self) -> &mut Effects {
        &mut self.effects
    }

    /// The damaged files whose memories are missed.
    pub(super) fn aside(&self) -> Option<Arc<str>> {
        if self.effects.mended {
            return None;
        }
        self.aside.clone()
    }

    /// Executes this; says how many rows it changed.
    pub(super) fn execute(
        &mut self,
        sql: &'static str,
        params: impl Params,
    ) -> rusqlite::Result<usize> {
        self.statement(sql)?.execute(params)
    }

    /// The first row that this finds.
    pub(super) fn find<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.statement(sql)?.query_row(params, read).optional()
    }

    /// All rows that this finds.
    pub(super) fn all<T>(
        &mut self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.statement(sql)?.query_map(params, read)?.collect()
    }

    /// The number of the row that was added last.
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

    /// Makes a write, or leaves everything as if there had been none.
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

    /// Notes where the audit log ends now.
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

    /// Puts an approval in the place of its last version, unless another version is there.
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

    /// Where the log goes on. Should somebody have put entries after the noted end, or taken the note
    /// away, it goes on after them all the same, and whoever checks it will see that.
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
