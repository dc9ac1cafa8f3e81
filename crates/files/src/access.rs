//! Owner and mode of a file.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::process::geteuid;

/// Owner and mode of a file, as far as they concern security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The user that owns it.
    pub owner: u32,
    /// The permission bits.
    pub mode: u32,
    /// A directory in which users may remove only what is theirs, such as `/tmp`.
    sticky: bool,
}

/// Reads owner and mode of the file behind a path, through links.
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
    /// Owner and mode of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|found| Self::from(&found))
    }

    /// It belongs to a user other than this process's and root.
    pub fn is_foreign(self) -> bool {
        self.owner != 0 && self.owner != geteuid().as_raw()
    }

    /// Every user of the machine may change it.
    pub fn is_world_writable(self) -> bool {
        self.mode & 0o002 != 0
    }

    /// It is a directory in which users may remove only what is theirs.
    pub fn is_sticky(self) -> bool {
        self.sticky
    }

    /// Other members of its group may change it.
    pub fn is_group_writable(self) -> bool {
        self.mode & 0o020 != 0
    }

    /// Users other than the owner may read or change it.
    pub fn is_open(self) -> bool {
        self.mode & 0o077 != 0
    }
}
