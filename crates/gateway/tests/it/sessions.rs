//! The lifetime of sessions of older revisions over HTTP.

use serde_json::{Value, json};

use crate::{
    api_rig::{Events, Rig, fixture},
    mcp_rig::{LEGACY, Web},
};

async fn rig() -> Rig {
    let config = json!({
        "sessions": { "idleSeconds": 1 },
        "approvals": { "notify": "off", "rules": [{ "action": "ask", "tool": "echo" }] },
        "mcpServers": { "a": fixture() },
    });
    Rig::configured(config).await
}

/// The stream of a session.
async fn listen(rig: &Rig, web: &Web<'_>) -> Events {
    let session = web.session.as_ref().unwrap();
    let headers = format!("Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n");
    rig.follow_with("/mcp", &headers).await
}

async fn until_clients(rig: &Rig, count: u64) {
    rig.until("/api/v1/status", |status| status["clients"] == count)
        .await;
}

/// The HTTP status of a request.
async fn asked(web: &Web<'_>) -> u16 {
    web.ask_whatever("tools/list", json!({})).await.status
}

#[tokio::test]
async fn idle_session_expires_unless_it_streams() {
    let rig = rig().await;
    let idle = Web::open(&rig, "/mcp", LEGACY).await;
    let listening = Web::open(&rig, "/mcp", LEGACY).await;
    let stream = listen(&rig, &listening).await;
    until_clients(&rig, 1).await;
    assert_eq!(asked(&idle).await, 404);
    assert_eq!(asked(&listening).await, 200);
    drop(stream);
    until_clients(&rig, 0).await;
    assert_eq!(asked(&listening).await, 404);
    let again = Web::open(&rig, "/mcp", LEGACY).await;
    assert_eq!(asked(&again).await, 200);
    rig.stop().await;
}

#[tokio::test]
async fn session_with_a_pending_approval_stays() {
    let rig = rig().await;
    rig.until_known("a").await;
    let idle = Web::open(&rig, "/mcp/direct", LEGACY).await;
    let waiting = Web::open(&rig, "/mcp/direct", LEGACY).await;
    let call = async {
        let params = json!({ "name": "a__echo", "arguments": { "text": "still here" } });
        waiting.result("tools/call", params).await
    };
    let person = async {
        let request = rig.one_waiting().await;
        // The other session has been idle for the same time by then.
        until_clients(&rig, 1).await;
        rig.decided(&request["id"], "approve", json!({})).await;
    };
    let (result, ()): (Value, ()) = tokio::join!(call, person);
    assert!(result.to_string().contains("still here"), "{result}");
    assert_eq!(asked(&waiting).await, 200);
    assert_eq!(asked(&idle).await, 404);
    rig.stop().await;
}
