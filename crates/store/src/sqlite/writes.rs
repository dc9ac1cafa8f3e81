//! Durable writes in the engine: each whole or not at all, many in one commit.

use std::time::SystemTime;

use rusqlite::{OptionalExtension, Statement, Transaction, params};

use super::{micros_since_1970, signed};
use crate::approval::Approval;
use crate::audit::{Entry, link};
use crate::change::Change;
use crate::error::StoreError;
use crate::write::Write;

/// What became of a commit's writes.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Of each, in their order.
    pub(super) fates: Vec<Result<(), StoreError>>,
    /// How many more closed approvals there are.
    pub(super) closed: i64,
}

/// The last entry of the audit log.
#[derive(Debug, Clone, Copy)]
struct Head {
    seq: i64,
    hash: [u8; 32],
}

/// Makes every write that is not in conflict.
pub(super) fn apply(transaction: &Transaction<'_>, writes: &[Write]) -> rusqlite::Result<Written> {
    let mut written = Written::default();
    if writes.is_empty() {
        return Ok(written);
    }
    let before = head(transaction)?;
    let mut head = before;
    let mut statements = Statements::prepare(transaction)?;
    for write in writes {
        transaction.execute_batch("SAVEPOINT one")?;
        let fate = statements.make(write.changes(), head)?;
        if let Some(made) = fate {
            head = made.head;
            written.closed = written.closed.saturating_add(made.closed);
            written.fates.push(Ok(()));
        } else {
            transaction.execute_batch("ROLLBACK TO one")?;
            written.fates.push(Err(StoreError::Conflict));
        }
        transaction.execute_batch("RELEASE one")?;
    }
    if head.seq != before.seq {
        transaction.execute(
            "INSERT INTO audit_head (one, seq, hash) VALUES (1, ?1, ?2) \
             ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
            params![head.seq, head.hash],
        )?;
    }
    Ok(written)
}

/// Removes the rules that have ended.
pub(super) fn forget_ended(transaction: &Transaction<'_>, now: SystemTime) -> rusqlite::Result<()> {
    let now = micros_since_1970(now);
    transaction.execute("DELETE FROM rules WHERE expires <= ?1", [now])?;
    Ok(())
}

/// Where the log goes on. Should somebody have put entries after the noted end, or taken the note away,
/// it goes on after them all the same, and whoever checks it will see that.
fn head(transaction: &Transaction<'_>) -> rusqlite::Result<Head> {
    let noted = transaction
        .query_row("SELECT seq, hash FROM audit_head", [], |row| {
            Ok(Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            })
        })
        .optional()?;
    let mut head = noted.unwrap_or(Head {
        seq: 0,
        hash: [0; 32],
    });
    let last: Option<i64> =
        transaction.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
    head.seq = head.seq.max(last.unwrap_or(0));
    Ok(head)
}

/// What a write that was made leaves behind.
struct Made {
    head: Head,
    closed: i64,
}

struct Statements<'a> {
    find: Statement<'a>,
    insert: Statement<'a>,
    update: Statement<'a>,
    remember: Statement<'a>,
    forget: Statement<'a>,
    audit: Statement<'a>,
}

impl<'a> Statements<'a> {
    fn prepare(transaction: &'a Transaction<'_>) -> rusqlite::Result<Self> {
        let prepare = |sql| transaction.prepare(sql);
        Ok(Self {
            find: prepare("SELECT version, open FROM approvals WHERE id = ?1")?,
            insert: prepare(
                "INSERT INTO approvals \
                 (id, kind, status, open, server, created, changed, version, body) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            update: prepare(
                "UPDATE approvals SET kind = ?2, status = ?3, open = ?4, server = ?5, \
                 created = ?6, changed = ?7, version = ?8, body = ?9 WHERE id = ?1",
            )?,
            remember: prepare(
                "INSERT OR REPLACE INTO rules (id, created, expires, body) \
                 VALUES (?1, ?2, ?3, ?4)",
            )?,
            forget: prepare("DELETE FROM rules WHERE id = ?1")?,
            audit: prepare(
                "INSERT INTO audit (seq, at, what, subject, body, hash) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
        })
    }

    /// Makes these changes one after the other; `None` at the first that is in conflict.
    fn make(&mut self, changes: &[Change], head: Head) -> rusqlite::Result<Option<Made>> {
        let mut made = Made { head, closed: 0 };
        for change in changes {
            match change {
                Change::Approval { row, was } => match self.put(row, *was)? {
                    Some(closed) => made.closed = made.closed.saturating_add(closed),
                    None => return Ok(None),
                },
                Change::Remember(rule) => {
                    let expires = rule.expires.map(micros_since_1970);
                    let created = micros_since_1970(rule.created);
                    self.remember
                        .execute(params![&*rule.id, created, expires, &*rule.body])?;
                }
                Change::Forget(id) => {
                    self.forget.execute([&**id])?;
                }
                Change::Audit(entry) => made.head = self.note(entry, made.head)?,
            }
        }
        Ok(Some(made))
    }

    /// Puts an approval in the place of its last version. Says how many more are closed by it, unless
    /// another version is there.
    fn put(&mut self, row: &Approval, was: u64) -> rusqlite::Result<Option<i64>> {
        let found: Option<(i64, bool)> = self
            .find
            .query_row([&*row.id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (version, was_open) = found.unwrap_or((0, true));
        if version != signed(was) || row.version <= was {
            return Ok(None);
        }
        let statement = match found {
            None => &mut self.insert,
            Some(_) => &mut self.update,
        };
        statement.execute(params![
            &*row.id,
            &*row.kind,
            &*row.status,
            row.open,
            &*row.server,
            micros_since_1970(row.created),
            micros_since_1970(row.changed),
            signed(row.version),
            &*row.body,
        ])?;
        Ok(Some(i64::from(was_open) - i64::from(row.open)))
    }

    /// Adds an entry to the audit log.
    fn note(&mut self, entry: &Entry, last: Head) -> rusqlite::Result<Head> {
        let seq = last.seq.saturating_add(1);
        let at = micros_since_1970(entry.at);
        let texts = [&*entry.what, &*entry.subject, &*entry.body];
        let hash = link(&last.hash, seq, at, texts);
        let [what, subject, body] = texts;
        self.audit
            .execute(params![seq, at, what, subject, body, hash])?;
        Ok(Head { seq, hash })
    }
}
