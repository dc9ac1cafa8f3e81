//! The behaviour of the server, as JSON, which both versions of the SDK read and write.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

/// The caller of a tool, as the server sees it.
pub trait Caller: Sync {
    /// Asks the caller's user or model.
    fn ask(&self, question: Value) -> impl Future<Output = Result<Value, NoAnswer>> + Send;
    /// Sends a notification that belongs to the call.
    fn tell(&self, notification: Value) -> impl Future<Output = ()> + Send;
    /// Waits until the call is cancelled.
    fn withdrawn(&self) -> impl Future<Output = ()> + Send;
    /// The progress token.
    fn token(&self) -> Option<Value>;
    /// Returns `true` if log messages are requested.
    fn wants_logs(&self) -> bool;
}

/// A subscriber of changes.
pub trait Listener: Clone + Send + Sync {
    /// Sends a notification, which must be one for this listener.
    fn tell(&self, notification: Value) -> impl Future<Output = ()> + Send;
    /// Tests if it subscribes to this resource, or to the list of tools if there is none.
    fn hears(&self, uri: Option<&str>) -> bool;
}

/// The reason that there is no answer.
pub enum NoAnswer {
    /// The call has to be retried with the answer.
    Later(Value),
    /// There will be none.
    Never(String),
}

/// The outcome of a call.
pub enum Outcome {
    Text(String),
    Failure(String),
    Question(Value),
}

/// The state of the server, for all its clients.
pub struct Peer<L> {
    notes: Mutex<BTreeMap<String, String>>,
    learnt: Mutex<Vec<String>>,
    listeners: Mutex<Vec<L>>,
    /// The number of listeners that were accepted, but are not yet in `listeners`.
    coming: watch::Sender<usize>,
}

/// Time to wait for an expected listener, which may have disconnected.
const COMING: Duration = Duration::from_secs(1);

const TOOLS: [&str; 10] = [
    "add", "ask", "count", "fail", "learn", "log", "roots", "sample", "set_note", "sleep",
];

impl<L> Default for Peer<L> {
    fn default() -> Self {
        let notes = [("greeting".to_owned(), "hello".to_owned())];
        Self {
            notes: Mutex::new(notes.into()),
            learnt: Mutex::default(),
            listeners: Mutex::default(),
            coming: watch::Sender::new(0),
        }
    }
}

impl<L: Listener> Peer<L> {
    /// The description and capabilities of the server.
    pub fn info() -> Value {
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": { "listChanged": true },
                "prompts": {},
                "logging": {},
                "resources": { "subscribe": true },
            },
            "serverInfo": { "name": "rust-peer", "version": "1.0.0" },
            "instructions": "A peer for tests.",
        })
    }

    pub fn tools(&self) -> Value {
        let learnt = locked(&self.learnt);
        let names = TOOLS.into_iter().chain(learnt.iter().map(String::as_str));
        let tools: Vec<Value> = names
            .map(|name| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } }))
            .collect();
        json!({ "tools": tools })
    }

    pub fn prompts() -> Value {
        json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "name", "required": true }] }] })
    }

    pub fn prompt(params: &Value) -> Value {
        let name = params["arguments"]["name"].as_str().unwrap_or_default();
        let text = json!({ "type": "text", "text": format!("Say hello to {name}.") });
        json!({ "messages": [{ "role": "user", "content": text }] })
    }

    pub fn resources() -> Value {
        json!({ "resources": [{ "uri": "peer://about", "name": "about" }] })
    }

    pub fn templates() -> Value {
        json!({ "resourceTemplates": [{ "uriTemplate": "note://{name}", "name": "note" }] })
    }

    /// The contents of a resource; `None` if it does not exist.
    pub fn read(&self, uri: &str) -> Option<Value> {
        let text = match uri.strip_prefix("note://") {
            Some(name) => locked(&self.notes).get(name).cloned()?,
            None if uri == "peer://about" => "a peer for tests".to_owned(),
            None => return None,
        };
        Some(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }))
    }

    /// Adds a listener.
    pub fn listen(&self, listener: L) {
        locked(&self.listeners).push(listener);
    }

    /// Announces a listener, which must not miss changes until it is added.
    pub fn expect_one(&self) {
        self.coming.send_modify(|coming| *coming += 1);
    }

    /// Adds a listener that was announced.
    pub fn listen_as_expected(&self, listener: L) {
        self.listen(listener);
        self.coming
            .send_modify(|coming| *coming = coming.saturating_sub(1));
    }

    /// Removes the listeners that match.
    pub fn forget(&self, is_one: impl Fn(&L) -> bool) {
        locked(&self.listeners).retain(|listener| !is_one(listener));
    }

    async fn tell_all(&self, uri: Option<&str>, notification: Value) {
        let mut coming = self.coming.subscribe();
        let _ = timeout(COMING, coming.wait_for(|coming| *coming == 0)).await;
        let listeners = locked(&self.listeners).clone();
        for listener in listeners.iter().filter(|listener| listener.hears(uri)) {
            listener.tell(notification.clone()).await;
        }
    }

    pub async fn call(&self, params: &Value, caller: &impl Caller) -> Outcome {
        let arguments = &params["arguments"];
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "add" => {
                let both = arguments["a"].as_i64().zip(arguments["b"].as_i64());
                match both {
                    Some((a, b)) => Outcome::Text((a + b).to_string()),
                    None => Outcome::Failure("two numbers, please".to_owned()),
                }
            }
            "fail" => Outcome::Failure(text("message").to_owned()),
            "count" => {
                let to = arguments["to"].as_u64().unwrap_or(0);
                for step in 1..=to {
                    progress(caller, step, to, &format!("step {step}")).await;
                }
                Outcome::Text(format!("counted to {to}"))
            }
            "sleep" => {
                eprintln!("sleep began");
                progress(caller, 0, 600, "asleep").await;
                caller.withdrawn().await;
                eprintln!("sleep was cancelled");
                Outcome::Text("awake".to_owned())
            }
            "log" => {
                if caller.wants_logs() {
                    let params =
                        json!({ "level": "info", "logger": "peer", "data": text("message") });
                    let message = json!({ "method": "notifications/message", "params": params });
                    caller.tell(message).await;
                }
                Outcome::Text("logged".to_owned())
            }
            "ask" => asked(caller.ask(elicitation(text("question"))).await, |answer| {
                let action = answer["action"].as_str().unwrap_or_default();
                match answer["content"]["name"].as_str() {
                    Some(name) if action == "accept" => format!("accept: {name}"),
                    _ => action.to_owned(),
                }
            }),
            "sample" => asked(caller.ask(sampling(text("prompt"))).await, |answer| {
                let part = |part: &Value| part.as_str().unwrap_or_default().to_owned();
                // The newer version supports several content blocks.
                let content = answer["content"].get(0).unwrap_or(&answer["content"]);
                format!("{}: {}", part(&answer["model"]), part(&content["text"]))
            }),
            "roots" => asked(
                caller.ask(json!({ "method": "roots/list" })).await,
                |answer| {
                    let roots = answer["roots"].as_array().into_iter().flatten();
                    let uris: Vec<&str> = roots.filter_map(|root| root["uri"].as_str()).collect();
                    uris.join("\n")
                },
            ),
            "set_note" => {
                let note = (text("name").to_owned(), text("text").to_owned());
                let uri = format!("note://{}", note.0);
                locked(&self.notes).extend([note]);
                let params = json!({ "uri": uri });
                let news = json!({ "method": "notifications/resources/updated", "params": params });
                self.tell_all(Some(&uri), news).await;
                Outcome::Text("set".to_owned())
            }
            "learn" => {
                locked(&self.learnt).push(text("name").to_owned());
                let news = json!({ "method": "notifications/tools/list_changed" });
                self.tell_all(None, news).await;
                Outcome::Text(format!("learnt {}", text("name")))
            }
            name => Outcome::Text(name.to_owned()),
        }
    }
}

async fn progress(caller: &impl Caller, step: u64, of: u64, message: &str) {
    if let Some(token) = caller.token() {
        let params =
            json!({ "progressToken": token, "progress": step, "total": of, "message": message });
        let progress = json!({ "method": "notifications/progress", "params": params });
        caller.tell(progress).await;
    }
}

fn asked(answer: Result<Value, NoAnswer>, tell: impl Fn(Value) -> String) -> Outcome {
    match answer {
        Ok(answer) => Outcome::Text(tell(answer)),
        Err(NoAnswer::Later(question)) => Outcome::Question(question),
        Err(NoAnswer::Never(why)) => Outcome::Failure(why),
    }
}

fn elicitation(message: &str) -> Value {
    let properties = json!({ "name": { "type": "string" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["name"] });
    json!({
        "method": "elicitation/create",
        "params": { "mode": "form", "message": message, "requestedSchema": schema },
    })
}

fn sampling(prompt: &str) -> Value {
    let content = json!({ "type": "text", "text": prompt });
    let messages = json!([{ "role": "user", "content": content }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } })
}

/// The result of a finished call.
pub fn result(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

/// Locks a mutex even if it is poisoned: no code here leaves its data inconsistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts JSON that is known to be valid into one of the SDK's types.
pub fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{text}: {error}"))
}
