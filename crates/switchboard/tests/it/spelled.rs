//! Definitions and results that no tree of values can represent: numbers that are too large, lone surrogates,
//! duplicate members, deep nesting; and definitions that are too large to be kept.

use serde_json::json;
use switchboard_test_support::until;

use crate::{
    support::{Gateway, Place, json},
    trust::{gateway, held, offer, tool},
};

/// A gateway whose server `sky` offers three tools, two of them spelled like this, and responds to calls in
/// the same way.
fn odd(place: &Place) -> Gateway {
    let deep = format!("{}1{}", "[".repeat(123), "]".repeat(123));
    let odd = format!(
        r#"{{"name":"odd","description":"one\ud800","inputSchema":{{"type":"object","n":1e400}},"x":{deep}}}"#
    );
    let twice = r#"{"name":"twice","description":"a","inputSchema":{"type":"object","title":"a","title":"b"}}"#;
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"done\ud800"}}],"structuredContent":{{"n":1e400,"n":[{deep}]}}}}"#
    );
    let offered = json!({
        "tools": ["ODD", "TWICE", tool("plain", "Says nothing.")], "result": "RESULT",
        "raw": { "ODD": odd, "TWICE": twice, "RESULT": result },
    });
    place.write("sky.json", &offered.to_string());
    let [command, args @ ..] = place.shifty("sky.json");
    let server = json!({"command": command, "args": args, "start": "eager", "trust": "ask"});
    let config = json!({"mcpServers": {"sky": server}, "memory": {"enabled": false}});
    place.write_config(&config.to_string());
    let gateway = Gateway::start(place, &[]);
    until("all are held", || {
        let listed = place.run(&["trust"]);
        ["sky:odd", "sky:twice", "sky:plain"]
            .iter()
            .all(|name| listed.out.contains(name))
    });
    gateway
}

#[test]
fn oddly_spelled_definitions_are_shown_and_decided() {
    let place = Place::new();
    let _gateway = odd(&place);
    for args in [
        &["trust", "--json"][..],
        &["trust", "show", "sky", "--json"],
        &["trust", "show", "sky:odd", "--json"],
    ] {
        let shown = place.run(args);
        assert_eq!(shown.code, Some(0), "{args:?}: {shown:?}");
        assert!(shown.out.contains("\"n\": 1e400"), "{args:?}");
        assert!(shown.out.contains(r"one\ud800"), "{args:?}");
    }
    let approved = place.run(&["trust", "approve", "sky:plain", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let rejected = place.run(&["trust", "reject", "sky:twice"]);
    assert_eq!(rejected.code, Some(0), "{rejected:?}");
    let approved = place.run(&["trust", "approve", "sky", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(
        approved.err.contains("approved 1 definition of `sky`"),
        "{approved:?}"
    );
}

#[test]
fn oddly_spelled_tools_are_listed_and_called() {
    let place = Place::new();
    let _gateway = odd(&place);
    let approved = place.run(&["trust", "approve", "sky", "--yes"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let listed = place.run(&["tools"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for name in ["sky:odd", "sky:twice", "sky:plain"] {
        assert!(listed.out.contains(name), "{listed:?}");
    }
    let listed = place.run(&["tools", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.out.contains("\"n\": 1e400"), "{}", listed.out);
    let called = place.run(&["call", "sky:plain"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.out.starts_with("done"), "{called:?}");
    let called = place.run(&["call", "sky:plain", "--json"]);
    assert!(called.out.contains("1e400"), "{called:?}");
}

#[test]
fn definition_too_large_to_show_is_not_approved() {
    let place = Place::new();
    offer(
        &place,
        &[
            tool("big", &"word ".repeat(250_000)),
            tool("small", "Says nothing."),
        ],
    );
    let _gateway = gateway(&place, &json!({"trust": "ask"}));
    let why = "`sky:big` is not approved: its definition is too large to be stored and shown";
    let one = place.run(&["trust", "approve", "sky:big", "--yes"]);
    assert_eq!(one.code, Some(1), "{one:?}");
    assert!(one.err.contains(why), "{one:?}");
    let all = place.run(&["trust", "approve", "sky", "--yes"]);
    assert_eq!(all.code, Some(1), "{all:?}");
    assert!(all.err.contains(why), "{all:?}");
    let left = held(&place);
    assert_eq!(left.len(), 1, "{left:?}");
    let trust = json(&place, &["trust", "show", "sky:big", "--json"]);
    let fingerprint = trust["held"]["fingerprint"].as_str().unwrap();
    let other = place.run(&[
        "trust",
        "approve",
        "sky:big",
        "--yes",
        "--fingerprint",
        "00",
    ]);
    assert_eq!(other.code, Some(1), "{other:?}");
    let args = ["trust", "approve", "sky:big", "--yes", "--fingerprint"];
    let named = place.run(&[&args[..], &[fingerprint]].concat());
    assert_eq!(named.code, Some(0), "{named:?}");
    assert!(held(&place).is_empty());
}
