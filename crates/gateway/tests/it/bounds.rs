//! Memory that one client or one server can take: bounded in bytes.

use serde_json::{Value, json};
use crate::{
    api_rig::Rig,
    mcp_rig::Web,
    stage_rig::{Stage, tool},
};

const MIB: usize = 1024 * 1024;

async fn staged(stage: &Stage) -> Rig {
    let entry = stage.entry_with(&json!({ "trust": "always" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until("/api/v1/servers/s", |server| server["tools"] == 1)
        .await;
    rig
}

async fn first_event(rig: &Rig, web: &Web<'_>) -> Value {
    let session = web.session.as_deref().unwrap();
    let headers = format!("Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n");
    let mut events = rig.follow_with("/mcp", &headers).await;
    loop {
        let data = events.next().await.unwrap().data;
        if !data.is_empty() {
            return serde_json::from_str(&data).unwrap();
        }
    }
}

#[tokio::test]
async fn long_log_message_is_dropped_for_sessions() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    let rig = staged(&stage).await;
    let web = Web::open(&rig, "/mcp", "2025-11-25").await;
    web.result("logging/setLevel", json!({ "level": "info" }))
        .await;
    let message = |data: &str| json!({ "level": "error", "data": data });
    let long = message(&"x".repeat(MIB));
    stage.tell_with("notifications/message", long).await;
    let short = message("short");
    stage.tell_with("notifications/message", short).await;
    let event = first_event(&rig, &web).await;
    assert_eq!(event["params"]["data"], "short");
    rig.stop().await;
}

#[tokio::test]
async fn elicitation_complete_skips_sessions_never_asked() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    let rig = staged(&stage).await;
    let web = Web::open(&rig, "/mcp", "2025-11-25").await;
    web.result("logging/setLevel", json!({ "level": "info" }))
        .await;
    let complete = json!({ "elicitationId": "e1" });
    stage
        .tell_with("notifications/elicitation/complete", complete)
        .await;
    let short = json!({ "level": "error", "data": "short" });
    stage.tell_with("notifications/message", short).await;
    let event = first_event(&rig, &web).await;
    assert_eq!(event["method"], "notifications/message");
    rig.stop().await;
}
