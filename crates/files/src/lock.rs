//! Advisory locks between processes.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::read::{Links, open_regular};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// The error of [`Lock::wait`].
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process held the lock until the timeout.
    #[error("cannot lock {}: another process has held the lock for {} s", path.display(), waited.as_secs())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Time waited.
        waited: Duration,
    },
    /// The file cannot be opened or locked.
    #[error("cannot lock {}", path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
}

/// A lock on a dedicated file, held until it is dropped. The system releases it when the process ends.
/// The file is never removed: otherwise two processes could hold the lock at once.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Takes the lock. If another process holds it, waits for up to `timeout` and blocks the thread.
    pub fn wait(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::File {
            path: path.to_owned(),
            source,
        };
        let file = open_private(path).map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if start.elapsed() < timeout => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held {
                        path: path.to_owned(),
                        waited: timeout,
                    });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// Opens a regular file for reading and writing, and creates it for the owner only if it does not exist.
/// Fails if it is a symbolic link.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    open_regular(path, &mut options, Links::Refuse)
}
