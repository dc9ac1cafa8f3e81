//! Memories: creating, changing and deleting them.

mod changes;
mod damage;
mod entities;
mod lists;
mod vectors;

use std::sync::Arc;

use rusqlite::Connection;
use switchboard_store::memory::{
    Made, Memories, MemoryChange, NewMention, NewVersion, Scope, Version,
};

use super::{Place, within};

/// Some time in 2026.
const NOW: i64 = 1_794_718_800_000_000;

/// A memory without a scope, with a text made from its ID.
fn memory(id: &str) -> NewVersion {
    NewVersion {
        id: id.into(),
        version: None,
        scope: Scope::default(),
        kind: "semantic".into(),
        content: format!("What {id} is about.").into(),
        importance: 0.5,
        metadata: None,
        valid_from: None,
        valid_until: None,
        learned_at: NOW,
        learned_until: None,
        reason: None,
        superseded_by: None,
    }
}

fn add(version: NewVersion) -> MemoryChange {
    mentioning(version, [])
}

fn mentioning(version: NewVersion, mentions: impl Into<Vec<NewMention>>) -> MemoryChange {
    let mentions = mentions.into();
    MemoryChange::Add { version, mentions }
}

fn revise(was: u32, version: NewVersion) -> MemoryChange {
    MemoryChange::Revise {
        id: version.id.clone(),
        was,
        version,
        mentions: Vec::new(),
    }
}

/// A memory and its second version, each of which mentions a different entity.
pub(crate) fn learned_twice(id: &str) -> Vec<MemoryChange> {
    let second = MemoryChange::Revise {
        id: id.into(),
        was: 1,
        version: memory(id),
        mentions: vec![found(&format!("{id} again"))],
    };
    vec![mentioning(memory(id), [found(id)]), second]
}

fn delete(id: &str) -> MemoryChange {
    MemoryChange::Delete { id: id.into() }
}

/// A mention of an entity found in the text, by its key.
fn found(key: &str) -> NewMention {
    NewMention {
        id: format!("id of {key}").into(),
        name: key.to_uppercase().into(),
        key: key.into(),
        kind: None,
        explicit: false,
    }
}

/// The same mention, made by the caller.
fn said(key: &str) -> NewMention {
    NewMention {
        explicit: true,
        ..found(key)
    }
}

fn user(name: &str) -> Scope {
    Scope {
        user: Some(name.into()),
        ..Scope::default()
    }
}

async fn write(memories: &Memories, changes: impl Into<Vec<MemoryChange>>) -> Vec<Made> {
    within(memories.write(changes.into())).await.unwrap()
}

/// Row of the single version that this change creates.
async fn write_one(memories: &Memories, change: MemoryChange) -> u64 {
    match &write(memories, [change]).await[..] {
        [Made::Version { row, .. }] => *row,
        other => panic!("{other:?}"),
    }
}

async fn get(memories: &Memories, id: &str) -> Option<Version> {
    within(memories.get(id)).await.unwrap()
}

/// All versions.
pub(crate) async fn everything(memories: &Memories) -> Vec<Version> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map_or(0, |version: &Version| version.row);
        let page = within(memories.versions_after(after, 100)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "wherever it is written, there may be none"
)]
fn text(text: &str) -> Option<Arc<str>> {
    Some(text.into())
}

/// Number of rows in each memory table.
fn sizes(place: &Place) -> Vec<(String, i64)> {
    let raw = place.raw();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'memory_%'";
    let mut statement = raw.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    let size = |name: String| {
        let sql = format!("SELECT count(*) FROM {name}");
        let count = raw.query_row(&sql, [], |row| row.get(0)).unwrap();
        (name, count)
    };
    names.map(|name| size(name.unwrap())).collect()
}

/// Checks that the counters agree with the tables, and that no reference dangles.
pub(crate) fn assert_sound(place: &Place) {
    let raw: Connection = place.raw();
    let number = |sql: &str| -> i64 { raw.query_row(sql, [], |row| row.get(0)).unwrap() };
    for (kept, counted) in [
        (
            "SELECT versions FROM memory_counts",
            "SELECT count(*) FROM memory_versions",
        ),
        (
            "SELECT memories FROM memory_counts",
            "SELECT count(*) FROM memory_versions WHERE learned_until IS NULL",
        ),
        (
            "SELECT entities FROM memory_counts",
            "SELECT count(*) FROM memory_entities",
        ),
        (
            "SELECT relations FROM memory_counts",
            "SELECT count(*) FROM memory_relations",
        ),
        (
            "SELECT ifnull(sum(memories), 0) FROM memory_scopes",
            "SELECT memories FROM memory_counts",
        ),
        (
            "SELECT ifnull(sum(vectors), 0) FROM memory_models",
            "SELECT count(*) FROM memory_vectors",
        ),
        (
            "SELECT count(*) FROM memory_scopes",
            "SELECT count(*) FROM (SELECT scope FROM memory_versions \
             UNION SELECT scope FROM memory_entities)",
        ),
        ("SELECT 0", "SELECT count(*) FROM pragma_foreign_key_check"),
        (
            "SELECT 0",
            "SELECT count(*) FROM memory_vectors \
             WHERE model NOT IN (SELECT row FROM memory_models)",
        ),
        (
            "SELECT 0",
            "SELECT count(*) FROM memory_entities WHERE found = 1 \
             AND row NOT IN (SELECT entity FROM memory_mentions)",
        ),
        (
            "SELECT 0",
            "SELECT count(*) FROM (SELECT 1 FROM memory_versions \
             WHERE learned_until IS NULL GROUP BY id HAVING count(*) > 1)",
        ),
    ] {
        assert_eq!(number(kept), number(counted), "{kept} / {counted}");
    }
    let verdict: String = raw
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}
