//! Replaces the damaged beginning of a file with that of a new one.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::super::{Database, SqliteError, version, with_suffix};
use crate::types::limits::{LOCK_WAIT, PAGE_BYTES};

/// The length of the file's header, in bytes.
const HEADER: usize = 100;

/// The version of the file format that introduced memories.
const MEMORY: i64 = 3;

/// The state of a file.
pub(super) enum Look {
    /// The memory tables can be found.
    Found(Connection),
    /// The file is intact, but predates memories.
    Older,
    /// The tables cannot be found.
    Lost,
}

/// Opens a file for reading, even if it is damaged.
pub(super) fn look(path: &Path) -> Look {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Without this, a truncated file or one with a single malformed table could not be read.
        connection.pragma_update(None, "writable_schema", true)?;
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'memory_versions'";
        let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let version = version(&connection)?;
        Ok::<_, rusqlite::Error>((connection, tables, version))
    };
    match open() {
        Ok((connection, 1, _)) => Look::Found(connection),
        Ok((_, _, 1..MEMORY)) => Look::Older,
        _ => Look::Lost,
    }
}

/// A copy of a damaged file with an intact beginning. It is deleted on drop.
#[derive(Debug)]
pub(super) struct RepairedCopy {
    copy: Passing,
    /// First page of an intact file.
    page: Vec<u8>,
}

impl RepairedCopy {
    pub(super) fn of(path: &Path) -> Result<Self, SqliteError> {
        let copy = Passing::new(with_suffix(path, ".mended"));
        copy.fill(path).map_err(SqliteError::Read)?;
        let page = first_page(path)?;
        Ok(Self { copy, page })
    }

    /// Replaces the beginning until the tables are found; `None` if they are not.
    pub(super) fn connect(&self) -> Option<Connection> {
        // Try the header alone first, then the page that locates the tables. The latter is right for a
        // file that this version created; in other files, the tables may be elsewhere.
        [HEADER, PAGE_BYTES].into_iter().find_map(|length| {
            self.copy.begin_with(self.page.get(..length)?).ok()?;
            match look(&self.copy.path) {
                Look::Found(connection) => Some(connection),
                Look::Older | Look::Lost => None,
            }
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.copy.path
    }
}

/// The first page of a file created by this version.
fn first_page(path: &Path) -> Result<Vec<u8>, SqliteError> {
    let model = Passing::new(with_suffix(path, ".model"));
    Database::open(&model.path)?.close();
    let mut bytes = std::fs::read(&model.path).map_err(SqliteError::Read)?;
    bytes.truncate(PAGE_BYTES);
    Ok(bytes)
}

/// A temporary file that is deleted on drop, with its log.
#[derive(Debug)]
struct Passing {
    path: PathBuf,
}

impl Passing {
    fn new(path: PathBuf) -> Self {
        let passing = Self { path };
        // A process that was killed may have left one.
        passing.remove();
        passing
    }

    /// Copies a file and its log to this path.
    fn fill(&self, path: &Path) -> io::Result<()> {
        std::fs::copy(path, &self.path)?;
        let log = with_suffix(path, "-wal");
        if log.exists() {
            std::fs::copy(log, with_suffix(&self.path, "-wal"))?;
        }
        Ok(())
    }

    /// Overwrites the first bytes.
    fn begin_with(&self, bytes: &[u8]) -> io::Result<()> {
        let mut bytes = bytes.to_owned();
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        let pages = file.metadata()?.len() / PAGE_BYTES as u64;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        // The number of pages, as stored in the header.
        if let Some(count) = bytes.get_mut(28..32) {
            count.copy_from_slice(&pages.to_be_bytes());
        }
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // It may not exist.
            drop(std::fs::remove_file(with_suffix(&self.path, suffix)));
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.remove();
    }
}
