//! The identity and the capabilities of a client.

use serde_json::{Value, json};

use crate::revision::{Revision, Side};

/// The identity of a client, and the capabilities that it declares.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) side: Side,
    pub(crate) capabilities: Value,
    pub(crate) name: String,
    pub(crate) log_level: Option<&'static str>,
}

impl Setup {
    /// A client with all capabilities of its revision.
    pub(crate) fn able(side: Side) -> Self {
        let capabilities = match side.revision {
            Revision::Nov2024 | Revision::Mar2025 => {
                json!({ "roots": { "listChanged": true }, "sampling": {} })
            }
            Revision::Jun2025 => {
                json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} })
            }
            Revision::Nov2025 => json!({
                "roots": { "listChanged": true },
                "sampling": {},
                "elicitation": { "form": {}, "url": {} },
            }),
            Revision::Jul2026 => json!({
                "roots": {},
                "sampling": {},
                "elicitation": { "form": {}, "url": {} },
            }),
        };
        Self {
            side,
            capabilities,
            name: "matrix".to_owned(),
            log_level: None,
        }
    }

    /// A client without capabilities.
    pub(crate) fn mute(side: Side) -> Self {
        Self {
            capabilities: json!({}),
            ..Self::able(side)
        }
    }
}
