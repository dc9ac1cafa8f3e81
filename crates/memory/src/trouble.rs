//! Why something was not done, and how that is told.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use switchboard_store::StoreError;
use switchboard_wire::{ErrorObject, Raw};

/// A part is not ready yet.
const INITIALIZING: i64 = -32002;
/// A part does not work.
const FAILED: i64 = -32003;
/// When to ask again for a part that comes up by itself.
const SOON: Duration = Duration::from_secs(1);

/// The member of `_meta` that tells programs what is wrong.
const ERROR: &str = "switchboard/error";

/// Why something was not done.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Trouble {
    /// The arguments do not fit.
    #[error("{0}")]
    Invalid(String),
    /// There is no such thing, or not in the scope that was named.
    #[error("there is no {what} '{id}' here; {hint}")]
    Missing {
        what: &'static str,
        id: String,
        hint: &'static str,
    },
    /// Somebody else was faster.
    #[error("{0}")]
    Conflict(String),
    /// A person was asked and did not agree.
    #[error("{0}")]
    Refused(String),
    /// A part is on its way.
    #[error("initializing: {part} is not ready yet; ask again in a moment")]
    Initializing { part: &'static str },
    /// A part does not work.
    #[error("initialization failed: {message}; {action}")]
    Failed {
        part: &'static str,
        message: Arc<str>,
        action: Arc<str>,
        /// Whether it is tried again without anybody doing something.
        retried: bool,
    },
    /// Something that should not happen.
    #[error("{0}")]
    Internal(String),
}

impl Trouble {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    pub(crate) fn no_memory(id: &str) -> Self {
        Self::Missing {
            what: "memory",
            id: shortened(id),
            hint: "list_memories and recall tell the ids",
        }
    }

    pub(crate) fn no_entity(name: &str) -> Self {
        Self::Missing {
            what: "entity",
            id: shortened(name),
            hint: "create_entity makes it, get_related lists those that there are",
        }
    }

    /// Which kind it is, for programs.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Missing { .. } => "not_found",
            Self::Conflict(_) => "conflict",
            Self::Refused(_) => "refused",
            Self::Initializing { .. } => "initializing",
            Self::Failed { .. } => "initialization_failed",
            Self::Internal(_) => "internal",
        }
    }

    /// The error of the whole request, if it is one: a part of the server does not work, which has nothing
    /// to do with what was asked.
    pub(crate) fn error(&self) -> Option<ErrorObject> {
        let (code, data) = match self {
            Self::Initializing { part } => (
                INITIALIZING,
                json!({ "part": part, "retryAfterMs": millis(SOON) }),
            ),
            Self::Failed {
                part,
                action,
                retried,
                ..
            } => {
                let mut data = json!({ "part": part, "action": action });
                if *retried {
                    data["retryAfterMs"] = millis(SOON);
                } else {
                    data["permanent"] = json!(true);
                }
                (FAILED, data)
            }
            _ => return None,
        };
        let error = ErrorObject::new(code, self.to_string());
        Some(match Raw::from_value(&data) {
            Ok(data) => error.with_data(data),
            Err(_) => error,
        })
    }

    /// The result of a tool that says so.
    pub(crate) fn result(&self) -> Value {
        let message = self.to_string();
        json!({
            "content": [{ "type": "text", "text": message }],
            // Not as structured content: that is what the tool's output schema speaks of, and there are
            // clients that hold errors against it too.
            "_meta": { ERROR: { "kind": self.kind(), "message": message } },
            "isError": true,
        })
    }
}

fn millis(time: Duration) -> Value {
    json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// What somebody sent, short enough to be said back.
pub(crate) fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(100)].to_owned()
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { message, action } => Self::Failed {
                part: "store",
                message,
                action,
                retried: true,
            },
            StoreError::Conflict => {
                Self::Conflict("it was changed by somebody else meanwhile; read it again".to_owned())
            }
            StoreError::Busy => Self::Initializing { part: "store" },
            StoreError::Closed => Self::Failed {
                part: "store",
                message: "the store is closed".into(),
                action: "the gateway is stopping; start it again".into(),
                retried: false,
            },
            StoreError::Damaged { ref aside } => Self::Failed {
                part: "store",
                message: format!("the memories are in a damaged file that was put aside ({aside})")
                    .into(),
                action: "a person can run `switchboard memory repair` to bring back what can be read of them, or `switchboard memory repair --discard` to begin without them".into(),
                retried: false,
            },
            StoreError::TooLarge { .. } | StoreError::Invalid { .. } => {
                Self::Invalid(error.to_string())
            }
            other => Self::Internal(other.to_string()),
        }
    }
}
