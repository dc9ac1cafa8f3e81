//! Directories for one user.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::Path,
};

use rustix::{fs::OFlags, process::geteuid};

use crate::read::unfit;

/// Creates a directory for the owner only (0700), and its missing parents. An existing directory is left
/// unchanged.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a directory that only its owner may use (0700), and its missing parents. An existing
/// directory is closed to other users. Fails if the path is a symbolic link or belongs to another user.
pub fn private_dir(path: &Path) -> io::Result<()> {
    create_dir(path)?;
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(unfit("it is a symbolic link"));
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let found = opened.metadata()?;
    let user = geteuid().as_raw();
    if found.uid() != user {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "it belongs to user {}, but this process runs as user {user}",
                found.uid()
            ),
        ));
    }
    if found.permissions().mode() & 0o777 != 0o700 {
        opened.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}
