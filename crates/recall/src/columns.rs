//! What a filter and a score look at: a column for each property, a place in each for every memory.

use crate::{
    library::Document,
    query::Filter,
    scopes::{NONE, Scopes},
};

/// The columns. What was removed keeps its place until the library is tidied.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) row: Vec<u64>,
    /// [`NONE`] for what was removed.
    pub(crate) scope: Vec<u32>,
    kind: Vec<u32>,
    importance: Vec<f32>,
    /// The least of all times if it is open.
    pub(crate) valid_from: Vec<i64>,
    /// The last of all times if it is open.
    pub(crate) valid_until: Vec<i64>,
    pub(crate) learned_at: Vec<i64>,
    /// The last of all times for the current version.
    pub(crate) learned_until: Vec<i64>,
}

/// A filter, ready to be asked about places.
pub(crate) struct Gate<'a> {
    columns: &'a Columns,
    /// By the number of the scope.
    pub(crate) scopes: Vec<bool>,
    kind: Option<u32>,
    filter: Filter<'a>,
}

impl Columns {
    pub(crate) fn len(&self) -> usize {
        self.row.len()
    }

    /// Adds a memory in the next place.
    pub(crate) fn push(&mut self, document: &Document<'_>, scopes: &mut Scopes) {
        self.row.push(document.row);
        self.scope.push(scopes.enter(document.scope));
        self.kind.push(scopes.enter_name(document.kind));
        self.importance.push(document.importance);
        self.valid_from
            .push(document.valid_from.unwrap_or(i64::MIN));
        self.valid_until
            .push(document.valid_until.unwrap_or(i64::MAX));
        self.learned_at.push(document.learned_at);
        self.learned_until.push(i64::MAX);
        if let Some(until) = document.learned_until {
            self.close(self.len() - 1, until);
        }
    }

    /// Makes a version one that was current until then.
    pub(crate) fn close(&mut self, at: usize, learned_until: i64) {
        // The last of all times is kept for what is current.
        self.learned_until[at] = learned_until.min(i64::MAX - 1);
    }

    pub(crate) fn gate<'a>(&'a self, filter: &Filter<'a>, scopes: &Scopes) -> Gate<'a> {
        Gate {
            columns: self,
            scopes: scopes.admitted(filter),
            kind: filter.kind.map(|kind| scopes.name(kind)),
            filter: *filter,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.len() * (8 + 4 + 4 + 4 + 4 * 8)
    }
}

impl Gate<'_> {
    /// Whether the memory in this place passes.
    pub(crate) fn admits(&self, at: usize) -> bool {
        let columns = self.columns;
        let scope = columns.scope[at];
        if scope == NONE || !self.scopes[scope as usize] {
            return false;
        }
        if self.kind.is_some_and(|kind| kind != columns.kind[at]) {
            return false;
        }
        let is_known = match self.filter.known_at {
            Some(then) => columns.learned_at[at] <= then && before(then, columns.learned_until[at]),
            None => columns.learned_until[at] == i64::MAX,
        };
        is_known
            && match self.filter.as_of {
                Some(then) => {
                    columns.valid_from[at] <= then && before(then, columns.valid_until[at])
                }
                None => self.filter.ended || before(self.filter.now, columns.valid_until[at]),
            }
    }
}

/// Whether a time is before the end of something, which may have none.
fn before(time: i64, end: i64) -> bool {
    end == i64::MAX || time < end
}
