//! MCP Apps: a server and a host on the SDK for apps, alone and with the gateway in between.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Tools};

use crate::tours::furnish;

/// Runs the host, and returns its observations.
#[track_caller]
fn host(tools: &Tools, place: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(tools.node());
    command.arg(place.join("apps_host.mjs")).args(words);
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn app_works_the_same_in_the_direct_view() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let place = home.path("peers");
    furnish(&place, &tools);
    let node = tools.node();
    let server = [
        node.to_str().unwrap().to_owned(),
        place.join("apps_server.mjs").display().to_string(),
    ];
    home.set_servers(json!({ "clock": { "command": server[0], "args": [server[1]] } }));
    let serve = home.serve();
    serve.until_known("clock");
    for era in ["legacy", "modern"] {
        let alone = host(&tools, &place, &[era, "stdio", &server[0], &server[1]]);
        assert_eq!(alone["page"]["text"], "<!doctype html><title>Clock</title>");
        assert_eq!(alone["isHidden"], true);
        for view in ["direct", "s/clock"] {
            let url = format!("http://{}/mcp/{view}", serve.address);
            let through = host(&tools, &place, &[era, "http", &url, &serve.token()]);
            assert_eq!(through, alone, "{era} at {view}");
        }
    }
    serve.stop();
}
