//! The audit log: its entries, and the hash chain that links them.

use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use super::micros_since_1970;

/// An action to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Time of the action, stored to the microsecond.
    pub at: SystemTime,
    /// Action that was taken.
    pub what: Arc<str>,
    /// Object of the action.
    pub subject: Arc<str>,
    /// JSON that the store does not interpret.
    pub body: Arc<str>,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Sequence number, from 1 and without gaps.
    pub seq: u64,
    /// Recorded action.
    pub entry: Entry,
    /// Hash of this entry and the hash before it, which chains it to all earlier entries.
    pub hash: [u8; 32],
}

impl Audited {
    /// Returns `true` if the entry is intact and was written after an entry with this hash.
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
    /// Sequence number; 0 if nothing was archived.
    pub seq: u64,
    /// Hash of the entry; zeros if nothing was archived.
    pub hash: [u8; 32],
}

/// The result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Number of intact entries, counted from the first and including archived ones.
    pub entries: u64,
    /// Number of these entries that were moved to archives.
    pub archived: u64,
    /// Hash of the last of these entries; zeros if there is none.
    pub head: [u8; 32],
    /// The first defect.
    pub broken: Option<Broken>,
}

/// The place at which a log differs from the one that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Sequence number of the first entry that cannot be trusted.
    pub seq: u64,
    /// Defect of that entry.
    pub why: Flaw,
}

/// A defect of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The entry is missing, but later ones exist.
    #[error("the entry is missing")]
    Missing,
    /// The entry was changed, inserted or moved.
    #[error("the entry, or an earlier one, was changed")]
    Changed,
    /// The recorded end of the log is further on.
    #[error("the end of the log was truncated")]
    Cut,
    /// The recorded end of the log is before this entry.
    #[error("the entry was not written by the store")]
    Added,
    /// The recorded end of the log is missing, so that a truncated log cannot be detected.
    #[error("the record of the end of the log is missing")]
    Unended,
}

/// Computes the hash of an entry.
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

    /// Existing files contain such hashes: a different algorithm needs a new version of the file
    /// format.
    #[test]
    fn hash_of_an_entry_is_stable() {
        let hash = link(&[0; 32], 1, 1_794_718_800_000_000, ["decided", "k7", "{}"]);
        // Computed by a different program from the description of `verify`.
        let beginning = [0x06, 0x25, 0x07, 0x90, 0x72, 0xc8, 0x4c, 0x30];
        assert_eq!(hash[..8], beginning);
    }

    #[test]
    fn different_field_boundaries_give_different_hashes() {
        let hash = |texts| link(&[0; 32], 1, 0, texts);
        assert_ne!(hash(["ab", "c", ""]), hash(["a", "bc", ""]));
        assert_ne!(hash(["ab", "c", ""]), hash(["ab", "", "c"]));
    }
}
