//! Search feedback: tools called after a search rank higher in later searches like it.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    heard,
    mcp_rig::{LEGACY, MODERN, Pipe, Web, names_of, search, until},
    stage_rig::{Stage, tool},
};

const QUESTION: &str = "tidy the workshop";

/// Tools that all match a little, and one that matches best.
fn tools() -> Vec<Value> {
    let mut tools = vec![tool("tidy", "Tidy the workshop: tidy workshop.")];
    tools.extend(["sweep", "mop", "dust"].map(|name| tool(name, "Something in the workshop.")));
    tools.push(tool("refuse", "Something else in the workshop."));
    tools
}

async fn staged(config: Value) -> (Stage, Rig) {
    let stage = Stage::new(&tools());
    let mut config = config;
    config["mcpServers"] = json!({ "s": stage.entry() });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", tools().len()).await;
    (stage, rig)
}

fn rank(found: &[String], name: &str) -> usize {
    let at = found.iter().position(|found| found == name);
    at.unwrap_or_else(|| panic!("{name} is not in {found:?}"))
}

/// The number of lessons.
async fn learnt(rig: &Rig) -> u64 {
    let answer = rig.get("/api/v1/search?q=x").await.json();
    answer["learnt"].as_u64().unwrap()
}

async fn until_learnt(rig: &Rig) {
    until("something is learnt", async || learnt(rig).await > 0).await;
}

/// Waits until a tool ranks higher than before: calls are processed one after the other.
async fn until_higher(pipe: &mut Pipe, called: &str, before: &[String]) {
    let pipe = tokio::sync::Mutex::new(pipe);
    let is_higher = async || {
        let now = pipe.lock().await.retrieve(QUESTION).await;
        rank(&now, called) < rank(before, called)
    };
    until("it ranks higher", is_higher).await;
}

/// Searches and calls a tool, several times.
async fn teach(pipe: &mut Pipe, name: &str) {
    for _ in 0..8 {
        pipe.retrieve(QUESTION).await;
        pipe.call_found(name, json!({})).await;
    }
}

/// The tool that ranks lowest.
async fn worst(pipe: &mut Pipe) -> String {
    let found = pipe.retrieve(QUESTION).await;
    let called = found.iter().rev().find(|name| *name != "s:refuse");
    called.unwrap().clone()
}

#[tokio::test]
async fn tool_called_after_a_search_ranks_higher() {
    let (_stage, rig) = staged(json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let before = pipe.retrieve(QUESTION).await;
    assert_eq!(before[0], "s:tidy", "{before:?}");
    let called = worst(&mut pipe).await;
    teach(&mut pipe, &called).await;
    until_learnt(&rig).await;
    until_higher(&mut pipe, &called, &before).await;
    // Other clients benefit too, and so do similar queries.
    let mut other = Pipe::open(&rig, search()).await;
    let now = other.retrieve("tidying the workshop").await;
    assert!(rank(&now, &called) < rank(&before, &called), "{now:?}");
    // And the explanation shows it.
    let path = "/api/v1/search?q=tidy+the+workshop&explain=true";
    let found = rig.get(path).await.json();
    let found = found["tools"].as_array().unwrap().clone();
    let of = |name: &str| {
        let tool = found.iter().find(|tool| tool["name"] == name).unwrap();
        tool["why"]["learnt"].as_f64().unwrap()
    };
    assert!(of(&called) > 0.0, "{found:?}");
    assert!(of("s:tidy").abs() < f64::EPSILON, "{found:?}");
    rig.stop().await;
}

#[tokio::test]
async fn feedback_works_without_a_session() {
    let (_stage, rig) = staged(json!({})).await;
    for revision in [LEGACY, MODERN] {
        let answer = rig.ask("DELETE", "/api/v1/search/learnt", None).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        // Every request uses its own connection, as with a pool.
        let web = Web::open(&rig, "/mcp/search", revision).await;
        let found = web
            .call("retrieve_tools", json!({ "query": QUESTION }))
            .await;
        assert!(names_of(&found).contains(&"s:dust".to_owned()), "{found}");
        web.call("call_tool", json!({ "name": "s:dust" })).await;
        let what = format!("something is learnt of a client of {revision}");
        until(&what, async || learnt(&rig).await > 0).await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn failed_and_unrelated_calls_teach_nothing() {
    let (stage, rig) = staged(json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    stage.set_result("mop", r#"{"content":[],"isError":true}"#);
    for _ in 0..4 {
        pipe.retrieve(QUESTION).await;
        let failed = pipe.call_found("s:mop", json!({})).await;
        assert_eq!(failed["isError"], true);
        pipe.refusal("call_tool", json!({ "name": "s:refuse" }))
            .await;
        pipe.refusal("call_tool", json!({ "name": "s:nothing" }))
            .await;
    }
    // This client has not searched.
    let mut other = Pipe::open(&rig, search()).await;
    other.call_found("s:dust", json!({})).await;
    // This call shows that the others would have been learnt by now.
    pipe.call_found("s:sweep", json!({})).await;
    until_learnt(&rig).await;
    let path = "/api/v1/search?q=tidy+the+workshop&explain=true";
    let found = rig.get(path).await.json();
    for tool in found["tools"].as_array().unwrap() {
        let taught = tool["why"]["learnt"].as_f64().unwrap() > 0.0;
        assert_eq!(taught, tool["name"] == "s:sweep", "{found}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn nothing_is_learnt_if_disabled() {
    let (_stage, rig) = staged(json!({ "search": { "learn": false } })).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let before = pipe.retrieve(QUESTION).await;
    let called = worst(&mut pipe).await;
    teach(&mut pipe, &called).await;
    assert_eq!(pipe.retrieve(QUESTION).await, before);
    assert_eq!(learnt(&rig).await, 0);
    let rig = rig.restarted(|home| assert!(!home.search().join("learnt.json").exists()));
    rig.await.stop().await;
}

#[tokio::test]
async fn disabling_feedback_ignores_earlier_lessons() {
    let (stage, rig) = staged(json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let before = pipe.retrieve(QUESTION).await;
    let called = worst(&mut pipe).await;
    teach(&mut pipe, &called).await;
    until_learnt(&rig).await;
    assert_ne!(pipe.retrieve(QUESTION).await, before);
    let off = json!({ "search": { "learn": false }, "mcpServers": { "s": stage.entry() } });
    rig.reconfigure(&off).await;
    assert_eq!(pipe.retrieve(QUESTION).await, before);
    let count = learnt(&rig).await;
    teach(&mut pipe, &called).await;
    assert_eq!(learnt(&rig).await, count);
    rig.stop().await;
}

#[tokio::test]
async fn lessons_can_be_deleted() {
    let (_stage, rig) = staged(json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let before = pipe.retrieve(QUESTION).await;
    let called = worst(&mut pipe).await;
    teach(&mut pipe, &called).await;
    until_learnt(&rig).await;
    assert_ne!(pipe.retrieve(QUESTION).await, before);
    let answer = rig.ask("DELETE", "/api/v1/search/learnt", None).await;
    assert_eq!((answer.status, &*answer.body), (204, ""), "{answer:?}");
    assert_eq!(learnt(&rig).await, 0);
    assert_eq!(pipe.retrieve(QUESTION).await, before);
    // Deletion is idempotent.
    let answer = rig.ask("DELETE", "/api/v1/search/learnt", None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let rig = rig.restarted(|_| {}).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    assert_eq!(pipe.retrieve(QUESTION).await, before);
    rig.stop().await;
}

#[tokio::test]
async fn lessons_survive_restarts_and_damage_is_reported() {
    let (_stage, rig) = staged(json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let before = pipe.retrieve(QUESTION).await;
    let called = worst(&mut pipe).await;
    teach(&mut pipe, &called).await;
    until_learnt(&rig).await;
    until_higher(&mut pipe, &called, &before).await;
    let count = learnt(&rig).await;
    let rig = rig.restarted(|_| {}).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    // The very first search uses it, too.
    let first = pipe.retrieve(QUESTION).await;
    assert!(rank(&first, &called) < rank(&before, &called), "{first:?}");
    assert_eq!(learnt(&rig).await, count);
    heard::listen();
    for damage in [&b"{"[..], b"", b"\xff\xff", b"[1,2]"] {
        let rig = Rig::prepared(json!({}), |home| {
            std::fs::create_dir_all(home.search()).unwrap();
            std::fs::write(home.search().join("learnt.json"), damage).unwrap();
        })
        .await;
        let mut pipe = Pipe::open(&rig, search()).await;
        assert!(!pipe.retrieve("status of the gateway").await.is_empty());
        assert_eq!(learnt(&rig).await, 0);
        let file = rig.home.search().join("learnt.json");
        let file = file.to_str().unwrap();
        until("it is told", async || heard::warned(&[file])).await;
        rig.stop().await;
    }
    rig.stop().await;
}
