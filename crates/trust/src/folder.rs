//! The folder of pins: one file per server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use switchboard_files::{Links, Mode, create_dir, folder, replace};

use crate::{Fingerprint, Pins, PinsError, limits};

/// Digits of the hash in a file name that is not plain.
const HASH_DIGITS: usize = 16;

/// Reads the pins of all servers in a folder, sorted by server name, and returns the files that could
/// not be read with their errors. A folder that does not exist is empty.
pub fn load_all(dir: &Path) -> (Vec<Pins>, Vec<(PathBuf, PinsError)>) {
    let mut all = Vec::new();
    let (paths, error) = folder::list(dir, limits::PINS_FILES);
    let error = error.map(|error| (dir.to_owned(), io_error("list", dir, error)));
    let mut failed: Vec<_> = error.into_iter().collect();
    for path in paths {
        match read(&path) {
            Ok(pins) => all.push(pins),
            Err(error) => failed.push((path, error)),
        }
    }
    all.sort_by(|a, b| a.server().cmp(b.server()));
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    (all, failed)
}

/// Reads the pins of a server. Returns `None` if there is no file, so nothing was ever approved. After
/// an error, continue with [`Pins::damaged`], because the approved definitions are unknown.
pub fn load(dir: &Path, server: &str) -> Result<Option<Pins>, PinsError> {
    match read(&dir.join(file_name(server))) {
        Ok(pins) => Ok(Some(pins)),
        Err(PinsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the pins of a server atomically, readable only by the owner. A reader sees the old file or
/// the new one, complete, even after a loss of power.
pub fn write(dir: &Path, pins: &Pins) -> Result<(), PinsError> {
    let file = pins.encode();
    let path = dir.join(file_name(pins.server()));
    create_dir(dir).map_err(|error| io_error("create", dir, error))?;
    replace(&path, &file, Mode::Private).map_err(|error| io_error("write", &path, error))
}

/// Removes the pins of a server, if there are any.
pub fn remove(dir: &Path, server: &str) -> Result<(), PinsError> {
    let path = dir.join(file_name(server));
    folder::remove(&path).map_err(|error| io_error("remove", &path, error))
}

fn read(path: &Path) -> Result<Pins, PinsError> {
    let bytes = switchboard_files::read(path, limits::PINS_BYTES as u64, Links::Refuse).map_err(
        |error| match error.kind() {
            io::ErrorKind::InvalidInput => PinsError::NotPins,
            io::ErrorKind::FileTooLarge => PinsError::TooLarge(
                fs::metadata(path).map_or(limits::PINS_BYTES as u64 + 1, |found| found.len()),
            ),
            _ => io_error("read", path, error),
        },
    )?;
    let pins = Pins::decode(&bytes)?;
    let expected = file_name(pins.server());
    if path.file_name().is_none_or(|name| *name != *expected) {
        let server = pins.server().to_owned();
        return Err(PinsError::Misplaced { server, expected });
    }
    Ok(pins)
}

fn file_name(server: &str) -> String {
    folder::file_name(server, || {
        let hash = Fingerprint::of(server.as_bytes()).to_string();
        hash.chars().take(HASH_DIGITS).collect()
    })
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> PinsError {
    PinsError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
