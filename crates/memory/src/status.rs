//! The status of the memory server.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_store::{Status, StoreError, memory::Counts};

use crate::{error::Error, index_thread::IndexState, scope, service::Memory};

/// The most scopes in an answer.
const SCOPES: usize = 500;

#[derive(Debug, Deserialize)]
pub(crate) struct GetStatus {
    #[serde(default)]
    scopes: bool,
}

/// The status of one part.
struct Part {
    state: &'static str,
    message: Option<String>,
    action: Option<String>,
}

const READY: Part = Part {
    state: "ready",
    message: None,
    action: None,
};

impl Memory {
    /// Returns the status; this never fails, and never waits for long.
    pub(crate) async fn get_status(&self, wish: GetStatus) -> Result<Value, Error> {
        let inner = &self.inner;
        let status = inner.store.status();
        let counts = match &status {
            Status::Ready { .. } => Some(inner.memories.counts().await),
            _ => None,
        };
        let is_open = counts.is_some();
        let is_damaged = matches!(counts, Some(Err(StoreError::Damaged { .. })));
        let store = store_part(&status, counts.as_ref());
        let counts = counts.and_then(Result::ok);
        let index = index_part(&inner.index.state());
        let outlook = inner.backfill.outlook();
        let embeddings = match &outlook.problem {
            Some(problem) => Part {
                state: "error",
                message: Some(problem.to_string()),
                action: Some("wait: until the model works, keyword search is used".to_owned()),
            },
            None => Part {
                state: self.vectors_word(),
                ..READY
            },
        };
        let overall = match (store.state, index.state) {
            ("error", _) | (_, "error") => "error",
            ("initializing", _) | (_, "initializing") => "initializing",
            _ => "ready",
        };
        let mut embeddings = embeddings.value();
        embeddings["model"] = json!(outlook.serving);
        if outlook.filling != outlook.serving {
            embeddings["next_model"] = json!(outlook.filling);
        }
        if let Some(counts) = &counts {
            embeddings["embedded"] = json!(counts.vectors_of_active);
            // The store counts a text as done a moment before a search finds it.
            embeddings["waiting"] = json!(counts.lacking.max(outlook.in_hand));
        }
        let mut index = index.value();
        index["bytes"] = json!(inner.index.bytes());
        let mut store = store.value();
        if is_damaged {
            store["damaged"] = json!(true);
        }
        let mut answer = json!({
            "status": overall,
            "version": env!("CARGO_PKG_VERSION"),
            "extraction": self.settings().extract,
            "parts": {
                "store": store,
                "index": index,
                "embeddings": embeddings,
            },
        });
        // Unknown counts are left out, since they are not 0.
        if let Some(counts) = counts {
            answer["memories"] = json!(counts.memories);
            answer["versions"] = json!(counts.versions);
            answer["entities"] = json!(counts.entities);
            answer["relations"] = json!(counts.relations);
        }
        if wish.scopes && is_open {
            answer["scopes"] = json!(self.scopes().await);
        }
        Ok(answer)
    }

    /// Returns the scopes, the fullest first; none while the store does not work.
    async fn scopes(&self) -> Vec<Value> {
        let scopes = self.inner.memories.scopes(SCOPES).await;
        let told = |(scope, memories)| {
            let mut members = Map::new();
            scope::put(&scope, &mut members);
            members.insert("memories".to_owned(), json!(memories));
            Value::Object(members)
        };
        scopes.unwrap_or_default().into_iter().map(told).collect()
    }

    /// Describes the state of the vectors in a word.
    pub(crate) fn vectors_word(&self) -> &'static str {
        let outlook = self.inner.backfill.outlook();
        match (&outlook.serving, &outlook.filling) {
            (Some(_), _) => "ready",
            (None, Some(_)) => "filling",
            (None, None) if outlook.has_looked => "off",
            (None, None) => "loading",
        }
    }
}

impl Part {
    fn value(self) -> Value {
        let mut value = json!({ "state": self.state });
        if let Some(message) = self.message {
            value["message"] = json!(message);
        }
        if let Some(action) = self.action {
            value["action"] = json!(action);
        }
        value
    }
}

fn store_part(status: &Status, counts: Option<&Result<Counts, StoreError>>) -> Part {
    let failed = |message: &str, action: &str| Part {
        state: "error",
        message: Some(message.to_owned()),
        action: Some(action.to_owned()),
    };
    match (status, counts) {
        (Status::Initializing, _) => Part {
            state: "initializing",
            ..READY
        },
        (
            Status::Failed {
                message, action, ..
            },
            _,
        ) => failed(message, action),
        (Status::Closed, _) => failed("the store is closed", "the gateway is stopping"),
        (Status::Ready { .. }, Some(Err(error))) => match Error::from(error.clone()) {
            Error::Failed {
                message, action, ..
            } => failed(&message, &action),
            other => {
                let hint = other.hint();
                failed(
                    &other.to_string(),
                    hint.as_deref().unwrap_or("try again in a moment"),
                )
            }
        },
        (Status::Ready { note }, _) => Part {
            message: note.as_deref().map(str::to_owned),
            ..READY
        },
    }
}

fn index_part(state: &IndexState) -> Part {
    match state {
        IndexState::Resting => Part {
            message: Some("built when it is first needed".to_owned()),
            ..READY
        },
        IndexState::Loading(done) => Part {
            state: "initializing",
            message: Some(format!("memories indexed so far: {done}")),
            action: None,
        },
        IndexState::Ready => READY,
        IndexState::Failed(why) => Part {
            state: "error",
            message: Some(why.to_string()),
            action: Some("the index is built again when it is next needed".to_owned()),
        },
    }
}
