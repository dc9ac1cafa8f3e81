//! The JSON Schema of the configuration.

use serde_json::Value;

/// The JSON Schema (2020-12) of `switchboard.json`.
pub fn schema() -> Value {
    Value::Null
}
