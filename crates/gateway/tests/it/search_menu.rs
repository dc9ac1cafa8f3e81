//! The menu of the search view: its contents, where it is shown, and when.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    api_rig::{Rig, TOKEN},
    mcp_rig::{
        LEGACY, LIST_CHANGED, MODERN, Pipe, REVISIONS, Web, configured, direct, listed,
        result_text, search, text_of,
    },
    stage_rig::{Stage, many_tools, tool},
};

const MENU: [&str; 5] = [
    "retrieve_tools",
    "describe_tool",
    "call_tool",
    "read_result",
    "get_status",
];
/// The most bytes that the complete menu may cost an agent, in every session.
const MENU_BYTES: usize = 6 * 1024;

#[track_caller]
fn assert_menu(names: &[String]) {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut menu = MENU;
    names.sort_unstable();
    menu.sort_unstable();
    assert_eq!(names, menu);
}

/// A gateway with a server of three tools, and this configuration.
async fn few(stage: &Stage, mut config: Value) -> Rig {
    config["mcpServers"] = json!({ "few": stage.entry() });
    let rig = Rig::configured(config).await;
    rig.until_tools("few", 3).await;
    rig
}

fn three() -> Stage {
    Stage::new(&[
        tool("say", "Says what it is told to say."),
        tool("paint", "Paints a wall."),
        tool("cook", "Cooks a meal."),
    ])
}

#[tokio::test]
async fn menu_is_small_in_every_revision() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    for revision in REVISIONS {
        let web = Web::open(&rig, "/mcp/search", revision).await;
        let answer = web.ask("tools/list", json!({})).await;
        let list = result_text(&answer.text);
        assert!(list.len() <= MENU_BYTES, "{revision}: {}", list.len());
        assert_menu(&listed(&answer.json["result"]));
        assert_eq!(answer.json["result"].get("nextCursor"), None, "{revision}");
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        assert_menu(&pipe.tools().await);
    }
    rig.stop().await;
}

#[tokio::test]
async fn nothing_on_the_menu_changes_the_gateway() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    let web = Web::open(&rig, "/mcp/search", LEGACY).await;
    let list = web.result("tools/list", json!({})).await;
    for tool in list["tools"].as_array().unwrap() {
        let reads = &tool["annotations"]["readOnlyHint"];
        // A called tool may do anything, but cannot change the gateway.
        let expected = tool["name"] != "call_tool";
        assert_eq!(reads.as_bool().unwrap_or(false), expected, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn instructions_name_the_servers_and_are_short() {
    let stage = three();
    stage.set_instructions("Always be very careful with paint.");
    let rig = few(&stage, json!({})).await;
    let pipe = Pipe::open(&rig, search()).await;
    let said = pipe.greeting["instructions"].as_str().unwrap();
    assert!(said.contains("retrieve_tools"), "{said}");
    assert!(said.contains("few"), "{said}");
    assert!(said.len() <= 1_100, "{}", said.len());
    // Instructions of a server come with the descriptions of its tools.
    assert!(!said.contains("careful"), "{said}");
    let mut pipe = pipe;
    let described = pipe.call("describe_tool", json!({ "name": "few:paint" }));
    let described = described.await;
    assert_eq!(
        described["structuredContent"]["serverInstructions"],
        "Always be very careful with paint."
    );
    rig.stop().await;
}

#[tokio::test]
async fn rejected_definitions_are_mended_in_combined_views() {
    let sent =
        json!({ "name": "branch", "description": null, "inputSchema": { "properties": {} } });
    let stage = Stage::new(&[sent.clone(), tool("paint", "Paints a wall.")]);
    let rig = Rig::with(json!({ "git": stage.entry() })).await;
    rig.until_tools("git", 2).await;
    let shown = json!({ "properties": {}, "type": "object" });
    let among = Web::open(&rig, "/mcp/direct", LEGACY).await;
    let list = among.result("tools/list", json!({})).await;
    let among = &list["tools"][0];
    assert_eq!(among["name"], "git__branch", "{list}");
    assert_eq!(among["inputSchema"], shown);
    assert_eq!(among.get("description"), None);
    let mut pipe = Pipe::open(&rig, search()).await;
    let described = pipe.call("describe_tool", json!({ "name": "git:branch" }));
    let described = described.await;
    assert_eq!(described["structuredContent"]["inputSchema"], shown);
    // In the server's own view it is verbatim.
    let alone = Web::open(&rig, "/mcp/s/git", LEGACY).await;
    let list = alone.result("tools/list", json!({})).await;
    assert_eq!(list["tools"][0], sent);
    let status = rig.get("/api/v1/servers/git").await.json();
    assert_eq!(status["mended"], 1, "{status}");
    rig.stop().await;
}

#[tokio::test]
async fn configured_view_is_shown() {
    let stage = three();
    for (view, is_menu) in [("search", true), ("direct", false), ("auto", false)] {
        let rig = few(&stage, json!({ "view": view })).await;
        let mut pipe = Pipe::open(&rig, configured()).await;
        let names = pipe.tools().await;
        let web = Web::open(&rig, "/mcp", MODERN).await;
        assert_eq!(web.tools().await, names, "{view}");
        if is_menu {
            assert_menu(&names);
        } else {
            assert!(names.contains(&"few__paint".to_owned()), "{names:?}");
            assert!(!names.contains(&"call_tool".to_owned()), "{names:?}");
        }
        // The other two addresses are not affected.
        assert_menu(&Pipe::open(&rig, search()).await.tools().await);
        let names = Pipe::open(&rig, direct()).await.tools().await;
        assert!(names.contains(&"few__paint".to_owned()), "{names:?}");
        rig.stop().await;
    }
}

#[tokio::test]
async fn many_or_long_tools_trigger_the_menu() {
    let few = Stage::new(&many_tools(30));
    let many = Stage::new(&many_tools(41));
    let paragraph = "A sentence that an agent need not carry around. ".repeat(70);
    let long: Vec<Value> = (0..8).map(|n| tool(&format!("t{n}"), &paragraph)).collect();
    let long = Stage::new(&long);
    for (stage, count, is_menu) in [(few, 30, false), (many, 41, true), (long, 8, true)] {
        let rig = Rig::with(json!({ "s": stage.entry() })).await;
        rig.until_tools("s", count).await;
        let names = Pipe::open(&rig, configured()).await.tools().await;
        if is_menu {
            assert_menu(&names);
        } else {
            // Including the gateway's own.
            assert_eq!(names.len(), count + 2);
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn switching_to_the_menu_notifies_clients() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, configured(), revision).await;
        if revision == MODERN {
            let wanted = json!({ "notifications": { "toolsListChanged": true } });
            pipe.send("subscriptions/listen", wanted).await;
            pipe.until_told("notifications/subscriptions/acknowledged")
                .await;
        }
        assert_eq!(pipe.tools().await.len(), 5);
        // The menu works before it is shown.
        assert_eq!(pipe.retrieve("paint a wall").await[0], "few:paint");
        let called = pipe.call_found("few:paint", json!({})).await;
        assert_eq!(text_of(&called), "paint was called");

        let many = Stage::new(&many_tools(50));
        let both = json!({ "mcpServers": { "few": stage.entry(), "many": many.entry() } });
        rig.reconfigure(&both).await;
        loop {
            pipe.until_told(LIST_CHANGED).await;
            let names = pipe.tools().await;
            if names.len() == MENU.len() {
                assert_menu(&names);
                break;
            }
        }
        // Tools in an agent's context still work.
        let called = pipe.call("few__cook", json!({})).await;
        assert_eq!(text_of(&called), "cook was called");
        let called = pipe.call("many__tool_7", json!({})).await;
        assert_eq!(text_of(&called), "tool_7 was called");

        pipe.forget();
        rig.reconfigure(&json!({ "mcpServers": { "few": stage.entry() } }))
            .await;
        loop {
            pipe.until_told(LIST_CHANGED).await;
            if pipe.tools().await.contains(&"few__paint".to_owned()) {
                break;
            }
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn configured_change_of_view_notifies_clients() {
    let stage = three();
    let rig = few(&stage, json!({ "view": "direct" })).await;
    let mut pipe = Pipe::open(&rig, configured()).await;
    assert_eq!(pipe.tools().await.len(), 5);
    rig.reconfigure(&json!({ "view": "search", "mcpServers": { "few": stage.entry() } }))
        .await;
    pipe.until_told(LIST_CHANGED).await;
    assert_menu(&pipe.tools().await);
    rig.stop().await;
}

#[tokio::test]
async fn hidden_changes_do_not_notify_menu_clients() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let mut other = Pipe::open(&rig, direct()).await;
    stage
        .change_tools(&[tool("say", "Says what it is told to say.")])
        .await;
    other.until_told(LIST_CHANGED).await;
    assert_menu(&pipe.tools().await);
    assert!(pipe.told().is_empty(), "{:?}", pipe.told());
    rig.stop().await;
}

#[tokio::test]
async fn menu_works_over_http_with_sse() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    let mut events = rig.follow("/sse/search").await;
    let opening = events.next().await.unwrap();
    assert_eq!(opening.kind, "endpoint");
    let headers = format!("Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n");
    let mut asked = 0;
    let mut ask = async |method: &str, params: Value| {
        asked += 1;
        let body = json!({ "jsonrpc": "2.0", "id": asked, "method": method, "params": params });
        let answer = rig
            .ask_with("POST", &opening.data, &headers, &body.to_string())
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        loop {
            let said: Value = serde_json::from_str(&events.next().await.unwrap().data).unwrap();
            if said["id"] == asked {
                return said["result"].clone();
            }
        }
    };
    let about = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": { "name": "old", "version": "1" },
    });
    ask("initialize", about).await;
    assert_menu(&listed(&ask("tools/list", json!({})).await));
    let arguments = json!({ "name": "few:cook" });
    let call = json!({ "name": "call_tool", "arguments": arguments });
    assert_eq!(text_of(&ask("tools/call", call).await), "cook was called");
    drop(events);
    rig.stop().await;
}

#[tokio::test]
async fn pipe_over_the_socket_supports_the_menu() {
    let stage = three();
    let rig = few(&stage, json!({})).await;
    let mut stream = rig.knock().await;
    let head = "GET /pipe/search HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: mcp-pipe\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.unwrap()));
    }
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let mut pipe = Pipe::over(stream, LEGACY).await;
    assert_menu(&pipe.tools().await);
    assert_eq!(pipe.retrieve("paint a wall").await[0], "few:paint");
    rig.stop().await;
}
