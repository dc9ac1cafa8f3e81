//! Bounded reads.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

/// The most bytes to read from a pipe at once.
const PART: usize = 64 * 1024;

/// Treatment of a path that is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Read the target.
    Follow,
    /// Fail.
    Refuse,
}

/// Reads a regular file of at most `most` bytes. Fails with
/// [`FileTooLarge`](io::ErrorKind::FileTooLarge) if it is larger, and with
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is a directory, a pipe or a device, without
/// waiting for its other end.
pub fn read(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    read_open(&open(path, links)?, most)
}

/// Opens a regular file for reading. Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if it is a
/// directory, a pipe or a device, without waiting for its other end.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    open_regular(path, &mut options, links)
}

/// Reads an open file of at most `most` bytes, as [`read`] does.
pub fn read_open(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    // The file may have grown since; the limit still applies.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Opens a file, a pipe or a device for reading with [`read_within`], without waiting for its other end.
pub fn open_any(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    options.read(true).custom_flags(flags).open(path)
}

/// Reads the first `most` bytes of a file from [`open_any`]. Fails with
/// [`TimedOut`](io::ErrorKind::TimedOut) if the other end of a pipe takes longer than `patience`.
pub fn read_within(mut file: &File, most: usize, patience: Duration) -> io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    let mut bytes = Vec::new();
    if file.metadata()?.file_type().is_fifo() {
        // Until a writer opens the pipe, a read would return end of file.
        wait(file, until)?;
    }
    while bytes.len() < most {
        let start = bytes.len();
        bytes.resize(start + PART.min(most - start), 0);
        let read = file.read(&mut bytes[start..]);
        bytes.truncate(start + read.as_ref().map_or(0, |length| *length));
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(file, until)?,
            Err(error) => return Err(error),
        }
        if Instant::now() > until {
            return Err(too_slow());
        }
    }
    Ok(bytes)
}

/// Waits until the file is readable.
fn wait(file: &File, until: Instant) -> io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(too_slow()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it sent no data in time")
}

/// Opens a file and checks that it is a regular one.
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
