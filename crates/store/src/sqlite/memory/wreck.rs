//! A damaged file in the engine: reading whatever can be read of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row};

use super::super::{Database, Trouble, unsigned, with_suffix};
use super::gaps::Table;
use super::scope;
use crate::limits::{LOCK_WAIT, PAGE_BYTES};
use crate::memory::{Entity, Mention, Piece, Relation, Scope, Version, lost_scope};

/// The first bytes of a file, which say what it is.
const HEADER: usize = 100;

/// A damaged file that is being read.
#[derive(Debug)]
pub(crate) struct Wreck {
    /// None if the file does not even say where its tables are.
    connection: Option<Connection>,
    /// What was wrong with its beginning.
    problem: Option<Arc<str>>,
    /// Goes after the connection.
    _copy: Option<Copy>,
}

/// How a file looks that is opened.
enum Look {
    /// The tables of memory can be found.
    Found(Connection),
    /// It is whole, and from before there was memory.
    Older,
    /// Its tables cannot be found.
    Lost,
}

impl Wreck {
    /// Opens a file, with a mended copy of it if its beginning is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        std::fs::metadata(path).map_err(Trouble::Read)?;
        let wreck = |connection, problem: Option<&str>, copy| Self {
            connection,
            problem: problem.map(Arc::from),
            _copy: copy,
        };
        match look(path) {
            Look::Found(connection) => return Ok(wreck(Some(connection), None, None)),
            Look::Older => return Ok(wreck(None, None, None)),
            Look::Lost => {}
        }
        let page = first_page(path)?;
        let copy = Copy::of(path)?;
        // First only what says that it is a database, then also where its tables are: that is where
        // they are in a file that was made by this version, and nowhere in particular in others.
        for length in [HEADER, page.len()] {
            copy.begin_with(&page[..length])?;
            if let Look::Found(connection) = look(&copy.path) {
                let problem = "the beginning of the file was damaged";
                return Ok(wreck(Some(connection), Some(problem), Some(copy)));
            }
        }
        let problem = "the file does not say any more where its memories are; nothing was read";
        Ok(wreck(None, Some(problem), None))
    }

    /// Gives everything that can be read to `each`. Says what cannot, in words.
    pub(crate) fn read(&self, each: &mut dyn FnMut(Piece)) -> Vec<Arc<str>> {
        let mut problems: Vec<Arc<str>> = self.problem.iter().cloned().collect();
        let Some(connection) = &self.connection else {
            return problems;
        };
        let mut complain = |what: &str, lost: Option<u64>| match lost {
            Some(0) => {}
            Some(lost) => problems.push(format!("up to {lost} {what} cannot be read").into()),
            None => problems.push(format!("no {what} can be found").into()),
        };
        let table = |name, columns| Table::new(connection, name, columns);

        let mut scopes: HashMap<i64, Scope> = HashMap::new();
        let names = table("memory_scopes", "namespace, user, agent, run");
        let lost = names.read(&mut |place, row| {
            scopes.insert(place, scope(row, 1)?);
            Ok(())
        });
        complain("scopes", lost);

        let mut homeless = 0_u64;
        let mut scope_of = |number: i64| {
            scopes.get(&number).cloned().unwrap_or_else(|| {
                homeless = homeless.saturating_add(1);
                lost_scope()
            })
        };
        let mut names: HashMap<i64, Arc<str>> = HashMap::new();
        let entities = table(
            "memory_entities",
            "id, scope, key, name, kind, learned_at, found, description",
        );
        let lost = entities.read(&mut |place, row| {
            let entity = entity(place, row, &mut scope_of)?;
            names.insert(place, Arc::clone(&entity.name));
            each(Piece::Entity(entity));
            Ok(())
        });
        complain("entities", lost);

        let mut mentions = Mentions::of(connection, &names);
        let versions = table(
            "memory_versions",
            "id, version, scope, kind, importance, valid_from, valid_until, learned_at, \
             learned_until, superseded_by, reason, metadata, content",
        );
        let lost = versions.read(&mut |place, row| {
            let mut version = version(place, row, &mut scope_of)?;
            version.mentions = mentions.by(place);
            each(Piece::Version(version));
            Ok(())
        });
        complain("versions of memories", lost);
        complain("lists of entities mentioned", Some(mentions.lost));

        let relations = table(
            "memory_relations",
            "id, source, target, kind, weight, learned_at",
        );
        let lost = relations.read(&mut |place, row| {
            each(Piece::Relation(relation(place, row)?));
            Ok(())
        });
        complain("relations", lost);
        complain("scopes of memories and entities", Some(homeless));
        problems
    }
}

/// Which entities a version mentions, of those that could be read.
struct Mentions<'a> {
    statement: Option<rusqlite::Statement<'a>>,
    names: &'a HashMap<i64, Arc<str>>,
    lost: u64,
}

impl<'a> Mentions<'a> {
    fn of(connection: &'a Connection, names: &'a HashMap<i64, Arc<str>>) -> Self {
        let sql = "SELECT entity, explicit FROM memory_mentions WHERE version = ?1 ORDER BY entity";
        Self {
            statement: connection.prepare(sql).ok(),
            names,
            lost: 0,
        }
    }

    fn by(&mut self, version: i64) -> Vec<Mention> {
        let mut found = Vec::new();
        if self.find(version, &mut found).is_none() {
            self.lost = self.lost.saturating_add(1);
        }
        found
    }

    fn find(&mut self, version: i64, found: &mut Vec<Mention>) -> Option<()> {
        let mut rows = self.statement.as_mut()?.query([version]).ok()?;
        while let Some(row) = rows.next().ok()? {
            let entity: i64 = row.get(0).ok()?;
            if let Some(name) = self.names.get(&entity) {
                found.push(Mention {
                    entity: unsigned(entity),
                    name: Arc::clone(name),
                    explicit: row.get(1).ok()?,
                });
            }
        }
        Some(())
    }
}

/// Opens a file to read what is in it, however it looks.
fn look(path: &Path) -> Look {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Otherwise a file that is too short, or has one table that makes no sense, would not be read.
        connection.pragma_update(None, "writable_schema", true)?;
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'memory_versions'";
        let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
        let version = super::super::version(&connection)?;
        Ok::<_, rusqlite::Error>((connection, tables, version))
    };
    match open() {
        Ok((connection, 1, _)) => Look::Found(connection),
        Ok((_, _, version)) if version < 3 => Look::Older,
        _ => Look::Lost,
    }
}

/// The first page of a file as this version makes it.
fn first_page(path: &Path) -> Result<Vec<u8>, Trouble> {
    let model = Copy {
        path: with_suffix(path, ".model"),
    };
    model.remove();
    Database::open(&model.path)?.close();
    let mut bytes = std::fs::read(&model.path).map_err(Trouble::Read)?;
    bytes.truncate(PAGE_BYTES);
    Ok(bytes)
}

/// A file that goes when it is not needed any more, with its log.
#[derive(Debug)]
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn of(path: &Path) -> Result<Self, Trouble> {
        let copy = Self {
            path: with_suffix(path, ".mended"),
        };
        copy.remove();
        std::fs::copy(path, &copy.path).map_err(Trouble::Read)?;
        let log = with_suffix(path, "-wal");
        if log.exists() {
            std::fs::copy(log, with_suffix(&copy.path, "-wal")).map_err(Trouble::Read)?;
        }
        Ok(copy)
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // There need not be one.
            drop(std::fs::remove_file(with_suffix(&self.path, suffix)));
        }
    }

    /// Puts this in the place of the first bytes. How many pages there are is for the reader to see.
    fn begin_with(&self, bytes: &[u8]) -> Result<(), Trouble> {
        use std::io::{Seek, SeekFrom, Write};

        let mut bytes = bytes.to_owned();
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(&self.path)
            .map_err(Trouble::Read)?;
        let length = file.metadata().map_err(Trouble::Read)?.len();
        let pages = u32::try_from(length / PAGE_BYTES as u64).unwrap_or(u32::MAX);
        if let Some(count) = bytes.get_mut(28..32) {
            count.copy_from_slice(&pages.to_be_bytes());
        }
        file.seek(SeekFrom::Start(0)).map_err(Trouble::Read)?;
        file.write_all(&bytes).map_err(Trouble::Read)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.remove();
    }
}

fn entity(
    place: i64,
    row: &Row<'_>,
    scope_of: &mut impl FnMut(i64) -> Scope,
) -> rusqlite::Result<Entity> {
    Ok(Entity {
        row: unsigned(place),
        id: row.get(1)?,
        key: row.get(3)?,
        name: row.get(4)?,
        kind: row.get(5)?,
        learned_at: row.get(6)?,
        found: row.get(7)?,
        description: row.get(8)?,
        scope: scope_of(row.get(2)?),
    })
}

fn version(
    place: i64,
    row: &Row<'_>,
    scope_of: &mut impl FnMut(i64) -> Scope,
) -> rusqlite::Result<Version> {
    Ok(Version {
        row: unsigned(place),
        id: row.get(1)?,
        version: row.get(2)?,
        kind: row.get(4)?,
        importance: fraction(row.get(5)?),
        valid_from: row.get(6)?,
        valid_until: row.get(7)?,
        learned_at: row.get(8)?,
        learned_until: row.get(9)?,
        superseded_by: row.get(10)?,
        reason: row.get(11)?,
        metadata: row.get(12)?,
        content: row.get(13)?,
        scope: scope_of(row.get(3)?),
        mentions: Vec::new(),
    })
}

fn relation(place: i64, row: &Row<'_>) -> rusqlite::Result<Relation> {
    Ok(Relation {
        row: unsigned(place),
        id: row.get(1)?,
        from: unsigned(row.get(2)?),
        to: unsigned(row.get(3)?),
        kind: row.get(4)?,
        weight: fraction(row.get(5)?),
        learned_at: row.get(6)?,
    })
}

/// What is kept is never anything else.
fn fraction(number: f32) -> f32 {
    if number.is_nan() {
        return 0.0;
    }
    number.clamp(0.0, 1.0)
}
