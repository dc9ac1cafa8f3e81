//! The audit log: what an entry is, and how entries hang together.

use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::micros_since_1970;

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
