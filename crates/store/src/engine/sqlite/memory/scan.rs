//! Reads everything that is readable in a damaged file.
//!
//! Queries come first, because the engine knows which rows were deleted; rows that it no longer finds are
//! then searched for on every page.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Statement};

use super::super::unsigned;
use super::decode::{self, ENTITIES, RELATIONS, SCOPES, VERSIONS, Values};
use super::gaps::{Gaps, Table, Take};
use super::pages::{Found, Pages};
use super::repair::{Look, RepairedCopy, look};
use crate::engine::sqlite::SqliteError;
use crate::types::memory::{Mention, Piece, Scope};

/// Passes everything that can be read from a file to `each`. Returns descriptions of the parts that
/// cannot be read.
pub(crate) fn read_damaged(
    path: &Path,
    each: &mut dyn FnMut(Piece),
) -> Result<Vec<Arc<str>>, SqliteError> {
    std::fs::metadata(path).map_err(SqliteError::Read)?;
    let pages = |path| Pages::open(path).map_err(SqliteError::Read);
    match look(path) {
        Look::Older => Ok(Vec::new()),
        Look::Found(connection) => {
            let damaged = DamagedFile {
                connection: Some(connection),
                pages: pages(path)?,
                problems: Vec::new(),
            };
            Ok(damaged.read(each))
        }
        Look::Lost => {
            let problem = "the header of the file, which locates its tables, was damaged";
            let mended = RepairedCopy::of(path)?;
            let connection = mended.connect();
            let path = match connection {
                Some(_) => mended.path(),
                None => path,
            };
            let damaged = DamagedFile {
                connection,
                pages: pages(path)?,
                problems: vec![problem.into()],
            };
            Ok(damaged.read(each))
        }
    }
}

/// A damaged file that is being read.
#[derive(Debug)]
struct DamagedFile {
    /// `None` if the engine cannot locate the tables.
    connection: Option<Connection>,
    pages: Pages,
    problems: Vec<Arc<str>>,
}

impl DamagedFile {
    /// Passes everything that can be read to `each`.
    fn read(mut self, each: &mut dyn FnMut(Piece)) -> Vec<Arc<str>> {
        let mut scopes: HashMap<i64, Scope> = HashMap::new();
        self.table(SCOPES, "scopes", &mut |place, values| {
            scopes.insert(place, decode::scope(Values::of(SCOPES, values)?)?);
            Some(())
        });
        let mut homeless = 0_u64;
        let mut scope_of = |number: i64| {
            scopes.get(&number).cloned().unwrap_or_else(|| {
                homeless = homeless.saturating_add(1);
                Scope::lost()
            })
        };
        let mut names: HashMap<i64, Arc<str>> = HashMap::new();
        self.table(ENTITIES, "entities", &mut |place, values| {
            let values = Values::of(ENTITIES, values)?;
            let entity = decode::entity(place, values, &mut scope_of)?;
            names.insert(place, Arc::clone(&entity.name));
            each(Piece::Entity(entity));
            Some(())
        });
        let mentions = self.mentions(&names);
        let mut blank = 0_u64;
        self.table(VERSIONS, "versions of memories", &mut |place, values| {
            let values = Values::of(VERSIONS, values)?;
            let mut version = decode::version(place, values, &mut scope_of)?;
            version.mentions = mentions.get(&place).cloned().unwrap_or_default();
            blank = blank.saturating_add(u64::from(decode::has_gaps(&version.content)));
            each(Piece::Version(version));
            Some(())
        });
        self.table(RELATIONS, "relations", &mut |place, values| {
            let values = Values::of(RELATIONS, values)?;
            each(Piece::Relation(decode::relation(place, values)?));
            Some(())
        });
        self.complain(homeless, "memories and entities that have lost their scope");
        self.complain(blank, "memories with gaps in their text");
        self.problems
    }

    /// Reads as much of a table as possible.
    fn table(&mut self, table: Table, what: &str, take: &mut Take<'_>) {
        let gaps = match &self.connection {
            Some(connection) => table.read(connection, take),
            None => Gaps::all(),
        };
        if gaps.is_empty() {
            return;
        }
        let mut back: HashSet<i64> = HashSet::new();
        self.pages.rows(&mut |found, values| {
            if let Found::Row(place) = found
                // The row number is not stored a second time in the record.
                && values.first() == Some(&Value::Null)
                && gaps.contains(place)
                && !back.contains(&place)
                && take(place, values).is_some()
            {
                back.insert(place);
            }
        });
        let lost = gaps
            .rows()
            .map(|rows| rows.saturating_sub(back.len() as u64));
        match lost {
            Some(lost) => self.complain(lost, &format!("{what} that cannot be read")),
            None => self.problems.push(
                format!("{what} were found by searching the whole file: some may be missing, and deleted ones may be back")
                    .into(),
            ),
        }
    }

    /// Returns the mentions of these entities, grouped by version.
    fn mentions(&mut self, names: &HashMap<i64, Arc<str>>) -> HashMap<i64, Vec<Mention>> {
        let mut all: HashMap<i64, Vec<Mention>> = HashMap::new();
        let mut note = |(version, entity, explicit): (i64, i64, bool)| {
            let Some(name) = names.get(&entity) else {
                return;
            };
            let entity = unsigned(entity);
            let mentions = all.entry(version).or_default();
            if mentions.iter().all(|mention| mention.entity != entity) {
                mentions.push(Mention {
                    entity,
                    name: Arc::clone(name),
                    explicit,
                });
            }
        };
        let sql = "SELECT version, entity, explicit FROM memory_mentions";
        let statement = self.connection.as_ref();
        let statement = statement.and_then(|connection| connection.prepare(sql).ok());
        let whole = statement.is_some_and(|mut statement| read_all(&mut statement, &mut note));
        if !whole {
            self.pages.rows(&mut |found, values| {
                if let (Found::Entry, Some(mention)) = (found, decode::mention(values)) {
                    note(mention);
                }
            });
            let problem = "the links from memories to entities may be incomplete";
            self.problems.push(problem.into());
        }
        for mentions in all.values_mut() {
            mentions.sort_by_key(|mention| mention.entity);
        }
        all
    }

    fn complain(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.problems.push(format!("{what}: up to {count}").into());
        }
    }
}

/// Reads all mentions; returns `false` if that fails.
fn read_all(statement: &mut Statement<'_>, note: &mut dyn FnMut((i64, i64, bool))) -> bool {
    let mut read = || {
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            note((row.get(0)?, row.get(1)?, row.get(2)?));
        }
        Ok::<(), rusqlite::Error>(())
    };
    read().is_ok()
}
