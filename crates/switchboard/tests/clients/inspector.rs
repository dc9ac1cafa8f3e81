//! The command line of the MCP Inspector: one process per request.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use switchboard_test_support::Tools;

use crate::support::{Door, Place};

#[test]
fn inspector_works_over_http() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    check_tools(&place, Door::Http, "legacy");
    let ask = |args: &[&str]| ask(&place, Door::Http, "legacy", args);

    let prompts = ask(&["--method", "prompts/list"]);
    assert_eq!(prompts["prompts"][0]["name"], "everything__simple-prompt");
    let prompt = [
        "--prompt-name",
        "everything__args-prompt",
        "--prompt-args",
        "city=Oslo",
    ];
    let prompt = ask(&[&["--method", "prompts/get"], &prompt[..]].concat());
    let text = &prompt["messages"][0]["content"]["text"];
    assert_eq!(text, "What's weather in Oslo?");

    let resources = ask(&["--method", "resources/list"]);
    let uri = resources["resources"][0]["uri"].as_str().expect("a URI");
    assert!(uri.starts_with("switchboard://everything/"), "{uri}");
    let read = ask(&["--method", "resources/read", "--uri", uri]);
    assert_eq!(read["contents"][0]["uri"], uri);
    let templates = ask(&["--method", "resources/templates/list"]);
    let template = &templates["resourceTemplates"][0]["uriTemplate"];
    let expected = "switchboard://everything/demo://resource/dynamic/text/{resourceId}";
    assert_eq!(template, expected);
}

#[test]
fn inspector_works_over_stdio() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    check_tools(&place, Door::Stdio, "legacy");
}

#[test]
fn inspector_works_in_the_newest_revision() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::with_gateway(tools);
    check_tools(&place, Door::Http, "modern");
    check_tools(&place, Door::Stdio, "modern");
}

#[track_caller]
fn check_tools(place: &Place, door: Door, era: &str) {
    let tools = ask(place, door, era, &["--method", "tools/list"]);
    let tools = tools["tools"].as_array().expect("tools");
    let echo = tools.iter().find(|tool| tool["name"] == "everything__echo");
    let echo = echo.expect("the echo is listed");
    assert_eq!(echo["inputSchema"]["required"], json!(["message"]));
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "everything__echo",
        "--tool-arg",
        "message=hello",
    ];
    let called = ask(place, door, era, &call);
    assert_eq!(called["content"][0]["text"], "Echo: hello", "{called}");
}

/// Sends one request and returns the output.
#[track_caller]
fn ask(place: &Place, door: Door, era: &str, args: &[&str]) -> Value {
    let mut command = Command::new(place.tools.node());
    command
        .env("HOME", place.path(""))
        .current_dir(place.path(""))
        .arg(place.tools.inspector())
        .args([
            "--cli",
            "--format",
            "json",
            "--quiet",
            "--protocol-era",
            era,
        ])
        .stdin(Stdio::null());
    let token = format!("Authorization: Bearer {}", place.token());
    match door {
        Door::Http => {
            let way = ["--server-url", place.url(), "--transport", "http"];
            command.args(way).args(["--header", &token]).args(args);
        }
        Door::Stdio => {
            command.args(args).arg("--").args(place.stdio(&[]));
        }
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    let mut printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    printed["result"].take()
}
