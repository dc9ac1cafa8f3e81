//! The folder of pins: one file for each server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use switchboard_files::{Links, Mode, create_dir, replace};

use crate::{Fingerprint, Pins, PinsError, limits};

const ENDING: &str = "json";

/// The longest name of a server that is the name of its file as it is.
const PLAIN_NAME_BYTES: usize = 80;

/// How many digits of a hash stand for a name that is not plain.
const HASH_DIGITS: usize = 16;

/// Reads the pins of every server in a folder, in the order of the servers' names; and which files could not be
/// read, and why. A folder that does not exist is empty.
pub fn load_all(dir: &Path) -> (Vec<Pins>, Vec<(PathBuf, PinsError)>) {
    let mut all = Vec::new();
    let mut failed = Vec::new();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (all, failed),
        Err(error) => {
            failed.push((dir.to_owned(), io_error("list", dir, error)));
            return (all, failed);
        }
    };
    for entry in entries.take(limits::PINS_FILES) {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => {
                failed.push((dir.to_owned(), io_error("list", dir, error)));
                break;
            }
        };
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        match read(&path) {
            Ok(pins) => all.push(pins),
            Err(error) => failed.push((path, error)),
        }
    }
    all.sort_by(|a, b| a.server().cmp(b.server()));
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    (all, failed)
}

/// Reads the pins of a server. None if there is no file, so nothing was ever agreed to. After an
/// error [`Pins::damaged`] are the ones to go on with, because what was agreed to is not known.
pub fn load(dir: &Path, server: &str) -> Result<Option<Pins>, PinsError> {
    match read(&dir.join(file_name(server))) {
        Ok(pins) => Ok(Some(pins)),
        Err(PinsError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the pins of a server in place of the file before, readable by its owner alone. Who reads
/// meanwhile, or after the power failed, finds the old file or the new one, whole.
pub fn write(dir: &Path, pins: &Pins) -> Result<(), PinsError> {
    let file = pins.encode();
    let path = dir.join(file_name(pins.server()));
    create_dir(dir).map_err(|error| io_error("create", dir, error))?;
    replace(&path, &file, Mode::Private).map_err(|error| io_error("write", &path, error))
}

/// Removes the pins of a server, if there are any.
pub fn remove(dir: &Path, server: &str) -> Result<(), PinsError> {
    let path = dir.join(file_name(server));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", &path, error))
        }
        _ => Ok(()),
    }
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

/// The file of a server: its name if that is safe everywhere, else what can be kept of it and a hash.
/// A plain name has no dot, so the two never meet.
fn file_name(server: &str) -> String {
    // Some file systems do not tell upper case from lower case.
    let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let plain = !server.is_empty() && server.len() <= PLAIN_NAME_BYTES && server.chars().all(safe);
    if plain {
        return format!("{server}.{ENDING}");
    }
    let kept: String = server
        .chars()
        .take(PLAIN_NAME_BYTES)
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    let hash = Fingerprint::of(server.as_bytes()).to_string();
    let hash: String = hash.chars().take(HASH_DIGITS).collect();
    format!("{kept}.{hash}.{ENDING}")
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> PinsError {
    PinsError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
