//! The JSON Schema of the configuration, generated from the table of keys that the parser uses.

use serde_json::{Map, Value, json};

use crate::keys::ROOT;
use crate::shape::{Keys, Shape};

/// The JSON Schema (2020-12) of `switchboard.json`, with a description for every key.
pub fn schema() -> Value {
    let mut root = object(&ROOT);
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!("switchboard.json"));
    root.insert(
        "description".to_owned(),
        json!(
            "The configuration of Switchboard: JSON with comments. In the strings of a server, of \
             `approvals.webhook` and of `sampling.provider`, ${env:NAME} is a variable of the \
             gateway's environment and ${secret:NAME} is a secret that `switchboard secret set \
             NAME` stored; $${ is a literal ${."
        ),
    );
    Value::Object(root)
}

fn object(keys: &'static Keys) -> Map<String, Value> {
    let properties: Map<String, Value> = keys
        .all
        .iter()
        .map(|key| {
            let mut property = of(&key.shape);
            property.insert("description".to_owned(), json!(key.about));
            if let Some(default) = key.default.and_then(|text| text.parse().ok()) {
                property.insert("default".to_owned(), default);
            }
            (key.name.to_owned(), Value::Object(property))
        })
        .collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    object.insert("additionalProperties".to_owned(), json!(false));
    let groups: Vec<Value> = keys
        .one_of
        .iter()
        .map(|group| {
            let present: Vec<_> = group.iter().map(|key| json!({"required": [key]})).collect();
            json!({"oneOf": present})
        })
        .collect();
    if !groups.is_empty() {
        object.insert("allOf".to_owned(), Value::Array(groups));
    }
    object
}

fn of(shape: &'static Shape) -> Map<String, Value> {
    let value = match shape {
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Amount => json!({"type": "number", "exclusiveMinimum": 0}),
        Shape::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Shape::Choice(choices) => json!({"enum": choices}),
        Shape::Price => json!({"type": "number", "minimum": 0}),
        Shape::Choices(choices) => json!({"type": "array", "items": {"enum": choices}}),
        Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Shape::TextMap => {
            json!({"type": "object", "additionalProperties": {"type": "string"}})
        }
        Shape::Object(keys) => Value::Object(object(keys)),
        Shape::Named(_, keys) => json!({
            "type": "object",
            "propertyNames": {
                "minLength": 1,
                "maxLength": 64,
                "pattern": r"^[^/\u0000-\u001f\u007f-\u009f]+$",
                "not": {"enum": [".", ".."]},
            },
            "additionalProperties": object(keys),
        }),
        Shape::Entries(_, keys) => {
            json!({"type": "object", "additionalProperties": object(keys)})
        }
        Shape::Values => json!({"type": "array"}),
        Shape::Anything => json!({}),
        Shape::Either(one, other) => json!({"anyOf": [of(one), of(other)]}),
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
