//! Removes archived entries of the audit log, leaving an anchor in their place.

use rusqlite::{OptionalExtension, params};

use super::{Database, SqliteError, begin, signed};
use crate::types::audit::Anchor;
use crate::types::limits::ROWS_PER_TRIM;

impl Database {
    /// Removes a batch of the entries up to this one, which must be in an archive. Returns `true`
    /// if more remain, and `None` if the log has no such entry.
    pub(crate) fn forget_archived(&mut self, until: &Anchor) -> Result<Option<bool>, SqliteError> {
        self.sync_commits(true)?;
        let transaction = begin(&mut self.connection)?;
        let hash_of = |seq: i64| {
            let sql = "SELECT hash FROM audit WHERE seq = ?1";
            let found = transaction.query_row(sql, [seq], |row| row.get::<_, [u8; 32]>(0));
            found.optional()
        };
        let last = signed(until.seq);
        if hash_of(last)? != Some(until.hash) {
            return Ok(None);
        }
        let sql = "SELECT seq FROM audit_anchor";
        let began: i64 = transaction.query_row(sql, [], |row| row.get(0))?;
        let next = began.saturating_add(signed(ROWS_PER_TRIM)).min(last);
        let Some(hash) = hash_of(next)? else {
            return Ok(None);
        };
        transaction.execute(
            "UPDATE audit_anchor SET seq = ?1, hash = ?2",
            params![next, hash],
        )?;
        transaction.execute("DELETE FROM audit WHERE seq <= ?1", [next])?;
        transaction.commit()?;
        Ok(Some(next < last))
    }

    /// Returns the space of removed rows to the file system.
    pub(crate) fn shrink(&self) -> Result<(), SqliteError> {
        self.connection.execute_batch("VACUUM")?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.connection.query_row(sql, [], |_| Ok(()))?;
        Ok(())
    }
}
