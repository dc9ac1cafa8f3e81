//! Ways around a person's decision that were found once.

use serde_json::{Value, json};

use super::{asks_deletions, gate::crashed, mute, staged, staged_modern};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, refusal_of, server},
};

/// Sends a call of `delete_file` as it is written.
async fn send(client: &mut Pipe, id: u64, params: &str) -> Value {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
    client.send_text(&line).await;
    client.finish(&json!(id)).await.json
}

#[tokio::test]
async fn names_in_another_case_are_the_same_name() {
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
async fn a_condition_sees_a_name_in_another_case() {
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
async fn exactly_these_arguments_are_those_that_the_person_made_of_them() {
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
    // The edited ones pass, the others do not.
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

/// A remembered no does not wait for the store.
#[tokio::test]
async fn what_was_denied_for_good_is_denied_from_the_first_call_on() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let waiting = rig.one_waiting().await;
    let never = json!({ "remember": { "scope": "always" } });
    rig.decided(&waiting["id"], "reject", never).await;
    client.finish(&call).await;
    crate::mcp_rig::until("the file", || async { rig.home.rules().exists() }).await;
    // No rule is left in the configuration, and the store cannot be read.
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

/// Two clients that call themselves the same are not the same.
#[tokio::test]
async fn a_kept_answer_is_for_a_client_that_says_exactly_the_same_of_itself() {
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

/// A server that asks for an address to be opened first is called again with what the person made of the
/// arguments.
#[tokio::test]
async fn what_was_edited_stays_edited_when_a_call_begins_anew() {
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

/// The result of one request, whatever it is.
async fn once(client: &mut Pipe, params: &Value) -> Value {
    let id = client.send("tools/call", params.clone()).await;
    client.finish(&id).await.json["result"].clone()
}

/// Where the client cannot have an address opened, a person is asked to.
#[tokio::test]
async fn an_address_that_is_wanted_first_is_opened_by_a_person() {
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

/// One request of 2026-07-28, on a pipe of its own.
async fn ask(rig: &Rig, params: Value) -> Value {
    let mut client = Pipe::open_as(rig, server("s"), MODERN).await;
    let line = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    client.send_text(&line.to_string()).await;
    client.finish(&json!(9)).await.json
}
