//! A kept result as a file.
//!
//! The file is named after the result's ID. It begins with a header: the format, the expiry time,
//! the owner (as a digest), and a checksum over the owner, the expiry time and the body.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use switchboard_files::{Draft, Durability};

use crate::index::Owner;

const MAGIC: &[u8; 21] = b"switchboard result 1\n";

/// Length of the header, in bytes.
pub(crate) const HEAD_BYTES: usize = MAGIC.len() + 8 + 32 + 32;

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) owner: Owner,
    pub(crate) expires: SystemTime,
    checksum: [u8; 32],
}

impl Head {
    pub(crate) fn new(owner: Owner, expires: SystemTime, body: &[u8]) -> Self {
        let checksum = checksum(&owner, expires, body);
        Self {
            owner,
            expires,
            checksum,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&milliseconds(self.expires).to_le_bytes());
        out.extend_from_slice(&self.owner);
        out.extend_from_slice(&self.checksum);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (owner, rest) = rest.split_first_chunk()?;
        let (checksum, _) = rest.split_first_chunk()?;
        let expires = Duration::from_millis(u64::from_le_bytes(*expires));
        Some(Self {
            owner: *owner,
            expires: UNIX_EPOCH.checked_add(expires)?,
            checksum: *checksum,
        })
    }
}

/// Writes a file that only its owner can read, atomically.
pub(crate) fn write(path: &Path, head: &Head, body: &[u8]) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.write_all(&head.encode())?;
    draft.write_all(body)?;
    // The checksum reveals a file that a crash damaged, and the tool can be called again.
    draft.place(Durability::Eventual)
}

/// Reads the header of a file and the length of its body; `None` if it is not a file of the store.
pub(crate) fn read_head(path: &Path) -> Option<(Head, u64)> {
    // Opening a pipe or a device could block, so only regular files are opened.
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() {
        return None;
    }
    let body = found.len().checked_sub(HEAD_BYTES as u64)?;
    let mut head = [0; HEAD_BYTES];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    Some((Head::decode(&head)?, body))
}

/// Reads the body of a file, if it has at most `most` bytes; `None` if the file is damaged or
/// belongs to another owner.
pub(crate) fn read(path: &Path, owner: &Owner, most: u64) -> Option<Vec<u8>> {
    let (head, body) = read_head(path)?;
    if head.owner != *owner || body > most {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(body).ok()? + HEAD_BYTES);
    let file = File::open(path).ok()?;
    file.take(body + HEAD_BYTES as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    let body = bytes.split_off(HEAD_BYTES.min(bytes.len()));
    let head = Head::decode(&bytes)?;
    (head.checksum == checksum(owner, head.expires, &body)).then_some(body)
}

fn checksum(owner: &Owner, expires: SystemTime, body: &[u8]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(owner);
    digest.update(milliseconds(expires).to_le_bytes());
    digest.update(body);
    digest.finalize().into()
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
