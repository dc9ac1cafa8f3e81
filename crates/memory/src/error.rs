//! Errors, and their form in responses.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json};
use switchboard_store::StoreError;
use switchboard_wire::{ErrorObject, Raw, with_hint};

/// The error code of a part that is not ready yet.
const INITIALIZING: i64 = -32002;
/// The error code of a part that does not work.
const FAILED: i64 = -32003;
/// Time after which a caller should retry for a part that becomes ready by itself.
const SOON: Duration = Duration::from_secs(1);

/// The member of `_meta` that describes the error for programs.
const ERROR: &str = "switchboard/error";

/// An error of the memory server.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Error {
    /// The arguments are invalid.
    #[error("{message}")]
    Invalid {
        message: String,
        hint: Option<Cow<'static, str>>,
    },
    /// The object does not exist, or not within the given scope.
    #[error("there is no {what} `{id}`")]
    Missing {
        what: &'static str,
        id: String,
        hint: &'static str,
    },
    /// The object was changed by another caller.
    #[error("{message}")]
    Conflict {
        message: &'static str,
        hint: &'static str,
    },
    /// A person was asked and did not agree.
    #[error("{0}")]
    Refused(String),
    /// A part is not ready yet.
    #[error("initializing: {part} is not ready yet")]
    Initializing { part: &'static str },
    /// A part does not work.
    #[error("initialization failed: {message}")]
    Failed {
        part: &'static str,
        message: Arc<str>,
        action: Arc<str>,
        /// The part is retried without user action.
        retried: bool,
    },
    /// An internal error.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn no_memory(id: &str) -> Self {
        Self::Missing {
            what: "memory",
            id: shortened(id),
            hint: "list_memories and recall return the IDs",
        }
    }

    pub(crate) fn no_entity(name: &str) -> Self {
        Self::Missing {
            what: "entity",
            id: shortened(name),
            hint: "create_entity creates it; get_related lists the existing ones",
        }
    }

    /// Advice for the caller, separate from the message.
    pub(crate) fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Invalid { hint, .. } => hint.as_deref()?.into(),
            Self::Missing { hint, .. } | Self::Conflict { hint, .. } => (*hint).into(),
            Self::Initializing { .. } => "try again in a moment".into(),
            Self::Failed { action, .. } => (&**action).into(),
            Self::Refused(_) | Self::Internal(_) => return None,
        })
    }

    /// The message with the advice, for a model or a log.
    pub(crate) fn text(&self) -> String {
        with_hint(self, self.hint())
    }

    /// The kind of the error, for programs.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid",
            Self::Missing { .. } => "not_found",
            Self::Conflict { .. } => "conflict",
            Self::Refused(_) => "refused",
            Self::Initializing { .. } => "initializing",
            Self::Failed { .. } => "initialization_failed",
            Self::Internal(_) => "internal",
        }
    }

    /// Returns the error for the whole request, if a part of the server does not work, which is
    /// independent of the request.
    pub(crate) fn error(&self) -> Option<ErrorObject> {
        let (code, data) = match self {
            Self::Initializing { part } => (
                INITIALIZING,
                json!({ "part": part, "retryAfterMs": millis(SOON) }),
            ),
            Self::Failed { part, retried, .. } => {
                let mut data = json!({ "part": part });
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
        let error = match Raw::from_value(&data) {
            Ok(data) => error.with_data(data),
            Err(_) => error,
        };
        Some(match self.hint() {
            Some(hint) => error.with_hint(&hint),
            None => error,
        })
    }

    /// Returns the tool result that reports the error.
    pub(crate) fn result(&self) -> Value {
        let mut error = json!({ "kind": self.kind(), "message": self.to_string() });
        if let Some(hint) = self.hint() {
            error["hint"] = json!(hint);
        }
        json!({
            "content": [{ "type": "text", "text": self.text() }],
            // Not as structured content, which the tool's output schema describes: some clients validate
            // errors against it too.
            "_meta": { ERROR: error },
            "isError": true,
        })
    }
}

fn millis(time: Duration) -> Value {
    json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Truncates input, so that it can be quoted in an error.
pub(crate) fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(100)].to_owned()
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable { message, action } => Self::Failed {
                part: "store",
                message,
                action,
                retried: true,
            },
            StoreError::Conflict => Self::Conflict {
                message: "another caller has changed the data in the meantime",
                hint: "read it again and retry",
            },
            StoreError::Busy => Self::Initializing { part: "store" },
            StoreError::Closed => Self::Failed {
                part: "store",
                message: "the store is closed".into(),
                action: "the gateway is stopping; start it again".into(),
                retried: false,
            },
            StoreError::Damaged { ref aside } => Self::Failed {
                part: "store",
                message: format!("the memories are in a damaged file that was set aside ({aside})")
                    .into(),
                action: "the user can run `switchboard memory repair` to recover what can be read, or `switchboard memory repair --discard` to start without them".into(),
                retried: false,
            },
            StoreError::TooLarge { .. } | StoreError::Invalid { .. } => Self::Invalid {
                message: error.to_string(),
                hint: error.hint().map(|hint| hint.into_owned().into()),
            },
            other => Self::Internal(with_hint(&other, other.hint())),
        }
    }
}
