//! Writes the configuration file: one process at a time, and atomically.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard_files::{Access, Lock, LockError, Mode, follow, replace, sweep};

use crate::parse;

/// The longest wait for another process that holds the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The right to change a configuration file, held by one process at a time. Hold it while you read,
/// decide and write; otherwise changes of other processes are lost.
///
/// The lock is a file beside the configuration (`.switchboard.json.lock`), so that all homes that share
/// one configuration also share the lock.
#[derive(Debug)]
pub struct ConfigLock {
    target: PathBuf,
    #[expect(dead_code, reason = "held, not read")]
    lock: Lock,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The file kept its mode; a new file is private to its owner (0600).
    SameMode,
    /// The file contains secrets in plain text and other users could read it; its mode is now 0600.
    Narrowed,
}

impl ConfigLock {
    /// Takes the lock, and waits for up to 10 s while another process holds it. Also removes drafts of
    /// killed processes beside the file. Blocks the thread.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::File {
            path: path.to_owned(),
            source,
        };
        let target = follow(path).map_err(failed)?;
        let name = target
            .file_name()
            .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".lock");
        let lock = Lock::wait(&target.with_file_name(hidden), PATIENCE)?;
        // A draft that cannot be removed does no harm.
        let _ = sweep(target.parent().unwrap_or(Path::new(".")));
        Ok(Self { target, lock })
    }

    /// Replaces the text atomically. If the path is a link, its target is replaced and the link stays.
    pub fn write(&self, text: &str) -> io::Result<Written> {
        let in_clear = parse(text, "").is_ok_and(|config| !config.clear_secrets().is_empty());
        let is_open = switchboard_files::access(&self.target).is_ok_and(Access::is_open);
        let (mode, written) = if in_clear && is_open {
            (Mode::Private, Written::Narrowed)
        } else {
            (Mode::Keep, Written::SameMode)
        };
        replace(&self.target, text.as_bytes(), mode)?;
        Ok(written)
    }
    /// Removes the file. If the path is a link, its target is removed and the link stays.
    pub fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.target)
    }
}
