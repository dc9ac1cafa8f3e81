//! A folder with one JSON file per name, such as the name of a server.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

const ENDING: &str = "json";

/// The longest name, in bytes, that is used unchanged as a file name.
const PLAIN_NAME_BYTES: usize = 80;

/// The file name for a name: the name itself if it is safe on every file system, else its safe
/// characters and a hash. A plain name has no dot, so the two forms never collide.
pub fn file_name(name: &str, hash: impl FnOnce() -> String) -> String {
    // Some file systems ignore case.
    let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !name.is_empty() && name.len() <= PLAIN_NAME_BYTES && name.chars().all(safe) {
        return format!("{name}.{ENDING}");
    }
    let kept: String = name
        .chars()
        .take(PLAIN_NAME_BYTES)
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    format!("{kept}.{}.{ENDING}", hash())
}

/// Lists the JSON files among the first `most` entries of a folder, with the error that ended the
/// listing, if any. A folder that does not exist is empty.
pub fn list(dir: &Path, most: usize) -> (Vec<PathBuf>, Option<io::Error>) {
    let mut paths = Vec::new();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (paths, None),
        Err(error) => return (paths, Some(error)),
    };
    for entry in entries.take(most) {
        match entry.map(|entry| entry.path()) {
            Ok(path) if path.extension().is_some_and(|ending| ending == ENDING) => paths.push(path),
            Ok(_) => {}
            Err(error) => return (paths, Some(error)),
        }
    }
    (paths, None)
}

/// Removes a file, if there is one.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
