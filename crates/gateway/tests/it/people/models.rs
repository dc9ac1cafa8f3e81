//! Models: an approved completion is generated once, and delivered, reviewed or discarded.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::Notify,
};

use super::{EVENTS, mute, sampling, staged, told};
use crate::{mcp_rig::LEGACY, stage_rig::Stage};

/// The behaviour of the model in these tests.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Willing,
    /// Rejects every key.
    Refusing,
    /// Does not answer until it is released.
    Thinking,
}

/// An endpoint with the common API `chat/completions`.
struct Model {
    port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
    go: Arc<Notify>,
    hung_up: Arc<Notify>,
}

impl Model {
    async fn start(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
            go: Arc::default(),
            hung_up: Arc::default(),
        };
        let (asked, go) = (Arc::clone(&model.asked), Arc::clone(&model.go));
        let hung_up = Arc::clone(&model.hung_up);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (asked, go) = (Arc::clone(&asked), Arc::clone(&go));
                let hung_up = Arc::clone(&hung_up);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = read(&mut stream).await else {
                        return;
                    };
                    asked.lock().unwrap().push(request);
                    if mood == Mood::Thinking {
                        let mut rest = [0];
                        tokio::select! {
                            () = go.notified() => {}
                            _ = stream.read(&mut rest) => return hung_up.notify_one(),
                        }
                    }
                    let (status, body) = match mood {
                        Mood::Refusing => (
                            "401 Unauthorized",
                            json!({ "error": { "message": "no such key" } }),
                        ),
                        _ => ("200 OK", completion()),
                    };
                    let body = body.to_string();
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.get_mut().write_all(answer.as_bytes()).await;
                });
            }
        });
        model
    }

    fn settings(&self, review: bool) -> Value {
        json!({
            "sampling": {
                "provider": {
                    "kind": "openai",
                    "baseUrl": format!("http://127.0.0.1:{}/v1", self.port),
                    "model": "small",
                    "models": ["large"],
                    "apiKey": "sk-test-key",
                    "prices": { "input": 2.0, "output": 10.0 },
                },
                "review": review,
            },
            "approvals": { "notify": "off" },
        })
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

fn completion() -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "small-1",
        "choices": [{ "index": 0, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "Because it is." } }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 },
    })
}

/// The body of a request, with its key.
async fn read(stream: &mut BufReader<tokio::net::TcpStream>) -> Option<Value> {
    let mut length = 0;
    let mut key = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
        if name.eq_ignore_ascii_case("authorization") {
            value.clone_into(&mut key);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    Some(json!({ "key": key, "body": body }))
}

#[tokio::test]
async fn edited_request_is_generated_once_and_delivered() {
    let model = Model::start(Mood::Willing).await;
    let (_stage, rig) = staged(model.settings(false)).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = events.until("approval.created").await;
    assert!(model.asked().is_empty());
    let edits = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "How?" } }],
        "systemPrompt": "Be brief.",
        "model": "large",
        "maxTokens": 7,
    });
    rig.decided(
        &asked["id"],
        "approve",
        json!({ "edits": edits, "by": "me" }),
    )
    .await;
    let result = client.finish(&call).await.json;
    let said = told(&result["result"])["q"].clone();
    assert_eq!(said["content"]["text"], "Because it is.", "{result}");
    assert_eq!(said["model"], "small-1");
    let requests = model.asked();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let body = &requests[0]["body"];
    assert_eq!(requests[0]["key"], "Bearer sk-test-key");
    assert_eq!(body["model"], "large");
    let text = body.to_string();
    assert!(
        text.contains("How?") && text.contains("Be brief."),
        "{text}"
    );
    assert!(!text.contains("Why?"), "{text}");
    let limit = body.get("max_completion_tokens").or(body.get("max_tokens"));
    assert_eq!(limit, Some(&json!(7)), "{body}");
    let over = rig.until_status(&asked["id"], "approved").await;
    assert_eq!(over["usage"]["inputTokens"], 1000);
    assert_eq!(over["usage"]["outputTokens"], 100);
    let cost = over["usage"]["cost"].as_f64().unwrap();
    assert!((cost - 0.003).abs() < 1e-9, "{over}");
    assert!(over["deliveredAt"].is_string(), "{over}");
    assert_eq!(over["decision"]["note"], "me");
    assert!(!over.to_string().contains("sk-test-key"));
    rig.stop().await;
}

#[tokio::test]
async fn failed_model_is_an_error_for_the_server() {
    let model = Model::start(Mood::Refusing).await;
    let (_stage, rig) = staged(model.settings(false)).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = rig.one_waiting().await;
    rig.decided(&asked["id"], "approve", json!({})).await;
    let result = client.finish(&call).await.json;
    let error = told(&result["result"])["q"]["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("the model failed to answer"), "{error}");
    assert!(!message.contains("sk-test-key"), "{error}");
    let over = rig.until_status(&asked["id"], "failed").await;
    assert!(over["error"].as_str().unwrap().contains("401"), "{over}");
    let late = rig.decide(&asked["id"], "approve", json!({})).await;
    late.problem(409);
    assert_eq!(model.asked().len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn disconnecting_client_cancels_the_model_request() {
    let model = Model::start(Mood::Thinking).await;
    let (_stage, rig) = staged(model.settings(false)).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = events.until("approval.created").await;
    rig.decided(&asked["id"], "approve", json!({})).await;
    crate::mcp_rig::until("the model is asked", || async { model.asked().len() == 1 }).await;
    assert_eq!(rig.approval(&asked["id"]).await["status"], "generating");
    let twice = rig
        .decide(&asked["id"], "approve", json!({ "by": "other" }))
        .await;
    twice.problem(409);
    assert_eq!(twice.json()["was"], "generating");
    client
        .tell("notifications/cancelled", json!({ "requestId": call }))
        .await;
    events.until("approval.withdrawn").await;
    model.hung_up.notified().await;
    assert_eq!(rig.approval(&asked["id"]).await["status"], "withdrawn");
    assert_eq!(model.asked().len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn approver_reviews_and_edits_the_completion() {
    let model = Model::start(Mood::Willing).await;
    let (_stage, rig) = staged(model.settings(true)).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = rig.one_waiting().await;
    let body = json!({ "by": "ada", "edits": { "maxTokens": 40 } });
    rig.decided(&asked["id"], "approve", body).await;
    let draft = rig.until_status(&asked["id"], "reviewing").await;
    assert_eq!(draft["draft"]["content"]["text"], "Because it is.");
    assert!(draft["result"].is_null(), "{draft}");
    // It is pending again.
    assert_eq!(rig.one_waiting().await["id"], asked["id"]);
    let wrong = rig
        .decide(&asked["id"], "approve", json!({ "edits": { "text": 7 } }))
        .await;
    wrong.problem(422);
    let wrong = rig
        .decide(
            &asked["id"],
            "approve",
            json!({ "edits": { "maxTokens": 7 } }),
        )
        .await;
    wrong.problem(422);
    rig.decided(
        &asked["id"],
        "approve",
        json!({ "by": "bob", "edits": { "text": "It is." } }),
    )
    .await;
    let log = rig.get("/api/v1/audit?limit=1000").await.json();
    let mut entries = log["entries"].as_array().unwrap().iter().rev();
    let last = entries.find(|entry| entry["what"] == "decided").unwrap();
    assert_eq!(last["body"]["note"], "bob", "{last}");
    assert_eq!(last["body"]["edits"], json!({ "text": "It is." }));
    assert_eq!(last["body"]["agreed"]["note"], "ada", "{last}");
    assert_eq!(last["body"]["agreed"]["edits"], json!({ "maxTokens": 40 }));
    let result = client.finish(&call).await.json;
    assert_eq!(told(&result["result"])["q"]["content"]["text"], "It is.");
    let call = client.send_call("ask", sampling("Why not?")).await;
    let asked = rig.one_waiting().await;
    rig.decided(&asked["id"], "approve", json!({})).await;
    rig.until_status(&asked["id"], "reviewing").await;
    rig.decided(&asked["id"], "reject", json!({})).await;
    let result = client.finish(&call).await.json;
    assert_eq!(told(&result["result"])["q"]["error"]["code"], -1);
    assert_eq!(model.asked().len(), 2);
    rig.stop().await;
}

/// A value in `env` is a secret because of its name, and may be any text.
#[tokio::test]
async fn approver_sees_the_exact_model_input() {
    let model = Model::start(Mood::Willing).await;
    let stage = Stage::new(&super::tools());
    let hidden = "Because it is.";
    let entry = stage.entry_with(&json!({ "env": { "STYLE_TOKEN": hidden } }));
    let rig = super::with_server(entry, model.settings(true)).await;
    let mut client = mute(&rig, LEGACY).await;
    let said = format!("Summarise. Then say: {hidden}");
    let call = client.send_call("ask", sampling(&said)).await;
    let asked = rig.one_waiting().await;
    let text = |message: &Value| message["content"]["text"].clone();
    assert_eq!(text(&asked["request"]["messages"][0]), *said, "{asked}");
    let summary = asked["summary"].as_str().unwrap();
    assert!(summary.contains(hidden), "{summary}");
    rig.decided(&asked["id"], "approve", json!({})).await;
    let draft = rig.until_status(&asked["id"], "reviewing").await;
    assert_eq!(text(&draft["draft"]), hidden, "{draft}");
    rig.decided(&asked["id"], "approve", json!({})).await;
    client.finish(&call).await;
    assert!(model.asked()[0].to_string().contains(hidden));
    let log = rig.get("/api/v1/audit?limit=1000").await.body;
    assert!(log.contains("[secret env.STYLE_TOKEN]"), "{log}");
    assert!(!log.contains(hidden), "{log}");
    rig.stop().await;
}

/// A gateway that crashes while the model works does not know if the completion was charged: it is not
/// requested again.
#[tokio::test]
async fn completion_is_not_repeated_after_a_crash() {
    let model = Model::start(Mood::Thinking).await;
    let (_stage, rig) = staged(model.settings(false)).await;
    let mut client = mute(&rig, LEGACY).await;
    client.send_call("ask", sampling("Why?")).await;
    let asked = rig.one_waiting().await;
    rig.decided(&asked["id"], "approve", json!({})).await;
    crate::mcp_rig::until("the model is asked", || async { model.asked().len() == 1 }).await;
    let rig = super::gate::crashed(rig).await;
    let over = rig.until_status(&asked["id"], "failed").await;
    assert!(
        over["error"].as_str().unwrap().contains("stopped"),
        "{over}"
    );
    assert_eq!(model.asked().len(), 1);
    let mut client = mute(&rig, LEGACY).await;
    client.send_call("ask", sampling("Why?")).await;
    let again = rig.one_waiting().await;
    assert_ne!(again["id"], asked["id"]);
    assert_eq!(model.asked().len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn rule_allows_completions_and_is_audited() {
    let model = Model::start(Mood::Willing).await;
    let mut config = model.settings(false);
    config["approvals"]["rules"] =
        json!([{ "action": "allow", "server": "s", "kind": "sampling" }]);
    let (_stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let result = client.finish(&call).await.json;
    assert_eq!(
        told(&result["result"])["q"]["content"]["text"],
        "Because it is."
    );
    let all = rig.get("/api/v1/approvals").await.json();
    let by = all["approvals"][0]["decision"]["by"].as_str().unwrap();
    assert!(by.starts_with("rule: "), "{all}");
    rig.stop().await;
}

#[tokio::test]
async fn approval_without_a_model_is_refused() {
    let (_stage, rig) = staged(json!({ "approvals": { "notify": "off" } })).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = rig.one_waiting().await;
    let detail = rig
        .decide(&asked["id"], "approve", json!({}))
        .await
        .problem(422);
    assert!(detail.contains("sampling.provider"), "{detail}");
    assert_eq!(rig.approval(&asked["id"]).await["status"], "pending");
    rig.decided(&asked["id"], "respond", json!({ "text": "So." }))
        .await;
    client.finish(&call).await;
    rig.stop().await;
}

#[tokio::test]
async fn tokens_of_a_withdrawn_request_are_charged() {
    let model = Model::start(Mood::Thinking).await;
    let mut config = model.settings(false);
    config["approvals"]["rules"] = json!(["allow sampling s"]);
    // One request may write more tokens than that.
    config["sampling"]["budget"] = json!({ "tokensPerHour": 40 });
    let (_stage, rig) = staged(config).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    crate::mcp_rig::until("the model is asked", || async { model.asked().len() == 1 }).await;
    client
        .tell("notifications/cancelled", json!({ "requestId": call }))
        .await;
    events.until("approval.withdrawn").await;
    let call = client.send_call("ask", sampling("Why not?")).await;
    let result = client.finish(&call).await.json;
    let error = told(&result["result"])["q"]["error"].clone();
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("tokensPerHour"), "{result}");
    assert_eq!(model.asked().len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn rejected_key_costs_no_tokens() {
    let model = Model::start(Mood::Refusing).await;
    let mut config = model.settings(false);
    config["approvals"]["rules"] = json!(["allow sampling s"]);
    config["sampling"]["budget"] = json!({ "tokensPerHour": 40 });
    let (_stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    for asked in 1..=2 {
        let call = client.send_call("ask", sampling("Why?")).await;
        client.finish(&call).await;
        assert_eq!(model.asked().len(), asked);
    }
    rig.stop().await;
}
