//! Trust: changed tools are held, shown with their changes, and return when the user approves them.

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::support::{Gateway, Place, json};

/// A tool with this description.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Sets the tools that the server `sky` offers from its next start on.
pub(crate) fn offer(place: &Place, tools: &[Value]) {
    place.write("sky.json", &json!({"tools": tools}).to_string());
}

/// A gateway with the server `sky`, whose entry has these additional members.
pub(crate) fn gateway(place: &Place, more: &Value) -> Gateway {
    let [command, args @ ..] = place.shifty("sky.json");
    let mut server = json!({"command": command, "args": args, "start": "eager"});
    server
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let config = json!({"mcpServers": {"sky": server}, "memory": {"enabled": false}});
    place.write_config(&config.to_string());
    let gateway = Gateway::start(place, &[]);
    wait_for_judgement(place);
    gateway
}

/// Waits until the offers of `sky` are known and judged.
pub(crate) fn wait_for_judgement(place: &Place) {
    until("sky is judged", || {
        let trust = json(place, &["trust", "list", "sky", "--json"]);
        let sky = &trust["servers"][0];
        sky["approved"] != 0 || sky["held"] != json!([])
    });
}

/// The held definitions of `sky`, with the reasons.
pub(crate) fn held(place: &Place) -> Vec<(String, String)> {
    let trust = json(place, &["trust", "list", "sky", "--json"]);
    let held = trust["servers"][0]["held"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    held.iter()
        .map(|held| (text(&held["tool"]), text(&held["why"])))
        .collect()
}

/// Changes the offers of the server, and waits until they have been judged.
#[track_caller]
pub(crate) fn change(place: &Place, tools: &[Value], expected: &[(&str, &str)]) {
    offer(place, tools);
    assert_eq!(place.run(&["restart", "sky"]).code, Some(0));
    until("the change is seen", || {
        let held = held(place);
        let held: Vec<_> = held.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        held == expected
    });
}

pub(crate) fn names(place: &Place) -> Vec<String> {
    let tools = json(place, &["tools", "sky", "--json"]);
    let tools = tools["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["tool"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn changed_tool_is_held_until_approved() {
    let place = Place::new();
    let read = tool("read", "Reads a note.");
    offer(&place, &[read.clone(), tool("write", "Writes a note.")]);
    let _gateway = gateway(&place, &json!({}));
    place.check(
        &["trust"],
        0,
        "SERVER  TRUST  APPROVED  HELD  SUSPICIOUS\nsky     first  2         0     0\n",
        "there are no held definitions\n",
    );

    let changed = tool("write", "Writes a note and keeps a copy.");
    change(&place, &[read, changed], &[("write", "changed")]);
    let why = "hint: review it with `switchboard trust`\n";
    place.check(
        &["tools", "sky"],
        0,
        "TOOL      DESCRIPTION\nsky:read  Reads a note.\n",
        &format!("warning: 1 tool is held: sky:write (changed since approval)\n{why}"),
    );
    let tools = json(&place, &["tools", "--json"]);
    assert_eq!(
        tools["held"],
        json!([{"name": "sky:write", "server": "sky", "tool": "write", "why": "changed"}])
    );
    let told =
        "warning: 1 tool is held and cannot be called\nhint: review it with `switchboard trust`\n";
    assert_eq!(place.run(&["list"]).err, told);
    let status = place.run(&["status"]);
    assert_eq!(status.err, told);
    assert!(status.out.contains(" (1 more held)\n"), "{status:?}");
    assert_eq!(json(&place, &["status", "--json"])["held"], 1);

    let done = place.run(&["trust", "list", "sky"]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.out
            .contains("\nHELD       REASON                  SINCE\n")
            && done.out.contains("\nsky:write  changed since approval  "),
        "{done:?}"
    );
    assert_eq!(
        done.err,
        "hint: review it with `switchboard trust show sky:write`, then run `switchboard trust approve sky:write` or `switchboard trust reject sky:write`\n"
    );
    check_shown(&place);

    // There is no terminal to ask on.
    let done = place.run(&["trust", "approve", "sky:write"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert_eq!(
        done.err,
        "error: nothing was approved: cannot ask for confirmation, because standard input is not a terminal\nhint: use --yes to approve without confirmation\n"
    );
    assert_eq!(names(&place), ["read"]);

    let done = place.run(&["trust", "approve", "sky:write", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out
            .contains("  + Writes a note{+ and keeps a copy+}.\n"),
        "{done:?}"
    );
    assert_eq!(done.err, "approved `sky:write`\n");
    assert_eq!(names(&place), ["read", "write"]);
    place.check(&["call", "sky:write"], 0, "called write\n", "");
    place.check(
        &["trust", "approve", "sky:write", "--yes"],
        0,
        "",
        "`sky:write` is already approved\n",
    );
    let done = place.run(&["trust", "show", "sky:write"]);
    assert!(
        done.out.starts_with("sky:write is approved\nsince        "),
        "{done:?}"
    );
}

/// Checks the output about the changed tool.
fn check_shown(place: &Place) {
    let shown = json(place, &["trust", "show", "sky:write", "--json"]);
    let held = &shown["held"];
    assert_eq!(
        (&shown["server"], &held["why"]),
        (&json!("sky"), &json!("changed"))
    );
    let fingerprint = held["fingerprint"].as_str().unwrap();
    let done = place.run(&["trust", "show", "sky:write"]);
    assert_eq!(done.code, Some(0));
    let (head, rest) = done.out.split_once("\n\n").unwrap();
    assert!(
        head.starts_with("sky:write is held: changed since approval\nsince        ")
            && head.ends_with(&format!("\nfingerprint  {fingerprint}")),
        "{done:?}"
    );
    assert_eq!(
        rest,
        "\
changes
description
  - Writes a note.
  + Writes a note{+ and keeps a copy+}.

definition
  name
      write
  description
      Writes a note and keeps a copy.
  inputSchema
      {
        \"type\": \"object\"
      }
"
    );
    assert_eq!(
        done.err,
        "hint: run `switchboard trust approve sky:write` or `switchboard trust reject sky:write`\n"
    );
    // All held tools of a server are shown in the same way.
    let all = place.run(&["trust", "show", "sky"]);
    assert_eq!((all.out, all.err), (done.out, done.err));
    let all = json(place, &["trust", "show", "sky", "--json"]);
    assert_eq!((&all["name"], &all["held"][0]), (&json!("sky"), held));
}

#[test]
fn rejected_tool_stays_hidden_until_it_changes() {
    let place = Place::new();
    offer(&place, &[tool("a", "One.")]);
    let gateway = gateway(&place, &json!({}));
    change(&place, &[tool("a", "Two.")], &[("a", "changed")]);
    place.check(
        &["trust", "reject", "sky:a"],
        0,
        "",
        "rejected `sky:a`: it stays held until it changes\n",
    );
    assert_eq!(held(&place), [("a".to_owned(), "rejected".to_owned())]);
    assert_eq!(names(&place), [""; 0]);
    // The user is not asked again, not even by another gateway.
    drop(gateway);
    let _gateway = Gateway::start(&place, &[]);
    until("sky is judged again", || {
        json(&place, &["list", "--json"])["servers"][0]["state"] == "ready"
    });
    place.check(
        &["tools", "sky"],
        0,
        "",
        "`sky` has no tools that can be called\n",
    );
    assert_eq!(place.run(&["list"]).err, "");
    let done = place.run(&["trust"]);
    assert!(done.out.contains("\nsky:a  rejected  "), "{done:?}");
    assert_eq!(done.err, "");
    place.check(
        &["trust", "approve", "sky"],
        0,
        "",
        "`sky` has no held definitions\n",
    );
    let done = place.run(&["trust", "show", "sky:a"]);
    assert!(
        done.err
            .starts_with("hint: it stays held until it changes; to show it anyway, run `switchboard trust approve sky:a`"),
        "{done:?}"
    );

    change(&place, &[tool("a", "Three.")], &[("a", "changed")]);
    change(&place, &[tool("a", "One.")], &[]);
    assert_eq!(names(&place), ["a"]);
    change(&place, &[tool("a", "Two.")], &[("a", "rejected")]);
    assert_eq!(
        place.run(&["trust", "approve", "sky:a", "--yes"]).code,
        Some(0)
    );
    assert_eq!(names(&place), ["a"]);
}

#[test]
fn trust_ask_shows_nothing_before_approval() {
    let place = Place::new();
    let tools = [tool("a", "One."), tool("b", "Two.")];
    let offers = json!({"tools": tools, "instructions": "Be kind."});
    place.write("sky.json", &offers.to_string());
    let _gateway = gateway(&place, &json!({"trust": "ask"}));
    let all = ["(instructions)", "a", "b"];
    assert_eq!(
        held(&place),
        all.map(|name| (name.to_owned(), "new".to_owned()))
    );
    assert_eq!(names(&place), [""; 0]);
    let done = place.run(&["call", "sky:a"]);
    assert_eq!(done.code, Some(1), "{done:?}");

    // Names are quoted if a shell would split them.
    let done = place.run(&["trust", "show", "sky:(instructions)"]);
    assert!(
        done.out.starts_with(
            "sky:(instructions) (the server's instructions for models) is held: new\n"
        ) && done.out.contains("\n  description\n      Be kind.\n"),
        "{done:?}"
    );
    assert!(
        done.err
            .contains("`switchboard trust approve 'sky:(instructions)'`"),
        "{done:?}"
    );

    let done = place.run(&["trust", "approve", "sky"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.out.contains("\nsky:a               new  "), "{done:?}");
    let done = place.run(&["trust", "approve", "sky:b", "--yes"]);
    assert_eq!(
        done.err,
        "approved `sky:b`\nhint: `sky` has 2 more held definitions: `switchboard trust list sky` shows which\n"
    );
    assert_eq!(names(&place), ["b"]);
    place.check(
        &["trust", "approve", "sky:a", "--all"],
        2,
        "",
        "error: --all applies to a server, not to a tool\nhint: run `switchboard trust approve sky --all`\n",
    );
    let done = place.run(&["trust", "approve", "sky", "--all", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.ends_with("approved 2 definitions of `sky`\n"),
        "{done:?}"
    );
    assert_eq!(names(&place), ["a", "b"]);
}

#[test]
fn unknown_tools_cannot_be_decided() {
    let place = Place::new();
    offer(&place, &[tool("a", "One.")]);
    let _gateway = gateway(&place, &json!({}));
    let no_server = "error: there is no server `ski`\nhint: did you mean `sky`?\n";
    for args in [
        &["trust", "list", "ski"][..],
        &["trust", "show", "ski"],
        &["trust", "show", "ski:a"],
        &["trust", "approve", "ski:a", "--yes"],
        &["trust", "reject", "ski:a"],
    ] {
        place.check(args, 1, "", no_server);
    }
    place.check(
        &["trust", "show", "sky"],
        0,
        "",
        "`sky` has no held definitions\n",
    );
    for args in [
        &["trust", "show", "sky:b"][..],
        &["trust", "approve", "sky:b", "--yes"],
        &["trust", "reject", "sky:a"],
    ] {
        let done = place.run(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.err.contains("\nhint: "), "{args:?}: {done:?}");
    }
    assert_eq!(names(&place), ["a"]);
}

#[test]
fn invisible_characters_are_spelled_out() {
    let place = Place::new();
    let hidden =
        "Adds.\u{200b}\u{200b}\u{200b}\u{200b} \u{e0041}\u{e0042}\u{e0043}\u{e0044} More.\u{1b}[2J";
    offer(&place, &[tool("add", hidden)]);
    let _gateway = gateway(&place, &json!({}));
    let done = place.run(&["trust", "list"]);
    assert!(
        done.out.contains("\nsky:add  hidden characters  ")
            && done.out.contains("\n    suspicious: description: ")
            && done.out.contains("  0         1     1\n"),
        "{done:?}"
    );
    let done = place.run(&["trust", "show", "sky:add"]);
    let (suspicious, says) = done.out.split_once("\ndefinition\n").unwrap();
    assert!(
        suspicious.contains("\nfindings\n  hidden: description: "),
        "{done:?}"
    );
    for text in [suspicious, says] {
        assert!(text.contains("Adds.⟨U+200B⟩⟨U+200B⟩"), "{done:?}");
        assert!(
            !text.contains(['\u{200b}', '\u{e0041}', '\u{1b}']),
            "{done:?}"
        );
    }
    // After approval, the tool stays marked as suspicious.
    assert_eq!(
        place.run(&["trust", "approve", "sky:add", "-y"]).code,
        Some(0)
    );
    assert_eq!(
        place.run(&["tools", "sky"]).err,
        "warning: 1 tool is suspicious: sky:add\nhint: review it with `switchboard trust`\n"
    );
    let done = place.run(&["trust"]);
    assert!(
        done.out
            .contains("\nSUSPICIOUS, NOT HELD\nsky:add\n    description: "),
        "{done:?}"
    );
    until("it is found", || {
        place.run(&["search", "add"]).code == Some(0)
    });
    assert_eq!(place.run(&["search", "add", "--trusted"]).code, Some(1));
}

/// The command line of that server as shown; tests see their folder as DIR.
const HELD_PROGRAM: &str = r"program      sh -c 'echo '\''a b'\'' > DIR/home/trace'";

/// A held server whose start would leave a trace.
fn held_server(place: &Place) {
    let trace = place.home().join("trace");
    let script = format!("echo 'a b' > {}", trace.display());
    let server = json!({
        "command": "sh", "args": ["-c", script], "env": {"NODE_OPTIONS": "--require=x"}, "cwd": "/",
        "hold": true, "start": "eager",
    });
    let config = json!({"mcpServers": {"sky": server}, "memory": {"enabled": false}});
    place.write_config(&config.to_string());
}

#[test]
fn held_server_is_listed_with_its_command_line() {
    let place = Place::new();
    held_server(&place);
    let _gateway = Gateway::start(&place, &[]);
    let trust = json(&place, &["trust", "list", "sky", "--json"]);
    let fingerprint = trust["servers"][0]["start"]["fingerprint"].as_str();
    let file = &trust["servers"][0]["start"]["settings"]["file"];
    let page = format!(
        "sky is held until you approve it\n{HELD_PROGRAM}\nfingerprint  {}\n\
         cwd          /\nenv          NODE_OPTIONS=--require=x\nfile         {}\n",
        fingerprint.unwrap(),
        file.as_str().unwrap()
    );
    let hint =
        "hint: `switchboard trust approve sky` starts it, `switchboard remove sky` removes it\n";
    let table = "SERVER  TRUST  APPROVED  HELD  SUSPICIOUS\nsky     first  0         0     0\n";
    place.check(&["trust"], 0, &format!("{table}\n{page}"), hint);
    place.check(&["trust", "show", "sky"], 0, &page, hint);
    let unasked = "error: nothing was approved: cannot ask for confirmation, because standard input is not a terminal\nhint: use --yes to approve without confirmation\n";
    place.check(&["trust", "approve", "sky"], 2, &page, unasked);
    assert!(!place.home().join("trace").exists());
    place.check(
        &["trust", "approve", "sky", "--yes"],
        0,
        &page,
        "approved the start of `sky`\n",
    );
    until("it is started", || place.home().join("trace").exists());
}

#[test]
fn held_server_is_queued_with_its_command_line() {
    let place = Place::new();
    held_server(&place);
    let _gateway = Gateway::start(&place, &[]);
    let mut id = String::new();
    until("it is asked about", || {
        let waiting = json(&place, &["approvals", "list", "--json"]);
        let first = &waiting["approvals"][0]["id"];
        id = first.as_str().unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let shown = place.run(&["approvals", "show", &id]);
    for part in [
        "sky (server start): pending\n",
        HELD_PROGRAM,
        "  env          NODE_OPTIONS=--require=x\n",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
}
