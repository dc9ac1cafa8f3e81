//! Several clients at once.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

use crate::support::{Client, Door, Kind, Place};

#[test]
fn clients_of_every_kind_share_one_server() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    let kinds = [
        (Kind::TypescriptV1, Door::Http),
        (Kind::TypescriptV2, Door::Stdio),
        (Kind::Python, Door::Stdio),
        (Kind::Fastmcp, Door::Http),
    ];
    let clients = kinds.map(|(kind, door)| Client::start(&place, kind, door, false, &["stay"]));
    for client in &clients {
        client.step("connected");
        client.says("called", &json!({ "text": "Echo: hello" }));
    }
    // All clients are connected and have their responses.
    assert_eq!(place.started().len(), 1);
    let seen = place.witnessed();
    let handshakes = seen.iter().filter(|seen| seen["method"] == "initialize");
    assert_eq!(handshakes.count(), 1);
    let calls = seen.iter().filter(|seen| seen["method"] == "tools/call");
    assert_eq!(calls.count(), clients.len());
    for mut client in clients {
        client.let_go();
        client.leaves();
    }
}

#[test]
fn client_starts_a_gateway_that_another_joins() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::new(tools);
    let way = json!({ "command": place.stdio(&[]) });
    let job = json!({
        "prefix": "everything__",
        "awaited": "everything__echo",
        "parts": ["watch", "stay"],
    });
    let mut first = Client::start_with(&place, Kind::TypescriptV1, &[way, job]);
    first.step("connected");
    // This client is the first, so the server's tools may become known only after the response.
    let mut tools = first.step("tools");
    while !names(&tools).contains(&json!("everything__echo")) {
        tools = first.step("changed");
    }
    first.says("called", &json!({ "text": "Echo: hello" }));

    let second = Client::start(&place, Kind::Python, Door::Stdio, true, &["tools"]);
    second.step("connected");
    assert!(names(&second.step("tools")).contains(&json!("everything__echo")));
    second.says("called", &json!({ "text": "Echo: hello" }));
    second.step("structured");
    second.leaves();

    let started = place.started();
    assert_eq!(started.len(), 1);
    first.let_go();
    first.leaves();
    let server = format!("/proc/{}", started[0]);
    until("the server leaves with the last client", || {
        (!Path::new(&server).exists()).then_some(())
    });
}

fn names(line: &Value) -> &[Value] {
    line["names"].as_array().expect("names")
}
