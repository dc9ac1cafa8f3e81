//! What a new file knows of the damaged ones before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

use super::super::{Commit, Database, SqliteError, rename};

/// What the name of a damaged file has after the name of the store's.
pub(in crate::engine::sqlite) const DAMAGED: &str = ".damaged-";

/// Notes in a new file which damaged ones lie beside it: whatever was remembered is in them. They are
/// looked for instead of told, so that a crash between putting one aside and this does not matter.
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

/// The damaged files whose memories are missed, for a person to read.
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

/// What became of a damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything that can be read of it was brought back.
    Salvaged,
    /// Somebody went on without it.
    Discarded,
}

/// Gives a damaged file another name, so that no new file misses what is in it.
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
    /// The damaged files whose memories are missed.
    pub(crate) fn missed(&self) -> Result<Vec<PathBuf>, SqliteError> {
        Ok(missed(&self.connection, &self.path)?)
    }
}

impl Commit<'_> {
    /// Misses nothing any more.
    pub(crate) fn mend(&mut self) -> Result<(), SqliteError> {
        // What was brought back may name what only lost memories spoke of.
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

/// The names of the damaged files beside this one, without their logs.
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
