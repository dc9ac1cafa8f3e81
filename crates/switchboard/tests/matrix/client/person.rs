//! The person who answers the requests of servers.

use std::{thread, time::Duration};

use serde_json::{Value, json};

/// A person with a certain behaviour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Person {
    /// Agrees to everything.
    Kind,
    /// Agrees to everything, after this time.
    Slow(Duration),
    /// Declines everything that can be declined.
    Unwilling,
    /// Never answers.
    Silent,
}

impl Person {
    /// A result or an error; `None` if the person does not answer.
    pub(crate) fn answer(self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        match self {
            Self::Kind => Some(kindly(method, params)),
            Self::Slow(time) => {
                thread::sleep(time);
                Some(kindly(method, params))
            }
            Self::Unwilling => Some(unwillingly(method)),
            Self::Silent => None,
        }
    }
}

/// The root that every client has.
pub(crate) const ROOT: &str = "file:///matrix";

/// The text of the model's answer to a sampling request.
pub(crate) const SAMPLED: &str = "the words of a model";

fn kindly(method: &str, params: &Value) -> Result<Value, Value> {
    Ok(match method {
        "ping" => json!({}),
        "roots/list" => json!({ "roots": [{ "uri": ROOT, "name": "matrix" }] }),
        "sampling/createMessage" => json!({
            "role": "assistant",
            "content": { "type": "text", "text": SAMPLED },
            "model": "matrix-model",
            "stopReason": "endTurn",
        }),
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" => {
            json!({ "action": "accept", "content": filled(&params["requestedSchema"]) })
        }
        _ => return Err(unknown(method)),
    })
}

fn unwillingly(method: &str) -> Result<Value, Value> {
    match method {
        "ping" => Ok(json!({})),
        "elicitation/create" => Ok(json!({ "action": "decline" })),
        "sampling/createMessage" => {
            Err(json!({ "code": -1, "message": "User rejected sampling request" }))
        }
        _ => Err(unknown(method)),
    }
}

fn unknown(method: &str) -> Value {
    json!({ "code": -32601, "message": format!("{method} is not known here") })
}

/// The answers to a form: each member with a value of its type.
fn filled(schema: &Value) -> Value {
    let members = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let fill = |member: &Value| match member["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(7),
        Some("array") => json!([member["items"]["enum"][0]]),
        _ => match &member["enum"][0] {
            Value::Null => json!("octo"),
            first => first.clone(),
        },
    };
    members
        .iter()
        .map(|(name, member)| (name.clone(), fill(member)))
        .collect()
}
