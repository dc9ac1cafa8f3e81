//! Changes that a server announces, with and without an actual difference.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, LIST_CHANGED, MODERN, Pipe, direct, server, until},
    stage_rig::{Stage, many_tools},
};

const LISTEN: &str = "subscriptions/listen";
const LISTENS: &str = "notifications/subscriptions/acknowledged";

/// Number of change notifications.
fn changes(told: &[&Value]) -> usize {
    let changes = told.iter().filter(|said| said["method"] == LIST_CHANGED);
    changes.count()
}

#[tokio::test]
async fn announced_change_is_forwarded_without_a_difference() {
    let stage = Stage::new(&many_tools(1));
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut older = Pipe::open_as(&rig, server("s"), LEGACY).await;
    let mut newer = Pipe::open_as(&rig, server("s"), MODERN).await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    newer.send(LISTEN, wanted).await;
    newer.until_told(LISTENS).await;
    let mut merged = Pipe::open(&rig, direct()).await;
    for _ in 0..2 {
        stage.tell_changed().await;
        older.until_told(LIST_CHANGED).await;
        newer.until_told(LIST_CHANGED).await;
    }
    merged.result("ping", json!({})).await;
    assert_eq!(merged.told(), Vec::<&Value>::new());
    rig.stop().await;
}

#[tokio::test]
async fn real_announced_change_is_forwarded_once() {
    let stage = Stage::new(&many_tools(1));
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    stage.change_tools(&many_tools(2)).await;
    pipe.until_told(LIST_CHANGED).await;
    rig.until_tools("s", 2).await;
    // This notification arrives after all that the first one caused.
    stage.tell("notifications/prompts/list_changed").await;
    pipe.until_told("notifications/prompts/list_changed").await;
    assert_eq!(changes(&pipe.told()), 0);
    rig.stop().await;
}

#[tokio::test]
async fn flood_of_announcements_is_coalesced() {
    let stage = Stage::new(&many_tools(1));
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 1).await;
    let mut pipe = Pipe::open(&rig, server("s")).await;
    for _ in 0..300 {
        stage.tell_changed().await;
    }
    stage.change_tools(&many_tools(2)).await;
    let shown = async || rig.get("/api/v1/servers/s").await.json()["tools"] == 2;
    until("the last list is shown", shown).await;
    pipe.result("ping", json!({})).await;
    let told = changes(&pipe.told());
    assert!((1..30).contains(&told), "{told}");
    rig.stop().await;
}
