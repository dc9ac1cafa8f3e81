//! Atomic replacement of files.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    mem,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{CWD, OFlags, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{dir::create_dir, parent};

/// File extension of drafts.
pub(crate) const ENDING: &str = "new";

/// The most links that [`follow`] follows; Linux has the same limit.
const LINKS_MAX: usize = 40;

/// The most names that are tried for a draft.
const NAMES_MAX: usize = 100;

/// The permissions of a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Readable and writable by the owner only (0600).
    Private,
    /// The mode of the file that is replaced; 0600 for a new file.
    Keep,
}

/// The point at which a replaced file survives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before the call returns.
    Synced,
    /// Some time later. For content that can be recreated.
    Eventual,
}

/// Replaces the content of a file atomically and waits for the disk. The directory has to exist. If the
/// path is a link, the link itself is replaced; [`follow`] finds its target.
pub fn replace(path: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.write_all(content)?;
    if mode == Mode::Keep {
        draft.keep_mode()?;
    }
    draft.place(Durability::Synced)
}

/// Replaces a file that only its owner may read, and creates its directory if it is missing.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    create_dir(parent(path))?;
    replace(path, content, Mode::Private)
}

/// Resolves links and returns the target, which need not exist.
pub fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut passed = links(path)?;
    // The list always has the path itself.
    Ok(passed.pop().unwrap_or_else(|| path.to_owned()))
}

/// The path, every link that it leads through, and finally the target, which need not exist.
pub fn links(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut passed = Vec::new();
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        let next = match fs::read_link(&target) {
            Ok(next) => parent(&target).join(next),
            // Not a link, or the path does not exist.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput
                        | io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                ) =>
            {
                passed.push(target);
                return Ok(passed);
            }
            Err(error) => return Err(error),
        };
        passed.push(mem::replace(&mut target, next));
    }
    Err(io::Error::other(format!(
        "{} leads through too many symbolic links",
        path.display()
    )))
}

/// New content for a file, in a temporary file beside it. [`place`](Self::place) renames it to the file;
/// a draft that is dropped before that is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Creates an empty draft in the directory of `target`, readable by the owner only.
    pub fn beside(target: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);

        let name = target.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name")
        })?;
        let mut options = OpenOptions::new();
        // O_EXCL implies O_NOFOLLOW; it is set for systems that do not comply.
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(flags);
        let mut tried = 0;
        loop {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}.{count}.{ENDING}", std::process::id()));
            let path = parent(target).join(hidden);
            match options.open(&path) {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        path,
                        target: target.to_owned(),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < NAMES_MAX => {
                    tried += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the draft the mode of the file that it will replace, if there is one.
    pub fn keep_mode(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.target) {
            Ok(old) if old.is_file() => {
                let mode = old.permissions().mode() & 0o777;
                self.file.set_permissions(Permissions::from_mode(mode))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives the draft other permissions than 0600.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Renames the draft to the target, replacing it.
    pub fn place(self, durability: Durability) -> io::Result<()> {
        if durability == Durability::Synced {
            self.file.sync_all()?;
        }
        fs::rename(&self.path, &self.target)?;
        self.sync_parent(durability)
    }

    /// Renames the draft to a target that must not exist, and waits for the disk. Fails with
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if it does.
    pub fn place_new(self) -> io::Result<()> {
        self.file.sync_all()?;
        match renameat_with(CWD, &self.path, CWD, &self.target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // Not every file system supports this rename. A hard link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                fs::hard_link(&self.path, &self.target)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.sync_parent(Durability::Synced)
    }

    /// Syncs the directory, so that the new name survives a loss of power.
    fn sync_parent(&self, durability: Durability) -> io::Result<()> {
        if durability == Durability::Synced {
            File::open(parent(&self.target))?.sync_all()?;
        }
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
}
