//! The records name the door that a client came in by.

use serde_json::{Value, json};

use crate::{
    api_rig::{Answer, Rig, TOKEN},
    console::session,
    mcp_rig::{LEGACY, Pipe, Web, direct},
    stage_rig::{Stage, tool},
};

const CALL: &str = "/api/v1/tools/call";

/// A gateway with a server whose tools are free, denied, and put to an approver.
async fn gateway() -> (Stage, Rig) {
    let names = ["read", "wipe", "send"];
    let stage = Stage::new(&names.map(|name| tool(name, "Works.")));
    let rules = json!(["deny s:wipe", "ask s:send"]);
    let rig = Rig::configured(json!({
        "mcpServers": { "s": stage.entry_with(&json!({ "trust": "always" })) },
        "approvals": { "rules": rules, "notify": "off" },
    }))
    .await;
    rig.until_tools("s", 3).await;
    (stage, rig)
}

/// Sends a request over REST with the session of a console, or with the gateway's own token.
async fn ask(rig: &Rig, session: Option<&str>, path: &str, body: &Value) -> Answer {
    let host = &rig.console;
    let headers = match session {
        Some(session) => {
            format!("Host: {host}\r\nOrigin: http://{host}\r\nAuthorization: Bearer {session}\r\n")
        }
        None => format!("Authorization: Bearer {TOKEN}\r\n"),
    };
    let headers = format!("{headers}Content-Type: application/json\r\n");
    rig.ask_with("POST", path, &headers, &body.to_string())
        .await
}

/// The members of some objects as texts.
fn texts<'a>(of: impl Iterator<Item = &'a Value>, members: [&str; 2]) -> Vec<[String; 2]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of.map(|one| members.map(|name| text(&one[name]))).collect()
}

/// Waits for entries of the audit log with this verb. Returns principal and door of each.
async fn audited(rig: &Rig, what: &str, count: usize) -> Vec<[String; 2]> {
    let actors = |log: &Value| {
        let entries = log["entries"].as_array().unwrap().iter();
        let entries = entries.filter(|entry| entry["what"] == what);
        texts(entries.map(|entry| &entry["body"]["actor"]), WHO)
    };
    let path = "/api/v1/audit?limit=1000";
    let log = rig.until(path, |log| actors(log).len() == count).await;
    actors(&log)
}

const WHO: [&str; 2] = ["principal", "door"];

#[tokio::test]
async fn calls_are_recorded_with_their_door() {
    let (_stage, rig) = gateway().await;
    let token = json!({ "name": "ci" });
    let token = ask(&rig, None, "/api/v1/tokens", &token).await.json();
    let token = token["token"].as_str().unwrap();
    let session = session(&rig).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let web = Web::with_token(&rig, "/mcp/direct", LEGACY, token).await;
    for name in ["read", "wipe"] {
        let params = json!({ "name": format!("s__{name}"), "arguments": {} });
        pipe.ask("tools/call", params.clone()).await;
        web.ask("tools/call", params).await;
        let body = json!({ "name": format!("s:{name}") });
        for session in [Some(&*session), None] {
            ask(&rig, session, CALL, &body).await;
        }
    }
    let doors = [
        ["owner", "pipe"],
        ["token ci", "tcp"],
        ["owner", "console"],
        ["owner", "tcp"],
    ];
    for name in ["read", "wipe"] {
        let calls = |all: &Value| {
            let calls = all["activity"].as_array().unwrap().iter().rev();
            texts(calls.filter(|call| call["name"] == name), WHO)
        };
        let path = "/api/v1/activity?limit=100";
        let all = rig.until(path, |all| calls(all).len() == doors.len()).await;
        assert_eq!(calls(&all), doors, "{name}");
    }
    assert_eq!(audited(&rig, "denied", doors.len()).await, doors);
    rig.stop().await;
}

#[tokio::test]
async fn actions_are_recorded_with_their_door() {
    let (_stage, rig) = gateway().await;
    let session = session(&rig).await;
    for (session, name) in [(Some(&*session), "a"), (None, "b")] {
        let answer = ask(&rig, session, "/api/v1/tokens", &json!({ "name": name })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let mut pipe = Pipe::open(&rig, direct()).await;
        let id = pipe.send_call("s__send", json!({})).await;
        let asked = rig.one_waiting().await;
        let asked = asked["id"].as_str().unwrap();
        let path = format!("/api/v1/approvals/{asked}/approve");
        let answer = ask(&rig, session, &path, &json!({})).await.json();
        let door = session.map_or("tcp", |_| "console");
        assert_eq!(answer["decision"]["door"], door, "{answer}");
        let by = answer["decision"]["by"].as_str().unwrap();
        assert!(by.starts_with(&format!("owner via {door}")), "{answer}");
        pipe.finish(&id).await;
        let answer = rig
            .ask_socket("DELETE", &format!("/api/v1/tokens/{name}"))
            .await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    let asked = audited(&rig, "asked", 2).await;
    assert_eq!(asked, [["owner", "pipe"], ["owner", "pipe"]]);
    let created = audited(&rig, "token-created", 2).await;
    assert_eq!(created, [["owner", "console"], ["owner", "tcp"]]);
    let revoked = audited(&rig, "token-revoked", 2).await;
    assert_eq!(revoked, [["owner", "socket"], ["owner", "socket"]]);
    rig.stop().await;
}
