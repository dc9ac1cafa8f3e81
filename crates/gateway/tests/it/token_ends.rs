//! Ends of tokens: revoked, rotated, expired. All that belongs to a token ends with it.

use std::fs;

use serde_json::{Value, json};

use crate::{
    api_rig::{Events, Rig, try_open_stream},
    mcp_rig::{LEGACY, MODERN, Web, until},
    tokens::{Two, of_servers, stage},
};

#[tokio::test]
async fn revoked_token_ends_everything_at_once() {
    let Two { rig, a, b: _b } = Two::new().await;
    let token = rig.token(json!({ "name": "t" })).await;
    let legacy = Web::with_token(&rig, "/mcp/direct", LEGACY, &token).await;
    let modern = Web::with_token(&rig, "/mcp/direct", MODERN, &token).await;
    let session = legacy.session.clone().unwrap();
    let session = format!("Mcp-Session-Id: {session}\r\nAccept: text/event-stream\r\n");
    let mut general = rig.follow_as(&token, "/mcp/direct", &session).await;
    let mut sse = rig.follow_as(&token, "/sse/direct", "").await;
    sse.next().await.expect("the address for messages");
    let call = json!({ "name": "alpha__wait", "arguments": {} });
    let revoke = async {
        until("both calls arrive", async || a.calls() == 2).await;
        let answer = rig.ask("DELETE", "/api/v1/tokens/t", None).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    };
    let (one, two, ()) = tokio::join!(
        legacy.ask_whatever("tools/call", call.clone()),
        modern.ask_whatever("tools/call", call.clone()),
        revoke,
    );
    for answer in [one, two] {
        assert_eq!(answer.status, 401, "{answer:?}");
    }
    assert!(general.next().await.is_none(), "the stream has ended");
    assert!(sse.next().await.is_none(), "the stream has ended");
    for web in [&legacy, &modern] {
        let answer = web.ask_whatever("tools/list", json!({})).await;
        assert_eq!(answer.status, 401, "{answer:?}");
        assert!(
            answer.headers.contains("www-authenticate: bearer"),
            "{answer:?}"
        );
        assert!(answer.body.contains("revoked"), "{answer:?}");
    }
    // The server gets a cancellation.
    a.until_asked("notifications/cancelled").await;
    rig.stop().await;
}

#[tokio::test]
async fn rotated_token_replaces_the_old_one() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let old = rig.token(json!({ "name": "t", "servers": ["beta"] })).await;
    let mut stream = rig.follow_as(&old, "/sse", "").await;
    stream.next().await.expect("the address for messages");
    let answer = rig.ask("POST", "/api/v1/tokens/t/rotate", None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let new = answer.json()["token"].as_str().unwrap().to_owned();
    assert!(stream.next().await.is_none(), "the stream has ended");
    assert_eq!(rig.initialize_as(&old, "/mcp").await.status, 401);
    let web = Web::with_token(&rig, "/mcp/direct", LEGACY, &new).await;
    let tools = of_servers(web.tools().await);
    assert_eq!(tools, ["beta__read", "beta__wait", "beta__drop_all"]);
    rig.stop().await;
}

#[tokio::test]
async fn expired_token_is_rejected_as_such() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let token = rig
        .token(json!({ "name": "t", "expiresInSeconds": 1_000 }))
        .await;
    let rig = rig
        .restarted(|home| {
            let text = fs::read_to_string(home.tokens()).unwrap();
            let mut tokens: Value = serde_json::from_str(&text).unwrap();
            tokens["tokens"][0]["expiresAt"] = json!(1);
            fs::write(home.tokens(), tokens.to_string()).unwrap();
        })
        .await;
    let answer = rig.initialize_as(&token, "/mcp").await;
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(answer.body.contains("the token has expired"), "{answer:?}");
    let list = rig.get("/api/v1/tokens").await.json();
    assert_eq!(list["tokens"][0]["isExpired"], true, "{list}");
    rig.stop().await;
}

/// The sessions of a token that expires soon: the ID of one, and a stream of each transport. Fails with the status of
/// a request that came too late.
async fn sessions(rig: &Rig, token: &str) -> Result<(String, [Events; 2]), u16> {
    let opened = rig.initialize_as(token, "/mcp/direct").await;
    if opened.status != 200 {
        return Err(opened.status);
    }
    let mut headers = opened.headers.lines();
    let session = headers.find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap().to_owned();
    let token = format!("Authorization: Bearer {token}\r\n");
    let of_session = format!("{token}Mcp-Session-Id: {session}\r\nAccept: text/event-stream\r\n");
    let web = try_open_stream(rig.port, "GET", "/mcp/direct", &of_session, "").await?;
    let sse = try_open_stream(rig.port, "GET", "/sse", &token, "").await?;
    Ok((session, [web, sse]))
}

#[tokio::test]
async fn sessions_end_when_their_token_expires() {
    let Two { rig, a, b: _b } = Two::new().await;
    let mut life = 1;
    let (token, session, streams, call) = loop {
        let name = format!("t{life}");
        let token = json!({ "name": name, "expiresInSeconds": life });
        let token = rig.token(token).await;
        if let Ok((session, streams)) = sessions(&rig, &token).await {
            let params = json!({ "name": "alpha__wait", "arguments": {} });
            let call =
                json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
            let headers = format!(
                "Authorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\n"
            );
            let call = rig
                .ask_with("POST", "/mcp/direct", &headers, &call.to_string())
                .await;
            // The machine was too busy if the call came too late.
            if a.calls() > 0 {
                break (token, session, streams, call);
            }
        }
        life *= 2;
    };
    assert_eq!(call.status, 401, "{call:?}");
    assert!(call.body.contains("the token has expired"), "{call:?}");
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
    a.until_asked("notifications/cancelled").await;
    // A new secret does not bring the session back.
    let path = format!("/api/v1/tokens/t{life}/rotate");
    let rotated = rig.ask("POST", &path, None).await.json();
    let rotated = rotated["token"].as_str().unwrap();
    assert_ne!(rotated, token);
    let headers = format!(
        "Authorization: Bearer {rotated}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\n"
    );
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    let late = rig
        .ask_with("POST", "/mcp/direct", &headers, &list.to_string())
        .await;
    assert_eq!(late.status, 404, "{late:?}");
    rig.stop().await;
}

#[tokio::test]
async fn suspended_call_ends_with_its_token() {
    for how in ["revoke", "rotate"] {
        let Two { rig, a, b: _b } = Two::new().await;
        let token = rig.token(json!({ "name": "t" })).await;
        let web = Web::with_token(&rig, "/mcp/direct", MODERN, &token).await;
        let call = json!({ "name": "alpha__drop_all", "arguments": {} });
        let sent_away = web.result("tools/call", call).await;
        assert_eq!(sent_away["resultType"], "input_required", "{sent_away}");
        let asked = rig.one_waiting().await;
        let answer = if how == "revoke" {
            rig.ask("DELETE", "/api/v1/tokens/t", None).await
        } else {
            rig.ask("POST", "/api/v1/tokens/t/rotate", None).await
        };
        assert!(answer.status < 300, "{answer:?}");
        // The request is withdrawn, so there is nothing to approve.
        rig.until_waiting(0).await;
        let late = rig.decide(&asked["id"], "approve", json!({})).await;
        assert_eq!(late.status, 409, "{how}: {late:?}");
        assert_eq!(a.calls(), 0, "{how}");
        rig.stop().await;
    }
}

#[tokio::test]
async fn queued_call_ends_with_its_token() {
    let stage = stage();
    let entry = stage.entry_with(&json!({ "trust": "always", "maxInFlight": 1 }));
    let rig = Rig::configured(json!({ "mcpServers": { "alpha": entry } })).await;
    rig.until_tools("alpha", 3).await;
    let token = rig.token(json!({ "name": "t" })).await;
    let mut stream = rig.follow_as(&token, "/sse/direct", "").await;
    let address = stream.next().await.expect("the address for messages").data;
    for id in [1, 2] {
        let params = json!({ "name": "alpha__wait", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let answer = rig
            .ask_as(&token, "POST", &address, &call.to_string())
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    rig.until("/api/v1/servers/alpha", |alpha| {
        alpha["inFlight"] == 1 && alpha["queued"] == 1
    })
    .await;
    let answer = rig.ask("DELETE", "/api/v1/tokens/t", None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(stream.next().await.is_none(), "the stream has ended");
    // The first call is cancelled, and the second one never reaches the server.
    stage.until_asked("notifications/cancelled").await;
    let web = Web::open(&rig, "/mcp/direct", LEGACY).await;
    let call = json!({ "name": "alpha__read", "arguments": {} });
    web.result("tools/call", call).await;
    assert_eq!(stage.calls_of("wait").len(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn rest_call_ends_with_its_token() {
    let Two { rig, a, b: _b } = Two::new().await;
    let rights = ["call", "admin"];
    let token = rig.token(json!({ "name": "t", "rights": rights })).await;
    let body = json!({ "name": "alpha:wait" }).to_string();
    let call = rig.ask_as(&token, "POST", "/api/v1/tools/call", &body);
    let revoke = async {
        until("the call arrives", async || a.calls() == 1).await;
        // A token may revoke itself, and gets the answer.
        let answer = rig.ask_as(&token, "DELETE", "/api/v1/tokens/t", "").await;
        assert_eq!(answer.status, 204, "{answer:?}");
    };
    let (answer, ()) = tokio::join!(call, revoke);
    answer.problem(401);
    a.until_asked("notifications/cancelled").await;
    rig.stop().await;
}
