//! Bounded reads.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::{fs::OFlags, io::Errno};

/// The treatment of a path that is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Read the file behind it.
    Follow,
    /// Fail.
    Refuse,
}

/// Reads a regular file of at most `most` bytes. Fails with
/// [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it is larger, and with
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is a directory, a pipe or a device, without
/// waiting for its other end.
pub fn read(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true);
    let file = open_regular(path, &mut options, links)?;
    let length = file.metadata()?.len().min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // It may have grown since; the bound holds all the same.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Opens a file and makes sure that it is a regular one.
pub(crate) fn open_regular(
    path: &Path,
    options: &mut OpenOptions,
    links: Links,
) -> io::Result<File> {
    let mut flags = OFlags::NONBLOCK;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = options.custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| {
        if links == Links::Refuse && error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            return unfit("it is a symbolic link");
        }
        error
    })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(unfit("it is not a regular file"))
    }
}

pub(crate) fn unfit(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.into())
}
