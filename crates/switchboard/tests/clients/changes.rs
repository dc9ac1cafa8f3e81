//! A server that is added while clients are connected: they are notified.

use serde_json::{Value, json};
use switchboard_test_support::Tools;

use crate::support::{Client, Door, Kind, Place};

#[test]
fn typescript_v1_is_notified_of_a_new_server() {
    hears(&[
        (Kind::TypescriptV1, Door::Http),
        (Kind::TypescriptV1, Door::Stdio),
    ]);
}

#[test]
fn typescript_v2_is_notified_of_a_new_server() {
    hears(&[
        (Kind::TypescriptV2, Door::Http),
        (Kind::TypescriptV2, Door::Stdio),
    ]);
}

/// Clients that are connected when the configuration changes, and receive the new tools without asking.
#[track_caller]
fn hears(kinds: &[(Kind, Door)]) {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    let clients: Vec<Client> = kinds
        .iter()
        .map(|(kind, door)| {
            let way = match door {
                Door::Http => json!({ "url": place.url(), "token": place.token() }),
                Door::Stdio => json!({ "command": place.stdio(&[]) }),
            };
            let awaited = json!({ "prefix": "", "awaited": "second__echo", "parts": ["watch"] });
            Client::start_with(&place, *kind, &[way, awaited])
        })
        .collect();
    let has = |line: &Value, name: &str| {
        let names = line["names"].as_array().expect("names");
        names.contains(&json!(name))
    };
    for client in &clients {
        client.step("connected");
        let tools = client.step("tools");
        assert!(has(&tools, "everything__echo"), "{tools}");
        assert!(!has(&tools, "second__echo"), "{tools}");
    }

    place.set_servers(&["everything", "second"]);
    for client in clients {
        // There may be an earlier notification: the server is added first, and its tools are known later.
        let mut change = client.step("changed");
        while !has(&change, "second__echo") {
            change = client.step("changed");
        }
        assert!(has(&change, "everything__echo"), "{change}");
        client.leaves();
    }
}
