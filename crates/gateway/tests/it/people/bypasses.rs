//! Ways around an approver's decision that once worked.

use serde_json::{Value, json};

use super::{asks_deletions, gate::crashed, mute, staged, staged_modern};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, refusal_of, server},
};

/// Sends a call of `delete_file` verbatim.
async fn send(client: &mut Pipe, id: u64, params: &str) -> Value {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
    client.send_text(&line).await;
    client.finish(&json!(id)).await.json
}

#[tokio::test]
async fn names_match_regardless_of_case() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    for (n, params) in [
        r#"{"name":"delete_file","arguments":{"n":1},"Arguments":{"n":2}}"#,
        r#"{"name":"read_file","Name":"delete_file","arguments":{}}"#,
        r#"{"name":"read_file","argument\u017f":{},"arguments":{}}"#,
        r#"{"name":"DELETE_FILE","arguments":{}}"#,
        r#"{"name":"delete_file","arguments":{"path":"/a","Path":"/"}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let answer = send(&mut client, 700 + n as u64, params).await;
        refusal_of(&answer);
    }
    assert_eq!(stage.calls(), 0, "{:?}", stage.asked());
    rig.stop().await;
}

#[tokio::test]
async fn conditions_match_names_regardless_of_case() {
    let mut config = asks_deletions();
    config["approvals"]["rules"] = json!([
        { "action": "deny", "server": "s", "tool": "read_file", "arguments": { "$.path": "/etc/*" } },
    ]);
    let (stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    let passes = send(
        &mut client,
        1_000,
        r#"{"name":"read_file","arguments":{"path":"/tmp/a"}}"#,
    );
    assert!(passes.await.get("result").is_some());
    for (n, path) in ["Path", "PATH"].into_iter().enumerate() {
        let params = format!(r#"{{"name":"read_file","arguments":{{"{path}":"/etc/x"}}}}"#);
        let answer = send(&mut client, 1_001 + n as u64, &params).await;
        refusal_of(&answer);
    }
    assert_eq!(stage.calls(), 1, "{:?}", stage.asked());
    rig.stop().await;
}

#[tokio::test]
async fn remembered_arguments_are_the_edited_ones() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client
        .send_call("delete_file", json!({ "path": "/" }))
        .await;
    let waiting = rig.one_waiting().await;
    let edited = json!({
        "edits": { "arguments": { "path": "/tmp/x" } },
        "remember": { "scope": "always", "arguments": "exact" },
    });
    rig.decided(&waiting["id"], "approve", edited).await;
    client.finish(&call).await;
    // The edited arguments pass, the original ones do not.
    let call = client
        .send_call("delete_file", json!({ "path": "/tmp/x" }))
        .await;
    client.finish(&call).await;
    client
        .send_call("delete_file", json!({ "path": "/" }))
        .await;
    rig.one_waiting().await;
    let called: Vec<_> = stage.calls_of("delete_file");
    assert!(
        called
            .iter()
            .all(|call| call["arguments"]["path"] == "/tmp/x"),
        "{called:?}"
    );
    assert_eq!(called.len(), 2);
    rig.stop().await;
}

/// A remembered denial does not wait for the store.
#[tokio::test]
async fn permanent_denial_holds_from_the_first_call() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let waiting = rig.one_waiting().await;
    let never = json!({ "remember": { "scope": "always" } });
    rig.decided(&waiting["id"], "reject", never).await;
    client.finish(&call).await;
    crate::mcp_rig::until("the file", || async { rig.home.rules().exists() }).await;
    // No rule remains in the configuration, and the store cannot be read.
    let rig = rig
        .restarted(|home| {
            let text = std::fs::read_to_string(home.config_file()).unwrap();
            let mut config: Value = serde_json::from_str(&text).unwrap();
            config["approvals"]["rules"] = json!([]);
            config["waitTimeoutMs"] = json!(200);
            std::fs::write(home.config_file(), config.to_string()).unwrap();
            std::fs::remove_file(home.database()).unwrap();
            std::fs::create_dir(home.database()).unwrap();
        })
        .await;
    rig.until_tools("s", super::tools().len()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    refusal_of(&client.finish(&call).await.json);
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// Two clients of the same name are not the same client.
#[tokio::test]
async fn kept_answer_requires_identical_client_info() {
    let (stage, rig) = staged_modern(asks_deletions()).await;
    let call = |version: &str| {
        let about = json!({ "name": "it", "version": version });
        json!({
            "name": "delete_file", "arguments": { "n": 1 },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": about,
            },
        })
    };
    let first = ask(&rig, call("1")).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let waiting = rig.one_waiting().await;
    let rig = crashed(rig).await;
    rig.until_status(&waiting["id"], "orphaned").await;
    rig.decided(&waiting["id"], "approve", json!({})).await;
    let other = ask(&rig, call("2")).await;
    assert_eq!(other["result"]["resultType"], "input_required", "{other}");
    assert_eq!(stage.calls_of("delete_file").len(), 0);
    let same = ask(&rig, call("1")).await;
    assert!(same["result"].get("content").is_some(), "{same}");
    rig.stop().await;
}

/// If a server requires an address to be opened first, it is called again with the edited arguments.
#[tokio::test]
async fn edited_arguments_survive_a_retried_call() {
    let mut config = asks_deletions();
    config["approvals"]["rules"] = json!(["ask s:open"]);
    let (stage, rig) = staged(config).await;
    let url = json!({ "elicitation": { "url": {} } });
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, url).await;
    let mut params = json!({ "name": "open", "arguments": { "amount": 1_000_000 } });
    let first = once(&mut client, &params).await;
    let waiting = rig.one_waiting().await;
    let less = json!({ "edits": { "arguments": { "amount": 1 } } });
    rig.decided(&waiting["id"], "approve", less).await;
    params["requestState"] = first["requestState"].clone();
    let asked = once(&mut client, &params).await;
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ key: { "action": "accept" } });
    let done = once(&mut client, &params).await;
    assert!(done.get("content").is_some(), "{done}");
    let called: Vec<_> = stage.calls_of("open");
    assert_eq!(called.len(), 2, "{called:?}");
    assert!(
        called.iter().all(|call| call["arguments"]["amount"] == 1),
        "{called:?}"
    );
    rig.stop().await;
}

/// The result of one request, of any kind.
async fn once(client: &mut Pipe, params: &Value) -> Value {
    let id = client.send("tools/call", params.clone()).await;
    client.finish(&id).await.json["result"].clone()
}

/// If the client cannot have an address opened, the user is asked to.
#[tokio::test]
async fn required_address_is_opened_by_the_user() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("open", json!({})).await;
    let waiting = rig.one_waiting().await;
    assert_eq!(waiting["kind"], "elicitation");
    let summary = waiting["summary"].as_str().unwrap();
    assert!(summary.contains("example.com"), "{summary}");
    rig.decided(&waiting["id"], "respond", json!({ "action": "accept" }))
        .await;
    let done = client.finish(&call).await.json;
    assert!(done["result"].get("content").is_some(), "{done}");
    assert_eq!(stage.calls_of("open").len(), 2);
    rig.stop().await;
}

/// One request of 2026-07-28, on its own pipe.
async fn ask(rig: &Rig, params: Value) -> Value {
    let mut client = Pipe::open_as(rig, server("s"), MODERN).await;
    let line = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    client.send_text(&line.to_string()).await;
    client.finish(&json!(9)).await.json
}
