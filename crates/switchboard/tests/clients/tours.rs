//! Every client, at both doors: tools, progress, prompts, resources, completion, and a cancelled call.

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

use crate::support::{Client, Door, Kind, Place};

const PARTS: [&str; 5] = ["tools", "progress", "prompts", "resources", "cancel"];

#[test]
fn typescript_v1() {
    tour(Kind::TypescriptV1, false, &PARTS);
}

#[test]
fn typescript_v2() {
    tour(Kind::TypescriptV2, false, &PARTS);
}

#[test]
fn typescript_v2_in_the_newest_revision() {
    tour(
        Kind::TypescriptV2,
        true,
        &["tools", "progress", "prompts", "cancel"],
    );
}

#[test]
fn python() {
    tour(Kind::Python, false, &PARTS);
}

#[test]
fn python_in_the_newest_revision() {
    tour(Kind::Python, true, &PARTS);
}

#[test]
fn fastmcp() {
    tour(Kind::Fastmcp, false, &PARTS);
}

#[test]
fn fastmcp_in_the_newest_revision() {
    tour(Kind::Fastmcp, true, &PARTS);
}

#[test]
fn single_server_view_keeps_names() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    let untouched = json!({ "prefix": "", "modern": false, "parts": PARTS });
    let url = format!("{}/s/everything", place.url());
    let http = json!({ "url": url, "token": place.token() });
    let stdio = json!({ "command": place.stdio(&["--view", "server:everything"]) });
    for way in [&http, &stdio] {
        let job = [way.clone(), untouched.clone()];
        let client = Client::start_with(&place, Kind::TypescriptV1, &job);
        client.says("connected", &json!({ "server": "mcp-servers/everything" }));
        check(&place, &client, "", "", &PARTS);
        client.leaves();
    }

    // Not only the names: everything that the server lists arrives unchanged.
    let without = json!({ "command": [place.tools.node(), place.tools.everything()] });
    let lists = |way: &Value| {
        let job = [way.clone(), json!({ "prefix": "", "parts": ["lists"] })];
        let client = Client::start_with(&place, Kind::TypescriptV1, &job);
        client.step("connected");
        let lists = client.step("lists");
        client.leaves();
        lists
    };
    // The gateway declares that it answers questions, so this server lists tools that ask some.
    let asking = [
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-sampling-request",
        "trigger-url-elicitation",
    ];
    let without_asking = |mut lists: Value| {
        let tools = lists["tools"].as_array_mut().unwrap();
        let before = tools.len();
        tools.retain(|tool| !asking.contains(&tool["name"].as_str().unwrap()));
        assert_eq!(before - tools.len(), asking.len(), "{lists}");
        lists
    };
    let own = lists(&without);
    assert!(own["tools"].as_array().unwrap().len() > 10, "{own}");
    assert_eq!(without_asking(lists(&http)), own);
    assert_eq!(without_asking(lists(&stdio)), own);
}

/// Runs these parts of the tour at both doors, in the direct view.
#[track_caller]
fn tour(kind: Kind, modern: bool, parts: &[&str]) {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    let revision = if modern { "2026-07-28" } else { "2025-11-25" };
    for door in [Door::Http, Door::Stdio] {
        let client = Client::start(&place, kind, door, modern, parts);
        let connected = json!({ "server": "switchboard", "revision": revision });
        client.says("connected", &connected);
        check(
            &place,
            &client,
            "everything__",
            "switchboard://everything/",
            parts,
        );
        client.leaves();
    }
    assert_eq!(place.started().len(), 1, "one server for all");
}

/// Checks the client's output during its tour.
#[track_caller]
fn check(place: &Place, client: &Client, prefix: &str, uri_prefix: &str, parts: &[&str]) {
    let has = |line: &Value, name: &str| {
        let names = line["names"].as_array().expect("names");
        let name = format!("{prefix}{name}");
        assert!(names.contains(&json!(name)), "no {name} in {line}");
    };
    for part in parts {
        match *part {
            "tools" => {
                let tools = client.step("tools");
                has(&tools, "echo");
                has(&tools, "trigger-long-running-operation");
                client.says("called", &json!({ "text": "Echo: hello" }));
                let weather = client.step("structured");
                assert!(weather["value"]["temperature"].is_number(), "{weather}");
            }
            "progress" => {
                for step in 1..=5 {
                    let progress = client.step("progress");
                    let both = [&progress["progress"], &progress["total"]].map(Value::as_f64);
                    assert_eq!(both, [Some(f64::from(step)), Some(5.0)], "{progress}");
                }
                let done = "Long running operation completed. Duration: 0.5 seconds, Steps: 5.";
                let finished = client.step("finished");
                assert_eq!(finished["text"], done);
                let heard = finished["heard"].as_u64();
                assert!(heard.is_some_and(|heard| heard >= 4), "{finished}");
            }
            "prompts" => {
                has(&client.step("prompts"), "args-prompt");
                client.says("prompt", &json!({ "text": "What's weather in Oslo?" }));
                client.says("completion", &json!({ "values": ["Engineering"] }));
            }
            "resources" => {
                let read = client.step("resource");
                let document = "demo://resource/static/document/architecture.md";
                assert_eq!(read["asked"], format!("{uri_prefix}{document}"));
                assert_eq!(read["uri"], read["asked"]);
                let text = read["text"].as_str().expect("text");
                assert!(text.starts_with("# Everything Server"), "{text}");
                let template = client.step("template");
                let dynamic = "demo://resource/dynamic/text/{resourceId}";
                assert_eq!(template["template"], format!("{uri_prefix}{dynamic}"));
                let text = template["text"].as_str().expect("text");
                assert!(text.starts_with("Resource 7: "), "{text}");
                client.says("completion", &json!({ "values": ["7"] }));
            }
            "cancel" => {
                client.step("cancelled");
                client.says("called", &json!({ "text": "Echo: still here" }));
                until("the server hears that the call is withdrawn", || {
                    is_withdrawn(&place.witnessed()).then_some(())
                });
            }
            other => panic!("there is no part {other:?}"),
        }
    }
}

/// Returns `true` if the last call that would take minutes was cancelled.
fn is_withdrawn(seen: &[Value]) -> bool {
    let is_long = |message: &&Value| message["params"]["arguments"]["duration"] == 600;
    let call = seen.iter().rfind(is_long).expect("it was called");
    seen.iter().any(|message| {
        message["method"] == "notifications/cancelled"
            && message["params"]["requestId"] == call["id"]
    })
}
