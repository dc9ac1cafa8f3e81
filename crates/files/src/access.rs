//! Owner and mode of files.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::process::geteuid;

/// Owner and mode of a file, limited to what matters for security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// User ID of the owner.
    pub owner: u32,
    /// The permission bits.
    pub mode: u32,
    /// A directory in which users may remove only their own entries, such as `/tmp`.
    sticky: bool,
}

/// Reads the owner and mode of the file at a path. Follows links.
pub fn access(path: &Path) -> io::Result<Access> {
    fs::metadata(path).map(|found| Access::from(&found))
}

impl From<&Metadata> for Access {
    fn from(found: &Metadata) -> Self {
        Self {
            owner: found.uid(),
            mode: found.mode() & 0o777,
            sticky: found.is_dir() && found.mode() & 0o1000 != 0,
        }
    }
}

impl Access {
    /// Reads the owner and mode of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::from(&found))
    }

    /// Returns `true` if the owner is neither the user of this process nor root.
    pub fn is_foreign(self) -> bool {
        self.owner != 0 && self.owner != geteuid().as_raw()
    }

    /// Returns `true` if every user of the machine may write to it.
    pub fn is_world_writable(self) -> bool {
        self.mode & 0o002 != 0
    }

    /// Returns `true` if it is a directory in which users may remove only their own entries.
    pub fn is_sticky(self) -> bool {
        self.sticky
    }

    /// Returns `true` if members of its group may write to it.
    pub fn is_group_writable(self) -> bool {
        self.mode & 0o020 != 0
    }

    /// Returns `true` if users other than the owner have any access.
    pub fn is_open(self) -> bool {
        self.mode & 0o077 != 0
    }
}
