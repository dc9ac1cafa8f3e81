//! Judgement and visibility of offers.

use std::{sync::mpsc, time::Duration};

use tokio::time::timeout;

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// A live catalogue that expects these servers, and its folder.
fn live_catalog(names: &[&str]) -> (Arc<LiveCatalog>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let servers: serde_json::Map<_, _> = names
        .iter()
        .map(|name| ((*name).to_owned(), serde_json::json!({ "command": "x" })))
        .collect();
    let config = serde_json::json!({ "mcpServers": servers }).to_string();
    let config = switchboard_config::parse(&config, "it").unwrap();
    let home = Home::locate(Some(folder.path()), None).unwrap();
    let live_catalog = Arc::new(LiveCatalog::open(&Arc::new(home), &config));
    for name in names {
        live_catalog.expect(name, &Arc::new(config.servers[*name].clone()));
    }
    (live_catalog, folder)
}

fn offers(tool: &str) -> Offers {
    let tool = Raw::object([("name", Raw::string(tool))]);
    Offers {
        tools: vec![tool],
        ..Offers::default()
    }
}

#[tokio::test]
async fn busy_server_does_not_delay_another() {
    let (live_catalog, _folder) = live_catalog(&["busy", "other"]);
    let (go, waiting) = mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let busy = tokio::spawn({
        let live_catalog = Arc::clone(&live_catalog);
        let slow = move |_: Option<&Offers>| {
            began.send(()).unwrap();
            waiting.recv().unwrap();
            offers("late")
        };
        async move { live_catalog.put("busy", slow).await }
    });
    begun.await.unwrap();
    let put = timeout(SOON, live_catalog.put("other", |_| offers("early"))).await;
    go.send(()).unwrap();
    assert_eq!(put, Ok(true));
    assert!(live_catalog.lists("other", Kind::Tool, "early"));
    assert!(busy.await.unwrap());
    assert!(live_catalog.lists("busy", Kind::Tool, "late"));
}

#[tokio::test]
async fn held_definitions_are_not_shown() {
    let (live_catalog, _folder) = live_catalog(&["a"]);
    assert!(live_catalog.put("a", |_| offers("x")).await);
    let server = Arc::clone(&live_catalog.changing.lock().expected["a"]);
    let (begin, begun) = mpsc::channel();
    let (go, going) = mpsc::channel();
    let changed = move |_: Option<&Offers>| {
        begin.send(()).unwrap();
        going.recv().unwrap();
        let definition = [("name", "x"), ("description", "changed")];
        let definition = definition.map(|(name, text)| (name, Raw::string(text)));
        Offers {
            tools: vec![Raw::object(definition)],
            ..Offers::default()
        }
    };
    let (seen, sees) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| live_catalog.take_in("a", Some(changed)));
        begun.recv_timeout(SOON).unwrap();
        // The judgement is stored, but cannot take effect yet.
        let changing = live_catalog.changing.lock();
        go.send(()).unwrap();
        while live_catalog.pins.read("a", &server).held().next().is_none() {
            std::thread::yield_now();
        }
        scope.spawn(|| {
            let is_held = live_catalog.pins("a", &server).held().next().is_some();
            let is_shown = live_catalog.lists("a", Kind::Tool, "x");
            seen.send((is_held, is_shown)).unwrap();
        });
        // A reader that does not wait has finished by then.
        let early = sees.recv_timeout(Duration::from_millis(300)).ok();
        drop(changing);
        let seen = early.unwrap_or_else(|| sees.recv_timeout(SOON).unwrap());
        assert_eq!(seen, (true, false));
    });
}

#[tokio::test]
async fn unjudgeable_offers_are_not_taken_in() {
    let (live_catalog, _folder) = live_catalog(&["a"]);
    assert!(!live_catalog.put("a", |_| panic!("on purpose")).await);
    assert!(!live_catalog.put("unknown", |_| offers("x")).await);
    assert!(live_catalog.put("a", |_| offers("x")).await);
    assert!(live_catalog.lists("a", Kind::Tool, "x"));
}
