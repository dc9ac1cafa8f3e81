//! The tools: what they are called, and what they do.

mod asking;
mod content;
mod jobs;
mod listing;
mod notices;

pub(crate) use listing::{Tasks, listed};

use serde_json::{Value, json};

use crate::{
    call::{Call, Stop},
    rpc::{Answer, Fault},
};

/// Runs a tool.
pub(crate) async fn run(call: &Call) -> Result<Answer, Stop> {
    if let Some(answer) = content::run(call) {
        return answer;
    }
    if let Some(answer) = notices::run(call).await {
        return answer;
    }
    if let Some(answer) = asking::run(call).await {
        return answer;
    }
    if let Some(answer) = jobs::run(call).await {
        return answer;
    }
    Err(Fault::invalid(format!("Unknown tool: {}", call.name)).into())
}

pub(crate) use jobs::first_questions;

/// A result of one text.
fn text(text: impl Into<String>) -> Answer {
    json!({ "content": [{ "type": "text", "text": text.into() }] }).into()
}

/// A number among the arguments, but no more than is sensible.
fn count(call: &Call, name: &str, otherwise: u64) -> u64 {
    const MOST: u64 = 100_000;
    let given = call.arguments.get(name).and_then(Value::as_u64);
    given.unwrap_or(otherwise).min(MOST)
}
