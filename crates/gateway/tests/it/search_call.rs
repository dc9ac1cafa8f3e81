//! `call_tool`: the tool's own result, unchanged, and everything else that happens during the call.

use serde_json::{Value, json};

use crate::{
    api_rig::{Rig, fixture},
    mcp_rig::{LEGACY, MODERN, Pipe, Web, refusal_of, result_text, search, server, text_of},
    stage_rig::{Stage, tool},
};

fn tools() -> Vec<Value> {
    let mut tools: Vec<Value> = [
        "say", "refuse", "wait", "work", "elicit", "sample", "odd", "a:b",
    ]
    .map(|name| tool(name, "Does it."))
    .into();
    tools.push(json!({
        "name": "order",
        "description": "Orders something.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "what": { "type": "string", "enum": ["tea", "coffee"] },
                "count": { "type": "integer", "minimum": 1 },
                "to": {
                    "type": "object",
                    "properties": { "street": { "type": "string" } },
                    "required": ["street"],
                },
            },
            "required": ["what"],
            "additionalProperties": false,
        },
    }));
    tools
}

async fn staged() -> (Stage, Rig) {
    let stage = Stage::new(&tools());
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", tools().len()).await;
    (stage, rig)
}

#[tokio::test]
async fn result_is_verbatim_from_the_server() {
    let (stage, rig) = staged().await;
    for result in [
        r#"{"content":[{"type":"text","text":"\u0061\/b"}],  "structuredContent":{"n": 1.10,"n2":1e2},"y":1.50}"#,
        r#"{"isError" : true,"content":[ ]}"#,
        r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"n"}],"_meta":{"a/b":[1.0]}}"#,
        r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"  t "}}]}"#,
    ] {
        stage.set_result("odd", result);
        for revision in [LEGACY, MODERN] {
            let menu = Web::open(&rig, "/mcp/search", revision).await;
            let own = Web::open(&rig, "/mcp/s/s", revision).await;
            let direct = json!({ "name": "odd", "arguments": {} });
            let direct = own.ask("tools/call", direct).await;
            for name in ["s:odd", "s__odd"] {
                let arguments = json!({ "name": name, "arguments": {} });
                let call = json!({ "name": "call_tool", "arguments": arguments });
                let found = menu.ask("tools/call", call).await;
                let found = result_text(&found.text);
                // In this view, links point to the gateway's URIs, and the server info is the gateway's.
                let exposed = |result: &str| {
                    let result = result.replace(r#""uri":""#, r#""uri":"switchboard://s/"#);
                    result.replace(r#"{"name":"stage","version":"1"}"#, &gateway_info())
                };
                assert_eq!(found, exposed(result_text(&direct.text)), "{revision}");
                if revision == LEGACY {
                    assert_eq!(found, exposed(result));
                }
            }
        }
    }
    rig.stop().await;
}

/// The gateway's own server info.
fn gateway_info() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(r#"{{"name":"switchboard","title":"Switchboard","version":"{version}"}}"#)
}

#[tokio::test]
async fn arguments_are_verbatim_and_optional() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until_known("a").await;
    let mut pipe = Pipe::open(&rig, search()).await;
    let arguments = json!({ "n": 1.5, "deep": { "list": [null, true, "é"] }, "name": "x" });
    let called = pipe.call_found("a:echo", arguments.clone()).await;
    assert_eq!(called["structuredContent"], arguments);
    let called = pipe.call("call_tool", json!({ "name": "a:echo" })).await;
    assert_eq!(called["structuredContent"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn server_error_is_forwarded() {
    let (_stage, rig) = staged().await;
    for revision in [LEGACY, MODERN] {
        let mut menu = Pipe::open_as(&rig, search(), revision).await;
        let mut own = Pipe::open_as(&rig, server("s"), revision).await;
        let inner = json!({ "name": "refuse", "arguments": {} });
        let outer = json!({ "name": "call_tool", "arguments": { "name": "s:refuse" } });
        let found = menu.ask("tools/call", outer).await.json;
        let direct = own.ask("tools/call", inner).await.json;
        assert_eq!(found["error"], direct["error"], "{revision}");
        assert_eq!(found["error"]["code"], -32050);
    }
    rig.stop().await;
}

#[tokio::test]
async fn progress_and_questions_pass_in_both_eras() {
    let stage = Stage::new(&tools());
    for entry in [stage.entry(), stage.modern_entry()] {
        let is_modern = entry["args"][2] == "modern";
        let rig = Rig::with(json!({ "s": entry })).await;
        rig.until_tools("s", tools().len()).await;
        for revision in [LEGACY, MODERN] {
            let what = format!("{revision}, server modern: {is_modern}");
            let mut pipe = Pipe::open_as(&rig, search(), revision).await;
            let call = json!({
                "name": "call_tool",
                "arguments": { "name": "s:work" },
                "_meta": { "progressToken": "p1" },
            });
            let done = pipe.result("tools/call", call).await;
            assert_eq!(text_of(&done), "done", "{what}");
            let told = pipe.told();
            let of = |method: &str| {
                let told = told.iter().filter(move |said| said["method"] == method);
                told.map(|said| said["params"].clone()).collect::<Vec<_>>()
            };
            let steps = of("notifications/progress");
            assert_eq!(steps.len(), 2, "{what}: {told:?}");
            assert_eq!(steps[1]["progressToken"], "p1", "{what}");
            assert_eq!(steps[1]["progress"], 2, "{what}");
            let logs = of("notifications/message");
            assert_eq!(logs.len(), 1, "{what}: {told:?}");
            assert_eq!(logs[0]["data"], "on the way", "{what}");

            let asked = pipe.call_found("s:elicit", json!({})).await;
            assert!(text_of(&asked).contains("Ada"), "{what}: {asked}");
            let asked = pipe.call_found("s:sample", json!({})).await;
            assert!(text_of(&asked).contains("Ah."), "{what}: {asked}");
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn cancelled_call_is_cancelled_at_the_server() {
    for revision in [LEGACY, MODERN] {
        let (stage, rig) = staged().await;
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let call = json!({ "name": "s:wait" });
        let id = pipe.send_call("call_tool", call).await;
        stage.until_asked("\"wait\"").await;
        pipe.tell(
            "notifications/cancelled",
            json!({ "requestId": id, "reason": "enough" }),
        )
        .await;
        let said = stage.until_asked("notifications/cancelled").await;
        assert!(said.contains("enough"), "{said}");
        // And the pipe still works.
        let called = pipe.call_found("s:odd", json!({})).await;
        assert_eq!(text_of(&called), "odd was called");
        rig.stop().await;
    }
}

#[tokio::test]
async fn wrong_arguments_never_reach_the_server() {
    let (stage, rig) = staged().await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        for (arguments, field) in [
            (json!({}), "what"),
            (json!({ "what": "milk" }), "what"),
            (json!({ "what": 1 }), "what"),
            (json!({ "what": "tea", "count": "two" }), "count"),
            (json!({ "what": "tea", "count": 0 }), "count"),
            (json!({ "what": "tea", "to": {} }), "to.street"),
            (
                json!({ "what": "tea", "to": { "street": [7] } }),
                "to.street",
            ),
        ] {
            let wrong = pipe.call_found("s:order", arguments.clone()).await;
            assert_eq!(wrong["isError"], true, "{arguments}: {wrong}");
            let text = text_of(&wrong);
            assert!(text.contains(field), "{arguments}: {text}");
            assert!(text.contains("s:order"), "{text}");
            assert!(text.contains("not called"), "{text}");
            let shape = text.split("The expected shape").nth(1).unwrap();
            for name in ["what", "count", "street"] {
                assert!(shape.contains(name), "{text}");
            }
        }
    }
    assert_eq!(stage.calls(), 0);
    let mut pipe = Pipe::open(&rig, search()).await;
    let arguments = json!({ "what": "tea", "count": 2, "to": { "street": "High" } });
    let called = pipe.call_found("s:order", arguments).await;
    assert_eq!(text_of(&called), "order was called");
    assert_eq!(stage.calls(), 1);
    rig.stop().await;
}

#[tokio::test]
async fn arguments_are_coerced_to_the_schema_types() {
    let (stage, rig) = staged().await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        let arguments = json!({ "what": "tea", "count": "3", "to": r#"{"street":"High"}"# });
        let called = pipe.call_found("s:order", arguments).await;
        let told = called["content"][1]["text"].as_str().unwrap();
        assert_eq!(
            text_of(&json!({ "content": [called["content"][0]] })),
            "order was called"
        );
        assert!(
            told.contains(r#"arguments.count was converted from "3" to 3"#),
            "{told}"
        );
        assert!(told.contains("arguments.to"), "{told}");
        let sent = &stage.calls_of("order").pop().unwrap()["arguments"];
        let meant = json!({ "what": "tea", "count": 3, "to": { "street": "High" } });
        assert_eq!(*sent, meant);
    }
    rig.stop().await;
}

/// A server may accept a parameter under a second name.
#[tokio::test]
async fn unknown_members_are_left_to_the_server() {
    let (stage, rig) = staged().await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for arguments in [
        json!({ "what": "tea", "sugar": true }),
        json!({ "drink": "tea" }),
    ] {
        let called = pipe.call_found("s:order", arguments.clone()).await;
        let content = called["content"].as_array().unwrap();
        assert_eq!(content[0]["text"], "order was called");
        // Also for a call that succeeds: the server may have ignored an unknown member.
        let told = content[1]["text"].as_str().unwrap();
        assert!(told.contains("is unknown"), "{told}");
        let sent = &stage.calls_of("order").pop().unwrap()["arguments"];
        assert_eq!(*sent, arguments);
    }
    // A misspelt name is refused, not left to the server.
    let calls = stage.calls_of("order").len();
    let refused = pipe.call_found("s:order", json!({ "waht": "tea" })).await;
    let told = refused["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("did you mean `what`?"), "{told}");
    assert_eq!(stage.calls_of("order").len(), calls);
    rig.stop().await;
}

/// A rule about a member of an object cannot be evaded by sending the object as a string.
#[tokio::test]
async fn rules_apply_to_the_coerced_arguments() {
    let stage = Stage::new(&tools());
    let rule = json!({
        "action": "deny", "server": "s", "tool": "order", "arguments": { "$.to.street": "Secret*" },
    });
    let rig = Rig::configured(json!({
        "mcpServers": { "s": stage.entry() },
        "approvals": { "rules": [rule] },
    }))
    .await;
    rig.until_tools("s", tools().len()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for to in [
        json!({ "street": "Secret Lane" }),
        json!(r#"{"street":"Secret Lane"}"#),
    ] {
        let order = json!({ "name": "s:order", "arguments": { "what": "tea", "to": to } });
        let said = pipe.refusal("call_tool", order).await;
        assert!(said.contains("denied by a rule"), "{said}");
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn unusable_schema_is_left_to_the_server() {
    let schemas = [
        json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/s.json" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "wood" } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!({ "$schema": "https://example.com/own", "type": "object", "required": ["b"] }),
        json!({ "type": "object", "required": "a lot" }),
    ];
    let tools: Vec<Value> = schemas
        .iter()
        .enumerate()
        .map(|(n, schema)| json!({ "name": format!("t{n}"), "inputSchema": schema }))
        .collect();
    let stage = Stage::new(&tools);
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", tools.len()).await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for (n, schema) in schemas.iter().enumerate() {
        let called = pipe.call_found(&format!("s:t{n}"), json!({ "a": 1 })).await;
        assert_eq!(text_of(&called), format!("t{n} was called"), "{schema}");
    }
    assert_eq!(stage.calls(), schemas.len());
    rig.stop().await;
}

#[tokio::test]
async fn unknown_tool_gets_a_suggestion() {
    let (stage, rig) = staged().await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for name in ["s:ordr", "s__ordr"] {
        let text = pipe.refusal("call_tool", json!({ "name": name })).await;
        assert!(text.contains(name), "{text}");
        assert!(text.contains("`s:order`"), "{text}");
        assert!(text.contains("retrieve_tools"), "{text}");
    }
    for name in ["", ":", "__", "nobody:x", "s:"] {
        let text = pipe.refusal("call_tool", json!({ "name": name })).await;
        assert!(text.contains("There is no tool"), "{text}");
    }
    assert_eq!(stage.calls(), 0);
    // The name of a tool may contain a colon.
    let called = pipe.call_found("s:a:b", json!({})).await;
    assert_eq!(text_of(&called), "a:b was called");
    rig.stop().await;
}

#[tokio::test]
async fn oversized_name_is_refused() {
    let (stage, rig) = staged().await;
    let mut pipe = Pipe::open(&rig, search()).await;
    for name in [
        "s:x".repeat(30_000),
        "s__x".repeat(30_000),
        "x".repeat(100_000),
    ] {
        for tool in ["describe_tool", "call_tool"] {
            let text = pipe.refusal(tool, json!({ "name": name })).await;
            assert!(text.contains("There is no tool"), "{text}");
            assert!(text.len() < 1_000, "{}", text.len());
        }
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn menu_can_call_the_gateways_own_tools() {
    let (_stage, rig) = staged().await;
    for revision in [LEGACY, MODERN] {
        let mut pipe = Pipe::open_as(&rig, search(), revision).await;
        for name in ["switchboard:get_status", "switchboard__get_status"] {
            let status = pipe.call_found(name, json!({})).await;
            assert_eq!(status["structuredContent"]["state"], "running", "{name}");
        }
        let status = pipe.call("get_status", json!({})).await;
        assert_eq!(status["structuredContent"]["servers"][0]["name"], "s");
        let arguments = json!({ "id": "r_nonsense" });
        let read = pipe.call_found("switchboard:read_result", arguments).await;
        assert_eq!(read["isError"], true, "{read}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn stopped_server_is_started_or_reported() {
    let stage = Stage::new(&tools());
    let rig = Rig::configured(json!({
        "waitTimeoutMs": 20_000,
        "mcpServers": { "s": stage.lazy_entry(), "gone": { "command": "/does/not/exist" } },
    }))
    .await;
    let mut pipe = Pipe::open(&rig, search()).await;
    // At once: the server has never been listed.
    let called = pipe.call_found("s:odd", json!({})).await;
    assert_eq!(text_of(&called), "odd was called");
    let params = json!({ "name": "call_tool", "arguments": { "name": "gone:x" } });
    let text = refusal_of(&pipe.ask("tools/call", params).await.json);
    assert!(text.contains("gone"), "{text}");
    assert!(text.contains("/does/not/exist"), "{text}");
    rig.stop().await;
}
