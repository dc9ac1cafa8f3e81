//! The audit log: what an entry is, how entries hang together, and how to check a file's log
//! without a running gateway.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::complaint::Complaint;
use crate::error::StoreError;
use crate::sqlite::{Database, Reader, Stop, Trouble, micros_since_1970};

/// Something that was done, as it is to be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When; kept to the microsecond.
    pub at: SystemTime,
    /// What was done.
    pub what: Arc<str>,
    /// To what.
    pub subject: Arc<str>,
    /// JSON that the store does not read.
    pub body: Arc<str>,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Its number, from 1 and without gaps.
    pub seq: u64,
    /// What was noted.
    pub entry: Entry,
    /// What ties it to every entry before it.
    pub hash: [u8; 32],
}

impl Audited {
    /// Whether the entry is what was written after an entry with this hash.
    pub fn follows(&self, previous: &[u8; 32]) -> bool {
        let entry = &self.entry;
        let texts = [&*entry.what, &*entry.subject, &*entry.body];
        let seq = i64::try_from(self.seq).unwrap_or(i64::MAX);
        link(previous, seq, micros_since_1970(entry.at), texts) == self.hash
    }
}

/// The last entry of a log that was moved to an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Its number; 0 if there is none.
    pub seq: u64,
    /// Its hash; zeros if there is none.
    pub hash: [u8; 32],
}

/// What became of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many entries are whole, from the first on, those that were moved to archives included.
    pub entries: u64,
    /// How many of them were moved to archives.
    pub archived: u64,
    /// The hash of the last of them; zeros if there is none.
    pub head: [u8; 32],
    /// The first thing that is wrong.
    pub broken: Option<Broken>,
}

/// Where a log is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// The number of the first entry that cannot be relied upon.
    pub seq: u64,
    /// What is wrong with it.
    pub why: Flaw,
}

/// What is wrong with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// There are later ones.
    #[error("the entry is missing")]
    Missing,
    /// Or it was put in, or is in another place.
    #[error("the entry, or one before it, is not what was written")]
    Changed,
    /// The log is noted to go on.
    #[error("the end of the log was cut off")]
    Cut,
    /// The log is noted to end before it.
    #[error("the entry was added without the store")]
    Added,
    /// So nobody can tell whether entries are missing at the end.
    #[error("the note of where the log ends is gone")]
    Unended,
}

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
    check().map_err(|trouble| Complaint::of_a_reader(path, &trouble).error())
}

/// The last entry of a file's log that was moved to an archive. The file is only read.
pub fn anchor(path: &Path) -> Result<Anchor, StoreError> {
    let read = || Reader::open(path)?.anchor();
    read().map_err(|trouble| Complaint::of_a_reader(path, &trouble).error())
}

/// The number of entries in a file's log, archived ones not counted. The file is only read.
pub fn length(path: &Path) -> Result<u64, StoreError> {
    let read = || Reader::open(path)?.length();
    read().map_err(|trouble| Complaint::of_a_reader(path, &trouble).error())
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
                Err(Trouble::Locked) if patience > 0 => patience -= 1,
                Err(trouble) => return Err(trouble),
            }
        }
        database.close();
        Ok(true)
    };
    forget().map_err(|trouble: Trouble| Complaint::about(path, &trouble).error())
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
    shrink().map_err(|trouble: Trouble| Complaint::about(path, &trouble).error())
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
        Stop::Trouble(trouble) => Complaint::of_a_reader(path, &trouble).error(),
        Stop::Refused(error) => StoreError::Export(Arc::new(error)),
    })
}

/// The hash of an entry.
pub(crate) fn link(previous: &[u8; 32], seq: i64, at: i64, texts: [&str; 3]) -> [u8; 32] {
    let (seq, at) = (seq.to_be_bytes(), at.to_be_bytes());
    let [what, subject, body] = texts.map(str::as_bytes);
    let mut digest = Sha256::new_with_prefix(previous);
    for field in [&seq[..], &at[..], what, subject, body] {
        digest.update((field.len() as u64).to_be_bytes());
        digest.update(field);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files out there hold such hashes: another way to make them needs another version of the file.
    #[test]
    fn the_hash_is_what_it_has_always_been() {
        let hash = link(&[0; 32], 1, 1_794_718_800_000_000, ["decided", "k7", "{}"]);
        // Made with another program from the description above.
        let beginning = [0x06, 0x25, 0x07, 0x90, 0x72, 0xc8, 0x4c, 0x30];
        assert_eq!(hash[..8], beginning);
    }

    #[test]
    fn no_two_ways_to_cut_the_same_letters_have_one_hash() {
        let hash = |texts| link(&[0; 32], 1, 0, texts);
        assert_ne!(hash(["ab", "c", ""]), hash(["a", "bc", ""]));
        assert_ne!(hash(["ab", "c", ""]), hash(["ab", "", "c"]));
    }
}
