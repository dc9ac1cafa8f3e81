//! Limits in bytes for the memory that one client or server can take.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    time::{Duration, sleep, timeout},
};

use crate::{
    api_rig::{PATIENCE, Rig, TOKEN},
    mcp_rig::{Pipe, Web, direct, server},
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

/// A result of this many bytes.
fn long_result(bytes: usize) -> String {
    json!({ "content": [{ "type": "text", "text": "x".repeat(bytes) }] }).to_string()
}

async fn first_event(rig: &Rig, web: &Web<'_>) -> Value {
    let session = web.session.as_deref().unwrap();
    let headers = format!("Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n");
    let mut events = rig.follow_with("/mcp/s/s", &headers).await;
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
    let web = Web::open(&rig, "/mcp/s/s", "2025-11-25").await;
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

/// Subscriptions of abandoned sessions last for an hour.
#[tokio::test]
async fn clients_without_token_leave_room_for_subscriptions() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    stage.set_answer("resources/subscribe", r#""result":{}"#);
    let entry = stage.entry_with(&json!({ "trust": "always" }));
    let config = json!({ "mcpServers": { "s": entry }, "auth": { "mcp": "none" } });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    // All the same URI, so that the server receives one request.
    let uri = json!({ "uri": format!("stage://{}", "a".repeat(MIB - 100)) });
    let mut refused = None;
    for _ in 0..8 {
        let stranger = Web::anyone(&rig, "/mcp/s/s").await;
        let answer = stranger.ask("resources/subscribe", uri.clone()).await.json;
        refused = refused.or_else(|| answer["error"]["message"].as_str().map(str::to_owned));
    }
    let refused = refused.unwrap_or_default();
    assert!(
        refused.contains("clients have too many subscriptions"),
        "{refused}"
    );
    let owner = Web::open(&rig, "/mcp/s/s", "2025-11-25").await;
    owner.result("resources/subscribe", uri).await;
    rig.stop().await;
}

/// Clients that are asked something and do not come back leave suspended calls.
#[tokio::test]
async fn clients_without_token_leave_room_for_suspended_calls() {
    let stage = Stage::new(&[tool("fail", "Fails.")]);
    let config = json!({ "mcpServers": { "s": stage.entry() }, "auth": { "mcp": "none" } });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let path = "/mcp/s/s";
    let address = json!({ "mode": "url", "elicitationId": "e1", "url": "https://example.com/x", "message": "Sign in." });
    let error =
        json!({ "code": -32042, "message": "first this", "data": { "elicitations": [address] } });
    let params = json!({ "name": "fail", "arguments": { "error": error } });
    let stranger = Web::open_able(&rig, path, "2026-07-28", false, able.clone()).await;
    let mut refused = None;
    for _ in 0..32 {
        let answer = stranger.ask("tools/call", params.clone()).await.text;
        refused = refused.or_else(|| {
            answer
                .contains("too many calls are waiting")
                .then_some(answer)
        });
    }
    assert!(refused.is_some());
    let owner = Web::open_able(&rig, path, "2026-07-28", true, able).await;
    for _ in 0..16 {
        let answer = owner.ask("tools/call", params.clone()).await.json;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn elicitation_complete_goes_to_the_asked_session() {
    let stage = Stage::new(&[tool("fail", "Fails.")]);
    let rig = staged(&stage).await;
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let path = "/mcp/s/s";
    let asked = Web::open_able(&rig, path, "2025-11-25", true, able.clone()).await;
    let other = Web::open_able(&rig, path, "2025-11-25", true, able).await;
    let address = json!({ "mode": "url", "elicitationId": "e1", "url": "https://example.com/x", "message": "Sign in." });
    let error =
        json!({ "code": -32042, "message": "first this", "data": { "elicitations": [address] } });
    let params = json!({ "name": "fail", "arguments": { "error": error } });
    let answer = asked.ask("tools/call", params).await.json;
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    for web in [&asked, &other] {
        web.result("logging/setLevel", json!({ "level": "info" }))
            .await;
    }
    let complete = json!({ "elicitationId": "e1" });
    stage
        .tell_with("notifications/elicitation/complete", complete)
        .await;
    let short = json!({ "level": "error", "data": "short" });
    stage.tell_with("notifications/message", short).await;
    let event = first_event(&rig, &asked).await;
    assert_eq!(event["params"]["elicitationId"], "e1", "{event}");
    let event = first_event(&rig, &other).await;
    assert_eq!(event["method"], "notifications/message", "{event}");
    rig.stop().await;
}

/// Only the server that requested the opening of an address may report its completion.
#[tokio::test]
async fn elicitation_complete_of_another_server_is_dropped() {
    let (asking, other) = (
        Stage::new(&[tool("fail", "Fails.")]),
        Stage::new(&[tool("t", "Does.")]),
    );
    let servers = json!({ "s": asking.entry(), "o": other.entry() });
    let rig = Rig::configured(json!({ "mcpServers": servers })).await;
    rig.until_tools("s", 1).await;
    rig.until_tools("o", 1).await;
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let mut client = Pipe::open_able(&rig, direct(), "2025-11-25", able).await;
    let address = json!({ "mode": "url", "elicitationId": "e1", "url": "https://example.com/x", "message": "Sign in." });
    let error =
        json!({ "code": -32042, "message": "first this", "data": { "elicitations": [address] } });
    let params = json!({ "name": "s__fail", "arguments": { "error": error } });
    let answer = client.ask("tools/call", params).await.json;
    assert_eq!(answer["error"]["code"], -32042, "{answer}");
    client
        .result("logging/setLevel", json!({ "level": "info" }))
        .await;
    let complete = "notifications/elicitation/complete";
    let said = |by: &str| json!({ "elicitationId": "e1", "by": by });
    other.tell_with(complete, said("other")).await;
    let message = json!({ "level": "error", "data": "after" });
    other.tell_with("notifications/message", message).await;
    client.until_told("notifications/message").await;
    // Parsers differ in which of two members they use.
    let twice = json!({ "elicitationId": "e1", "ElicitationId": "e2", "by": "twice" });
    asking.tell_with(complete, twice).await;
    asking.tell_with(complete, said("asking")).await;
    let told = client.until_told(complete).await;
    assert_eq!(told["by"], "asking", "{told}");
    rig.stop().await;
}

async fn send_batch(rig: &Rig, session: &str, batch: &[Value]) -> crate::api_rig::Answer {
    let headers = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n"
    );
    let body = Value::from(batch).to_string();
    rig.ask_with("POST", "/mcp", &headers, &body).await
}

#[tokio::test]
async fn batch_over_http_is_limited_in_messages() {
    let rig = Rig::with(json!({})).await;
    let web = Web::open(&rig, "/mcp", "2025-03-26").await;
    let session = web.session.as_deref().unwrap();
    let ping = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let batch: Vec<_> = (0..129).map(ping).collect();
    let refused = send_batch(&rig, session, &batch).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("128"), "{refused:?}");
    let taken = send_batch(&rig, session, &batch[1..]).await;
    assert_eq!(taken.json().as_array().unwrap().len(), 128);
    rig.stop().await;
}

#[tokio::test]
async fn batch_responses_are_limited_in_bytes() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    stage.set_result("t", &long_result(MIB));
    let rig = staged(&stage).await;
    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "t", "arguments": {} } });
    let batch: Vec<_> = (0..24).map(call).collect();
    let check = |answers: &Value| {
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 24);
        let (fine, refused): (Vec<_>, Vec<_>) = answers
            .iter()
            .partition(|answer| answer.get("result").is_some());
        assert_eq!(fine.len(), 15);
        for answer in refused {
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("batch"), "{message}");
            assert!(answer["id"].is_u64(), "{answer}");
        }
    };
    let web = Web::open(&rig, "/mcp/s/s", "2025-03-26").await;
    let session = web.session.as_deref().unwrap().to_owned();
    let headers = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n"
    );
    let body = Value::from(batch.as_slice()).to_string();
    let answer = rig.ask_with("POST", "/mcp/s/s", &headers, &body).await;
    assert_eq!(answer.status, 200);
    check(&answer.json());
    let mut pipe = Pipe::open_as(&rig, server("s"), "2025-03-26").await;
    pipe.send_text(&body).await;
    check(&pipe.next_line().await);
    rig.stop().await;
}

#[tokio::test]
async fn unread_pipe_is_read_no_further() {
    const REQUESTS: usize = 16;
    let stage = Stage::new(&[tool("t", "Does.")]);
    stage.set_result("t", &long_result(5 * MIB));
    let rig = staged(&stage).await;
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let gateway = Arc::clone(&rig.gateway);
    tokio::spawn(async move { gateway.serve_pipe(server("s"), None, reader, writer).await });
    let (reader, mut writer) = tokio::io::split(ours);
    let mut lines = BufReader::new(reader);
    let call = |id: usize, argument: &str| {
        let params = json!({ "name": "t", "arguments": { "a": argument } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        format!("{call}\n")
    };
    // The response exceeds the write buffer, and its beginning shows that the gateway has started to write.
    writer.write_all(call(0, "").as_bytes()).await.unwrap();
    let beginning = timeout(PATIENCE, lines.fill_buf()).await.unwrap().unwrap();
    assert!(!beginning.is_empty());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let writing = tokio::spawn(async move {
        let argument = "y".repeat(4 * MIB);
        for id in 1..=REQUESTS {
            let call = call(id, &argument);
            writer.write_all(call.as_bytes()).await.unwrap();
            counted.fetch_add(1, Relaxed);
        }
        writer
    });
    // Until the gateway takes no more input.
    let mut before = usize::MAX;
    let settling = async {
        while before != sent.load(Relaxed) || before == 0 {
            before = sent.load(Relaxed);
            sleep(Duration::from_secs(2)).await;
        }
    };
    timeout(2 * PATIENCE, settling).await.unwrap();
    assert!(before <= 10, "{before} requests were taken");
    // The client reads again: every request is answered.
    let mut answered = BTreeSet::new();
    let reading = async {
        while answered.len() < REQUESTS + 1 {
            let mut line = Vec::new();
            assert!(lines.read_until(b'\n', &mut line).await.unwrap() > 0);
            let head = String::from_utf8_lossy(&line[..64]).into_owned();
            let id = head.split_once("\"id\":").unwrap().1;
            let id = id.split_once(',').unwrap().0.to_owned();
            assert!(answered.insert(id), "{head}");
        }
    };
    timeout(4 * PATIENCE, reading).await.unwrap();
    drop(writing.await.unwrap());
    rig.stop().await;
}

#[tokio::test]
async fn oversized_capabilities_are_refused() {
    let stage = Stage::new(&[tool("t", "Does.")]);
    let rig = staged(&stage).await;
    let long = json!({ "experimental": { "x": "y".repeat(70 * 1024) } });
    let introduced = |capabilities: &Value| {
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "it", "version": "1" },
        })
    };
    let mut pipe = Pipe::open(&rig, server("s")).await;
    let web = Web::open(&rig, "/mcp/s/s", "2025-11-25").await;
    let refused = [
        pipe.ask("initialize", introduced(&long)).await.json,
        web.ask("initialize", introduced(&long)).await.json,
    ];
    for answer in refused {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("64 KiB"), "{message}");
    }
    let short = json!({ "experimental": { "x": "y".repeat(50 * 1024) } });
    let answer = web.ask("initialize", introduced(&short)).await.json;
    assert!(answer["result"].is_object(), "{answer}");
    rig.stop().await;
}

/// A header with many parts has many secrets.
#[tokio::test]
async fn secrets_of_one_server_evict_no_others() {
    let stage = Stage::new(&[tool("t", "Does something.")]);
    let token = "token-of-the-first-8Kd2";
    let first = stage.entry_with(&json!({ "env": { "API_TOKEN": token } }));
    let parts = (0..600).map(|n| format!("name{n}=part-number-{n}"));
    let cookie = parts.collect::<Vec<_>>().join("; ");
    let second = json!({
        "url": "http://127.0.0.1:9/mcp",
        "headers": { "Cookie": cookie },
        "start": "lazy",
    });
    let rig = Rig::with(json!({ "first": first, "second": second })).await;
    rig.until_tools("first", 1).await;
    rig.ask("POST", "/api/v1/servers/second/restart", None)
        .await;
    let failed = |server: &Value| server["state"] == "parked" || server["state"] == "retrying";
    let second = rig.until("/api/v1/servers/second", failed).await;
    assert_eq!(
        switchboard_base::scrub::text(token),
        "[secret env.API_TOKEN]"
    );
    let reason = second["reason"].as_str().unwrap();
    assert!(reason.contains("at most 64 values"), "{reason}");
    rig.stop().await;
}
