//! The tools: checks their arguments, runs them, and formats their results.

pub(crate) mod definition;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use switchboard_wire::Raw;

use crate::{error::Error, scope, service::Memory};

impl Memory {
    /// Calls any tool except `reset_all_memory`, which asks the user before it does anything.
    pub(crate) async fn call(&self, name: &str, arguments: &Raw) -> Result<Value, Error> {
        match name {
            "store_memory" => self.store_memory(read(arguments)?).await,
            "recall" => self.recall(read(arguments)?).await,
            "search_memory" => self.search_memory(read(arguments)?).await,
            "get_memory" => self.get_memory(read(arguments)?).await,
            "list_memories" => self.list_memories(read(arguments)?).await,
            "get_valid" => self.get_valid(read(arguments)?).await,
            "update_memory" => self.update_memory(read(arguments)?).await,
            "invalidate" => self.invalidate(read(arguments)?).await,
            "delete_memory" => self.delete_memory(read(arguments)?).await,
            "create_entity" => self.create_entity(read(arguments)?).await,
            "create_relation" => self.create_relation(read(arguments)?).await,
            "get_related" => self.get_related(read(arguments)?).await,
            "consolidate_memory" => self.consolidate_memory(read(arguments)?).await,
            "export_memory" => self.export_memory(read(arguments)?).await,
            "import_memory" => self.import_memory(read(arguments)?).await,
            "get_status" => self.get_status(read(arguments)?).await,
            other => Err(Error::Internal(format!(
                "the tool `{other}` has no implementation"
            ))),
        }
    }
}

/// Checks that arguments fit a tool; an error names the part that does not.
pub(crate) fn check(tool: &definition::Tool, arguments: &Raw) -> Result<(), Error> {
    let checked = tool
        .checker
        .as_ref()
        .map(|checker| checker.check(arguments));
    if let Some(Err(mismatches)) = checked {
        return Err(Error::invalid(mismatches.to_string()));
    }
    let is_empty = |part: &&&str| {
        arguments
            .member(part)
            .is_some_and(|name| name.as_str() == "\"\"")
    };
    match scope::PARTS.iter().find(is_empty) {
        Some(part) => Err(Error::invalid(format!(
            "{part} is empty: omit it, or give a name"
        ))),
        None => Ok(()),
    }
}

/// Formats the result of a tool: structured, and repeated as text for clients that read only text.
pub(crate) fn result(answer: &Value) -> Value {
    json!({
        "content": [{ "type": "text", "text": answer.to_string() }],
        "structuredContent": answer,
    })
}

fn read<T: DeserializeOwned>(arguments: &Raw) -> Result<T, Error> {
    arguments
        .read_owned()
        .map_err(|error| Error::invalid(format!("invalid arguments: {error}")))
}
