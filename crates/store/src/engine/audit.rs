//! Checking, exporting and archiving the audit log of a file, without a running gateway.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::engine::advice::Advice;
use crate::engine::sqlite::{Database, Reader, SqliteError, Stop};
use crate::types::audit::{Anchor, Audited, Verdict};
use crate::types::error::StoreError;

/// Checks the audit log of a file, which a gateway may have open meanwhile. The file is only read.
///
/// Entries are numbered 1, 2, 3 and so on. The hash of an entry is
///
/// ```text
/// SHA-256(hash of the entry before ‖ field(seq) ‖ field(at) ‖ field(what) ‖ field(subject) ‖ field(body))
/// field(x) = the length of x in bytes as 8 bytes, big-endian ‖ x
/// ```
///
/// where `seq` and `at` (microseconds since 1970-01-01 UTC, signed) are 8 bytes, big-endian, texts
/// are UTF-8, and the hash before the first is 32 zero bytes. The number and hash of the last entry
/// are also noted apart, in the same commit.
///
/// # What this proves
///
/// An entry that was changed, removed, put in, or put in another place is found, and so is an end that
/// was cut off or added without the note. There is no secret in it: somebody who can write to the file
/// and means to deceive can make all of it anew, from the first changed entry to the note. Against
/// that helps only a hash that was kept elsewhere: whoever kept a number and its hash (from
/// [`Verdict::head`] or an export) can see later whether that entry still has it. An old copy of the
/// whole file put in place of the new one is only found in that way too.
pub fn verify(path: &Path) -> Result<Verdict, StoreError> {
    let check = || Reader::open(path)?.verify();
    check().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// The last entry of a file's log that was moved to an archive. The file is only read.
pub fn anchor(path: &Path) -> Result<Anchor, StoreError> {
    let read = || Reader::open(path)?.anchor();
    read().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// The number of entries in a file's log, archived ones not counted. The file is only read.
pub fn length(path: &Path) -> Result<u64, StoreError> {
    let read = || Reader::open(path)?.length();
    read().map_err(|trouble| Advice::of_a_reader(path, &trouble).error())
}

/// Removes the entries up to and including this one, which an archive has to hold on the disk. A gateway may have the
/// file open meanwhile. `false` says that the log has no such entry, and nothing is removed.
///
/// Entries go in small commits, each with its anchor: a crash leaves a log that begins somewhere in the archive. The
/// next archive begins there, and so has some entries again.
pub fn forget_archived(path: &Path, until: &Anchor) -> Result<bool, StoreError> {
    let forget = || {
        let mut database = Database::open(path)?;
        let mut patience = LOCK_ATTEMPTS;
        loop {
            match database.forget_archived(until) {
                Ok(None) => return Ok(false),
                Ok(Some(true)) => patience = LOCK_ATTEMPTS,
                Ok(Some(false)) => break,
                // The gateway writes; each attempt waits for a while.
                Err(SqliteError::Locked) if patience > 0 => patience -= 1,
                Err(trouble) => return Err(trouble),
            }
        }
        database.close();
        Ok(true)
    };
    forget().map_err(|trouble: SqliteError| Advice::about(path, &trouble).error())
}

/// Gives the room of what was removed from a file back to the disk. Nobody else can write to the file for as long as
/// it takes to copy all of it.
pub fn shrink(path: &Path) -> Result<(), StoreError> {
    let shrink = || {
        let database = Database::open(path)?;
        database.shrink()?;
        database.close();
        Ok(())
    };
    shrink().map_err(|trouble: SqliteError| Advice::about(path, &trouble).error())
}

/// How often a lock of the gateway is waited for.
const LOCK_ATTEMPTS: u32 = 40;

/// Gives every entry after number `since` to `each`, oldest first, until that fails. The file is only
/// read, and a gateway may have it open meanwhile; the entries are not checked.
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
