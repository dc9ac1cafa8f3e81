//! The built-in memory behind the gateway: in every view, for every revision, and after failures.

use std::fs;

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, REVISIONS, configured, direct, search, server},
};

fn remembering() -> Value {
    json!({ "memory": { "enabled": true }, "approvals": { "notify": "off" } })
}

async fn called(client: &mut Pipe, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let call = client.send("tools/call", params).await;
    client.finish(&call).await.json
}

/// The structured result of a tool.
async fn given(client: &mut Pipe, tool: &str, arguments: Value) -> Value {
    let answer = called(client, tool, arguments).await;
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    result["structuredContent"].clone()
}

#[tokio::test]
async fn agents_share_memory_across_revisions_and_views() {
    let rig = Rig::configured(remembering()).await;
    let mut first = Pipe::open_as(&rig, direct(), LEGACY).await;
    let stored = json!({ "content": "The release is cut on Thursdays", "namespace": "team" });
    given(&mut first, "memory__store_memory", stored).await;
    let wish = json!({ "query": "when is the release cut", "namespace": "team" });
    for revision in REVISIONS {
        let mut alone = Pipe::open_as(&rig, server("memory"), revision).await;
        let params = json!({ "name": "recall", "arguments": wish });
        let call = alone.send("tools/call", params).await;
        let answer = alone.finish(&call).await.json;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("cut on Thursdays"), "{revision} {answer}");
    }
    let mut finds = Pipe::open_as(&rig, search(), MODERN).await;
    assert_eq!(
        finds.retrieve("remember a fact for later").await[0],
        "memory:store_memory"
    );
    let found = finds.call_found("memory:recall", wish).await;
    assert_eq!(found["structuredContent"]["count"], 1, "{found}");
    rig.stop().await;
}

#[tokio::test]
async fn memory_tools_alone_do_not_trigger_the_menu() {
    let rig = Rig::configured(remembering()).await;
    let mut client = Pipe::open_as(&rig, configured(), LEGACY).await;
    // The gateway's own two tools, and five of the memory.
    assert_eq!(client.tools().await.len(), 7);
    let status = rig.get("/api/v1/status").await.json();
    // All that can be called, listed or not.
    assert_eq!(status["tools"], 19);
    let memory = &status["servers"][0];
    assert_eq!(
        (&memory["name"], &memory["kind"]),
        (&json!("memory"), &json!("built-in"))
    );
    assert_eq!(memory["tools"], 17);
    rig.stop().await;
}

/// The tools of the memory that merged views list.
const COMPACT: [&str; 5] = [
    "memory__store_memory",
    "memory__recall",
    "memory__get_memory",
    "memory__update_memory",
    "memory__delete_memory",
];

/// The tools of the memory in the list of all servers.
async fn of_memory(client: &mut Pipe) -> Vec<Value> {
    let list = client.result("tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap().iter();
    let is_own = |tool: &&Value| tool["name"].as_str().unwrap().starts_with("memory__");
    tools.filter(is_own).cloned().collect()
}

#[tokio::test]
async fn merged_views_list_a_compact_set_of_tools() {
    let rig = Rig::configured(remembering()).await;
    for revision in REVISIONS {
        for view in [configured(), direct()] {
            let mut client = Pipe::open_as(&rig, view, revision).await;
            let tools = of_memory(&mut client).await;
            let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
            assert_eq!(names, COMPACT, "{revision}");
            let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
            assert!(bytes < 4 * 1024, "{bytes}");
        }
        let mut alone = Pipe::open_as(&rig, server("memory"), revision).await;
        assert_eq!(alone.tools().await.len(), 17, "{revision}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn unlisted_tools_are_found_and_called() {
    let mut config = remembering();
    let rule = json!({ "action": "deny", "server": "memory", "tool": "export_memory" });
    config["approvals"]["rules"] = json!([rule]);
    let rig = Rig::configured(config).await;
    let mut client = Pipe::open_as(&rig, direct(), LEGACY).await;
    let stored = json!({ "content": "The release is cut on Thursdays", "metadata": { "a": 1 } });
    let stored = given(&mut client, "memory__store_memory", stored).await;
    let listed = given(&mut client, "memory__list_memories", json!({})).await;
    assert_eq!(listed["memories"][0]["id"], stored["id"]);
    let update = json!({ "id": stored["id"], "valid_until": "2020-01-01T00:00:00Z" });
    given(&mut client, "memory__update_memory", update).await;
    let valid = given(&mut client, "memory__get_valid", json!({})).await;
    assert_eq!(valid["total"], 0, "{valid}");
    let denied = called(&mut client, "memory__export_memory", json!({})).await;
    assert!(denied.to_string().contains("rule"), "{denied}");
    let mut finds = Pipe::open_as(&rig, search(), MODERN).await;
    let found = finds
        .retrieve("list memories, the one learned last first")
        .await;
    assert!(
        found.contains(&"memory:list_memories".to_owned()),
        "{found:?}"
    );
    let found = finds.call_found("memory:list_memories", json!({})).await;
    assert_eq!(found["structuredContent"]["total"], 0, "{found}");
    rig.stop().await;
}

#[tokio::test]
async fn setting_lists_all_tools_and_notifies_clients() {
    let rig = Rig::configured(remembering()).await;
    let mut client = Pipe::open_as(&rig, direct(), LEGACY).await;
    assert_eq!(of_memory(&mut client).await.len(), 5);
    let mut config = remembering();
    config["memory"]["tools"] = json!("all");
    rig.reconfigure(&config).await;
    client.until_told("notifications/tools/list_changed").await;
    let tools = of_memory(&mut client).await;
    assert_eq!(tools.len(), 17);
    assert!(tools.iter().all(|tool| tool["outputSchema"].is_object()));
    let shown = rig.get("/api/v1/config").await.json();
    assert_eq!(shown["config"]["memory"]["tools"], "all", "{shown}");
    client.forget();
    rig.reconfigure(&remembering()).await;
    client.until_told("notifications/tools/list_changed").await;
    assert_eq!(of_memory(&mut client).await.len(), 5);
    rig.stop().await;
}

#[tokio::test]
async fn memory_can_be_replaced_or_disabled() {
    let mut config = remembering();
    config["mcpServers"] = json!({ "memory": crate::api_rig::fixture() });
    let rig = Rig::configured(config).await;
    let status = rig.get("/api/v1/status").await.json();
    assert_eq!(status["servers"][0]["kind"], "command");
    rig.reconfigure(&json!({ "memory": { "enabled": false } }))
        .await;
    assert_eq!(rig.get("/api/v1/status").await.json()["servers"], json!([]));
    rig.reconfigure(&remembering()).await;
    let answer = rig
        .call("memory:store_memory", json!({ "content": "back" }))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn deleting_all_memories_requires_approval() {
    let rig = Rig::configured(remembering()).await;
    for revision in [LEGACY, MODERN] {
        let mut client = Pipe::open_able(&rig, server("memory"), revision, json!({})).await;
        given(
            &mut client,
            "store_memory",
            json!({ "content": "Something" }),
        )
        .await;
        for (agrees, deleted) in [(false, None), (true, Some(1))] {
            let params = json!({ "name": "reset_all_memory", "arguments": {} });
            let mut asked = params.clone();
            let mut decided = false;
            let answer = loop {
                let call = client.send("tools/call", asked).await;
                if !decided {
                    let waiting = rig.one_waiting().await;
                    assert_eq!(waiting["kind"], "elicitation", "{waiting}");
                    let answer = json!({ "action": "accept", "content": { "forget": agrees } });
                    rig.decided(&waiting["id"], "respond", answer).await;
                    decided = true;
                }
                let answer = client.finish(&call).await.json;
                let state = answer["result"]["requestState"].clone();
                if answer["result"]["resultType"] != "input_required" {
                    break answer;
                }
                asked = params.clone();
                asked["requestState"] = state;
            };
            let result = &answer["result"];
            assert_eq!(result["isError"] == true, !agrees, "{revision} {answer}");
            assert_eq!(
                result["structuredContent"]["deleted"].as_u64(),
                deleted,
                "{answer}"
            );
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn damaged_file_is_reported_and_can_be_repaired() {
    let rig = Rig::configured(remembering()).await;
    let stored = json!({ "content": "What must not be lost", "user_id": "ada" });
    assert_eq!(rig.call("memory:store_memory", stored).await.status, 200);
    let rig = rig
        .restarted(|home| {
            let mut bytes = fs::read(home.database()).unwrap();
            bytes[..16].copy_from_slice(b"no such database");
            fs::write(home.database(), bytes).unwrap();
        })
        .await;
    let mut old = Pipe::open_as(&rig, server("memory"), LEGACY).await;
    assert_eq!(old.tools().await.len(), 17);
    let answer = called(&mut old, "recall", json!({ "query": "lost" })).await;
    assert_eq!(answer["error"]["code"], -32003, "{answer}");
    assert_eq!(answer["error"]["data"]["permanent"], true, "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("switchboard memory repair"), "{said}");
    let mut new = Pipe::open_as(&rig, server("memory"), MODERN).await;
    let answer = called(&mut new, "store_memory", json!({ "content": "x" })).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["part"], "store");
    let status = given(&mut new, "get_status", json!({})).await;
    assert_eq!(status["status"], "error");
    let action = status["parts"]["store"]["action"].as_str().unwrap();
    assert!(action.contains("memory repair"), "{status}");
    let mended = rig.post("/api/v1/memory/repair", &json!({})).await;
    assert_eq!(mended.status, 200, "{mended:?}");
    assert_eq!(mended.json()["versions"], 1);
    let found = given(
        &mut old,
        "recall",
        json!({ "query": "lost", "user_id": "ada" }),
    )
    .await;
    assert_eq!(found["memories"][0]["content"], "What must not be lost");
    let status = given(&mut new, "get_status", json!({})).await;
    assert_eq!(status["status"], "ready", "{status}");
    rig.stop().await;
}
