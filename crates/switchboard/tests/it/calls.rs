//! Calls that are looked back on, and tools that are not there.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, json, until};

/// A gateway with the server with two tools.
fn gateway(place: &Place) -> Gateway {
    let [command, args @ ..] = place.echo();
    let config = json!({
        "listen": "127.0.0.1:0",
        "memory": { "enabled": false },
        "mcpServers": { "echo": { "command": command, "args": args } },
    });
    place.write_config(&config.to_string());
    let gateway = Gateway::start(place, &[]);
    until("its tools are known", || {
        place.run(&["describe", "echo:say"]).code == Some(0)
    });
    gateway
}

#[test]
fn activity_tells_why_a_call_failed() {
    let place = Place::without_memory();
    let _gateway = gateway(&place);
    place.check(&["activity"], 0, "", "nothing has been called yet\n");
    let calls = [
        (r#"{"text": "hello"}"#, "say", 0),
        ("{}", "fail", 1),
        (r#"{"refuse": "no\u001bpaper"}"#, "say", 1),
    ];
    for (arguments, tool, code) in calls {
        let done = place.run(&["call", &format!("echo:{tool}"), arguments]);
        assert_eq!(done.code, Some(code), "{done:?}");
    }
    let done = place.run(&["activity"]);
    let lines: Vec<_> = done.out.lines().collect();
    let [heading, first, second, what, third, why] = &*lines else {
        panic!("{done:?}");
    };
    assert!(heading.starts_with("AT "), "{heading}");
    assert!(
        first.contains("command line  echo:say ") && first.ends_with("  ok"),
        "{first}"
    );
    assert!(
        second.contains("echo:fail") && second.ends_with("  tool error"),
        "{second}"
    );
    assert_eq!(*what, "    {}");
    assert!(
        third.contains("echo:say") && third.ends_with("  error"),
        "{third}"
    );
    assert!(why.contains("no⟨U+001B⟩paper"), "{why}");

    let outcomes = |args: &[&str]| -> Vec<Value> {
        let answer = json(&place, &[&["activity", "--json"], args].concat());
        let calls = answer["activity"].as_array().unwrap();
        calls.iter().map(|call| call["outcome"].clone()).collect()
    };
    assert_eq!(outcomes(&["--failed"]), ["error", "tool_error"]);
    assert_eq!(outcomes(&["echo:say"]), ["error", "ok"]);
    assert_eq!(outcomes(&["echo", "-n", "1"]), ["error"]);
    assert_eq!(outcomes(&["--search", "paper"]), ["error"]);
    place.check(&["activity", "nobody"], 0, "", "no call matches\n");
}

#[test]
fn tool_that_is_not_there_is_explained_alike() {
    let place = Place::without_memory();
    let _gateway = gateway(&place);
    for (name, expected) in [
        (
            "echo:sya",
            "error: there is no tool \"echo:sya\"\nhint: did you mean \"echo:say\"?\n",
        ),
        (
            "nobody:nothing",
            "error: there is no server \"nobody\"\nhint: `switchboard list` shows the names\n",
        ),
        (
            "echo",
            "error: \"echo\" is a server, not a tool\nhint: `switchboard tools echo` lists its tools\n",
        ),
    ] {
        for command in ["describe", "call"] {
            place.check(&[command, name], 1, "", expected);
        }
    }
    place.check(&["disable", "echo"], 0, "", "disabled `echo`\n");
    let off = "`echo` is disabled\nhint: `switchboard enable echo` switches it on\n";
    place.check(&["tools", "echo"], 0, "", off);
}

#[test]
fn restart_without_a_gateway_shows_whether_the_server_starts() {
    let place = Place::without_memory();
    let [command, args @ ..] = place.echo();
    let config = json!({
        "listen": "127.0.0.1:0",
        "memory": { "enabled": false },
        "mcpServers": {
            "bad": { "command": "nonesuch-program" },
            "echo": { "command": command, "args": args },
        },
    });
    place.write_config(&config.to_string());
    // That is the command which the reason recommends.
    let done = place.run(&["restart", "bad"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("command not found") && done.err.contains("`switchboard restart bad`"),
        "{done:?}"
    );
    let done = place.run(&["restart", "echo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("`echo`: 2 tools in "), "{done:?}");
}
