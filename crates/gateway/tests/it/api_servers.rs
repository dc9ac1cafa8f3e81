//! Servers over REST: shown, added, switched, restarted, removed.

use serde_json::{Value, json};

use crate::api_rig::{Rig, fixture, fixture_as};

#[tokio::test]
async fn server_is_shown_with_its_own_description() {
    let rig = Rig::with(json!({ "a": fixture(), "b": { "command": "x", "enabled": false } })).await;
    rig.until_known("a").await;
    let list = rig.get("/api/v1/servers").await.json();
    let names: Vec<_> = list["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(list["servers"][1]["state"], "disabled");
    let server = rig.get("/api/v1/servers/a").await.json();
    assert_eq!(server["name"], "a");
    assert_eq!(server["state"], "ready");
    assert_eq!(server["enabled"], true);
    assert_eq!(server["tools"], 5);
    assert_eq!(
        server["offers"],
        json!({
            "serverInfo": { "name": "fixture", "version": "1" },
            "instructions": "Be kind.",
            "capabilities": { "tools": {} },
        })
    );
    let server = rig.get("/api/v1/servers/b").await.json();
    assert_eq!(server.get("offers"), None);
    rig.stop().await;
}

#[tokio::test]
async fn unknown_server_gets_a_suggestion() {
    let rig = Rig::with(json!({ "files": { "command": "x", "enabled": false } })).await;
    for (verb, path) in [
        ("GET", "/api/v1/servers/fils"),
        ("DELETE", "/api/v1/servers/fils"),
        ("GET", "/api/v1/servers/fils/logs"),
        ("POST", "/api/v1/servers/fils/restart"),
        ("POST", "/api/v1/servers/fils/enable"),
        ("POST", "/api/v1/servers/fils/disable"),
    ] {
        let detail = rig.ask(verb, path, None).await.problem(404);
        assert!(detail.contains("`fils`; did you mean `files`?"), "{detail}");
    }
    let detail = rig.get("/api/v1/servers/weather").await.problem(404);
    assert!(detail.contains("`switchboard list`"), "{detail}");
    rig.get("/api/v1/servers/%ff").await.problem(400);
    rig.stop().await;
}

#[tokio::test]
async fn hint_is_separate_from_the_detail() {
    let rig = Rig::with(json!({ "files; x": { "command": "x", "enabled": false } })).await;
    let problem = rig.get("/api/v1/servers/fils;%20x").await.json();
    assert_eq!(problem["detail"], "there is no server `fils; x`");
    assert_eq!(problem["hint"], "did you mean `files; x`?");
    let body = json!({ "name": "files; x:some", "arguments": {} });
    let problem = rig.post("/api/v1/tools/call", &body).await.json();
    assert_eq!(problem["detail"], "server `files; x` is disabled");
    let hint = problem["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("enable it with `switchboard enable "),
        "{hint}"
    );
    let problem = rig.get("/api/v1/activity?limit=a;%20b").await.json();
    assert_eq!(
        problem["detail"],
        "`limit` in the query must be a whole number, not \"a; b\""
    );
    assert!(problem.get("hint").is_none(), "{problem}");
    rig.stop().await;
}

/// These settings stand for a decision of the user, who is not shown them, so a caller cannot set them.
#[tokio::test]
async fn server_added_over_http_cannot_approve_itself() {
    let rig = Rig::with(json!({})).await;
    let mut server = fixture();
    for (key, value) in [
        ("approve", json!("never")),
        ("approvedFile", json!("/x")),
        ("hold", json!(false)),
        ("trust", json!("always")),
    ] {
        server[key] = value;
    }
    let new = json!({ "name": "s", "server": server });
    let answer = rig.post("/api/v1/servers", &new).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let mut entry = fixture();
    entry["trust"] = "ask".into();
    entry["hold"] = true.into();
    assert_eq!(file(&rig)["mcpServers"]["s"], entry);
    rig.stop().await;
}

#[tokio::test]
async fn changes_of_servers_are_written_to_the_file() {
    let rig = Rig::with(json!({})).await;
    let new = json!({ "name": "a b", "server": fixture() });
    let answer = rig.post("/api/v1/servers", &new).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["name"], "a b");
    assert!(
        answer
            .headers
            .contains("location: /api/v1/servers/a%20b\r\n"),
        "{answer:?}"
    );
    // A server added over TCP is not started before the user approves it, and its tools are not shown.
    let mut entry = fixture();
    entry["trust"] = "ask".into();
    entry["hold"] = true.into();
    assert_eq!(file(&rig)["mcpServers"]["a b"], entry);
    let held = rig.get("/api/v1/servers/a%20b").await.json();
    assert_eq!(held["state"], "parked", "{held}");
    assert_eq!(held["reason"], "waiting for approval to start");
    let detail = rig.call("a b:echo", json!({})).await.json().to_string();
    assert!(detail.contains("is held until you approve it"), "{detail}");
    let trust = rig.get("/api/v1/trust").await.json();
    let start = &trust["servers"][0]["start"];
    let program = start["program"].as_str().unwrap();
    assert!(program.ends_with("gateway_fixture mcp"), "{start}");
    let other = json!({ "start": "0".repeat(32) });
    rig.post("/api/v1/trust/a%20b/approve", &other)
        .await
        .problem(409);
    let seen = json!({ "start": start["fingerprint"] });
    let answer = rig.post("/api/v1/trust/a%20b/approve", &seen).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(file(&rig)["mcpServers"]["a b"]["hold"], false);
    rig.until("/api/v1/trust", |trust| {
        trust["servers"][0]["held"][0]["why"] == "new"
    })
    .await;
    let detail = rig.call("a b:echo", json!({})).await.problem(409);
    assert!(detail.contains("`switchboard trust show 'a b"), "{detail}");
    let answer = rig.post("/api/v1/trust/a%20b/approve", &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.until_known("a%20b").await;

    let detail = rig.post("/api/v1/servers", &new).await.problem(409);
    assert!(detail.contains("server `a b` already exists"), "{detail}");

    for _ in 0..2 {
        let answer = rig.ask("POST", "/api/v1/servers/a%20b/disable", None).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["enabled"], false);
    }
    assert_eq!(file(&rig)["mcpServers"]["a b"]["enabled"], false);
    rig.until("/api/v1/servers/a%20b", |server| {
        server["state"] == "disabled"
    })
    .await;
    let answer = rig.ask("POST", "/api/v1/servers/a%20b/restart", None).await;
    let detail = answer.problem(409);
    assert!(detail.contains("`switchboard enable 'a b'`"), "{detail}");

    let answer = rig.ask("POST", "/api/v1/servers/a%20b/enable", None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["enabled"], true);
    assert_eq!(rig.call("a b:echo", json!({})).await.status, 200);

    let answer = rig.ask("DELETE", "/api/v1/servers/a%20b", None).await;
    assert_eq!((answer.status, &*answer.body), (204, ""));
    assert_eq!(
        rig.get("/api/v1/servers").await.json(),
        json!({ "servers": [] })
    );
    assert_eq!(file(&rig)["mcpServers"], json!({}));
    rig.ask("DELETE", "/api/v1/servers/a%20b", None)
        .await
        .problem(404);
    rig.stop().await;
}

#[tokio::test]
async fn invalid_entry_is_not_added() {
    let rig = Rig::with(json!({})).await;
    let before = std::fs::read_to_string(rig.config_file()).unwrap();
    for (new, said) in [
        (
            json!({ "name": "a", "server": { "comand": "x" } }),
            "did you mean \"command\"?",
        ),
        (json!({ "name": "a", "server": 1 }), "object"),
        (json!({ "name": "", "server": fixture() }), "name is empty"),
        (json!({ "name": "a/b", "server": fixture() }), "/"),
    ] {
        let detail = rig.post("/api/v1/servers", &new).await.problem(422);
        assert!(detail.contains(said), "{detail}");
    }
    assert_eq!(std::fs::read_to_string(rig.config_file()).unwrap(), before);
    rig.stop().await;
}

#[tokio::test]
async fn concurrent_changes_do_not_undo_each_other() {
    let rig = Rig::with(json!({})).await;
    let off = json!({ "command": "x", "enabled": false });
    let add = |name: &str| {
        let new = json!({ "name": name, "server": off });
        async { rig.post("/api/v1/servers", &{ new }).await.status }
    };
    let statuses = tokio::join!(add("a"), add("b"), add("c"), add("d"), add("e"), add("f"));
    assert_eq!(statuses, (201, 201, 201, 201, 201, 201));
    assert_eq!(file(&rig)["mcpServers"].as_object().unwrap().len(), 6);
    let list = rig.get("/api/v1/servers").await.json();
    assert_eq!(list["servers"].as_array().unwrap().len(), 6);
    rig.stop().await;
}

#[tokio::test]
async fn broken_file_is_not_changed() {
    let rig = Rig::with(json!({ "a": { "command": "x", "enabled": false } })).await;
    std::fs::write(rig.config_file(), "{\"mcpServers\": }").unwrap();
    let new = json!({ "name": "b", "server": fixture() });
    let answer = rig.post("/api/v1/servers", &new).await;
    assert!(answer.problem(409).contains("has errors"));
    assert_eq!(answer.json()["problems"][0]["line"], 1);
    // It is JSON, but not a configuration.
    std::fs::write(rig.config_file(), "{\"mcpServers\": {}, \"lisen\": \"x\"}").unwrap();
    let answer = rig.post("/api/v1/servers", &new).await;
    assert!(answer.problem(409).contains("did you mean \"listen\"?"));
    assert_eq!(answer.json()["problems"][0]["column"], 20);
    assert_eq!(
        std::fs::read_to_string(rig.config_file()).unwrap(),
        "{\"mcpServers\": {}, \"lisen\": \"x\"}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn restart_clears_failures_and_starts_the_server() {
    let rig = Rig::with(json!({ "a": fixture(), "broken": fixture_as("broken") })).await;
    rig.until_known("a").await;
    let since = rig.get("/api/v1/servers/a").await.json()["since"].clone();
    let answer = rig.ask("POST", "/api/v1/servers/a/restart", None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["name"], "a");
    let server = rig
        .until("/api/v1/servers/a", |server| {
            server["state"] == "ready" && server["since"] != since
        })
        .await;
    assert_eq!(server["tools"], 5);

    rig.until("/api/v1/servers/broken", |server| {
        server["reason"].is_string()
    })
    .await;
    let answer = rig
        .ask("POST", "/api/v1/servers/broken/restart", None)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.stop().await;
}

fn file(rig: &Rig) -> Value {
    serde_json::from_str(&std::fs::read_to_string(rig.config_file()).unwrap()).unwrap()
}
