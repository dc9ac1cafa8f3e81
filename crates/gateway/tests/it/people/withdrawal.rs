//! The requester goes away: its approval request is withdrawn.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{EVENTS, asks_deletions, form, mute, sampling, staged};
use crate::{
    api_rig::{Events, Rig, TOKEN},
    mcp_rig::{LEGACY, MODERN, Web},
};

/// Asserts that the request is withdrawn, an event reports it, and it can no longer be answered.
async fn is_withdrawn(rig: &Rig, events: &mut Events, asked: &Value) {
    let gone = events.until("approval.withdrawn").await;
    assert_eq!(gone["id"], asked["id"]);
    assert_eq!(gone["status"], "withdrawn");
    let (how, body) = match asked["kind"].as_str().unwrap() {
        "sampling" => ("respond", json!({ "text": "So." })),
        "elicitation" => ("respond", json!({ "action": "cancel" })),
        _ => ("approve", json!({})),
    };
    let late = rig.decide(&asked["id"], how, body).await;
    let detail = late.problem(409);
    assert!(detail.contains("withdrawn"), "{detail}");
    assert_eq!(late.json()["was"], "withdrawn");
    assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
}

/// The calls of these tests.
fn calls() -> [(&'static str, Value); 3] {
    [
        ("ask", sampling("Why?")),
        ("ask", form("Who?", json!({}))),
        ("delete_file", json!({})),
    ]
}

#[tokio::test]
async fn cancelled_call_withdraws_its_request() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    for (tool, arguments) in calls() {
        let call = client.send_call(tool, arguments).await;
        let asked = events.until("approval.created").await;
        client
            .tell("notifications/cancelled", json!({ "requestId": call }))
            .await;
        is_withdrawn(&rig, &mut events, &asked).await;
    }
    assert_eq!(stage.calls_of("delete_file").len(), 0);
    rig.stop().await;
}

/// Requests of a client that has closed its end get a few seconds to finish.
#[tokio::test]
async fn closed_pipe_withdraws_its_requests() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    client.send_call("ask", sampling("Why?")).await;
    client.send_call("delete_file", json!({})).await;
    let mut asked = rig.until_waiting(2).await;
    drop(client);
    for _ in 0..2 {
        let gone = events.until("approval.withdrawn").await;
        asked.retain(|one| one["id"] != gone["id"]);
        rig.decide(&gone["id"], "reject", json!({}))
            .await
            .problem(409);
    }
    assert!(asked.is_empty(), "{asked:?}");
    rig.stop().await;
}

#[tokio::test]
async fn deleted_session_withdraws_its_requests() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    for (tool, arguments) in calls() {
        let web = Web::open_able(&rig, "/mcp/s/s", LEGACY, true, json!({})).await;
        let session = web.session.clone().unwrap();
        let params = json!({ "name": tool, "arguments": arguments });
        let deleting = async {
            let asked = events.until("approval.created").await;
            let headers = format!("Authorization: Bearer {TOKEN}\r\nMcp-Session-Id: {session}\r\n");
            let answer = rig.ask_with("DELETE", "/mcp/s/s", &headers, "").await;
            assert!((200..300).contains(&answer.status), "{answer:?}");
            asked
        };
        let (asked, _) = tokio::join!(deleting, web.ask_whatever("tools/call", params));
        is_withdrawn(&rig, &mut events, &asked).await;
    }
    rig.stop().await;
}

/// A client of 2026-07-28 that has retried and then disconnects.
#[tokio::test]
async fn disconnected_modern_stream_withdraws_its_request() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    for (tool, arguments) in calls() {
        let web = Web::open_able(&rig, "/mcp/s/s", MODERN, true, json!({})).await;
        let mut params = json!({ "name": tool, "arguments": arguments });
        let away = web.ask("tools/call", params.clone()).await.json;
        let asked = events.until("approval.created").await;
        params["requestState"] = away["result"]["requestState"].clone();
        assert!(params["requestState"].is_string(), "{away}");
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
        let body = body.to_string();
        let head = format!(
            "POST /mcp/s/s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", rig.port)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        // Of two clients that retry with one state, one is refused, and the other waits.
        let mut second = TcpStream::connect(("127.0.0.1", rig.port)).await.unwrap();
        second.write_all(head.as_bytes()).await.unwrap();
        let (mut one, mut other) = ([0; 1], [0; 1]);
        tokio::select! {
            said = stream.read(&mut one) => assert_eq!(said.unwrap(), 1),
            said = second.read(&mut other) => assert_eq!(said.unwrap(), 1),
        }
        drop(second);
        drop(stream);
        is_withdrawn(&rig, &mut events, &asked).await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn crashed_server_withdraws_its_request() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    for (tool, arguments) in &calls()[..2] {
        let mut client = mute(&rig, LEGACY).await;
        let call = client.send_call(tool, arguments.clone()).await;
        let asked = events.until("approval.created").await;
        stage.die().await;
        is_withdrawn(&rig, &mut events, &asked).await;
        let answer = client.finish(&call).await.json;
        crate::mcp_rig::refusal_of(&answer);
        rig.until("/api/v1/servers/s", |server| server["state"] == "ready")
            .await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn removed_server_withdraws_its_requests() {
    for (tool, arguments) in calls() {
        let (_stage, rig) = staged(asks_deletions()).await;
        let mut events = rig.follow(EVENTS).await;
        let mut client = mute(&rig, LEGACY).await;
        let call = client.send_call(tool, arguments).await;
        let asked = events.until("approval.created").await;
        let mut config = asks_deletions();
        config["mcpServers"] = json!({});
        rig.reconfigure(&config).await;
        is_withdrawn(&rig, &mut events, &asked).await;
        let answer = client.finish(&call).await.json;
        crate::mcp_rig::refusal_of(&answer);
        rig.stop().await;
    }
}

/// The command line, or a script, that is stopped while it waits.
#[tokio::test]
async fn disconnected_rest_caller_withdraws_its_request() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let asked = tokio::select! {
        answer = rig.call("s:delete_file", json!({})) => panic!("{answer:?}"),
        asked = events.until("approval.created") => asked,
    };
    is_withdrawn(&rig, &mut events, &asked).await;
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// A client of an older revision without a session cannot come back for the answer.
#[tokio::test]
async fn disconnected_client_without_session_withdraws_its_request() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    for (tool, arguments) in calls() {
        for (accept, batch) in [
            ("application/json", false),
            ("application/json, text/event-stream", false),
            ("application/json", true),
        ] {
            let params = json!({ "name": tool, "arguments": arguments });
            let call =
                json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
            let body = if batch { json!([call]) } else { call };
            let body = body.to_string();
            let head = format!(
                "POST /mcp/s/s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
                 Content-Type: application/json\r\nAccept: {accept}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = TcpStream::connect(("127.0.0.1", rig.port)).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let asked = events.until("approval.created").await;
            drop(stream);
            is_withdrawn(&rig, &mut events, &asked).await;
        }
    }
    assert_eq!(stage.calls_of("delete_file").len(), 0);
    rig.stop().await;
}
