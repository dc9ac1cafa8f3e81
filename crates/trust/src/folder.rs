//! The folder of ledgers: one file for each server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use switchboard_files::{Links, Mode, create_dir, replace};

use crate::{Fingerprint, Ledger, LedgerError, limits};

const ENDING: &str = "json";

/// The longest name of a server that is the name of its file as it is.
const PLAIN_NAME_BYTES: usize = 80;

/// How many digits of a hash stand for a name that is not plain.
const HASH_DIGITS: usize = 16;

/// Reads every ledger of a folder, in the order of the servers' names; and which files could not be
/// read, and why. A folder that does not exist is empty.
pub fn load_all(dir: &Path) -> (Vec<Ledger>, Vec<(PathBuf, LedgerError)>) {
    let mut ledgers = Vec::new();
    let mut failed = Vec::new();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (ledgers, failed),
        Err(error) => {
            failed.push((dir.to_owned(), io_error("list", dir, error)));
            return (ledgers, failed);
        }
    };
    for entry in entries.take(limits::LEDGER_FILES) {
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
            Ok(ledger) => ledgers.push(ledger),
            Err(error) => failed.push((path, error)),
        }
    }
    ledgers.sort_by(|a, b| a.server().cmp(b.server()));
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    (ledgers, failed)
}

/// Reads the ledger of a server. None if there is no file, so nothing was ever agreed to. After an
/// error [`Ledger::damaged`] is the one to go on with, because what was agreed to is not known.
pub fn load(dir: &Path, server: &str) -> Result<Option<Ledger>, LedgerError> {
    match read(&dir.join(file_name(server))) {
        Ok(ledger) => Ok(Some(ledger)),
        Err(LedgerError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the ledger of a server in place of the one before, readable by its owner alone. Who reads
/// meanwhile, or after the power failed, finds the old one or the new one, whole.
pub fn write(dir: &Path, ledger: &Ledger) -> Result<(), LedgerError> {
    let file = ledger.encode();
    let path = dir.join(file_name(ledger.server()));
    create_dir(dir).map_err(|error| io_error("create", dir, error))?;
    replace(&path, &file, Mode::Private).map_err(|error| io_error("write", &path, error))
}

/// Removes the ledger of a server, if there is one.
pub fn remove(dir: &Path, server: &str) -> Result<(), LedgerError> {
    let path = dir.join(file_name(server));
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_error("remove", &path, error))
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<Ledger, LedgerError> {
    let bytes = switchboard_files::read(path, limits::LEDGER_BYTES as u64, Links::Refuse).map_err(
        |error| match error.kind() {
            io::ErrorKind::InvalidInput => LedgerError::NotALedger,
            io::ErrorKind::FileTooLarge => LedgerError::TooLarge(
                fs::metadata(path).map_or(limits::LEDGER_BYTES as u64 + 1, |found| found.len()),
            ),
            _ => io_error("read", path, error),
        },
    )?;
    let ledger = Ledger::decode(&bytes)?;
    let expected = file_name(ledger.server());
    if path.file_name().is_none_or(|name| *name != *expected) {
        let server = ledger.server().to_owned();
        return Err(LedgerError::Misplaced { server, expected });
    }
    Ok(ledger)
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

fn io_error(what: &'static str, path: &Path, source: io::Error) -> LedgerError {
    LedgerError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
