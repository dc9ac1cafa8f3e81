//! The record, in a new file, of the damaged files before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::super::{Commit, Database, SqliteError, rename};

/// The part of a damaged file's name that follows the name of the store's file.
pub(in crate::engine::sqlite) const DAMAGED: &str = ".damaged-";

/// Records in a new file the damaged ones beside it, which hold the memories so far. They are found
/// by listing the folder, so that a crash between setting one aside and this call does no harm.
pub(in crate::engine::sqlite) fn note(
    connection: &Connection,
    path: &Path,
) -> Result<(), SqliteError> {
    let sql = "INSERT OR IGNORE INTO memory_damage (name) VALUES (?1)";
    for name in damaged(path).map_err(SqliteError::Make)? {
        connection.execute(sql, [name])?;
    }
    Ok(())
}

/// Returns the damaged files whose memories have not been restored, as text for the user.
pub(in crate::engine::sqlite) fn aside(
    connection: &Connection,
    path: &Path,
) -> rusqlite::Result<Option<Arc<str>>> {
    let paths = missed(connection, path)?;
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Ok((!paths.is_empty()).then(|| paths.join(", ").into()))
}

/// The fate of a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything that can be read from it was restored.
    Salvaged,
    /// The user chose to go on without it.
    Discarded,
}

/// Renames a damaged file, so that no new file refers to it as missing.
pub(crate) fn rename_aside(path: &Path, ending: Ending) -> io::Result<()> {
    let word = match ending {
        Ending::Salvaged => ".salvaged-",
        Ending::Discarded => ".discarded-",
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replacen(DAMAGED, word, 1);
    rename(path, &path.with_file_name(name))
}

impl Database {
    /// Returns the damaged files whose memories have not been restored.
    pub(crate) fn missed(&self) -> Result<Vec<PathBuf>, SqliteError> {
        Ok(missed(&self.connection, &self.path)?)
    }
}

impl Commit<'_> {
    /// Marks the damaged files as dealt with.
    pub(crate) fn mend(&mut self) -> Result<(), SqliteError> {
        // Restored entities may have been mentioned by lost memories only.
        self.execute(
            "DELETE FROM memory_entities WHERE found = 1 \
             AND NOT EXISTS (SELECT 1 FROM memory_mentions WHERE entity = memory_entities.row)",
            [],
        )?;
        self.execute(
            "DELETE FROM memory_scopes WHERE \
             NOT EXISTS (SELECT 1 FROM memory_versions WHERE scope = memory_scopes.row) \
             AND NOT EXISTS (SELECT 1 FROM memory_entities WHERE scope = memory_scopes.row)",
            [],
        )?;
        self.execute("DELETE FROM memory_damage", [])?;
        self.effects().mended = true;
        Ok(())
    }
}

fn missed(connection: &Connection, path: &Path) -> rusqlite::Result<Vec<PathBuf>> {
    let mut statement = connection.prepare("SELECT name FROM memory_damage ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names
        .map(|name: rusqlite::Result<String>| Ok(path.with_file_name(name?)))
        .collect()
}

/// Returns the names of the damaged files beside this one, without their logs.
fn damaged(path: &Path) -> io::Result<Vec<String>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let beginning = format!("{}{DAMAGED}", name.to_string_lossy());
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let number = name.strip_prefix(&beginning);
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            names.push(name.into_owned());
        }
    }
    Ok(names)
}
