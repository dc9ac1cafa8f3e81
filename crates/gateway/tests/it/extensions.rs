//! Unknown methods and notifications, between a server and the clients at its own address.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, REVISIONS, Web, direct, search, server},
    stage_rig::{Stage, tool},
};

const SKILLS: &str = "io.modelcontextprotocol/skills";
const CHANGED: &str = "notifications/skills/changed";

fn declared() -> Value {
    json!({ "extensions": { SKILLS: { "x": 1 } } })
}

/// A server of an older revision with these capabilities besides tools and resources.
fn stage_with(more: &Value) -> Stage {
    let capabilities = with_lists(more);
    let stage = Stage::new(&[tool("paint", "Paints.")]);
    stage.set_answer(
        "initialize",
        &format!(
            r#""result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{INFO}}}"#
        ),
    );
    stage.set_answer("skills/list", LISTED);
    stage
}

/// The same for 2026-07-28.
fn modern_stage_with(more: &Value) -> Stage {
    let capabilities = with_lists(more);
    let stage = Stage::new(&[tool("paint", "Paints.")]);
    stage.set_answer(
        "server/discover",
        &format!(
            r#""result":{{"supportedVersions":["2026-07-28"],"capabilities":{capabilities},"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{INFO}}}}}"#
        ),
    );
    stage.set_answer("skills/list", LISTED);
    stage
}

const INFO: &str = r#"{"name":"stage","version":"1"}"#;
const LISTED: &str = r#""result":{"skills":[{"name":"a"}],"n":1.50}"#;

fn with_lists(more: &Value) -> Value {
    let mut capabilities = json!({ "tools": { "listChanged": true }, "resources": {} });
    for (name, value) in more.as_object().unwrap() {
        capabilities[name] = value.clone();
    }
    capabilities
}

fn asked_for(stage: &Stage, method: &str) -> Vec<String> {
    let asked = stage.asked().into_iter();
    let found = asked.filter(|line| line.split(' ').next() == Some(method));
    found.collect()
}

#[tokio::test]
async fn extension_request_is_forwarded_in_every_revision() {
    let (older, newer) = (stage_with(&declared()), modern_stage_with(&declared()));
    let rig = Rig::with(json!({ "o": older.entry(), "n": newer.modern_entry() })).await;
    for (name, stage) in [("o", &older), ("n", &newer)] {
        rig.until_tools(name, 1).await;
        for revision in REVISIONS {
            let mut pipe = Pipe::open_as(&rig, server(name), revision).await;
            let params = json!({ "cursor": revision });
            let answer = pipe.ask("skills/list", params).await.text;
            assert!(
                answer.contains(r#""skills":[{"name":"a"}],"n":1.50"#),
                "{answer}"
            );
            let asked = asked_for(stage, "skills/list").pop().unwrap();
            assert!(
                asked.contains(&format!(r#""cursor":"{revision}""#)),
                "{asked}"
            );
        }
        let web = Web::open(&rig, &format!("/mcp/s/{name}"), MODERN).await;
        let result = web.result("skills/list", json!({})).await;
        assert_eq!(result["skills"][0]["name"], "a", "{result}");
    }
    let activity = rig.get("/api/v1/activity").await.body;
    assert!(activity.contains("skills/list"), "{activity}");
    rig.stop().await;
}

#[tokio::test]
async fn error_of_an_extension_is_forwarded() {
    let stage = stage_with(&json!({ "experimental": { "x": {} } }));
    let error = r#""error":{"code":-32077,"message":"not today","data":{"a":1.0}}"#;
    stage.set_answer("x/do", error);
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    let answer = pipe.ask("x/do", json!({})).await.text;
    assert!(answer.contains(error), "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn silent_extension_times_out_like_a_call() {
    let stage = stage_with(&declared());
    stage.set_answer("x/wait", "");
    let entry = stage.entry_with(&json!({ "requestTimeoutMs": 200 }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    let answer = pipe.ask("x/wait", json!({})).await.json;
    assert_eq!(answer["error"]["code"], -32005, "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn unknown_methods_are_refused_at_other_addresses() {
    let (plain, with) = (stage_with(&json!({})), stage_with(&declared()));
    let rig = Rig::with(json!({ "p": plain.entry(), "w": with.entry() })).await;
    for name in ["p", "w"] {
        rig.until_tools(name, 1).await;
    }
    for view in [server("p"), direct(), search()] {
        for revision in [LEGACY, MODERN] {
            let mut pipe = Pipe::open_as(&rig, view.clone(), revision).await;
            let said = &pipe.greeting["capabilities"];
            assert_eq!(said.get("extensions"), None, "{said}");
            let answer = pipe.ask("skills/list", json!({})).await.json;
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
    }
    assert_eq!(asked_for(&plain, "skills/list").len(), 0);
    assert_eq!(asked_for(&with, "skills/list").len(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn tool_filter_applies_to_extensions_too() {
    let stage = stage_with(&declared());
    let mut entry = stage.entry_with(&json!({ "tools": { "allow": ["paint"] } }));
    let rig = Rig::with(json!({ "s": entry.clone() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    let answer = pipe.ask("skills/list", json!({})).await.json;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    entry["tools"] = json!({ "allow": ["paint", "skills/*", "Skills/*"], "deny": ["skills/drop"] });
    rig.reconfigure(&json!({ "mcpServers": { "s": entry } }))
        .await;
    for (params, code) in [
        (json!({ "name": ["paint"] }), json!(-32602)),
        (json!({ "uri": 7 }), json!(-32602)),
        (json!({}), Value::Null),
    ] {
        let answer = pipe.ask("skills/list", params).await.json;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    assert_eq!(asked_for(&stage, "skills/list").len(), 1);
    pipe.ask("Skills/Drop", json!({})).await;
    assert_eq!(asked_for(&stage, "Skills/Drop").len(), 0);
    pipe.ask("Skills/Keep", json!({})).await;
    assert_eq!(asked_for(&stage, "Skills/Keep").len(), 1);
    rig.stop().await;
}

/// Methods of the protocol have their own rules, in every spelling that a server may accept.
#[tokio::test]
async fn known_methods_are_never_forwarded_raw() {
    let stage = stage_with(&declared());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    for method in [
        "Tools/Call",
        "tools//call",
        "tools/call ",
        "tools/run",
        "Resources/Read",
        "server/discover",
    ] {
        let params = json!({ "name": "paint", "uri": "file:///a" });
        let answer = pipe.ask(method, params).await.json;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    pipe.tell("Notifications/Cancelled", json!({ "requestId": 1 }))
        .await;
    pipe.result("skills/list", json!({})).await;
    let asked = stage.asked().join("\n").to_lowercase();
    assert!(
        !asked.contains("paint") && !asked.contains("cancelled"),
        "{asked}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn rules_apply_to_targets_of_extensions() {
    let stage = stage_with(&declared());
    for method in ["skills/get", "skills/put", "x/read", "x/run"] {
        stage.set_answer(method, r#""result":{}"#);
    }
    let rules = json!([
        "deny s:skills/get",
        "ask s:skills/put",
        "deny resources s:file:///secret*",
        "deny s:paint",
    ]);
    let rig = Rig::configured(json!({
        "mcpServers": { "s": stage.entry() },
        "approvals": { "rules": rules },
    }))
    .await;
    rig.until_tools("s", 1).await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, server("s"), revision).await;
        for (method, params) in [
            ("skills/get", json!({})),
            ("Skills/GET", json!({})),
            ("skills//get", json!({})),
            ("skills.get", json!({})),
            ("$/skills/get", json!({})),
            ("skills/put", json!({})),
            ("Skills/PUT", json!({})),
            ("x/read", json!({ "uri": "file:///secret/a" })),
            (
                "x/read",
                json!({ "uri": "file:///a", "URI": "file:///secret/a" }),
            ),
            ("x/run", json!({ "name": "paint", "arguments": {} })),
            ("x/run", json!({ "name": "Paint", "arguments": {} })),
            (
                "x/run",
                json!({ "name": " paint\u{200b}", "arguments": {} }),
            ),
        ] {
            let answer = pipe.ask(method, params).await.json;
            assert!(answer.get("error").is_some(), "{method}: {answer}");
            assert_eq!(asked_for(&stage, method).len(), 0, "{method}");
        }
        pipe.result("skills/list", json!({ "name": "other" })).await;
    }
    let audit = rig.get("/api/v1/audit").await.body;
    assert!(audit.contains("skills/get"), "{audit}");
    rig.stop().await;
}

#[tokio::test]
async fn held_items_are_unreachable_by_extensions() {
    let stage = stage_with(&declared());
    stage.set_answer("x/run", r#""result":{}"#);
    let entry = stage.entry_with(&json!({ "tools": { "deny": ["paint"] } }));
    let unseen = stage_with(&declared());
    let held = unseen.entry_with(&json!({ "trust": "ask" }));
    let rig = Rig::with(json!({ "s": entry, "h": held })).await;
    rig.until("/api/v1/servers/s", |server| server["state"] == "ready")
        .await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    pipe.result("x/run", json!({ "name": "other" })).await;
    let answer = pipe.ask("x/run", json!({ "name": "paint" })).await.json;
    assert!(answer.get("error").is_some(), "{answer}");
    assert_eq!(asked_for(&stage, "x/run").len(), 1);
    rig.until("/api/v1/servers/h", |server| server["state"] == "ready")
        .await;
    let mut pipe = Pipe::open(&rig, server("h")).await;
    let answer = pipe.ask("skills/list", json!({})).await.json;
    assert!(answer.get("error").is_some(), "{answer}");
    assert_eq!(asked_for(&unseen, "skills/list").len(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn server_notifications_reach_their_own_clients_only() {
    let (one, other) = (stage_with(&declared()), stage_with(&declared()));
    let rig = Rig::with(json!({ "s": one.entry(), "t": other.entry() })).await;
    for name in ["s", "t"] {
        rig.until_tools(name, 1).await;
    }
    let mut older = Pipe::open(&rig, server("s")).await;
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    let wanted = json!({ "notifications": { "skillsChanged": true } });
    let stream = newer.send("subscriptions/listen", wanted).await;
    let opened = "notifications/subscriptions/acknowledged";
    newer.until_told(opened).await;
    let mut deaf = [
        Pipe::open(&rig, server("t")).await,
        Pipe::open(&rig, direct()).await,
        Pipe::open(&rig, search()).await,
    ];
    one.tell_with(CHANGED, json!({ "n": 1.0 })).await;
    assert_eq!(older.until_told(CHANGED).await, json!({ "n": 1.0 }));
    let told = newer.until_told(CHANGED).await;
    assert_eq!(told["n"], 1.0, "{told}");
    let subscription = &told["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*subscription, stream, "{told}");
    for pipe in &mut deaf {
        pipe.result("ping", json!({})).await;
        assert_eq!(pipe.told(), Vec::<&Value>::new());
    }
    rig.stop().await;
}

#[tokio::test]
async fn client_notifications_reach_their_server_in_order() {
    let (older, newer) = (stage_with(&declared()), modern_stage_with(&declared()));
    let rig = Rig::with(json!({ "o": older.entry(), "n": newer.modern_entry() })).await;
    for (name, stage) in [("o", &older), ("n", &newer)] {
        rig.until_tools(name, 1).await;
        for revision in [LEGACY, MODERN] {
            let mut pipe = Pipe::open_as(&rig, server(name), revision).await;
            for n in 0..20 {
                pipe.tell(CHANGED, json!({ "n": n, "of": revision })).await;
            }
            stage
                .until_asked(&format!(r#""n":19,"of":"{revision}""#))
                .await;
            let asked = asked_for(stage, CHANGED);
            let asked = asked.iter().filter(|line| line.contains(revision));
            let numbers = asked.map(|line| {
                let (_, params) = line.split_once(' ').unwrap();
                serde_json::from_str::<Value>(params).unwrap()["n"].clone()
            });
            let wanted: Vec<Value> = (0..20).map(Value::from).collect();
            assert_eq!(numbers.collect::<Vec<_>>(), wanted);
        }
        let mut merged = Pipe::open(&rig, direct()).await;
        merged.tell("notifications/merged", json!({})).await;
        merged.result("ping", json!({})).await;
        assert_eq!(asked_for(stage, "notifications/merged").len(), 0);
    }
    rig.stop().await;
}

#[tokio::test]
async fn extension_request_of_a_server_reaches_its_client() {
    let stage = stage_with(&declared());
    stage.set_tools(&[tool("wait", "Waits.")]);
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open_able(&rig, server("s"), LEGACY, declared()).await;
    pipe.send_call("wait", json!({})).await;
    stage.until_asked("tools/call").await;
    stage
        .request_with(71, "x/confirm", json!({ "n": 1.0 }))
        .await;
    let question = pipe.question().await;
    assert_eq!(question["method"], "x/confirm", "{question}");
    assert_eq!(question["params"], json!({ "n": 1.0 }));
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "yes": 2.50 } });
    pipe.send_text(&answer.to_string()).await;
    let told = stage.until_asked("answer").await;
    assert!(
        told.contains(r#""id":71"#) && told.contains("2.5"),
        "{told}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn client_without_extensions_gets_no_extension_requests() {
    let stage = stage_with(&declared());
    stage.set_tools(&[tool("wait", "Waits.")]);
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let able = [
        (server("s"), json!({ "elicitation": {} }), "wait"),
        (direct(), declared(), "s__wait"),
    ];
    for (n, (view, capabilities, tool)) in able.into_iter().enumerate() {
        let mut pipe = Pipe::open_able(&rig, view, LEGACY, capabilities).await;
        let call = pipe.send_call(tool, json!({})).await;
        let calls = || stage.calls() > n;
        crate::mcp_rig::until("the call arrives", async || calls()).await;
        let id = 80 + n as u64;
        stage.request_with(id, "x/confirm", json!({})).await;
        let told = stage.until_asked(&format!(r#""id":{id}"#)).await;
        assert!(told.contains("error"), "{told}");
        let params = json!({ "requestId": call });
        pipe.tell("notifications/cancelled", params).await;
        stage.until_asked("notifications/cancelled").await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn extensions_are_advertised_to_both_sides() {
    let (older, newer) = (stage_with(&declared()), modern_stage_with(&declared()));
    let rig = Rig::with(json!({ "o": older.entry(), "n": newer.modern_entry() })).await;
    for (name, stage) in [("o", &older), ("n", &newer)] {
        rig.until_tools(name, 1).await;
        for revision in [LEGACY, MODERN] {
            let mut pipe = Pipe::open_able(&rig, server(name), revision, declared()).await;
            let said = &pipe.greeting["capabilities"]["extensions"];
            assert_eq!(*said, declared()["extensions"], "{name} {revision}");
            pipe.call("paint", json!({})).await;
        }
        let opening = if name == "o" {
            "initialize"
        } else {
            "tools/list"
        };
        let opening = stage.until_asked(opening).await;
        assert!(opening.contains("io.modelcontextprotocol/ui"), "{opening}");
    }
    // With each call, a server of 2026-07-28 gets the extensions of that client, and not of others.
    for call in newer.calls_of("paint") {
        let said = &call["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        assert_eq!(*said, declared()["extensions"], "{call}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn older_call_does_not_remove_extensions() {
    let stage = modern_stage_with(&declared());
    let mut entry = stage.entry_of_both();
    entry["start"] = json!("lazy");
    entry["idleStopSeconds"] = json!(1);
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 1).await;
    rig.until("/api/v1/servers/s", |server| server["state"] == "idle")
        .await;
    let mut older = Pipe::open(&rig, server("s")).await;
    older.call("paint", json!({})).await;
    assert!(!stage.asked_in("older").is_empty());
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    newer.result("skills/list", json!({})).await;
    older.result("skills/list", json!({})).await;
    let server = rig.get("/api/v1/servers/s").await.json();
    assert!(
        server["offers"]["capabilities"]["extensions"].is_object(),
        "{server}"
    );
    rig.stop().await;
}
