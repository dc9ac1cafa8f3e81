//! Streams over REST: events, and logs that are followed.

use std::{fs, io::Write};

use serde_json::{Value, json};

use crate::api_rig::{Rig, fixture};

#[tokio::test]
async fn events_are_streamed_until_the_gateway_stops() {
    let rig = Rig::with(json!({})).await;
    let mut all = rig.follow("/api/v1/events").await;
    let mut states = rig.follow("/api/v1/events?kind=server.state").await;
    let servers = json!({ "mcpServers": { "a": fixture() }, "memory": { "enabled": false } });
    rig.reconfigure(&servers).await;
    let mut last = 0;
    loop {
        let event = all.next().await.unwrap();
        let id: u64 = event.id.parse().unwrap();
        assert!(id > last, "{event:?}");
        last = id;
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(data["kind"], event.kind);
        assert_eq!(data["id"], id);
        assert!(data["at"].is_string());
        if event.kind == "config.applied" {
            break;
        }
    }
    loop {
        let event = states.next().await.unwrap();
        assert_eq!(event.kind, "server.state");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(data["data"]["name"], "a");
        if data["data"]["health"]["state"] == "ready" {
            break;
        }
    }
    rig.stop().await;
    let mut last = String::new();
    while let Some(event) = all.next().await {
        last = event.kind;
    }
    assert_eq!(last, "gateway.stopping");
    while let Some(event) = states.next().await {
        assert_eq!(event.kind, "server.state");
    }
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_notified() {
    let rig = Rig::with(json!({})).await;
    let mut events = rig.follow("/api/v1/events").await;
    // More than fits into all buffers on the way to a reader that does not read, and no more: after 30 s, the
    // reader would be disconnected.
    let problem = "x".repeat(10_000);
    for _ in 0..2_500 {
        rig.gateway.refuse_config(&problem);
        tokio::task::yield_now().await;
    }
    let mut lagged = None;
    while lagged.is_none() {
        let event = events.next().await.unwrap();
        if event.kind == "lagged" {
            lagged = Some(event.data);
        }
    }
    let data: Value = serde_json::from_str(&lagged.unwrap()).unwrap();
    assert!(data["missed"].as_u64().unwrap() > 0, "{data}");
    rig.stop().await;
}

#[tokio::test]
async fn last_lines_of_a_log_are_shown() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    for k in 0..3 {
        assert_eq!(rig.call("a:log", json!({ "k": k })).await.status, 200);
    }
    let path = "/api/v1/servers/a/logs";
    let last = |list: &Value, said: &str| {
        let lines = list["lines"].as_array().unwrap();
        lines
            .last()
            .is_some_and(|line| line.as_str().unwrap().ends_with(said))
    };
    let list = rig.until(path, |list| last(list, "said: {\"k\":2}")).await;
    assert!(list["lines"].as_array().unwrap().len() >= 4, "{list}");
    let list = rig.get(&format!("{path}?lines=2")).await.json();
    assert_eq!(list["lines"].as_array().unwrap().len(), 2);
    assert!(last(&list, "said: {\"k\":2}"), "{list}");
    let list = rig.get(&format!("{path}?lines=0")).await.json();
    assert_eq!(list, json!({ "lines": [] }));
    let list = rig.get(&format!("{path}?lines=99999999")).await.json();
    assert!(list["lines"].as_array().unwrap().len() >= 4, "{list}");
    for (query, said) in [
        ("lines=x", "`lines`"),
        ("follow=x", "query"),
        ("n=1", "`n`"),
    ] {
        let detail = rig.get(&format!("{path}?{query}")).await.problem(400);
        assert!(detail.contains(said), "{detail}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn silent_server_has_an_empty_log() {
    let rig = Rig::with(json!({ "a": { "command": "x", "enabled": false } })).await;
    let list = rig.get("/api/v1/servers/a/logs").await.json();
    assert_eq!(list, json!({ "lines": [] }));
    rig.stop().await;
}

#[tokio::test]
async fn log_is_followed_across_rotation() {
    let rig = Rig::with(json!({ "a": { "command": "x", "enabled": false } })).await;
    let log = rig.home.log_of("a");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "one\ntwo\nthree\n").unwrap();
    let path = "/api/v1/servers/a/logs?lines=2&follow=true";
    let mut lines = rig.follow(path).await;
    let mut next = async || {
        let event = lines.next().await.unwrap();
        assert_eq!(event.kind, "line");
        event.data
    };
    assert_eq!(next().await, "two");
    assert_eq!(next().await, "three");
    // The line is appended, as in real logs: a rewritten file is empty for a moment, and counts as another
    // one.
    let mut added = fs::OpenOptions::new().append(true).open(&log).unwrap();
    added.write_all(b"four\n").unwrap();
    assert_eq!(next().await, "four");
    fs::rename(&log, format!("{}.1", log.display())).unwrap();
    fs::write(&log, "five\n").unwrap();
    assert_eq!(next().await, "five");
    // A stream about a server that was removed ends.
    let answer = rig.ask("DELETE", "/api/v1/servers/a", None).await;
    assert_eq!(answer.status, 204);
    assert!(lines.next().await.is_none());
    rig.stop().await;
}
