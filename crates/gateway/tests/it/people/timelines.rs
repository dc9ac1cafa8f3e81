//! The three timelines of a request: answered at once, answered late, never answered.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, advance, pause, resume};

use super::{EVENTS, asks_deletions, form, mute, sampling, staged, told};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, Pipe, refusal_of, server, text_of},
};

/// Short timeouts that still let an immediate answer arrive in time.
fn short_times() -> Value {
    json!({ "approvals": { "shortTimeoutMs": 300, "longTimeoutMs": 700, "notify": "off" } })
}

#[tokio::test]
async fn early_answer_is_delivered_without_escalation() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let asked = events.until("approval.created").await;
    assert_eq!(asked["kind"], "sampling");
    assert_eq!(asked["status"], "pending");
    assert_eq!(asked["server"], "s");
    assert_eq!(asked["tool"], "ask");
    assert!(
        asked["client"].as_str().unwrap().starts_with("it"),
        "{asked}"
    );
    assert_eq!(asked["summary"], "wants a model's answer: Why?");
    assert_eq!(asked["version"], 1);
    assert!(asked["escalatedAt"].is_null());
    let id = &asked["id"];
    assert_eq!(rig.approval(id).await["request"], asked["request"]);
    let decided = rig
        .decided(id, "respond", json!({ "text": "Because.", "by": "me" }))
        .await;
    assert_eq!(decided["status"], "approved");
    let result = client.finish(&call).await.json;
    let said = told(&result["result"])["q"].clone();
    assert_eq!(said["content"]["text"], "Because.");
    assert_eq!(said["role"], "assistant");
    assert_eq!(said["model"], "human");
    let (kind, decided) = events.next_approval().await;
    assert_eq!(kind, "approval.decided");
    assert_eq!(decided["decision"]["note"], "me");
    assert!(decided["deliveredAt"].is_string(), "{decided}");
    assert!(decided["escalatedAt"].is_null(), "{decided}");
    rig.stop().await;
}

#[tokio::test]
async fn late_answer_is_delivered_after_one_escalation() {
    let mut config = short_times();
    config["approvals"]["longTimeoutMs"] = json!(60_000);
    let (_stage, rig) = staged(config).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let (kind, _) = events.next_approval().await;
    assert_eq!(kind, "approval.created");
    let (kind, louder) = events.next_approval().await;
    assert_eq!(kind, "approval.escalated");
    assert_eq!(louder["status"], "pending");
    assert!(louder["escalatedAt"].as_str() >= louder["escalatesAt"].as_str());
    rig.decided(&louder["id"], "respond", json!({ "text": "So." }))
        .await;
    // No event in between: it escalated once.
    let (kind, _) = events.next_approval().await;
    assert_eq!(kind, "approval.decided");
    let result = client.finish(&call).await.json;
    assert_eq!(told(&result["result"])["q"]["content"]["text"], "So.");
    rig.stop().await;
}

#[tokio::test]
async fn unanswered_request_expires_with_an_error() {
    let (_stage, rig) = staged(short_times()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let mut kinds = Vec::new();
    let over = loop {
        let (kind, approval) = events.next_approval().await;
        kinds.push(kind.clone());
        if kind == "approval.expired" {
            break approval;
        }
    };
    assert_eq!(
        kinds,
        ["approval.created", "approval.escalated", "approval.expired"]
    );
    assert_eq!(over["status"], "timed_out");
    assert!(
        over["error"].as_str().unwrap().contains("no approver"),
        "{over}"
    );
    let result = client.finish(&call).await.json;
    let error = told(&result["result"])["q"]["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no approver answered within"), "{error}");
    let id = &over["id"];
    let late = rig.decide(id, "respond", json!({ "text": "Oh." })).await;
    let detail = late.problem(409);
    assert!(detail.contains("timed out"), "{detail}");
    assert_eq!(late.json()["was"], "timed_out");
    assert_eq!(late.json()["approval"], *id);
    assert_eq!(rig.approval(id).await["status"], "timed_out");
    rig.stop().await;
}

#[tokio::test]
async fn call_without_timely_approval_is_not_made() {
    let mut config = short_times();
    config["approvals"]["rules"] = json!(["ask s:delete_*"]);
    let (stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    let refusal = client.refusal("delete_file", json!({ "path": "/a" })).await;
    assert!(refusal.contains("delete_file"), "{refusal}");
    assert!(
        refusal.contains("1 s") || refusal.contains("answered"),
        "{refusal}"
    );
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// The server has a short timeout, and the approver a long one.
#[tokio::test]
async fn timeout_is_paused_while_approval_is_pending() {
    let mut config = short_times();
    config["approvals"]["shortTimeoutMs"] = json!(2_500);
    config["approvals"]["longTimeoutMs"] = json!(60_000);
    config["approvals"]["rules"] = json!(["ask s:delete_*"]);
    let stage = crate::stage_rig::Stage::new(&super::tools());
    let entry = stage.entry_with(&json!({ "requestTimeoutMs": 1_000 }));
    let rig = super::with_server(entry, config).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    for (tool, arguments, how, body) in [
        ("ask", sampling("Why?"), "respond", json!({ "text": "So." })),
        (
            "ask",
            form("Who?", json!({})),
            "respond",
            json!({ "action": "decline" }),
        ),
        ("delete_file", json!({}), "approve", json!({})),
    ] {
        let call = client.send_call(tool, arguments).await;
        // More than twice the timeout of the server.
        let louder = events.until("approval.escalated").await;
        rig.decided(&louder["id"], how, body).await;
        let answer = client.finish(&call).await.json;
        assert!(answer["result"]["isError"] != true, "{tool}: {answer}");
        assert!(!text_of(&answer["result"]).contains("error"), "{answer}");
    }
    // The timeout applies to the server itself.
    let refusal = client.refusal("wait", json!({})).await;
    assert!(refusal.contains("did not respond within 1"), "{refusal}");
    rig.stop().await;
}

/// Stops the clock: while this lives, time advances only when the test says so.
struct StoppedClock {
    _release: std::sync::mpsc::Sender<()>,
}

impl StoppedClock {
    fn new() -> Self {
        let (release, held) = std::sync::mpsc::channel::<()>();
        // Time does not advance by itself while a task blocks.
        tokio::task::spawn_blocking(move || held.recv().is_ok());
        pause();
        Self { _release: release }
    }
}

/// Lets everything happen that is due, without advancing time.
async fn let_happen() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pending_call_reports_progress_every_ten_seconds() {
    let (_stage, rig) = staged(json!({
        "approvals": { "rules": ["ask s:work"], "notify": "off" }
    }))
    .await;
    let mut client = Pipe::open_able(&rig, server("s"), LEGACY, json!({})).await;
    let params = json!({ "name": "work", "arguments": {}, "_meta": { "progressToken": "t" } });
    let call = client.send("tools/call", params).await;
    let asked = rig.one_waiting().await;
    let clock = StoppedClock::new();
    let mut signs = Vec::new();
    let began = Instant::now();
    for _ in 0..3 {
        advance(Duration::from_millis(9_900)).await;
        let_happen().await;
        assert_eq!(client.told().len(), 0);
        advance(Duration::from_millis(200)).await;
        signs.push(client.until_told("notifications/progress").await);
    }
    assert_eq!(began.elapsed(), Duration::from_millis(3 * 10_100));
    resume();
    drop(clock);
    rig.decided(&asked["id"], "approve", json!({})).await;
    let answer = client.finish(&call).await.json;
    assert_eq!(text_of(&answer["result"]), "done");
    let later = client.told();
    let later = later
        .iter()
        .filter(|said| said["method"] == "notifications/progress");
    signs.extend(later.map(|said| said["params"].clone()));
    let counts: Vec<_> = signs
        .iter()
        .map(|sign| sign["progress"].as_f64().unwrap())
        .collect();
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
    assert!(signs.iter().all(|sign| sign["progressToken"] == "t"));
    // The server's progress is not lost: it reports 1 and 2.
    assert_eq!(counts[counts.len() - 2..], [1.0, 2.0], "{counts:?}");
    rig.stop().await;
}

#[tokio::test]
async fn no_progress_without_a_progress_token() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut client = Pipe::open_able(&rig, server("s"), LEGACY, json!({})).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    let clock = StoppedClock::new();
    advance(Duration::from_secs(25)).await;
    let_happen().await;
    resume();
    drop(clock);
    rig.decided(&asked["id"], "approve", json!({})).await;
    client.finish(&call).await;
    assert!(client.told().is_empty(), "{:?}", client.told());
    rig.stop().await;
}

/// The default timeouts: 30 s, and 270 s more.
#[tokio::test]
async fn request_escalates_and_expires_at_default_times() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = Pipe::open_able(&rig, server("s"), LEGACY, json!({})).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = events.until("approval.created").await;
    let clock = StoppedClock::new();
    advance(Duration::from_secs(29)).await;
    let_happen().await;
    assert_eq!(status(&rig, &asked).await, ("pending".to_owned(), false));
    advance(Duration::from_secs(2)).await;
    events.until("approval.escalated").await;
    advance(Duration::from_secs(268)).await;
    let_happen().await;
    assert_eq!(status(&rig, &asked).await, ("pending".to_owned(), true));
    advance(Duration::from_secs(2)).await;
    events.until("approval.expired").await;
    resume();
    drop(clock);
    let refusal = refusal_of(&client.finish(&call).await.json);
    assert!(
        refusal.contains("300 s") || refusal.contains("5 min"),
        "{refusal}"
    );
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

async fn status(rig: &Rig, asked: &Value) -> (String, bool) {
    let now = rig.approval(&asked["id"]).await;
    let louder = now["escalatedAt"].is_string();
    (now["status"].as_str().unwrap().to_owned(), louder)
}
