//! Without a gateway: commands work on the files, and commands that need a gateway report that.

use std::fs;

use crate::support::Place;

const NOBODY: &str = "error: no gateway is running for DIR/home/switchboard.json\n";
const START: &str = "hint: start one with `switchboard serve`\n";

#[test]
fn commands_report_a_missing_gateway() {
    let place = Place::new();
    let err = format!("{NOBODY}{START}");
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["tools"],
        &["tools", "a"],
        &["call", "a:b"],
        &["search", "anything"],
        &["search", "anything", "--json"],
        &["search", "--forget"],
        &["trust"],
        &["trust", "list", "a", "--json"],
        &["trust", "show", "a"],
        &["trust", "approve", "a:b", "--yes"],
        &["trust", "reject", "a:b"],
    ] {
        place.check(args, 3, "", &err);
    }
    place.check(&["stop"], 3, "", NOBODY);
}

#[test]
fn socket_of_a_killed_gateway_is_ignored() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("run")).unwrap();
    let socket = place.home().join("run/switchboard.sock");
    drop(std::os::unix::net::UnixListener::bind(socket).unwrap());
    place.check(&["status"], 3, "", &format!("{NOBODY}{START}"));
}

#[test]
fn servers_are_changed_in_the_file() {
    let place = Place::new();
    place.check(
        &["list"],
        0,
        "",
        "there are no servers\nhint: add one with `switchboard add`, or import those of your clients with `switchboard import`\n",
    );
    place.check(&["list", "--json"], 0, "{\n  \"servers\": []\n}\n", "");
    let add = [
        "add", "files", "--env", "A=b=c", "--cwd", "/", "--", "npx", "-y", "x",
    ];
    place.check(&add, 0, "", "added `files`\n");
    let remote = "https://example.com/mcp?key=secret";
    let header = "Authorization=Bearer ${secret:far}";
    let add = [
        "add",
        "far",
        remote,
        "--header",
        header,
        "--type",
        "sse",
        "--disabled",
    ];
    let moved = "`far`: moved url (6 characters) to the secret `far-url`\nadded `far` (disabled)\n";
    place.check(&add, 0, "", moved);
    let add = [
        "add", "box", "--image", "mcp/time", "--start", "eager", "--", "--utc",
    ];
    place.check(&add, 0, "", "added `box`\n");
    assert_eq!(
        fs::read_to_string(place.config()).unwrap(),
        r#"{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "A": "b=c"
      },
      "cwd": "/"
    },
    "far": {
      "url": "https://example.com/mcp?key=${secret:far-url}",
      "headers": {
        "Authorization": "Bearer ${secret:far}"
      },
      "type": "sse",
      "enabled": false
    },
    "box": {
      "image": "mcp/time",
      "args": ["--utc"],
      "start": "eager"
    }
  }
}
"#
    );
    place.check(
        &["list"],
        0,
        "\
NAME   STATE        TOOLS  KIND       TARGET
box    not running  -      container  mcp/time
far    disabled     -      remote     https://example.com
files  not running  -      command    npx
",
        "",
    );
    place.check(&["enable", "far", "--no-wait"], 0, "", "enabled `far`\n");
    place.check(
        &["enable", "far", "--no-wait"],
        0,
        "",
        "`far` is already enabled\n",
    );
    place.check(&["disable", "files"], 0, "", "disabled `files`\n");
    place.check(&["remove", "far"], 0, "", "removed `far`\n");
    place.check(
        &["remove", "fils"],
        1,
        "",
        "error: there is no server `fils`\nhint: did you mean `files`?\n",
    );
    place.check(
        &["add", "box", "--", "x"],
        1,
        "",
        "error: server `box` already exists\nhint: remove it first, or choose another name\n",
    );
}

#[test]
fn adding_a_server_keeps_comments() {
    let place = Place::new();
    place.write_config("{\n  // mine\n  \"mcpServers\": {}, // all of them\n}\n");
    place.check(&["add", "a", "--", "x"], 0, "", "added `a`\n");
    let text = fs::read_to_string(place.config()).unwrap();
    assert!(
        text.contains("// mine") && text.contains("// all of them"),
        "{text}"
    );
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    let place = Place::new();
    place.check(
        &["add", "a", "npx"],
        2,
        "",
        "error: `npx` is not a URL\nhint: to start a program, put `--` before it: switchboard add a -- npx …\n",
    );
    place.check(
        &["add", "a/b", "--", "x"],
        2,
        "",
        "error: a server's name may not contain / or control characters\nhint: remove these characters\n",
    );
    for args in [
        &["add", "a"][..],
        &["add", "a", "http://h", "--", "x"],
        &["add", "a", "--image", "i", "http://h"],
        &["add", "a", "http://h", "--env", "A=b"],
        &["add", "a", "--header", "A=b", "--", "x"],
        &["add", "a", "--env", "A", "--", "x"],
        &["call"],
        &["search"],
        &["search", " "],
        &["search", "x", "--limit", "0"],
        &["search", "x", "--forget"],
        &["search", "--forget", "--json"],
        &["trust", "show"],
        &["trust", "aprove", "a"],
        &["trust", "reject", "a"],
        &["connect", "emacs"],
        &["completions", "dos"],
    ] {
        let done = place.run(args);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.err.starts_with("error: "), "{args:?}: {done:?}");
    }
    assert!(!place.config().exists());
    place.check(
        &["call", "a:b", "{]"],
        2,
        "",
        "error: the arguments are not valid JSON (line 1, column 2)\nhint: pass them as path=/tmp, or as an object such as '{\"path\": \"/tmp\"}'\n",
    );
    let done = place.run_with_input(&["call", "a:b", "-"], "[]");
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn semicolon_in_a_name_starts_no_hint() {
    let place = Place::new();
    place.write_config("{\"mcpServers\": {\"a; b\": {\"command\": \"x\"}}}");
    place.check(
        &["remove", "a; c"],
        1,
        "",
        "error: there is no server `a; c`\nhint: did you mean `a; b`?\n",
    );
}

#[test]
fn broken_configuration_is_reported_and_kept() {
    let place = Place::new();
    let text = "{\"mcpServers\": {\"a\": {\"comand\": \"x\"}}}";
    place.write_config(text);
    let err = "error: DIR/home/switchboard.json:1:23: unknown key \"comand\"\nhint: did you mean \"command\"?\n";
    for args in [&["list"][..], &["add", "b", "--", "x"]] {
        place.check(args, 1, "", err);
    }
    assert_eq!(fs::read_to_string(place.config()).unwrap(), text);
    place.write_config("{");
    let done = place.run(&["remove", "a"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.contains("DIR/home/switchboard.json:1:"),
        "{done:?}"
    );
    assert_eq!(fs::read_to_string(place.config()).unwrap(), "{");
}

#[test]
fn logs_are_read_from_the_file() {
    let place = Place::new();
    place.write_config(r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#);
    place.write("home/logs/a.log.1", "1\n2\n");
    place.write("home/logs/a.log", "3\n4\n");
    place.check(&["logs", "a"], 0, "1\n2\n3\n4\n", "");
    place.check(&["logs", "a", "-n", "3"], 0, "2\n3\n4\n", "");
    place.check(&["logs", "a", "-n", "1"], 0, "4\n", "");
    place.check(&["logs", "b"], 0, "", "");
    place.check(
        &["logs", "a", "-n", "1", "--json"],
        0,
        "{\n  \"lines\": [\n    \"4\"\n  ]\n}\n",
        "",
    );
    place.check(
        &["logs", "c"],
        1,
        "",
        "error: there is no server `c`\nhint: `switchboard list` shows the names\n",
    );
    let err = format!("{NOBODY}hint: start one with `switchboard serve` to follow the log\n");
    place.check(&["logs", "a", "-n", "1", "-f"], 3, "4\n", &err);
}
