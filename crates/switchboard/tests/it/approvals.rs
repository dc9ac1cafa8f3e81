//! Pending requests: shown and decided by the real program, for a real server that samples, asks questions,
//! and has a tool that needs approval.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    process::{Child, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    support::{Gateway, Place, json},
    terminal::Session,
};

/// A server that passes the arguments of `ask_model` and `ask_person` on as its requests, and responds with
/// the answer.
const ASKER: &str = r#"
import json, sys
def send(message):
    print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
def answer(id, text):
    send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
asked, calls = {"ask_model": "sampling/createMessage", "ask_person": "elicitation/create"}, {}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, method, params = message["id"], message.get("method"), message.get("params") or {}
    if method is None:
        told = message.get("result", message.get("error"))
        answer(calls.pop(id), json.dumps(told))
    elif method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
              "serverInfo": {"name": "asker", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [
            {"name": name, "description": "It will %s." % name, "inputSchema": {"type": "object"}}
            for name in ("ask_model", "ask_person", "remove")]}})
    elif method == "tools/call" and params["name"] in asked:
        calls["q%s" % len(calls)] = id
        send({"id": list(calls)[-1], "method": asked[params["name"]], "params": params["arguments"]})
    elif method == "tools/call":
        at = line.index('"arguments":')
        answer(id, "removed " + line[at:at + 200])
    else:
        send({"id": id, "result": {}})
"#;

/// A gateway with the server `asker`, whose tool `remove` needs approval.
pub(crate) fn gateway(place: &Place) -> Gateway {
    let approvals = json!({"rules": ["ask asker:remove"], "notify": "off"});
    gateway_with(place, &json!({"approvals": approvals}))
}

/// A gateway with the server `asker` and this additional configuration.
pub(crate) fn gateway_with(place: &Place, more: &Value) -> Gateway {
    let script = place.write("asker.py", ASKER);
    let server = json!({"command": "python3", "args": ["-S", script], "start": "eager"});
    let mut config = json!({"mcpServers": {"asker": server}});
    let members = config.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    place.write_config(&config.to_string());
    start(place)
}

pub(crate) fn start(place: &Place) -> Gateway {
    let gateway = Gateway::start(place, &[]);
    until("asker is ready", || {
        json(place, &["status", "--json"])["servers"][0]["state"] == "ready"
    });
    gateway
}

/// A call in a process of its own.
pub(crate) struct Calling(Child);

impl Calling {
    pub(crate) fn start(place: &Place, tool: &str, arguments: &str) -> Self {
        let child = place
            .command(&["call", tool, arguments])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    /// The exit code and all output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let code = self.0.wait().unwrap().code();
        let out = self.0.stdout.take().unwrap();
        out.chain(self.0.stderr.take().unwrap())
            .read_to_string(&mut said)
            .unwrap();
        (code, said)
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls a tool, waits until its request is pending, and returns both.
pub(crate) fn ask(place: &Place, tool: &str, arguments: &str) -> (Calling, Value) {
    let waiting = || json(place, &["approvals", "--json"])["approvals"].take();
    let ids = |list: &Value| -> Vec<Value> {
        let list = list.as_array().unwrap().iter();
        list.map(|approval| approval["id"].clone()).collect()
    };
    let before = ids(&waiting());
    let calling = Calling::start(place, tool, arguments);
    let mut found = Value::Null;
    until("somebody is asked", || {
        // The newest comes first.
        let newest = waiting().get(0).cloned();
        found = newest.unwrap_or_default();
        !found.is_null() && !before.contains(&found["id"])
    });
    (calling, found)
}

pub(crate) fn id(approval: &Value) -> &str {
    approval["id"].as_str().unwrap()
}

/// Runs a command with a known user name.
pub(crate) fn run(place: &Place, args: &[&str]) -> (Option<i32>, String, String) {
    let output = place.command(args).env("USER", "ada").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn call_waits_until_it_is_approved() {
    let place = Place::new();
    let _gateway = gateway(&place);
    place.check(
        &["approvals"],
        0,
        "",
        "there are no pending requests\nhint: wait for new ones with `switchboard approvals watch`\n",
    );
    let arguments =
        r#"{"path": "/a\u202eb\u001b[2J", "n": 123456789012345678901234567890, "f": 1.50}"#;
    let (calling, asked) = ask(&place, "asker:remove", arguments);
    let id = id(&asked);
    assert_eq!(asked["kind"], "tool_call");
    let list = place.run(&["approvals"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let row = list.out.lines().nth(1).unwrap();
    assert!(
        row.starts_with(id) && row.contains("tool_call  asker:remove"),
        "{list:?}"
    );
    assert!(
        list.err
            .contains(&format!("`switchboard approvals approve {id}`")),
        "{list:?}"
    );
    assert!(!list.out.contains(['\u{1b}', '\u{202e}']), "{list:?}");

    let show = place.run(&["approvals", "show", &id[..6]]);
    assert_eq!(show.code, Some(0), "{show:?}");
    for part in [
        "rule        ask asker:remove\n",
        "  \"path\": \"/a\\u202eb\\u001b[2J\",\n",
        "  \"n\": 123456789012345678901234567890,\n",
        "  \"f\": 1.50\n",
    ] {
        assert!(show.out.contains(part), "{part}: {show:?}");
    }
    assert!(!show.out.contains(['\u{1b}', '\u{202e}']), "{show:?}");
    let whole = place.run(&["approvals", "show", id, "--json"]);
    assert!(
        whole.out.contains("\"n\": 123456789012345678901234567890,"),
        "{whole:?}"
    );

    // There is no terminal to ask on.
    let done = place.run(&["approvals", "approve", id]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("--yes"), "{done:?}");

    let (code, _, err) = run(&place, &["approvals", "approve", &id[..7], "--yes"]);
    assert_eq!(
        (code, err),
        (
            Some(0),
            format!("approved `{id}`: calling `asker:remove`\n")
        )
    );
    let (code, said) = calling.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("123456789012345678901234567890") && said.contains("1.50"),
        "{said}"
    );

    // A late decision reports the earlier one.
    let (code, _, err) = run(&place, &["approvals", "reject", id]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.starts_with(&format!(
            "error: request `{id}` was already approved by owner via socket (switchboard, pid "
        )),
        "{err}"
    );
    let (code, _, err) = run(&place, &["approvals", "approve", id, "--yes"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("was already approved by owner via socket (switchboard, pid "),
        "{err}"
    );
    let show = place.run(&["approvals", "show", id]);
    assert!(
        show.out
            .contains("\ndecision\n  approved by owner via socket (switchboard, pid "),
        "{show:?}"
    );
    let all = place.run(&["approvals", "list", "--all"]);
    assert!(
        all.out.contains("approved  tool_call  asker:remove"),
        "{all:?}"
    );
    let none = place.run(&["approvals", "list", "--status", "rejected"]);
    assert_eq!((none.code, &*none.err), (Some(0), "no requests match\n"));
    let wrong = place.run(&["approvals", "list", "--status", "sideways"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
}

#[test]
fn arguments_can_be_edited_before_approval() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a", "n": 1.000}"#);
    let wrong = place.run(&[
        "approvals",
        "approve",
        id(&asked),
        "--yes",
        "--arguments",
        "[1]",
    ]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let wrong = place.run(&["approvals", "approve", id(&asked), "--yes", "--model", "x"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong
            .err
            .contains("--model applies only to sampling requests"),
        "{wrong:?}"
    );
    let given = r#"{"path": "/b", "n": 0.10}"#;
    let done = place.run(&[
        "approvals",
        "approve",
        id(&asked),
        "--yes",
        "--arguments",
        given,
    ]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let (code, said) = calling.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("/b") && said.contains("0.10") && !said.contains("/a"),
        "{said}"
    );

    // In an editor, with the diff shown before it is sent.
    let editor = place.write(
        "editor",
        "#!/bin/sh\nsed -i s,/a,/edited, \"$2\"\ncat \"$2\" > \"$2.seen\"\n",
    );
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let editor = format!("{} --wait", editor.display());
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a", "n": 1.000}"#);
    let edit = ["approvals", "approve", id(&asked), "--edit"];
    let variables = [("EDITOR", editor.as_str()), ("NO_COLOR", "1")];
    let mut session = Session::start(&place, &edit, &variables);
    session.wait_for("with your changes");
    session.type_in("y\n");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        seen.contains("-  \"path\": \"/a\",\r\n") && seen.contains("+  \"path\": \"/edited\",\r\n"),
        "{seen}"
    );
    let (_, said) = calling.end();
    assert!(said.contains("/edited") && said.contains("1.000"), "{said}");
    // No file is left but the one that the editor made.
    let left = fs::read_dir(place.home().join("run")).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    let left = left.iter().filter_map(|name| name.to_str());
    let left: Vec<_> = left.filter(|name| name.starts_with("edit-")).collect();
    assert!(
        left.len() == 1 && left[0].contains(".json.seen"),
        "{left:?}"
    );
    // An editor that fails changes nothing.
    let (_calling, asked) = ask(&place, "asker:remove", "{}");
    let output = place
        .command(&["approvals", "approve", id(&asked), "--edit", "--yes"])
        .env("VISUAL", "false")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        json(&place, &["approvals", "--json"])["approvals"][0]["status"],
        "pending"
    );
}

#[test]
fn rejection_is_reported_and_can_be_remembered() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a"}"#);
    // The command line has no session, which is reported before the user is asked.
    let session = ["approvals", "approve", id(&asked), "--remember", "session"];
    place.check(
        &session,
        2,
        "",
        "error: cannot remember this decision: the caller has no lasting session\nhint: use --remember always\n",
    );
    let reject = [
        "approvals",
        "reject",
        id(&asked),
        "not that folder",
        "--remember",
        "always",
        "--exact",
        "--for",
        "2h",
    ];
    let (code, _, err) = run(&place, &reject);
    assert_eq!(code, Some(0), "{err}");
    let (code, said) = calling.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not that folder"), "{said}");
    // The same call is refused without asking again.
    let again = place.run(&["call", "asker:remove", r#"{"path": "/a"}"#]);
    assert_eq!(again.code, Some(1), "{again:?}");

    let rules = json(&place, &["approvals", "rules", "--json"]);
    let rules = rules["rules"].as_array().unwrap();
    let remembered = rules
        .iter()
        .find(|rule| rule["source"] == "remembered")
        .unwrap();
    let by = remembered["by"].as_str().unwrap();
    assert!(
        by.starts_with("owner via socket (switchboard, pid "),
        "{by}"
    );
    assert!(remembered["expiresAt"].is_string(), "{remembered}");
    let shown = place.run(&["approvals", "rules"]);
    assert!(
        shown.out.contains("ask asker:remove") && shown.out.contains("owner via socket"),
        "{shown:?}"
    );
    let rule = remembered["id"].as_str().unwrap();
    assert!(
        shown
            .err
            .contains(&format!("`switchboard approvals forget {rule}`")),
        "{shown:?}"
    );
    place.check(
        &["approvals", "forget", rule],
        0,
        "",
        &format!("forgot `{rule}`\n"),
    );
    let done = place.run(&["approvals", "forget", rule]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let done = place.run(&["approvals", "forget", "config-1"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let (_calling, _) = ask(&place, "asker:remove", r#"{"path": "/a"}"#);
    let wrong = place.run(&["approvals", "reject", id(&asked), "--exact"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn rule_can_be_tested_before_use() {
    let place = Place::new();
    let _gateway = gateway(&place);
    assert_eq!(place.run(&["call", "asker:nothing"]).code, Some(1));
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a"}"#);
    assert_eq!(
        place.run(&["approvals", "approve", id(&asked), "-y"]).code,
        Some(0)
    );
    assert_eq!(calling.end().0, Some(0));
    let rule = "deny asker:re*";
    let done = place.run(&["approvals", "test", rule]);
    assert_eq!((done.code, &*done.err), (Some(0), ""), "{done:?}");
    assert!(
        done.out
            .starts_with("deny asker:re*\n\nNAME          KIND       NOW  WITH RULE\nasker:remove  tool_call  ask  deny\n"),
        "{done:?}"
    );
    assert!(
        done.out.contains("the rule matches 1 of the last 1 call\n"),
        "{done:?}"
    );
    assert!(
        done.out.contains("{\"path\": \"/a\"}") || done.out.contains("{\"path\":\"/a\"}"),
        "{done:?}"
    );
    let tested = json(&place, &["approvals", "test", rule, "--json"]);
    assert_eq!(
        tested["tools"],
        json!([{"name": "asker:remove", "kind": "tool_call", "now": "ask", "then": "deny"}])
    );
    let wrong = place.run(&["approvals", "test", "perhaps asker:re*"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let wrong = place.run(&["approvals", "test", "{nonsense"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// A rule that the gateway has not read must not seem to apply.
#[test]
fn rules_report_an_invalid_configuration() {
    let place = Place::new();
    let _gateway = gateway(&place);
    place.write_config(r#"{"approvals": {"rules": ["ask asker:remove"] "notify": "off"}}"#);
    let warned = until("the change is noticed", || {
        Some(place.run(&["approvals", "rules"])).filter(|done| done.err.contains("warning: "))
    });
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(
        warned.err.contains("keeps the previous configuration"),
        "{warned:?}"
    );
    assert!(warned.err.contains("switchboard.json:1:"), "{warned:?}");
}

#[test]
fn decisions_need_a_gateway() {
    let place = Place::new();
    for args in [
        &["approvals"][..],
        &["approvals", "list", "--json"],
        &["approvals", "show", "k7"],
        &["approvals", "approve", "k7", "--yes"],
        &["approvals", "reject", "k7"],
        &["approvals", "respond", "k7", "x"],
        &["approvals", "watch"],
        &["approvals", "rules"],
        &["approvals", "forget", "r1"],
        &["approvals", "test", "ask a:b"],
    ] {
        let done = place.run(args);
        assert_eq!((done.code, &*done.out), (Some(3), ""), "{args:?} {done:?}");
        assert!(
            done.err.contains("start one with `switchboard serve`"),
            "{done:?}"
        );
    }
    for args in [
        &["audit", "verify"][..],
        &["audit", "list"],
        &["audit", "export"],
    ] {
        let done = place.run(args);
        assert_eq!((done.code, &*done.out), (Some(1), ""), "{args:?} {done:?}");
        assert!(done.err.contains("there is no audit log"), "{done:?}");
    }
}

#[test]
fn ambiguous_id_prefix_is_refused() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let none = place.run(&["approvals", "show", "zz"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.err.contains("there is no request `zz`"), "{none:?}");
    let none = place.run(&["approvals", "show", "zzzzzzzz"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    // IDs have 32 letters to choose from, so two of 33 begin with the same one.
    let mut names: Vec<String> = Vec::new();
    while names.len() < 33 {
        let (calling, asked) = ask(&place, "asker:remove", "{}");
        assert_eq!(
            place.run(&["approvals", "reject", id(&asked)]).code,
            Some(0)
        );
        calling.end();
        names.push(id(&asked).to_owned());
    }
    let is_twice =
        |name: &&String| names.iter().filter(|other| other[..1] == name[..1]).count() > 1;
    let twice = names.iter().find(is_twice).unwrap();
    let done = place.run(&["approvals", "show", &twice[..1]]);
    assert_eq!((done.code, &*done.out), (Some(1), ""), "{done:?}");
    for name in names.iter().filter(|name| name[..1] == twice[..1]) {
        assert!(
            done.err.contains(&format!("  {name}  asker:remove")),
            "{done:?}"
        );
    }
    assert!(
        done.err.contains("hint: use more characters of the ID"),
        "{done:?}"
    );
}
