//! The view of a client: by its address, its profile, its name, and the size of the list.

use serde_json::{Value, json};

use crate::{
    api_rig::{Rig, TOKEN},
    mcp_rig::{LEGACY, MODERN, Pipe, Web, configured, direct, listed, under},
    stage_rig::{Stage, many_tools},
};

const MANY: usize = 60;

/// A client that searches tools itself, an older version of it, and one that does not.
const SEARCHING: [&str; 2] = ["claude-code", "2.1.325"];
const OLDER: [&str; 2] = ["claude-code", "2.1.200"];
const OTHER: [&str; 2] = ["opencode", "1.18.33"];

async fn rig(settings: &Value) -> (Stage, Rig) {
    let stage = Stage::new(&many_tools(MANY));
    let mut config = settings.clone();
    config["mcpServers"] = json!({ "s": stage.entry() });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", MANY).await;
    (stage, rig)
}

/// Opens a session of an older revision. Returns its ID.
async fn open(rig: &Rig, path: &str, [name, version]: [&str; 2]) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": name, "version": version },
    } });
    let answer = rig.ask("POST", path, Some(&body.to_string())).await;
    let mut lines = answer.headers.lines();
    let session = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
    session.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// The names of the tools that a session lists.
async fn tools(rig: &Rig, path: &str, session: &str) -> Vec<String> {
    let headers = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n"
    );
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} });
    let answer = rig
        .ask_with("POST", path, &headers, &body.to_string())
        .await;
    listed(&answer.json()["result"])
}

/// Tests if a client sees the menu, in both eras.
async fn sees_menu(rig: &Rig, path: &str, client: [&str; 2]) -> bool {
    let session = open(rig, path, client).await;
    let older = tools(rig, path, &session).await;
    let [name, version] = client;
    let web = Web::open(rig, path, MODERN).await;
    let info = json!({ "name": name, "version": version });
    let meta = json!({ "io.modelcontextprotocol/clientInfo": info });
    let newer = listed(&web.result("tools/list", json!({ "_meta": meta })).await);
    assert_eq!(older, newer, "{client:?}");
    let is_menu = older.contains(&"retrieve_tools".to_owned());
    assert_ne!(is_menu, older.len() > MANY, "{older:?}");
    is_menu
}

#[tokio::test]
async fn client_that_searches_sees_every_tool() {
    let (_stage, rig) = rig(&json!({})).await;
    for (client, is_menu) in [(SEARCHING, false), (OLDER, true), (OTHER, true)] {
        assert_eq!(sees_menu(&rig, "/mcp", client).await, is_menu, "{client:?}");
        // The address decides first.
        assert!(sees_menu(&rig, "/mcp/search", client).await);
        assert!(!sees_menu(&rig, "/mcp/direct", client).await);
    }
    rig.stop().await;
}

#[tokio::test]
async fn configuration_sets_the_view_of_a_client() {
    let profiles = json!({ "work": { "view": "search" }, "rest": { "view": "direct" } });
    let settings = json!({
        "clients": { "OPEN*": { "view": "direct" }, "claude-code": { "view": "search" } },
        "profiles": profiles,
    });
    let (stage, rig) = rig(&settings).await;
    assert!(!sees_menu(&rig, "/mcp", OTHER).await);
    assert!(sees_menu(&rig, "/mcp", SEARCHING).await);
    // The profile decides before the client.
    assert!(sees_menu(&rig, "/mcp/p/work", OTHER).await);
    assert!(!sees_menu(&rig, "/mcp/p/rest", SEARCHING).await);
    let session = open(&rig, "/mcp", OTHER).await;
    assert!(tools(&rig, "/mcp", &session).await.len() > MANY);
    let accept = format!("Mcp-Session-Id: {session}\r\nAccept: text/event-stream\r\n");
    let mut stream = rig.follow_with("/mcp", &accept).await;
    // A change reaches connected clients.
    let servers = json!({ "s": stage.entry() });
    rig.reconfigure(&json!({ "mcpServers": servers, "view": "search" }))
        .await;
    let told = stream.next().await.expect("a notification");
    assert!(told.data.contains("tools/list_changed"), "{told:?}");
    assert_eq!(tools(&rig, "/mcp", &session).await.len(), 5);
    rig.stop().await;
}

#[tokio::test]
async fn client_learns_its_view_and_the_reason() {
    let settings = json!({ "clients": { "special": { "view": "direct" } } });
    let (_stage, rig) = rig(&settings).await;
    for (client, path, shows, why) in [
        (OTHER, "/mcp", "search", "the list of tools is long"),
        (
            SEARCHING,
            "/mcp",
            "direct",
            "it searches the list of tools itself",
        ),
        (
            ["special", "1"],
            "/mcp",
            "direct",
            "`clients` in the configuration sets this view for it",
        ),
        (
            OTHER,
            "/mcp/direct",
            "direct",
            "its address names this view",
        ),
    ] {
        let session = open(&rig, path, client).await;
        let clients = rig.get("/api/v1/clients").await.json();
        let clients = clients["clients"].as_array().unwrap();
        let last = clients.last().unwrap();
        assert_eq!(
            (&last["shows"], &last["why"]),
            (&json!(shows), &json!(why)),
            "{last}"
        );
        let name = if shows == "search" {
            "get_status"
        } else {
            "switchboard__get_status"
        };
        let headers = format!(
            "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n"
        );
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": name, "arguments": {} } });
        let status = rig
            .ask_with("POST", path, &headers, &call.to_string())
            .await
            .json();
        let view = &status["result"]["structuredContent"]["view"];
        assert_eq!(*view, json!({ "shows": shows, "why": why }), "{status}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn modern_clients_are_listed_with_their_views() {
    let (_stage, rig) = rig(&json!({ "profiles": { "work": {} } })).await;
    let clients = async || rig.get("/api/v1/clients").await.json();
    let mut pipe = Pipe::open_as(&rig, under("work", direct()), MODERN).await;
    pipe.tools().await;
    let listed = clients().await;
    let client = &listed["clients"][0];
    assert_eq!(client["revision"], MODERN, "{listed}");
    assert_eq!(client["view"], "p/work/direct", "{listed}");
    assert_eq!(client["why"], "its address names this view", "{listed}");
    assert_eq!(
        (&listed["others"], &client["inFlight"]),
        (&json!(0), &json!(0))
    );
    drop(pipe);
    loop {
        if clients().await["clients"] == json!([]) {
            break;
        }
        tokio::task::yield_now().await;
    }
    let web = Web::open(&rig, "/mcp/search", MODERN).await;
    web.result("tools/list", json!({})).await;
    let listed = clients().await;
    let client = &listed["clients"][0];
    assert_eq!(client["transport"], "http", "{listed}");
    assert_eq!(
        (&client["view"], &client["shows"]),
        (&json!("search"), &json!("search"))
    );
    assert_eq!(listed["others"], 0);
    rig.stop().await;
}

#[tokio::test]
async fn menu_starts_above_forty_tools() {
    for (count, is_menu) in [(40, false), (41, true)] {
        let stage = Stage::new(&many_tools(count));
        let rig = Rig::with(json!({ "s": stage.entry() })).await;
        rig.until_tools("s", count).await;
        let mut pipe = Pipe::open(&rig, configured()).await;
        let list = pipe.result("tools/list", json!({})).await;
        let has_menu = listed(&list).iter().any(|name| name == "retrieve_tools");
        assert_eq!(has_menu, is_menu, "{count}: {list}");
        rig.stop().await;
    }
}
