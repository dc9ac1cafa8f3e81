//! [`Store`]: results that were too large to show, kept for a while.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::file::{self, Head};
use crate::id::ResultId;
use crate::index::{Change, Entry, Index, Owner, Place};
use crate::kept::Kept;
use crate::limits::{CLOCK_SLACK, FILES};

/// Limits on size and lifetime. When there is no more room, the oldest results are removed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in memory, for the most recently used results.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Bytes of one result. A larger one is not kept.
    pub each_bytes: u64,
    /// Time for which a result is kept.
    pub ttl: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 8 * 1024 * 1024,
            disk_bytes: 256 * 1024 * 1024,
            each_bytes: 32 * 1024 * 1024,
            ttl: Duration::from_hours(1),
        }
    }
}

/// A failure to keep or to read a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The result is larger than the limit.
    #[error("the result has {bytes} bytes, but at most {most} can be kept")]
    TooLarge {
        /// Size of the result.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// The result cannot be written, and is too large to be kept in memory alone.
    #[error("cannot write the result to {path}")]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The system provides no random numbers for an ID.
    #[error("the system provides no random numbers")]
    NoRandomness,
    /// There is no such result, it belongs to another owner, or it was removed to make room for others.
    #[error("there is no result with this ID")]
    Unknown,
    /// The result has expired.
    #[error("this result expired {} ago", words(*.ago))]
    Expired {
        /// Time since it expired.
        ago: Duration,
    },
    /// The file does not contain the bytes that were written.
    #[error("this result was damaged on disk and is lost")]
    Damaged,
}

impl StoreError {
    /// Advice for the caller, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::TooLarge { .. } => "ask the tool for less".into(),
            Self::Unwritable { .. } => {
                "free some space there, or make the directory writable".into()
            }
            Self::Unknown | Self::Expired { .. } | Self::Damaged => "call the tool again".into(),
            Self::NoRandomness => return None,
        })
    }
}

/// Results that were too large to show, kept for a while: on disk, and in memory while they are in use.
///
/// Every result belongs to an owner, and only the owner can read it. Results on disk outlive the
/// process, and the next process takes them over. If the disk cannot be written, small results are kept
/// in memory alone.
///
/// All methods block on disk I/O, so do not call them on a thread that other tasks wait for. Several
/// threads may call them at once.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    index: Index,
    memory: HashMap<ResultId, Arc<Kept>>,
}

impl Store {
    /// Opens the folder and takes over the results that an earlier process kept in it. Expired, damaged
    /// and partially written results are removed. Other files are left alone.
    pub fn open(folder: &Path, limits: Limits, now: SystemTime) -> Self {
        // A draft that cannot be removed takes up room but is harmless.
        let _ = switchboard_files::sweep(folder);
        let mut found = Vec::new();
        for path in files(folder) {
            match taken_over(&path, &limits, now) {
                Some(entry) => found.push(entry),
                None => drop(fs::remove_file(&path)),
            }
        }
        found.sort_by_key(|(_, entry)| entry.expires);
        let mut index = Index::new(limits);
        let mut changes = Vec::new();
        for (id, entry) in found {
            changes.extend(index.put(&id, entry, now));
        }
        let store = Self {
            folder: folder.to_owned(),
            limits,
            state: Mutex::new(State {
                index,
                memory: HashMap::new(),
            }),
        };
        store.apply(changes);
        store
    }

    /// Keeps a result for its owner and returns its ID.
    pub fn put(
        &self,
        owner: &str,
        kept: Arc<Kept>,
        now: SystemTime,
    ) -> Result<ResultId, StoreError> {
        let body = kept.encode();
        let bytes = body.len() as u64 + file::HEAD_BYTES as u64;
        if !self.state.lock().index.takes(bytes, true) {
            let most = self.limits.each_bytes.min(self.limits.disk_bytes);
            return Err(StoreError::TooLarge { bytes, most });
        }
        let owner = digest(owner);
        let expires = later(now, self.limits.ttl);
        let id = ResultId::new(expires).ok_or(StoreError::NoRandomness)?;
        let written = self.write(&id, &Head::new(owner, expires, &body), &body);
        let on_disk = written.is_ok();
        drop(body);
        let mut state = self.state.lock();
        if let Err(source) = written
            && !state.index.takes(bytes, false)
        {
            let path = self.folder.clone();
            return Err(StoreError::Unwritable { path, source });
        }
        let entry = Entry {
            owner,
            bytes,
            expires,
            on_disk,
        };
        let mut changes = state.index.put(&id, entry, now);
        changes.extend(state.hold(&id, kept));
        drop(state);
        self.apply(changes);
        Ok(id)
    }

    /// Reads a result of this owner. The ID comes from a client, so it may be any text.
    pub fn get(&self, owner: &str, id: &str, now: SystemTime) -> Result<Arc<Kept>, StoreError> {
        let id = ResultId::parse(id).ok_or(StoreError::Unknown)?;
        let owner = digest(owner);
        let mut state = self.state.lock();
        let changes = state.index.expire(now);
        let place = state.index.find(&id, &owner, now);
        let held = state.memory.get(&id).cloned();
        drop(state);
        self.apply(changes);
        match (place, held) {
            (None, _) => Err(match now.duration_since(id.expires()) {
                Ok(ago) => StoreError::Expired { ago },
                Err(_) => StoreError::Unknown,
            }),
            (Some(Place::Memory), Some(kept)) => Ok(kept),
            (Some(_), _) => self.read(&id, &owner),
        }
    }

    /// Removes expired results. [`get`](Self::get) never returns one anyway; this frees the room that
    /// they take, so call it periodically.
    pub fn sweep(&self, now: SystemTime) {
        let changes = self.state.lock().index.expire(now);
        self.apply(changes);
    }

    fn read(&self, id: &ResultId, owner: &Owner) -> Result<Arc<Kept>, StoreError> {
        let path = self.path(id);
        let body = file::read(&path, owner, self.limits.each_bytes);
        let kept = body.and_then(|body| Kept::decode(&body));
        let mut state = self.state.lock();
        let Some(kept) = kept else {
            // If it was removed meanwhile to make room for others, it is not damaged.
            let known = state.index.contains(id);
            state.index.remove(id);
            drop(state);
            self.apply(vec![Change::Remove(id.clone())]);
            return Err(if known {
                StoreError::Damaged
            } else {
                StoreError::Unknown
            });
        };
        let kept = Arc::new(kept);
        let changes = state.hold(id, Arc::clone(&kept));
        drop(state);
        self.apply(changes);
        Ok(kept)
    }

    fn write(&self, id: &ResultId, head: &Head, body: &[u8]) -> io::Result<()> {
        let path = self.path(id);
        match file::write(&path, head, body) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                switchboard_files::create_dir(&self.folder)?;
                file::write(&path, head, body)
            }
            other => other,
        }
    }

    /// Carries out the changes that the index decided on.
    fn apply(&self, changes: Vec<Change>) {
        let mut released = Vec::new();
        let mut removed = Vec::new();
        let mut state = self.state.lock();
        for change in changes {
            match change {
                // Another thread may have read it into memory again.
                Change::Release(id) if state.index.is_held(&id) => {}
                Change::Release(id) => released.extend(state.memory.remove(&id)),
                Change::Remove(id) => {
                    released.extend(state.memory.remove(&id));
                    removed.push(id);
                }
            }
        }
        drop(state);
        // Free memory and remove files only after the lock is released.
        drop(released);
        for id in removed {
            // The file may already be gone.
            let _ = fs::remove_file(self.path(&id));
        }
    }

    fn path(&self, id: &ResultId) -> PathBuf {
        self.folder.join(id.as_str())
    }
}

impl State {
    /// Holds a result in memory if the index decides so.
    fn hold(&mut self, id: &ResultId, kept: Arc<Kept>) -> Vec<Change> {
        let (held, changes) = self.index.hold(id);
        if held {
            self.memory.insert(id.clone(), kept);
        }
        changes
    }
}

/// The files of the folder that belong to the store, judging by their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.take(FILES).flatten().map(|entry| entry.path());
    paths.filter(|path| name(path).is_some()).collect()
}

/// The ID of the result that a file contains.
fn name(path: &Path) -> Option<ResultId> {
    let id = path.file_name()?.to_str()?;
    ResultId::parse(id).filter(|parsed| parsed.as_str() == id)
}

/// The index entry of a file, if its header is valid. The body is not checked.
fn taken_over(path: &Path, limits: &Limits, now: SystemTime) -> Option<(ResultId, Entry)> {
    let id = name(path)?;
    let (head, body) = file::read_head(path)?;
    let entry = Entry {
        owner: head.owner,
        bytes: body + file::HEAD_BYTES as u64,
        expires: head.expires,
        on_disk: true,
    };
    let latest = later(now, limits.ttl.saturating_add(CLOCK_SLACK));
    let right = entry.bytes <= limits.each_bytes && entry.expires > now && entry.expires <= latest;
    right.then_some((id, entry))
}

/// The time `by` later, and at most a year later, because times may overflow.
fn later(now: SystemTime, by: Duration) -> SystemTime {
    let year = Duration::from_hours(365 * 24);
    now.checked_add(by.min(year)).unwrap_or(now)
}

fn digest(owner: &str) -> Owner {
    Sha256::digest(owner.as_bytes()).into()
}

/// A duration in words, rounded to minutes or hours.
fn words(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => "a moment".to_owned(),
        seconds @ 60..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
