//! A file whose beginning is damaged, with another one.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::super::{Database, SqliteError, version, with_suffix};
use crate::types::limits::{LOCK_WAIT, PAGE_BYTES};

/// The first bytes of a file, which say what it is.
const HEADER: usize = 100;

/// The version of the file that memory came with.
const MEMORY: i64 = 3;

/// How a file looks.
pub(super) enum Look {
    /// The tables of memory can be found.
    Found(Connection),
    /// It is whole, and from before there was memory.
    Older,
    /// Its tables cannot be found.
    Lost,
}

/// Opens a file to read what is in it, however it looks.
pub(super) fn look(path: &Path) -> Look {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Otherwise a file that is too short, or has one table that makes no sense, would not be read.
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

/// A copy of a damaged file that begins as it should. It goes when it is not needed any more.
#[derive(Debug)]
pub(super) struct RepairedCopy {
    copy: Passing,
    /// How a file begins.
    page: Vec<u8>,
}

impl RepairedCopy {
    pub(super) fn of(path: &Path) -> Result<Self, SqliteError> {
        let copy = Passing::new(with_suffix(path, ".mended"));
        copy.fill(path).map_err(SqliteError::Read)?;
        let page = first_page(path)?;
        Ok(Self { copy, page })
    }

    /// Begins it anew until its tables are found; nothing if they are not.
    pub(super) fn connect(&self) -> Option<Connection> {
        // First only what says that it is a database, then also where its tables are: that is where
        // they are in a file that was made by this version, and nowhere in particular in others.
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

/// The first page of a file as this version makes it.
fn first_page(path: &Path) -> Result<Vec<u8>, SqliteError> {
    let model = Passing::new(with_suffix(path, ".model"));
    Database::open(&model.path)?.close();
    let mut bytes = std::fs::read(&model.path).map_err(SqliteError::Read)?;
    bytes.truncate(PAGE_BYTES);
    Ok(bytes)
}

/// A file that goes when it is not needed any more, with its log.
#[derive(Debug)]
struct Passing {
    path: PathBuf,
}

impl Passing {
    fn new(path: PathBuf) -> Self {
        let passing = Self { path };
        // Somebody may have been killed before it went.
        passing.remove();
        passing
    }

    /// Makes it the same as another.
    fn fill(&self, path: &Path) -> io::Result<()> {
        std::fs::copy(path, &self.path)?;
        let log = with_suffix(path, "-wal");
        if log.exists() {
            std::fs::copy(log, with_suffix(&self.path, "-wal"))?;
        }
        Ok(())
    }

    /// Puts this in the place of the first bytes.
    fn begin_with(&self, bytes: &[u8]) -> io::Result<()> {
        let mut bytes = bytes.to_owned();
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        let pages = file.metadata()?.len() / PAGE_BYTES as u64;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        // Where a file says how many pages it has.
        if let Some(count) = bytes.get_mut(28..32) {
            count.copy_from_slice(&pages.to_be_bytes());
        }
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // There need not be one.
            drop(std::fs::remove_file(with_suffix(&self.path, suffix)));
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.remove();
    }
}
