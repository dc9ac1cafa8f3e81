//! Tools and calls over REST.

use serde_json::{Value, json};

use crate::api_rig::{Rig, fixture, fixture_as, program};

#[tokio::test]
async fn tools_have_their_definitions_verbatim() {
    let rig = Rig::with(json!({ "a": fixture(), "b": fixture_as("mute") })).await;
    rig.until_known("a").await;
    let answer = rig.get("/api/v1/tools").await;
    assert_eq!(answer.status, 200);
    let definition = r#""definition":{"name":"echo",  "description":"Says it \u0062ack.","inputSchema":{"type":"object"},"x":1.10}"#;
    assert!(answer.body.contains(definition), "{}", answer.body);
    let list = answer.json();
    assert_eq!(list["starting"], json!(["b"]));
    let echo = &list["tools"][0];
    assert_eq!(echo["name"], "a:echo");
    assert_eq!(echo["server"], "a");
    assert_eq!(echo["tool"], "echo");
    assert_eq!(echo["exposed"], "a__echo");
    assert_eq!(echo["description"], "Says it back.");
    let own = list["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(own["name"], "switchboard:get_status");

    let list = rig.get("/api/v1/tools?server=a").await.json();
    assert_eq!(list["tools"].as_array().unwrap().len(), 5);
    assert_eq!(list["starting"], json!([]));
    let list = rig.get("/api/v1/tools?server=b").await.json();
    assert_eq!(list, json!({ "tools": [], "starting": ["b"] }));
    let detail = rig.get("/api/v1/tools?server=B%20").await.problem(404);
    assert!(detail.contains("did you mean `b`?"), "{detail}");
    let detail = rig.get("/api/v1/tools?sever=a").await.problem(400);
    assert!(detail.contains("unknown field `sever`"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn result_is_verbatim_by_either_name() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    // The first call finds a server that was never listed, and waits for it.
    for name in ["a:echo", "a__echo"] {
        let body = format!(r#"{{"name":"{name}","arguments":{{"k":  1.0e0,"\u006b":"\u00e9"}}}}"#);
        let answer = rig.ask("POST", "/api/v1/tools/call", Some(&body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.headers.contains("content-type: application/json"));
        assert_eq!(
            answer.body,
            r#"{"content":[],  "structuredContent":{"k":  1.0e0,"\u006b":"\u00e9"},"y":1.50}"#
        );
    }
    let body = json!({ "name": "a:echo" });
    let answer = rig.post("/api/v1/tools/call", &body).await;
    assert_eq!(answer.json()["structuredContent"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn own_tools_of_the_gateway_can_be_called() {
    let rig = Rig::with(json!({})).await;
    for name in ["switchboard:get_status", "switchboard__get_status"] {
        let answer = rig.call(name, json!({})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["structuredContent"]["state"], "running");
    }
    rig.stop().await;
}

#[tokio::test]
async fn server_name_may_contain_a_colon() {
    let rig = Rig::with(json!({ "a:b": fixture(), "x y": fixture() })).await;
    for name in ["a:b:echo", "x y:echo"] {
        assert_eq!(rig.call(name, json!({})).await.status, 200, "{name}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn unknown_tool_gets_a_suggestion() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    for (name, meant) in [
        ("a:ecko", "did you mean `a:echo`?"),
        ("a__ecko", "did you mean `a:echo`?"),
        ("b:echo", "did you mean `a:echo`?"),
        ("echo", "did you mean `a:echo`?"),
        ("a:something-else-entirely", "`switchboard tools`"),
        ("weather", "`switchboard tools`"),
        ("", "`switchboard tools`"),
    ] {
        rig.until_known("a").await;
        let detail = rig.call(name, json!({})).await.problem(404);
        assert!(detail.contains(meant), "{name}: {detail}");
    }
    let detail = rig.call(&"x".repeat(100_000), json!({})).await.problem(404);
    assert!(detail.len() < 300, "{}", detail.len());
    rig.stop().await;
}

#[tokio::test]
async fn server_error_keeps_code_message_and_data() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    let answer = rig.call("a:refuse", json!({})).await;
    assert!(answer.problem(502).contains("I will not."));
    assert!(
        answer.body.contains(r#""data":{"why":  1.0}"#),
        "{answer:?}"
    );
    let problem = answer.json();
    assert_eq!(problem["code"], -32050);
    assert_eq!(problem["message"], "I will not.");
    rig.stop().await;
}

#[tokio::test]
async fn each_kind_of_failure_has_its_status() {
    let rig = Rig::configured(json!({
        "waitTimeoutMs": 100,
        "mcpServers": {
            "slow": { "command": program(), "args": ["mcp"], "requestTimeoutMs": 300 },
            "dying": fixture(),
            "mute": { "command": program(), "args": ["mute"], "requestTimeoutMs": 300 },
            "gone": { "command": "/does/not/exist" },
            "off": { "command": "x", "enabled": false },
        },
    }))
    .await;
    rig.until_known("slow").await;
    rig.until_known("dying").await;

    let detail = rig.call("slow:hang", json!({})).await.problem(504);
    assert!(detail.contains("requestTimeoutMs"), "{detail}");

    let answer = rig.call("dying:die", json!({})).await;
    assert!(
        answer
            .problem(502)
            .contains("the connection to server `dying` was lost")
    );
    assert_eq!(answer.json().get("code"), None, "only servers have codes");

    let answer = rig.call("mute:anything", json!({})).await;
    assert!(answer.problem(503).contains("not ready yet"));
    assert!(answer.headers.contains("retry-after: "), "{answer:?}");

    rig.until("/api/v1/servers/gone", |server| server["state"] == "parked")
        .await;
    let detail = rig.call("gone:anything", json!({})).await.problem(503);
    assert!(detail.contains("/does/not/exist"), "{detail}");

    let detail = rig.call("off:anything", json!({})).await.problem(409);
    assert!(detail.contains("`switchboard enable off`"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn overloaded_server_is_busy() {
    let rig = Rig::with(json!({
        "a": { "command": program(), "args": ["mcp"], "maxInFlight": 1, "maxQueued": 1 },
    }))
    .await;
    rig.until_known("a").await;
    let arguments = json!({});
    let (held, waiting) = (
        rig.call("a:hang", arguments.clone()),
        rig.call("a:hang", arguments),
    );
    let third = async {
        rig.until("/api/v1/servers/a", |server| {
            server["inFlight"] == 1 && server["queued"] == 1
        })
        .await;
        rig.call("a:echo", json!({})).await
    };
    tokio::select! {
        _ = held => panic!("nobody answers this"),
        _ = waiting => panic!("nor this"),
        third = third => {
            assert!(third.problem(429).contains("maxInFlight"));
            assert!(third.headers.contains("retry-after: 1\r\n"), "{third:?}");
        }
    }
    // The callers that disconnected have made room.
    rig.until("/api/v1/servers/a", |server| {
        server["inFlight"] == 0 && server["queued"] == 0
    })
    .await;
    rig.stop().await;
}

#[tokio::test]
async fn calls_are_recorded_and_can_be_queried() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until("/readyz", |ready| ready["ready"] == true).await;
    assert_eq!(rig.call("a:echo", json!({ "k": 1 })).await.status, 200);
    assert_eq!(rig.call("a:refuse", json!({})).await.status, 502);
    let list = rig.get("/api/v1/activity").await.json();
    let calls = list["activity"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{list}");
    let (refused, echoed) = (&calls[0], &calls[1]);
    assert_eq!(echoed["server"], "a");
    assert_eq!(echoed["method"], "tools/call");
    assert_eq!(echoed["name"], "echo");
    assert_eq!(echoed["client"], "REST API");
    assert_eq!(echoed["outcome"], "ok");
    assert!(echoed["durationMs"].as_f64().unwrap() > 0.0);
    assert!(echoed["requestBytes"].as_u64().unwrap() > 0);
    assert!(echoed["responseBytes"].as_u64().unwrap() > 0);
    assert!(echoed["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(echoed.get("code"), None);
    assert_eq!(refused["outcome"], "error");
    assert_eq!(refused["code"], -32050);
    assert!(refused["error"].is_string());
    let id = echoed["id"].as_u64().unwrap();
    for (query, found) in [
        ("server=a&name=&outcome=&since=&before=&text=&limit=", 2),
        ("server=b", 0),
        ("name=echo", 1),
        ("outcome=error", 1),
        ("text=REFUSE", 1),
        ("limit=1", 1),
        (&*format!("since={id}"), 1),
        (&*format!("before={id}"), 0),
    ] {
        let list = rig.get(&format!("/api/v1/activity?{query}")).await.json();
        assert_eq!(list["activity"].as_array().unwrap().len(), found, "{query}");
    }
    for (query, said) in [
        ("outcome=fine", "tool_error"),
        ("limit=many", "`limit`"),
        ("since=-1", "`since`"),
        ("sever=a", "`sever`"),
        ("limit=1&limit=2", "duplicate"),
    ] {
        let answer = rig.get(&format!("/api/v1/activity?{query}")).await;
        let detail = answer.problem(400);
        assert!(detail.contains(said), "{detail}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn caller_that_disconnects_withdraws_the_call() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until_known("a").await;
    let is_called = |server: &Value| server["inFlight"] == 1;
    tokio::select! {
        answer = rig.call("a:hang", json!({})) => panic!("nobody answers this: {answer:?}"),
        // The client hangs up once the server has the call.
        _ = rig.until("/api/v1/servers/a", is_called) => {}
    }
    let list = rig
        .until("/api/v1/activity", |list| list["activity"] != json!([]))
        .await;
    assert_eq!(list["activity"][0]["outcome"], "cancelled");
    rig.stop().await;
}
