//! Memories in the engine: shared code.

mod damage;
mod decode;
mod entities;
mod gaps;
mod graph;
mod list;
mod pages;
mod reads;
mod repair;
mod restore;
mod scan;
mod vectors;
mod writes;

pub(super) use self::damage::{DAMAGED, aside, note};
pub(crate) use self::damage::{Ending, rename_aside};
pub(crate) use self::scan::read_damaged;
pub(super) use self::vectors::Trim;

use rusqlite::Row;
use rusqlite::types::Value;

use super::{Commit, Database};
use crate::types::error::StoreError;
use crate::types::memory::Scope;

impl Database {
    /// Returns the error that makes memory unusable, if any.
    pub(crate) fn damage(&self) -> Option<StoreError> {
        let aside = self.aside.clone()?;
        Some(StoreError::Damaged { aside })
    }
}

impl Commit<'_> {
    /// Returns the error that makes memory unusable, if any.
    fn damage(&self) -> Option<StoreError> {
        let aside = self.aside()?;
        Some(StoreError::Damaged { aside })
    }
}

/// The columns of a scope.
const SCOPE: [&str; 4] = ["namespace", "user", "agent", "run"];

/// Reads a scope from four columns, starting at this one.
fn scope(row: &Row<'_>, first: usize) -> rusqlite::Result<Scope> {
    Ok(Scope {
        namespace: row.get(first)?,
        user: row.get(first + 1)?,
        agent: row.get(first + 2)?,
        run: row.get(first + 3)?,
    })
}

/// Returns the condition that selects the rows of `memory_scopes` for a filter, and its values;
/// `None` if all rows match.
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
