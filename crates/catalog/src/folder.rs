//! The folder of snapshots: one file for each server.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use switchboard_files::{Draft, Durability, Links, create_dir, folder};

use crate::{Snapshot, SnapshotError, limits, names, parallel};

/// Reads every snapshot of a folder, sorted by server name. Also returns the files that could not
/// be read, with their errors. A missing folder is empty.
pub fn load_all(dir: &Path) -> (Vec<Snapshot>, Vec<(PathBuf, SnapshotError)>) {
    let mut snapshots = Vec::new();
    let (paths, error) = folder::list(dir, limits::SNAPSHOT_FILES);
    let error = error.map(|error| (dir.to_owned(), io_error("list", dir, error)));
    let mut failed: Vec<_> = error.into_iter().collect();
    let loaded = parallel::map(&paths, |path| load(path));
    for (path, loaded) in paths.into_iter().zip(loaded) {
        match loaded {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(error) => failed.push((path, error)),
        }
    }
    snapshots.sort_by(|a, b| a.server.cmp(&b.server));
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    (snapshots, failed)
}

/// Writes the snapshot of a server, replacing the previous one. A concurrent reader sees either the
/// old or the new file, complete.
pub fn write(dir: &Path, snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let file = snapshot.encode();
    if file.len() > limits::SNAPSHOT_BYTES {
        return Err(SnapshotError::TooLarge(file.len() as u64));
    }
    create_dir(dir).map_err(|error| io_error("create", dir, error))?;
    let path = dir.join(file_name(&snapshot.server));
    // A snapshot damaged by a crash is detected by its checksum, and the server can be asked again.
    Draft::beside(&path)
        .and_then(|mut draft| {
            draft.write_all(&file)?;
            draft.place(Durability::Eventual)
        })
        .map_err(|error| io_error("write", &path, error))
}

/// Removes the snapshot of a server, if there is one.
pub fn remove(dir: &Path, server: &str) -> Result<(), SnapshotError> {
    let path = dir.join(file_name(server));
    folder::remove(&path).map_err(|error| io_error("remove", &path, error))
}

fn load(path: &Path) -> Result<Snapshot, SnapshotError> {
    let most = limits::SNAPSHOT_BYTES as u64;
    let bytes =
        switchboard_files::read(path, most, Links::Refuse).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => SnapshotError::NotASnapshot,
            io::ErrorKind::FileTooLarge => {
                SnapshotError::TooLarge(fs::metadata(path).map_or(most + 1, |found| found.len()))
            }
            _ => io_error("read", path, error),
        })?;
    let snapshot = Snapshot::decode(bytes)?;
    let expected = file_name(&snapshot.server);
    if path.file_name().is_none_or(|name| *name != *expected) {
        let server = snapshot.server;
        return Err(SnapshotError::Misplaced { server, expected });
    }
    Ok(snapshot)
}

fn file_name(server: &str) -> String {
    folder::file_name(server, || names::hash(&[server.as_bytes()]))
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> SnapshotError {
    SnapshotError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}
