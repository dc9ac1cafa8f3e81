//! Scopes and filters of memories.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_store::memory::{Listing, Scope};

use crate::{error::Error, times};

/// The scope as tools take it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Scoped {
    namespace: Option<Arc<str>>,
    user_id: Option<Arc<str>>,
    agent_id: Option<Arc<str>>,
    run_id: Option<Arc<str>>,
}

/// The names of the four parts, in their fixed order.
pub(crate) const PARTS: [&str; 4] = ["namespace", "user_id", "agent_id", "run_id"];

impl Scoped {
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            namespace: self.namespace.clone(),
            user: self.user_id.clone(),
            agent: self.agent_id.clone(),
            run: self.run_id.clone(),
        }
    }
}

/// Returns the four parts, in their fixed order.
pub(crate) fn parts(scope: &Scope) -> [Option<&str>; 4] {
    [
        scope.namespace.as_deref(),
        scope.user.as_deref(),
        scope.agent.as_deref(),
        scope.run.as_deref(),
    ]
}

/// Adds the parts of a scope to a JSON object.
pub(crate) fn put(scope: &Scope, to: &mut Map<String, Value>) {
    for (name, part) in PARTS.into_iter().zip(parts(scope)) {
        if let Some(part) = part {
            to.insert(name.to_owned(), part.into());
        }
    }
}

/// Returns `true` if a scope matches a filter.
pub(crate) fn is_within(scope: &Scope, filter: &Scope) -> bool {
    let pairs = parts(filter).into_iter().zip(parts(scope));
    pairs
        .into_iter()
        .all(|(wanted, is)| wanted.is_none() || wanted == is)
}

/// A filter for memories, as tools take it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Which {
    #[serde(flatten)]
    pub(crate) scope: Scoped,
    pub(crate) memory_type: Option<Arc<str>>,
    as_of: Option<String>,
    known_at: Option<String>,
    #[serde(default)]
    include_invalid: bool,
}

/// A parsed filter.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) scope: Scope,
    pub(crate) kind: Option<Arc<str>>,
    pub(crate) as_of: Option<i64>,
    pub(crate) known_at: Option<i64>,
    pub(crate) now: i64,
    pub(crate) ended: bool,
}

impl Which {
    pub(crate) fn filter(&self) -> Result<Filter, Error> {
        Ok(Filter {
            scope: self.scope.scope(),
            kind: self.memory_type.clone(),
            as_of: time("as_of", self.as_of.as_deref())?,
            known_at: time("known_at", self.known_at.as_deref())?,
            now: times::now(),
            ended: self.include_invalid,
        })
    }
}

impl Filter {
    /// A filter for everything in a scope that is known and true at present.
    pub(crate) fn of(scope: Scope) -> Self {
        Self {
            scope,
            kind: None,
            as_of: None,
            known_at: None,
            now: times::now(),
            ended: false,
        }
    }

    /// Converts the filter for the library.
    pub(crate) fn for_library(&self) -> switchboard_recall::Filter<'_> {
        switchboard_recall::Filter {
            scope: parts(&self.scope),
            kind: self.kind.as_deref(),
            as_of: self.as_of,
            known_at: self.known_at,
            now: self.now,
            ended: self.ended,
        }
    }

    /// Converts the filter for the store.
    pub(crate) fn listing(&self, limit: usize, offset: usize) -> Listing {
        Listing {
            scope: self.scope.clone(),
            kind: self.kind.clone(),
            as_of: self.as_of,
            known_at: self.known_at,
            ended_by: (self.as_of.is_none() && !self.ended).then_some(self.now),
            limit,
            offset,
            ..Listing::default()
        }
    }
}

/// Parses the time in a field.
pub(crate) fn time(field: &str, text: Option<&str>) -> Result<Option<i64>, Error> {
    let Some(text) = text else { return Ok(None) };
    match times::parse(text) {
        Some(time) => Ok(Some(time)),
        None => Err(Error::Invalid {
            message: format!("{field} is not a time"),
            hint: Some("use 2026-07-28 or 2026-07-28T12:00:00Z".into()),
        }),
    }
}
