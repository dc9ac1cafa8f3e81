//! Decodes rows of a damaged file, as far as possible.

use std::sync::Arc;

use rusqlite::types::{FromSql, Value, ValueRef};

use super::super::unsigned;
use super::gaps::Table;
use crate::types::memory::{Entity, Relation, Scope, Version};

pub(super) const SCOPES: Table = Table {
    name: "memory_scopes",
    columns: &["namespace", "user", "agent", "run", "memories"],
};

pub(super) const ENTITIES: Table = Table {
    name: "memory_entities",
    columns: &[
        "id",
        "scope",
        "key",
        "name",
        "kind",
        "learned_at",
        "found",
        "description",
    ],
};

pub(super) const VERSIONS: Table = Table {
    name: "memory_versions",
    columns: &[
        "id",
        "version",
        "scope",
        "kind",
        "importance",
        "valid_from",
        "valid_until",
        "learned_at",
        "learned_until",
        "superseded_by",
        "reason",
        "metadata",
        "content",
    ],
};

pub(super) const RELATIONS: Table = Table {
    name: "memory_relations",
    columns: &["id", "source", "target", "kind", "weight", "learned_at"],
};

/// The columns of a row, of which the first is its number or NULL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a>(&'a [Value]);

impl<'a> Values<'a> {
    /// Returns `None` if this is not a row of the table.
    pub(super) fn of(table: Table, values: &'a [Value]) -> Option<Self> {
        (values.len() == table.columns.len() + 1).then_some(Self(values))
    }

    fn get<T: FromSql>(self, column: usize) -> Option<T> {
        T::column_result(ValueRef::from(self.0.get(column)?)).ok()
    }

    /// A number between 0 and 1, which may be stored as an integer.
    fn fraction(self, column: usize) -> Option<f32> {
        let number: f32 = self.get(column)?;
        (0.0..=1.0).contains(&number).then_some(number)
    }
}

pub(super) fn scope(values: Values<'_>) -> Option<Scope> {
    // Without this number, it is a row of some other table.
    let _memories: i64 = values.get(5)?;
    Some(Scope {
        namespace: values.get(1)?,
        user: values.get(2)?,
        agent: values.get(3)?,
        run: values.get(4)?,
    })
}

pub(super) fn entity(
    place: i64,
    values: Values<'_>,
    scope_of: impl FnOnce(i64) -> Scope,
) -> Option<Entity> {
    Some(Entity {
        row: unsigned(place),
        id: values.get(1)?,
        key: values.get(3)?,
        name: values.get(4)?,
        kind: values.get(5)?,
        learned_at: values.get(6)?,
        found: flag(values.get(7)?)?,
        description: values.get(8)?,
        scope: scope_of(values.get(2)?),
    })
}

pub(super) fn version(
    place: i64,
    values: Values<'_>,
    scope_of: impl FnOnce(i64) -> Scope,
) -> Option<Version> {
    Some(Version {
        row: unsigned(place),
        id: values.get(1)?,
        version: values.get(2)?,
        kind: values.get(4)?,
        importance: values.fraction(5)?,
        valid_from: values.get(6)?,
        valid_until: values.get(7)?,
        learned_at: values.get(8)?,
        learned_until: values.get(9)?,
        superseded_by: values.get(10)?,
        reason: values.get(11)?,
        metadata: values.get(12)?,
        content: values.get(13)?,
        scope: scope_of(values.get(3)?),
        mentions: Vec::new(),
    })
}

pub(super) fn relation(place: i64, values: Values<'_>) -> Option<Relation> {
    Some(Relation {
        row: unsigned(place),
        id: values.get(1)?,
        from: unsigned(values.get(2)?),
        to: unsigned(values.get(3)?),
        kind: values.get(4)?,
        weight: values.fraction(5)?,
        learned_at: values.get(6)?,
    })
}

/// Decodes an entry of the table of mentions: a version, an entity, and `true` if the caller named
/// the entity.
pub(super) fn mention(values: &[Value]) -> Option<(i64, i64, bool)> {
    match values {
        [
            Value::Integer(version),
            Value::Integer(entity),
            Value::Integer(explicit),
        ] => Some((*version, *entity, flag(*explicit)?)),
        _ => None,
    }
}

/// Returns `true` if a text looks as if pages of it were blank.
pub(super) fn has_gaps(text: &Arc<str>) -> bool {
    text.contains('\0')
}

fn flag(number: i64) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
