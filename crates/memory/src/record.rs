//! The JSON form of memories and entities.

use serde_json::{Map, Value, json};
use switchboard_store::memory::{Entity, Version};

use crate::{scope, times};

/// All members of one version.
pub(crate) fn whole(version: &Version) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| {
        members.insert(name.to_owned(), value);
    };
    put("id", json!(version.id));
    put("content", json!(version.content));
    put("memory_type", json!(version.kind));
    put("importance", json!(number(version.importance)));
    let times = [
        ("valid_from", version.valid_from),
        ("valid_until", version.valid_until),
        ("learned_at", Some(version.learned_at)),
        ("learned_until", version.learned_until),
    ];
    for (name, time) in times {
        if let Some(time) = time {
            put(name, json!(times::spell(time)));
        }
    }
    put("version", json!(version.version));
    let names: Vec<&str> = version.mentions.iter().map(|of| &*of.name).collect();
    put("entities", json!(names));
    if let Some(metadata) = &version.metadata {
        let read: Option<Value> = serde_json::from_str(metadata).ok();
        put("metadata", read.unwrap_or_default());
    }
    if let Some(reason) = &version.reason {
        put("reason", json!(reason));
    }
    if let Some(id) = &version.superseded_by {
        put("superseded_by", json!(id));
    }
    scope::put(&version.scope, &mut members);
    members
}

/// The members of an entity that every answer has.
pub(crate) fn entity(entity: &Entity) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(entity.id));
    members.insert("name".to_owned(), json!(entity.name));
    if let Some(kind) = &entity.kind {
        members.insert("entity_type".to_owned(), json!(kind));
    }
    if let Some(description) = &entity.description {
        members.insert("description".to_owned(), json!(description));
    }
    members
}

/// Collects as many records as fit into an answer, and at least one.
pub(crate) fn as_many_as_fit(records: impl Iterator<Item = Map<String, Value>>) -> Vec<Value> {
    let mut bytes = 0;
    let mut fit = Vec::new();
    for record in records {
        let record = Value::Object(record);
        bytes += record.to_string().len();
        if bytes > ANSWER_BYTES && !fit.is_empty() {
            break;
        }
        fit.push(record);
    }
    fit
}

/// The most bytes of records in an answer, which contains them twice, once as text; every client
/// accepts that size.
const ANSWER_BYTES: usize = 3 * 1024 * 1024;

/// The ID of a memory, and enough of its text to recognise it.
pub(crate) fn brief(version: &Version) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(version.id));
    let end = version.content.floor_char_boundary(BRIEF_BYTES);
    let more = if end < version.content.len() {
        "…"
    } else {
        ""
    };
    let content = format!("{}{more}", &version.content[..end]);
    members.insert("content".to_owned(), json!(content));
    members
}

/// The most bytes of a memory's text in [`brief`].
const BRIEF_BYTES: usize = 1_000;

/// Rounds a number to four decimal places, since more are not significant.
pub(crate) fn number(number: f32) -> f64 {
    (f64::from(number) * 10_000.0).round() / 10_000.0
}
