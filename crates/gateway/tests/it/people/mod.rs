//! Approvals from the outside: clients that call, servers that ask, and an approver who decides over REST.
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "JSON is written down where it is handed over, and tables are long"
)]

mod bypasses;
mod deciding;
mod disk;
mod forms;
mod gate;
mod kinds;
mod lost_store;
mod models;
mod questions;
mod record;
mod returning;
mod ruled;
mod stalled;
mod timelines;
mod withdrawal;

use serde_json::{Value, json};

use crate::{
    api_rig::{Answer, Event, Events, Rig},
    mcp_rig::{Pipe, server, text_of},
    stage_rig::{Stage, tool},
};

pub(crate) const PENDING: &str = "/api/v1/approvals?status=pending";
pub(crate) const EVENTS: &str = "/api/v1/events";

/// A tool with annotations of its server.
fn hinted(name: &str, hints: Value) -> Value {
    let mut tool = tool(name, "Does something.");
    tool["annotations"] = hints;
    tool
}

/// The tools of the server in these tests.
pub(crate) fn tools() -> Vec<Value> {
    vec![
        tool("ask", "Asks."),
        tool("elicit", "Asks a person."),
        tool("sample", "Asks a model."),
        tool("work", "Works."),
        tool("open", "Wants an address opened first."),
        tool("wait", "Waits."),
        hinted("delete_file", json!({ "destructiveHint": true })),
        hinted("add_note", json!({ "destructiveHint": false })),
        hinted("read_file", json!({ "readOnlyHint": true })),
    ]
}

/// A gateway with one server `s`, and these settings.
pub(crate) async fn staged(config: Value) -> (Stage, Rig) {
    let stage = Stage::new(&tools());
    let rig = with_server(stage.entry(), config).await;
    (stage, rig)
}

/// The same with a server of 2026-07-28.
pub(crate) async fn staged_modern(config: Value) -> (Stage, Rig) {
    let stage = Stage::new(&tools());
    let rig = with_server(stage.modern_entry(), config).await;
    (stage, rig)
}

/// The same with a server of either era.
pub(crate) async fn staged_as(modern: bool, config: Value) -> (Stage, Rig) {
    if modern {
        staged_modern(config).await
    } else {
        staged(config).await
    }
}

async fn with_server(entry: Value, mut config: Value) -> Rig {
    config["mcpServers"] = json!({ "s": entry });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", tools().len()).await;
    rig
}

/// Settings in which calls of `delete_file` require approval.
pub(crate) fn asks_deletions() -> Value {
    json!({ "approvals": { "rules": ["ask s:delete_*"], "notify": "off" } })
}

/// A client that cannot be asked anything.
pub(crate) async fn mute(rig: &Rig, revision: &'static str) -> Pipe {
    Pipe::open_able(rig, server("s"), revision, json!({})).await
}

/// The arguments of the tool `ask` for one question.
pub(crate) fn asking(method: &str, params: Value) -> Value {
    json!({ "questions": { "q": { "method": method, "params": params } } })
}

pub(crate) fn sampling(text: &str) -> Value {
    let params = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
        "maxTokens": 50,
    });
    asking("sampling/createMessage", params)
}

pub(crate) fn form(message: &str, properties: Value) -> Value {
    let schema = json!({ "type": "object", "properties": properties });
    let params = json!({ "message": message, "requestedSchema": schema });
    asking("elicitation/create", params)
}

/// The answers that the server received, as the tool `ask` reports them.
#[track_caller]
pub(crate) fn told(result: &Value) -> Value {
    let text = text_of(result);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{result}"))
}

impl Rig {
    /// Waits until `count` requests are pending, and returns them, oldest first.
    pub(crate) async fn until_waiting(&self, count: usize) -> Vec<Value> {
        let path = format!("{PENDING}&limit=1000");
        let list = self
            .until(&path, |list| {
                list["approvals"].as_array().unwrap().len() == count
            })
            .await;
        let mut list = list["approvals"].as_array().unwrap().clone();
        list.reverse();
        list
    }

    /// Waits for the only pending request.
    pub(crate) async fn one_waiting(&self) -> Value {
        self.until_waiting(1).await.remove(0)
    }

    pub(crate) async fn approval(&self, id: &Value) -> Value {
        let id = id.as_str().unwrap();
        let answer = self.get(&format!("/api/v1/approvals/{id}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Waits until a request has this status.
    pub(crate) async fn until_status(&self, id: &Value, status: &str) -> Value {
        let path = format!("/api/v1/approvals/{}", id.as_str().unwrap());
        self.until(&path, |approval| approval["status"] == status)
            .await
    }

    /// Submits a decision, which may fail.
    pub(crate) async fn decide(&self, id: &Value, how: &str, body: Value) -> Answer {
        let id = id.as_str().unwrap();
        self.post(&format!("/api/v1/approvals/{id}/{how}"), &body)
            .await
    }

    /// Submits a decision, which has to succeed.
    #[track_caller]
    pub(crate) fn decided<'a>(
        &'a self,
        id: &'a Value,
        how: &'a str,
        body: Value,
    ) -> impl Future<Output = Value> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.decide(id, how, body).await;
            assert_eq!(answer.status, 200, "{caller}: {answer:?}");
            answer.json()
        }
    }
}

impl Events {
    /// The next event of this kind.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.expect("an event");
            if event.kind == kind {
                return about(&event);
            }
        }
    }

    /// The next event about a request, with its kind.
    pub(crate) async fn next_approval(&mut self) -> (String, Value) {
        loop {
            let event = self.next().await.expect("an event");
            if event.kind.starts_with("approval.") {
                return (event.kind.clone(), about(&event));
            }
        }
    }
}

/// The request in an event.
fn about(event: &Event) -> Value {
    let data: Value = serde_json::from_str(&event.data).unwrap();
    data["data"]["approval"].clone()
}
