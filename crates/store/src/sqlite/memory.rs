//! Memory in the engine: what its parts have in common.

mod entities;
mod graph;
mod list;
mod reads;
mod writes;

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use super::{Commit, Database};
use crate::error::StoreError;
use crate::memory::Scope;

/// The damaged files whose memories are missed.
pub(super) fn aside(connection: &Connection) -> rusqlite::Result<Option<Arc<str>>> {
    let mut statement = connection.prepare("SELECT path FROM memory_damage ORDER BY path")?;
    let paths = statement.query_map([], |row| row.get(0))?;
    let paths: Vec<String> = paths.collect::<Result<_, _>>()?;
    Ok((!paths.is_empty()).then(|| paths.join(", ").into()))
}

impl Database {
    /// Why memory cannot be used, if it cannot.
    pub(crate) fn damage(&self) -> Option<StoreError> {
        let aside = self.aside.clone()?;
        Some(StoreError::Damaged { aside })
    }
}

impl Commit<'_> {
    /// Why memory cannot be used, if it cannot.
    fn damage(&mut self) -> rusqlite::Result<Option<StoreError>> {
        let damaged = self.find("SELECT 1 FROM memory_damage", [], |_| Ok(()))?;
        Ok(match damaged {
            None => None,
            Some(()) => aside(self.transaction())?.map(|aside| StoreError::Damaged { aside }),
        })
    }
}

/// The columns of a scope.
const SCOPE: [&str; 4] = ["namespace", "user", "agent", "run"];

/// The scope in these columns, from this one on.
fn scope(row: &Row<'_>, first: usize) -> rusqlite::Result<Scope> {
    Ok(Scope {
        namespace: row.get(first)?,
        user: row.get(first + 1)?,
        agent: row.get(first + 2)?,
        run: row.get(first + 3)?,
    })
}

/// What rows of `memory_scopes` match a filter: a condition, and the values in it; nothing if all do.
fn filter(scope: &Scope) -> Option<(String, Vec<Value>)> {
    let named = SCOPE.into_iter().zip(scope.names());
    let named: Vec<_> = named
        .filter_map(|(column, name)| Some((column, name?)))
        .collect();
    if named.is_empty() {
        return None;
    }
    let conditions: Vec<_> = named
        .iter()
        .map(|(column, _)| format!("{column} = ?"))
        .collect();
    let values = named.iter().map(|(_, name)| name.to_string().into());
    Some((conditions.join(" AND "), values.collect()))
}
