//! Verifies, exports and archives the audit log of a file, without a running gateway.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::engine::advice::Advice;
use crate::engine::sqlite::{Database, Reader, SqliteError, Stop};
use crate::types::audit::{Anchor, Audited, Verdict};
use crate::types::error::StoreError;

/// Verifies the audit log of a file, which a gateway may have open. The file is only read.
///
/// Entries are numbered 1, 2, 3 and so on. The hash of an entry is
///
/// ```text
/// SHA-256(hash of the entry before ‖ field(seq) ‖ field(at) ‖ field(what) ‖ field(subject) ‖ field(body))
/// field(x) = the length of x in bytes as 8 bytes, big-endian ‖ x
/// ```
///
/// where `seq` and `at` (microseconds since 1970-01-01 UTC, signed) are 8 bytes, big-endian, texts are
/// UTF-8, and the hash before the first entry is 32 zero bytes. The number and hash of the last entry are
/// also recorded separately, in the same commit.
///
/// # Guarantees
///
/// Verification detects an entry that was changed, removed, inserted or moved, and an end that was cut off
/// or extended without updating the record of the last entry. No secret is involved: an attacker who can
/// write to the file can recompute everything from the first changed entry to the record of the last one.
/// Only a hash that was stored elsewhere protects against that: the number and hash of an entry (from
/// [`Verdict::head`] or an export) can be compared with the file later. Replacing the whole file with an
/// old copy can only be detected in the same way.
pub fn verify(path: &Path) -> Result<Verdict, StoreError> {
    let check = || Reader::open(path)?.verify();
    check().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// Returns the last archived entry of a file's log. The file is only read.
pub fn anchor(path: &Path) -> Result<Anchor, StoreError> {
    let read = || Reader::open(path)?.anchor();
    read().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// Returns the number of entries in a file's log, without archived ones. The file is only read.
pub fn length(path: &Path) -> Result<u64, StoreError> {
    let read = || Reader::open(path)?.length();
    read().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// Removes the entries up to and including this one, which must be in an archive on disk. A gateway may
/// have the file open. Returns `false`, and removes nothing, if the log has no such entry.
///
/// Entries are removed in small commits, each with its anchor: after a crash, the log begins somewhere in
/// the archive. The next archive begins at that point, so that the two archives overlap.
pub fn forget_archived(path: &Path, until: &Anchor) -> Result<bool, StoreError> {
    let forget = || {
        let mut database = Database::open(path)?;
        let mut patience = LOCK_ATTEMPTS;
        loop {
            match database.forget_archived(until) {
                Ok(None) => return Ok(false),
                Ok(Some(true)) => patience = LOCK_ATTEMPTS,
                Ok(Some(false)) => break,
                // The gateway is writing; each attempt waits for its lock.
                Err(SqliteError::Locked) if patience > 0 => patience -= 1,
                Err(trouble) => return Err(trouble),
            }
        }
        database.close();
        Ok(true)
    };
    forget().map_err(|trouble: SqliteError| Advice::about(path, &trouble).error())
}

/// Returns the space of removed rows to the file system. No other process can write to the file while all
/// of it is copied.
pub fn shrink(path: &Path) -> Result<(), StoreError> {
    let shrink = || {
        let database = Database::open(path)?;
        database.shrink()?;
        database.close();
        Ok(())
    };
    shrink().map_err(|trouble: SqliteError| Advice::about(path, &trouble).error())
}

/// The most attempts in a row to get the lock that the gateway holds.
const LOCK_ATTEMPTS: u32 = 40;

/// Passes every entry after number `since` to `each`, oldest first, until `each` fails. The file is only
/// read, and a gateway may have it open; the entries are not verified.
pub fn export(
    path: &Path,
    since: u64,
    each: impl FnMut(Audited) -> io::Result<()>,
) -> Result<(), StoreError> {
    let walk = || Reader::open(path)?.export(since, each);
    walk().map_err(|stop| match stop {
        Stop::SqliteError(trouble) => Advice::of_a_reader(path, &trouble).error(),
        Stop::Refused(error) => StoreError::Export(Arc::new(error)),
    })
}
