//! MCP Apps: tools with a page that clients show to people.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    mcp_rig::{
        LEGACY, MODERN, Pipe, REVISIONS, direct, listed, refusal_of, search, server, text_of,
    },
    stage_rig::{Stage, tool},
};

const PAGE: &str = "ui://clock/app.html";
const EXPOSED: &str = "ui://apps/ui://clock/app.html";

/// The capabilities of a client that shows apps.
fn shows_apps() -> Value {
    let page = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    json!({ "extensions": { "io.modelcontextprotocol/ui": page } })
}

/// A server like those built with `@modelcontextprotocol/ext-apps`.
fn clock() -> Stage {
    let mut shown = tool("get_time", "Shows the hour of the day on a clock.");
    shown["_meta"] = json!({ "ui": { "resourceUri": PAGE }, "ui/resourceUri": PAGE });
    let mut refresh = tool("refresh", "Reloads the hour of the day of the clock.");
    refresh["_meta"] = json!({ "ui": { "resourceUri": PAGE, "visibility": ["app"] } });
    let mut spoken = tool("speak", "Says the hour of the day aloud.");
    spoken["_meta"] = json!({ "ui": { "visibility": ["model"] } });
    let stage = Stage::new(&[shown, refresh, spoken]);
    let page = json!({ "uri": PAGE, "name": "Clock", "mimeType": "text/html;profile=mcp-app" });
    stage.set_resources(&json!([page]));
    let ui = json!({ "csp": { "connectDomains": [] } });
    let read = json!({ "contents": [{ "uri": PAGE, "text": "<html>", "_meta": { "ui": ui } }] });
    stage.set_answer("resources/read", &format!(r#""result":{read}"#));
    stage
}

#[tokio::test]
async fn merged_views_can_read_pages_of_tools() {
    let stage = clock();
    let rig = Rig::with(json!({ "apps": stage.entry() })).await;
    rig.until_tools("apps", 3).await;
    for revision in REVISIONS {
        let mut pipe = Pipe::open_able(&rig, direct(), revision, shows_apps()).await;
        let tools = pipe.result("tools/list", json!({})).await;
        let tools = tools["tools"].as_array().unwrap();
        let shown = tools.iter().find(|tool| tool["name"] == "apps__get_time");
        let meta = &shown.unwrap()["_meta"];
        assert_eq!(meta["ui"]["resourceUri"], EXPOSED, "{meta}");
        assert_eq!(meta["ui/resourceUri"], EXPOSED, "{meta}");
        let pages = pipe.result("resources/list", json!({})).await;
        assert_eq!(pages["resources"][0]["uri"], EXPOSED, "{pages}");
        for view in [direct(), search()] {
            let mut pipe = Pipe::open_able(&rig, view, revision, shows_apps()).await;
            let read = pipe
                .result("resources/read", json!({ "uri": EXPOSED }))
                .await;
            let page = &read["contents"][0];
            assert_eq!(page["uri"], EXPOSED, "{read}");
            assert_eq!(page["text"], "<html>", "{read}");
            assert!(page["_meta"]["ui"]["csp"].is_object(), "{read}");
        }
    }
    let asked = stage.until_asked("resources/read").await;
    assert!(asked.contains(PAGE) && !asked.contains(EXPOSED), "{asked}");
    // At its own address everything is verbatim.
    let mut own = Pipe::open_able(&rig, server("apps"), LEGACY, shows_apps()).await;
    let tools = own.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["_meta"]["ui"]["resourceUri"], PAGE);
    rig.stop().await;
}

#[tokio::test]
async fn pins_use_the_definitions_as_sent() {
    let stage = clock();
    let rig = Rig::with(json!({ "apps": stage.entry() })).await;
    rig.until_tools("apps", 3).await;
    let pinned = rig.get("/api/v1/trust?server=apps").await.body;
    assert!(!pinned.contains(EXPOSED), "{pinned}");
    let rig = rig.restarted(|_| {}).await;
    rig.until_tools("apps", 3).await;
    let trust = rig.trust("apps").await;
    assert_eq!(trust["held"], json!([]), "{trust}");
    rig.stop().await;
}

#[tokio::test]
async fn tools_for_apps_only_stay_out_of_search() {
    let stage = clock();
    let rig = Rig::with(json!({ "apps": stage.entry() })).await;
    rig.until_tools("apps", 3).await;
    let mut pipe = Pipe::open_able(&rig, search(), LEGACY, shows_apps()).await;
    let found = pipe.retrieve("hour of the day of the clock").await;
    assert!(found.contains(&"apps:get_time".to_owned()), "{found:?}");
    assert!(!found.contains(&"apps:refresh".to_owned()), "{found:?}");
    for name in ["apps:refresh", "apps__refresh"] {
        for menu in ["call_tool", "describe_tool"] {
            let refused = pipe.refusal(menu, json!({ "name": name })).await;
            assert!(refused.contains("There is no tool"), "{menu}: {refused}");
        }
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn app_tools_are_hidden_from_other_clients() {
    let stage = clock();
    let rig = Rig::with(json!({ "apps": stage.entry() })).await;
    rig.until_tools("apps", 3).await;
    for revision in [LEGACY, MODERN] {
        for (view, name) in [(direct(), "apps__refresh"), (server("apps"), "refresh")] {
            // The server's own view shows everything as it is.
            let is_alone = name == "refresh";
            for (capabilities, is_shown) in [(shows_apps(), true), (json!({}), is_alone)] {
                let mut pipe = Pipe::open_able(&rig, view.clone(), revision, capabilities).await;
                let tools = listed(&pipe.result("tools/list", json!({})).await);
                assert_eq!(tools.iter().any(|tool| tool == name), is_shown, "{tools:?}");
                assert!(
                    tools.iter().any(|tool| tool.ends_with("get_time")),
                    "{tools:?}"
                );
            }
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn app_calls_tools_by_unprefixed_names() {
    let stage = clock();
    let other = Stage::new(&[tool("refresh", "Another."), tool("lone", "Lonely.")]);
    let rig = Rig::with(json!({ "apps": stage.entry(), "other": other.entry() })).await;
    rig.until_tools("apps", 3).await;
    rig.until_tools("other", 2).await;
    for revision in [LEGACY, MODERN] {
        for view in [direct(), search()] {
            let mut pipe = Pipe::open_able(&rig, view, revision, shows_apps()).await;
            for name in ["refresh", "get_time"] {
                let called = pipe.call(name, json!({})).await;
                assert_eq!(text_of(&called), format!("{name} was called"));
            }
            // A tool for models alone, and one of a server without apps.
            for name in ["speak", "lone"] {
                let refused = pipe.ask("tools/call", json!({ "name": name })).await.json;
                assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
            }
        }
    }
    let mut plain = Pipe::open(&rig, direct()).await;
    let refused = plain
        .ask("tools/call", json!({ "name": "refresh" }))
        .await
        .json;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!((stage.calls(), other.calls()), (8, 0));
    rig.stop().await;
}

#[tokio::test]
async fn ambiguous_unprefixed_name_reaches_no_server() {
    let (one, two) = (clock(), clock());
    two.set_tools(&[{
        let mut shown = tool("get_date", "Shows the date.");
        shown["_meta"] = json!({ "ui": { "resourceUri": PAGE } });
        shown
    }]);
    let rig = Rig::with(json!({ "one": one.entry(), "two": two.entry() })).await;
    rig.until_tools("one", 3).await;
    rig.until_tools("two", 1).await;
    let mut pipe = Pipe::open_able(&rig, direct(), LEGACY, shows_apps()).await;
    for name in ["refresh", "get_date"] {
        let refused = pipe.ask("tools/call", json!({ "name": name })).await.json;
        assert_eq!(refused["error"]["code"], -32602, "{name}: {refused}");
    }
    assert_eq!((one.calls(), two.calls()), (0, 0));
    rig.stop().await;
}

#[tokio::test]
async fn rules_apply_to_unprefixed_names_too() {
    let stage = clock();
    let rig = Rig::configured(json!({
        "mcpServers": { "apps": stage.entry() },
        "approvals": { "rules": ["deny apps:refresh"] },
    }))
    .await;
    rig.until_tools("apps", 3).await;
    let mut pipe = Pipe::open_able(&rig, direct(), LEGACY, shows_apps()).await;
    for name in ["refresh", "apps__refresh"] {
        let refused = pipe.ask("tools/call", json!({ "name": name })).await.json;
        let refused = refusal_of(&refused);
        assert!(refused.contains("denied by a rule"), "{refused}");
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}
