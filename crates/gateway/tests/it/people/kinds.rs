//! Rules about resources, prompts, completions and subscriptions; spellings of members; other servers under
//! the same name.

use serde_json::{Value, json};

use super::{mute, staged, staged_as};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, direct, search, server},
    stage_rig::Stage,
};

fn ruled(rules: Value) -> Value {
    json!({ "approvals": { "rules": rules, "notify": "off" } })
}

/// A gateway whose server `s` has prompts and resources, too.
async fn offering(config: Value) -> (Stage, Rig) {
    let stage = Stage::new(&super::tools());
    stage.set_prompts(&json!([{ "name": "p" }]));
    stage.set_resources(&json!([{ "uri": "file:///etc/passwd", "name": "x" }]));
    let rig = super::with_server(stage.entry(), config).await;
    (stage, rig)
}

/// Every request except calls that the server's own view accepts.
fn requests() -> [(&'static str, Value); 4] {
    [
        ("resources/read", json!({ "uri": "file:///etc/passwd" })),
        (
            "resources/subscribe",
            json!({ "uri": "file:///etc/passwd" }),
        ),
        ("prompts/get", json!({ "name": "p" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } }),
        ),
    ]
}

fn is_refused(answer: &Value) -> bool {
    matches!(answer["error"]["code"].as_i64(), Some(-32007 | -31007))
}

#[tokio::test]
async fn denied_server_returns_nothing() {
    let (stage, rig) = offering(ruled(json!(["deny s:*"]))).await;
    for revision in [LEGACY, MODERN] {
        let mut client = Pipe::open_as(&rig, server("s"), revision).await;
        for (method, params) in requests() {
            if revision == MODERN && method == "resources/subscribe" {
                continue;
            }
            let answer = client.ask(method, params).await.json;
            assert!(is_refused(&answer), "{revision} {method}: {answer}");
        }
        for view in [direct(), search()] {
            let mut client = Pipe::open_as(&rig, view, revision).await;
            for (method, params) in [
                (
                    "resources/read",
                    json!({ "uri": "switchboard://s/file:///etc/passwd" }),
                ),
                ("prompts/get", json!({ "name": "s__p" })),
            ] {
                let answer = client.ask(method, params).await.json;
                assert!(is_refused(&answer), "{revision} {method}: {answer}");
            }
        }
    }
    let asked = stage.asked();
    let reached = |line: &String| {
        [
            "resources/read",
            "resources/subscribe",
            "prompts/get",
            "completion/",
        ]
        .iter()
        .any(|method| line.starts_with(method))
    };
    assert!(!asked.iter().any(reached), "{asked:?}");
    // Denied requests are in the audit log.
    let entries = rig
        .until("/api/v1/audit?limit=200", |audit| {
            audit.to_string().contains("\"denied\"")
        })
        .await;
    assert!(entries.to_string().contains("resources/read"), "{entries}");
    rig.stop().await;
}

#[tokio::test]
async fn resources_are_denied_in_every_spelling() {
    let (_stage, rig) = offering(ruled(json!(["deny resources s:file:///etc/*"]))).await;
    let mut client = mute(&rig, LEGACY).await;
    for uri in [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "file:///tmp/../etc/passwd",
        "file:///%65tc/passwd",
        "FILE:///etc//passwd",
    ] {
        let answer = client
            .ask("resources/read", json!({ "uri": uri }))
            .await
            .json;
        assert!(is_refused(&answer), "{uri}: {answer}");
    }
    let answer = client
        .ask("resources/read", json!({ "uri": "file:///tmp/x" }))
        .await
        .json;
    assert!(answer["result"].is_object(), "{answer}");
    client.call("read_file", json!({})).await;
    let complete = |value: &str| {
        json!({
            "ref": { "type": "ref/resource", "uri": "file:///{path}" },
            "argument": { "name": "path", "value": value },
        })
    };
    for value in ["e", "etc/", "tmp/../etc/"] {
        let answer = client
            .ask("completion/complete", complete(value))
            .await
            .json;
        assert!(is_refused(&answer), "{value}: {answer}");
    }
    let answer = client
        .ask("completion/complete", complete("tmp/"))
        .await
        .json;
    assert!(!is_refused(&answer), "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn conditions_on_uris_apply_to_completions() {
    let rule = json!({ "action": "deny", "kind": "resources", "server": "s", "arguments": { "$.uri": "file:///etc/*" } });
    let (_stage, rig) = offering(ruled(json!([rule]))).await;
    let mut client = mute(&rig, LEGACY).await;
    for (value, refused) in [("e", true), ("etc/", true), ("tmp/", false)] {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "file:///{path}" },
            "argument": { "name": "path", "value": value },
        });
        let answer = client.ask("completion/complete", params).await.json;
        assert_eq!(is_refused(&answer), refused, "{value}: {answer}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn completions_match_with_their_template_syntax() {
    let denied = [
        "deny resources s:file:///etc/*",
        "deny resources s:web://h/;path=etc*",
    ];
    let (_stage, rig) = offering(ruled(json!(denied))).await;
    let mut client = mute(&rig, LEGACY).await;
    for (template, value, refused) in [
        ("file://{/path*}", "etc/pa", true),
        ("file://{/path}", "etc", true),
        ("file://{/dir,path}", "pa", true),
        ("file://{+dir}/{path}", "pa", true),
        ("file:///{path:3}", "etcetera", true),
        ("file:///etc{/path}", "tmp", true),
        ("web://h/{;path}", "etc", true),
        ("web://h/{;dir,path}", "etc", true),
        ("web://h/{path}", "etc", false),
        ("file://{/path*}", "tmp/pa", false),
    ] {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": "path", "value": value },
        });
        let answer = client.ask("completion/complete", params).await.json;
        assert_eq!(is_refused(&answer), refused, "{template} {value}: {answer}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn subscriber_gets_no_updates_of_denied_children() {
    let (stage, rig) = staged(ruled(json!(["deny resources s:file:///etc/*"]))).await;
    let mut client = Pipe::open_as(&rig, server("s"), MODERN).await;
    let params = json!({ "notifications": { "resourceSubscriptions": ["file:///"] } });
    client.send("subscriptions/listen", params).await;
    client
        .until_told("notifications/subscriptions/acknowledged")
        .await;
    let method = "notifications/resources/updated";
    for uri in ["file:///etc/passwd", "file:///tmp/x"] {
        stage.tell_with(method, json!({ "uri": uri })).await;
    }
    let heard = client.until_told(method).await;
    assert_eq!(heard["uri"], "file:///tmp/x", "{heard}");
    // A later rule applies to existing subscriptions.
    let mut config = ruled(json!(["deny resources s:file:///tmp/*"]));
    config["mcpServers"] = json!({ "s": stage.entry() });
    rig.reconfigure(&config).await;
    client.forget();
    for uri in ["file:///tmp/x", "file:///etc/passwd"] {
        stage.tell_with(method, json!({ "uri": uri })).await;
    }
    let heard = client.until_told(method).await;
    assert_eq!(heard["uri"], "file:///etc/passwd", "{heard}");
    rig.stop().await;
}

#[tokio::test]
async fn reads_and_prompts_can_require_approval() {
    for modern in [false, true] {
        let (stage, rig) = staged_as(
            modern,
            ruled(json!(["ask resources s:*", "ask prompts s:*"])),
        )
        .await;
        // A prompt that is not listed is refused.
        stage.set_prompts(&json!([{ "name": "p" }]));
        stage.tell("notifications/prompts/list_changed").await;
        for (method, params, kind, name) in [
            (
                "resources/read",
                json!({ "uri": "note://a" }),
                "resource",
                "note://a",
            ),
            (
                "prompts/get",
                json!({ "name": "p", "arguments": { "x": "1" } }),
                "prompt",
                "p",
            ),
        ] {
            for (revision, how) in [(LEGACY, "approve"), (LEGACY, "reject"), (MODERN, "approve")] {
                let mut client = mute(&rig, revision).await;
                let before = stage.asked().len();
                let call = client.send(method, params.clone()).await;
                let asked = rig.one_waiting().await;
                assert_eq!(asked["kind"], kind);
                assert_eq!(asked["tool"], name);
                assert_eq!(asked["request"]["method"], method);
                let reached = |from: usize| {
                    stage.asked()[from..]
                        .iter()
                        .any(|line| line.starts_with(method))
                };
                assert!(!reached(before), "{method} went ahead unasked");
                rig.decided(&asked["id"], how, json!({})).await;
                let mut answer = client.finish(&call).await.json;
                while answer["result"]["resultType"] == "input_required" {
                    let mut again = params.clone();
                    again["requestState"] = answer["result"]["requestState"].clone();
                    let call = client.send(method, again).await;
                    answer = client.finish(&call).await.json;
                }
                if how == "approve" {
                    assert!(
                        answer["result"].is_object(),
                        "{revision} {method}: {answer}"
                    );
                    assert!(reached(before));
                } else {
                    assert!(is_refused(&answer), "{revision} {method}: {answer}");
                    assert!(!reached(before));
                }
            }
        }
        // Subscriptions and completions never wait for an approver.
        let mut client = mute(&rig, LEGACY).await;
        for (method, params) in requests() {
            if matches!(method, "resources/subscribe" | "completion/complete") {
                let answer = client.ask(method, params).await.json;
                assert!(is_refused(&answer), "{method}: {answer}");
            }
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn remembered_read_needs_no_second_approval() {
    let (_stage, rig) = staged(ruled(json!(["ask resources s:*"]))).await;
    let mut client = mute(&rig, LEGACY).await;
    let params = json!({ "uri": "note://a" });
    let call = client.send("resources/read", params.clone()).await;
    let asked = rig.one_waiting().await;
    let remember = json!({ "remember": { "scope": "always", "arguments": "exact" } });
    rig.decided(&asked["id"], "approve", remember).await;
    client.finish(&call).await;
    let answer = client.ask("resources/read", params).await.json;
    assert!(answer["result"].is_object(), "{answer}");
    rig.stop().await;
}

#[tokio::test]
async fn stream_does_not_subscribe_to_denied_resources() {
    let (stage, rig) = staged(ruled(json!(["deny resources s:file:///etc/*"]))).await;
    let mut client = Pipe::open_as(&rig, server("s"), MODERN).await;
    let params = json!({ "notifications": { "resourceSubscriptions": ["file:///etc/x"] } });
    client.send("subscriptions/listen", params).await;
    let heard = client
        .until_told("notifications/subscriptions/acknowledged")
        .await;
    assert!(heard["notifications"].is_object(), "{heard}");
    assert!(!heard.to_string().contains("file:///etc/x"), "{heard}");
    assert!(
        !stage
            .asked()
            .iter()
            .any(|line| line.starts_with("resources/subscribe"))
    );
    rig.stop().await;
}

/// Without any rule: a server that ignores case would read the other member.
#[tokio::test]
async fn other_spellings_of_members_are_refused_without_rules() {
    let (stage, rig) = offering(json!({})).await;
    let cases = [
        (
            "tools/call",
            r#"{"name":"read_file","Name":"delete_file","arguments":{}}"#,
        ),
        ("tools/call", r#"{"NAME":"delete_file","name":"read_file"}"#),
        (
            "tools/call",
            r#"{"name":"read_file","n\u0041me":"delete_file"}"#,
        ),
        ("tools/call", r#"{"name":"read_file","name":"delete_file"}"#),
        (
            "tools/call",
            r#"{"name":"read_file","arguments":{},"Arguments":{"a":1}}"#,
        ),
        ("tools/call", r#"{"name":"read_file","argumentſ":{"a":1}}"#),
        ("prompts/get", r#"{"name":"p","Name":"q"}"#),
        ("resources/read", r#"{"uri":"note://a","URI":"note://b"}"#),
        (
            "resources/subscribe",
            r#"{"uri":"note://a","Uri":"note://b"}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"Ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","value":""}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p","Name":"q"},"argument":{"name":"a","value":""}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","value":""}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"x","Value":"/etc/"}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":["/etc/"]}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{},"Arguments":{"b":"x"}}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"x","b":"y"}}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":["x"]}}}"#,
        ),
    ];
    let before = stage.asked().len();
    for (view, prefix) in [(server("s"), ""), (direct(), "s__")] {
        let mut client = Pipe::open_as(&rig, view, LEGACY).await;
        for (n, (method, params)) in cases.iter().enumerate() {
            let params = params
                .replace(":\"read_file\"", &format!(":\"{prefix}read_file\""))
                .replace("\"name\":\"p\"", &format!("\"name\":\"{prefix}p\""));
            let id = 700 + n;
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
            client.send_text(&line).await;
            let answer = client.finish(&json!(id)).await.json;
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
    }
    let mut client = Pipe::open_as(&rig, search(), LEGACY).await;
    let params = r#"{"name":"call_tool","Name":"delete_file","arguments":{"name":"s:read_file"}}"#;
    let line = format!(r#"{{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{params}}}"#);
    client.send_text(&line).await;
    let answer = client.finish(&json!(900)).await.json;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let asked = stage.asked()[before..].join("\n");
    assert!(
        !asked.contains("delete_file") && !asked.contains("note://"),
        "{asked}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn other_server_of_same_name_needs_approval() {
    let (stage, rig) = staged(super::asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    let remember = json!({ "remember": { "scope": "always" } });
    rig.decided(&asked["id"], "approve", remember).await;
    client.finish(&call).await;
    client.call("delete_file", json!({})).await;

    let mut other = stage.entry();
    let args = other["args"].as_array_mut().unwrap();
    args.push(json!("other"));
    let mut config = super::asks_deletions();
    config["mcpServers"] = json!({ "s": other });
    rig.reconfigure(&config).await;
    rig.until_tools("s", super::tools().len()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    rig.decided(&asked["id"], "reject", json!({})).await;
    client.finish(&call).await;
    let rules = rig.get("/api/v1/approvals/rules").await.json();
    let rules = rules["rules"].as_array().unwrap();
    let kept = rules.iter().find(|rule| rule["source"] == "remembered");
    let kept = kept.unwrap_or_else(|| panic!("{rules:?}"));
    assert_eq!(kept["inert"], true, "{kept}");
    assert!(
        kept["text"].as_str().unwrap().contains("no effect"),
        "{kept}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn resource_rule_can_be_tested() {
    let (_stage, rig) = offering(json!({})).await;
    let tried = rig
        .post(
            "/api/v1/approvals/rules/test",
            &json!({ "rule": "deny resources s:*" }),
        )
        .await
        .json();
    assert_eq!(
        tried["tools"],
        json!([{ "name": "s:file:///etc/passwd", "kind": "resources", "now": "allow", "then": "deny" }]),
        "{tried}"
    );
    rig.stop().await;
}
