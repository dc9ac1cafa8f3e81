//! The behaviour of the client, as JSON, for both versions of the SDK.
//!
//! The findings of each part of a tour are printed as one JSON object per line. A part that fails reports
//! that, and the tour continues, so that one run shows all problems.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

const PATIENCE: Duration = Duration::from_secs(30);

/// A connected client.
pub trait Client {
    fn revision(&self) -> String;
    /// Sends a request, answers the server's questions, and returns the result.
    async fn request(&self, method: &str, params: Value) -> Result<Value, String>;
    /// Calls a tool, and cancels the call as soon as the server reports progress.
    async fn withdraw(&self, call: Value, heard: &Heard) -> Result<(), String>;
    /// Subscribes to changes of the resource, or of the list of tools.
    async fn listen(&mut self, uri: Option<&str>, heard: &Heard) -> Result<(), String>;
    async fn close(self) -> Result<(), String>;
}

/// The notifications received so far.
#[derive(Clone, Default)]
pub struct Heard(Arc<(Mutex<Vec<Value>>, Notify)>);

impl Heard {
    pub fn push(&self, notification: Value) {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(notification);
        self.0.1.notify_waiters();
    }

    /// Waits for the first `count` notifications of the method, and returns their parameters.
    pub async fn wait(&self, method: &str, count: usize) -> Vec<Value> {
        loop {
            let more = self.0.1.notified();
            let found: Vec<Value> = {
                let all = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
                let of_it = all.iter().filter(|one| one["method"] == method);
                of_it.map(|one| one["params"].clone()).collect()
            };
            if found.len() >= count {
                return found;
            }
            more.await;
        }
    }

    fn clear(&self) {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// The answer of the client's user.
pub fn answer(request: &Value) -> Value {
    match request["method"].as_str() {
        Some("elicitation/create") => {
            let message = request["params"]["message"].as_str().unwrap_or_default();
            if message.contains("decline") {
                json!({ "action": "decline" })
            } else {
                json!({ "action": "accept", "content": { "name": "Ada" } })
            }
        }
        Some("sampling/createMessage") => json!({
            "model": "tester",
            "role": "assistant",
            "content": { "type": "text", "text": "Paris" },
            "stopReason": "endTurn",
        }),
        Some("roots/list") => json!({ "roots": [{ "uri": "file:///tour", "name": "tour" }] }),
        _ => json!({}),
    }
}

/// The description and capabilities of the client.
pub fn info(name: &str) -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
        "clientInfo": { "name": name, "version": "1.0.0" },
    })
}

/// Runs every tour of the job.
pub async fn all<C: Client>(
    job: &str,
    connect: impl AsyncFn(&Value, Heard) -> Result<C, String>,
) -> Result<(), String> {
    let job: Value = serde_json::from_str(job).map_err(|error| error.to_string())?;
    for tour in job["tours"].as_array().into_iter().flatten() {
        let tell = |part: &str, found: Result<Value, String>| {
            let what = match found {
                Ok(value) => json!({ "tour": tour["name"], "part": part, "value": value }),
                Err(error) => json!({ "tour": tour["name"], "part": part, "error": error }),
            };
            println!("{what}");
        };
        let heard = Heard::default();
        let mut client = match in_time(connect(tour, heard.clone())).await {
            Ok(client) => client,
            Err(error) => {
                tell("connect", Err(error));
                continue;
            }
        };
        tell("connect", Ok(client.revision().into()));
        for part in tour["parts"].as_array().into_iter().flatten() {
            let part = part.as_str().unwrap_or_default();
            let tag = tour["tag"].as_str().unwrap_or_default();
            tell(part, in_time(take(part, tag, &mut client, &heard)).await);
        }
        tell("close", in_time(client.close()).await.map(|()| Value::Null));
    }
    Ok(())
}

async fn in_time<T>(doing: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = Err("nothing happened".to_owned());
    timeout(PATIENCE, doing).await.unwrap_or(late)
}

async fn take<C: Client>(
    part: &str,
    tag: &str,
    client: &mut C,
    heard: &Heard,
) -> Result<Value, String> {
    heard.clear();
    match part {
        "tools" => {
            let mut names = names(client).await?;
            names.retain(|name| !name.starts_with("learnt"));
            names.sort();
            Ok(json!(names))
        }
        "call" => {
            let sum = call(client, "add", json!({ "a": 2, "b": 3 })).await?;
            let failed = call(client, "fail", json!({ "message": "no luck" })).await?;
            let said = text(&failed);
            let said = said.rsplit(": ").next();
            Ok(json!([text(&sum), failed["isError"] == true, said]))
        }
        "progress" => {
            let result = call(client, "count", json!({ "to": 3 })).await?;
            // This SDK handles every notification in a separate task, so they arrive in any order, even after
            // the response.
            let mut steps = heard.wait("notifications/progress", 3).await;
            steps.sort_by_key(|step| step["progress"].as_f64().map(f64::to_bits));
            let mut steps: Vec<Value> = steps
                .iter()
                .map(|step| json!([step["progress"], step["total"], step["message"]]))
                .collect();
            steps.push(text(&result).into());
            Ok(json!(steps))
        }
        "log" => {
            let modern = client.revision().as_str() >= "2026-07-28";
            let mut params = json!({ "name": "log", "arguments": { "message": "hello" } });
            if modern {
                params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": "info" });
            } else {
                client
                    .request("logging/setLevel", json!({ "level": "info" }))
                    .await?;
            }
            let result = client.request("tools/call", params).await?;
            let message = heard.wait("notifications/message", 1).await.remove(0);
            let message = json!([message["level"], message["logger"], message["data"]]);
            Ok(json!([message, text(&result)]))
        }
        "ask" => {
            let accepted = call(client, "ask", json!({ "question": "Who are you?" })).await?;
            let declined = call(client, "ask", json!({ "question": "Will you decline?" })).await?;
            Ok(json!([text(&accepted), text(&declined)]))
        }
        "sample" => {
            let prompt = json!({ "prompt": "The capital of France?" });
            Ok(text(&call(client, "sample", prompt).await?).into())
        }
        "roots" => Ok(text(&call(client, "roots", json!({})).await?).into()),
        "prompts" => {
            let listed = client.request("prompts/list", json!({})).await?;
            let asked = json!({ "name": "greet", "arguments": { "name": "Ada" } });
            let prompt = client.request("prompts/get", asked).await?;
            let text = &prompt["messages"][0]["content"]["text"];
            Ok(json!([each(&listed["prompts"], "name"), text]))
        }
        "resources" => {
            let listed = client.request("resources/list", json!({})).await?;
            let templates = client
                .request("resources/templates/list", json!({}))
                .await?;
            Ok(json!([
                each(&listed["resources"], "uri"),
                read(client, "peer://about").await?,
                each(&templates["resourceTemplates"], "uriTemplate"),
                read(client, "note://greeting").await?,
            ]))
        }
        "update" => {
            let uri = format!("note://{tag}");
            call(client, "set_note", json!({ "name": tag, "text": "old" })).await?;
            client.listen(Some(&uri), heard).await?;
            call(client, "set_note", json!({ "name": tag, "text": "new" })).await?;
            let told = heard
                .wait("notifications/resources/updated", 1)
                .await
                .remove(0);
            Ok(json!([told["uri"], read(client, &uri).await?]))
        }
        "change" => {
            let name = format!("learnt-{tag}");
            client.listen(None, heard).await?;
            call(client, "learn", json!({ "name": name })).await?;
            heard.wait("notifications/tools/list_changed", 1).await;
            Ok(names(client).await?.contains(&name).into())
        }
        "cancel" => {
            let asleep = json!({ "name": "sleep", "arguments": { "seconds": 600 } });
            client.withdraw(asleep, heard).await?;
            let sum = call(client, "add", json!({ "a": 2, "b": 3 })).await?;
            Ok(json!(["withdrawn", text(&sum)]))
        }
        part => Err(format!("there is no part {part:?}")),
    }
}

async fn call(client: &impl Client, name: &str, arguments: Value) -> Result<Value, String> {
    let params = json!({ "name": name, "arguments": arguments });
    client.request("tools/call", params).await
}

async fn read(client: &impl Client, uri: &str) -> Result<Value, String> {
    let read = client
        .request("resources/read", json!({ "uri": uri }))
        .await?;
    Ok(read["contents"][0]["text"].clone())
}

async fn names(client: &impl Client) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let listed = client.request("tools/list", params).await?;
        names.extend(each(&listed["tools"], "name"));
        match listed["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return Ok(names),
        }
    }
}

fn each(items: &Value, member: &str) -> Vec<String> {
    let items = items.as_array().into_iter().flatten();
    items
        .filter_map(|item| Some(item[member].as_str()?.to_owned()))
        .collect()
}

fn text(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}
