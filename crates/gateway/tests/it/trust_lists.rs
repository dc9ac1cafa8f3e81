//! Lists that arrive late, or not at all: no call relies on outdated definitions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{Pipe, direct, refusal_of, search, server, text_of, until},
    stage_rig::{Stage, tool},
};

fn good() -> Vec<Value> {
    vec![
        tool("paint", "Paints a wall."),
        tool("cook", "Cooks a meal."),
    ]
}

fn changed() -> Vec<Value> {
    vec![
        tool("paint", "Paints a house."),
        tool("cook", "Cooks a meal."),
    ]
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

/// A gateway whose calls wait for a server up to `wait`; the server has been listed and is stopped.
async fn rested(stage: &Stage, wait: Duration, then: impl FnOnce()) -> Rig {
    let mut entry = stage.lazy_entry();
    entry["initTimeoutMs"] = json!(4_000);
    let servers = json!({ "s": entry });
    let wait = u64::try_from(wait.as_millis()).unwrap();
    let rig = Rig::configured(json!({ "mcpServers": servers, "waitTimeoutMs": wait })).await;
    rig.until_tools("s", 2).await;
    rig.restarted(|_| then()).await
}

#[tokio::test]
async fn call_waits_for_a_late_list() {
    let stage = Stage::new(&good());
    let rig = rested(&stage, Duration::from_secs(20), || {
        stage.set_tools(&changed());
        stage.hold_list("tools");
    })
    .await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let paint = pipe.send("tools/call", call("s__paint")).await;
    let cook = pipe.send("tools/call", call("s__cook")).await;
    stage.until_asked("tools/list").await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    stage.release_list("tools");
    let said = refusal_of(&pipe.finish(&paint).await.json);
    assert!(said.contains("is held until"), "{said}");
    let cooked = pipe.finish(&cook).await.json;
    assert_eq!(text_of(&cooked["result"]), "cook was called");
    assert!(stage.calls_of("paint").is_empty(), "{:?}", stage.asked());
    rig.stop().await;
}

#[tokio::test]
async fn missing_list_fails_the_call() {
    let stage = Stage::new(&good());
    let rig = rested(&stage, Duration::from_millis(300), || {
        stage.hold_list("tools");
    })
    .await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let answer = pipe.ask("tools/call", call("s__paint")).await.json;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    assert!(
        answer["error"]["data"]["retryAfterMs"].as_u64().is_some(),
        "{answer}"
    );
    stage.release_list("tools");
    rig.stop().await;
    assert_eq!(stage.calls(), 0, "{:?}", stage.asked());
}

#[tokio::test]
async fn failed_list_fails_the_call() {
    let stage = Stage::new(&good());
    let rig = rested(&stage, Duration::from_secs(20), || stage.fail_list("tools")).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let answer = pipe.ask("tools/call", call("s__paint")).await.json;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("its list cannot be read"), "{said}");
    assert!(!said.contains("the list is broken"), "{said}");
    assert_eq!(stage.calls(), 0, "{:?}", stage.asked());
    // The list is requested again, and calls work.
    stage.mend_list("tools");
    until("it is asked again", async || {
        let answer = pipe.ask("tools/call", call("s__paint")).await.json;
        answer.get("error").is_none()
    })
    .await;
    rig.stop().await;
}

#[tokio::test]
async fn other_lists_do_not_delay_a_tool() {
    let stage = Stage::new(&good());
    let rig = rested(&stage, Duration::from_secs(20), || {
        stage.fail_list("prompts");
        stage.fail_list("resources");
    })
    .await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    let called = pipe.call("s__paint", json!({})).await;
    assert_eq!(text_of(&called), "paint was called");
    rig.stop().await;
}

#[tokio::test]
async fn trusted_server_is_called_without_its_list() {
    let stage = Stage::new(&good());
    let entry = stage.entry_with(&json!({ "start": "lazy", "trust": "always" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    rig.until_tools("s", 2).await;
    let rig = rig.restarted(|_| stage.fail_list("tools")).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    for name in ["paint", "unlisted"] {
        let called = pipe.call(name, json!({})).await;
        assert_eq!(text_of(&called), format!("{name} was called"));
    }
    rig.stop().await;
}

#[tokio::test]
async fn call_after_a_change_awaits_new_list() {
    let stage = Stage::new(&good());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    let mut pipe = Pipe::open(&rig, direct()).await;
    pipe.call("s__paint", json!({})).await;
    let lists = || {
        stage
            .asked()
            .iter()
            .filter(|line| line.starts_with("tools/list"))
            .count()
    };
    let before = lists();
    stage.hold_list("tools");
    stage.change_tools(&changed()).await;
    until("the list is asked for", async || lists() > before).await;
    let paint = pipe.send("tools/call", call("s__paint")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    stage.release_list("tools");
    let said = refusal_of(&pipe.finish(&paint).await.json);
    assert!(said.contains("is held until"), "{said}");
    assert_eq!(stage.calls_of("paint").len(), 1, "{:?}", stage.asked());
    rig.stop().await;
}

#[tokio::test]
async fn unlisted_tools_are_not_called() {
    let stage = Stage::new(&good());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    let said = pipe.refusal("backdoor", json!({})).await;
    assert!(said.contains("offers no tool `backdoor`"), "{said}");
    let answer = pipe
        .ask("prompts/get", json!({ "name": "secret" }))
        .await
        .json;
    let said = refusal_of(&answer);
    assert!(said.contains("offers no prompt `secret`"), "{said}");
    assert_eq!(stage.calls(), 0, "{:?}", stage.asked());
    rig.stop().await;
}

/// A gateway whose server, listed and stopped, offers prompts and resources, too.
async fn offering(stage: &Stage, wait: Duration, then: impl FnOnce()) -> Rig {
    stage.set_prompts(&json!([{ "name": "greet" }]));
    stage.set_resources(&json!([{ "uri": "file:///a", "name": "a" }]));
    stage.set_templates(&json!([{ "uriTemplate": "row:///{id}", "name": "row" }]));
    rested(stage, wait, then).await
}

#[tokio::test]
async fn hanging_list_delays_no_other() {
    let stage = Stage::new(&good());
    let rig = offering(&stage, Duration::from_secs(3), || stage.hold_list("tools")).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    pipe.result("resources/read", json!({ "uri": "file:///a" }))
        .await;
    pipe.result("prompts/get", json!({ "name": "greet" })).await;
    // Also for lists that change meanwhile.
    stage.set_prompts(&json!([{ "name": "part" }]));
    stage.tell("notifications/prompts/list_changed").await;
    let part = json!({ "name": "part" });
    until("the prompts are asked for again", async || {
        let answer = pipe.ask("prompts/get", part.clone()).await.json;
        answer.get("error").is_none()
    })
    .await;
    stage.release_list("tools");
    rig.stop().await;
}

#[tokio::test]
async fn broken_templates_do_not_delay_listed_resources() {
    let stage = Stage::new(&good());
    let rig = offering(&stage, Duration::from_secs(20), || {
        stage.fail_list("resourceTemplates");
    })
    .await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    pipe.result("resources/read", json!({ "uri": "file:///a" }))
        .await;
    // Any other URI may match a template that is held.
    for uri in ["row:///1", "file:///b"] {
        let params = json!({ "uri": uri });
        let answer = pipe.ask("resources/read", params).await.json;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn failed_list_is_reported_once() {
    let stage = Stage::new(&good());
    stage.set_prompts(&json!([{ "name": "greet" }]));
    stage.fail_list("tools");
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    let path = "/api/v1/servers/s";
    let is_known = |server: &Value| server["prompts"] == 1 && server["failedLists"].is_array();
    let status = rig.until(path, is_known).await;
    let failed = json!([{
        "list": "tools/list",
        "reason": "the server responded with error -32603; its last message: the list is broken",
    }]);
    assert_eq!(status["failedLists"], failed);
    let part = |status: &Value| {
        let parts = status["parts"].as_array().unwrap().iter();
        let mut notes = parts.filter(|part| part["name"] == "server:s");
        notes.next().unwrap()["note"].to_string()
    };
    let status = rig.get("/api/v1/status").await.json();
    assert!(part(&status).contains("tools/list failed"), "{status}");
    // The server's own message is for people only.
    let mut pipe = Pipe::open(&rig, search()).await;
    let told = pipe.call("get_status", json!({})).await.to_string();
    assert!(told.contains("tools/list"), "{told}");
    assert!(!told.contains("the list is broken"), "{told}");
    // It is unknown if there is such a tool.
    let mut pipe = Pipe::open(&rig, direct()).await;
    let call = json!({ "name": "s__paint", "arguments": {} });
    let answer = pipe.ask("tools/call", call).await.json;
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    let call = json!({ "name": "s:paint" });
    let detail = rig.post("/api/v1/tools/call", &call).await.problem(503);
    assert!(detail.contains("its list cannot be read"), "{detail}");
    // The list is requested again, and the failure is not reported again.
    let times = || {
        let asked = stage.asked();
        asked
            .iter()
            .filter(|line| line.starts_with("tools/list"))
            .count()
    };
    until("it is asked again", async || times() > 3).await;
    let log = rig.get("/api/v1/servers/s/logs").await.json().to_string();
    assert_eq!(log.matches("tools/list failed").count(), 1, "{log}");
    stage.mend_list("tools");
    let is_well = |server: &Value| server["tools"] == 2 && server.get("failedLists").is_none();
    rig.until(path, is_well).await;
    rig.stop().await;
}

/// A list that could not be fetched is not an empty list.
#[tokio::test]
async fn failed_list_is_requested_in_next_run() {
    let stage = Stage::new(&good());
    stage.fail_list("tools");
    let entry = stage.entry_with(&json!({ "start": "lazy" }));
    let rig = Rig::with(json!({ "s": entry })).await;
    let is_known = |server: &Value| server["failedLists"].is_array();
    rig.until("/api/v1/servers/s", is_known).await;
    let rig = rig.restarted(|_| stage.mend_list("tools")).await;
    rig.until_tools("s", 2).await;
    rig.stop().await;
}

#[tokio::test]
async fn invalid_definitions_are_still_offered() {
    let stage = Stage::new(&[]);
    let bad = r#"{"name":"bad","description":42,"annotations":"nope"}"#;
    stage.set_tools_text(&format!("[{bad}]"));
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut own = Pipe::open(&rig, server("s")).await;
    let listed = own.ask("tools/list", json!({})).await.text;
    assert!(listed.contains(bad), "{listed}");
    own.call("bad", json!({})).await;
    rig.stop().await;
}
