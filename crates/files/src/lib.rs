//! Files on disk: atomic replacement, bounded reads, private directories and locks.
//!
//! ```
//! use switchboard_files::{Links, Mode, private_dir, read, replace};
//!
//! # let home = tempfile::tempdir()?;
//! let run = home.path().join("run");
//! private_dir(&run)?;
//! replace(&run.join("token"), b"0123", Mode::Private)?;
//! assert_eq!(read(&run.join("token"), 64, Links::Refuse)?, b"0123");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A replaced file is written beside the old one under a name of its own and then renamed, so a
//! reader sees the old content or the new, never a part. [`sweep`] removes the drafts of processes
//! that were killed while they wrote.

mod access;
mod dir;
mod draft;
pub mod folder;
mod lock;
mod read;
mod sweep;

pub use access::{Access, access};
pub use dir::{create_dir, private_dir};
pub use draft::{Draft, Durability, Mode, follow, links, replace, write_private};
pub use lock::{Lock, LockError, open_private};
pub use read::{Links, open, open_any, read, read_open, read_within};
pub use sweep::sweep;

use std::path::Path;

/// The directory of a file; `.` for a bare name.
fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
