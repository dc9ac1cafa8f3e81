//! `switchboard approvals watch`: events are reported as they happen, and keys answer.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::{
    approvals::{Calling, ask, gateway, gateway_with, id, run, start},
    questions::FORM,
    support::{Place, json},
    terminal::Session,
};

/// The output of a command, line by line.
struct Following {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Following {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_are_reported_as_they_happen() {
    let place = Place::new();
    let first_gateway = gateway(&place);
    let (first, asked) = ask(&place, "asker:remove", r#"{"path": "/first\u202e"}"#);
    let mut text = Following::start(&place, &["approvals", "watch"]);
    let mut events = Following::start(&place, &["approvals", "watch", "--json"]);
    // Pending requests come first.
    let line = text.line();
    assert!(
        line.contains("pending") && line.contains(id(&asked)),
        "{line}"
    );
    assert!(
        !line.contains('\u{202e}') && line.contains("left)"),
        "{line}"
    );
    let event = events.json();
    assert_eq!(event["kind"], "approval.waiting");
    assert_eq!(event["data"]["approval"]["id"], asked["id"]);
    let (code, _, err) = run(&place, &["approvals", "reject", id(&asked), "no"]);
    assert_eq!(code, Some(0), "{err}");
    let line = text.line();
    assert!(
        line.contains("rejected")
            && line.contains("by owner via socket")
            && line.ends_with(": no\n"),
        "{line}"
    );
    let event = events.json();
    assert_eq!(event["kind"], "approval.decided");
    assert_eq!(event["data"]["approval"]["decision"]["reason"], "no");
    first.end();

    let (second, asked) = ask(&place, "asker:remove", r#"{"path": "/second"}"#);
    let seen = loop {
        let event = events.json();
        if event["data"]["approval"]["id"] == asked["id"] {
            break event;
        }
    };
    assert_eq!(seen["kind"], "approval.created");
    assert_eq!(
        run(&place, &["approvals", "approve", id(&asked), "-y"]).0,
        Some(0)
    );
    second.end();
    let decided = loop {
        let event = events.json();
        if event["kind"] == "approval.decided" {
            break event;
        }
    };
    assert_eq!(decided["data"]["approval"]["status"], "approved");

    // The command continues when the gateway is running again.
    assert_eq!(place.run(&["stop"]).code, Some(0));
    drop(first_gateway);
    let _gateway = start(&place);
    let (_third, asked) = ask(&place, "asker:remove", r#"{"path": "/third"}"#);
    loop {
        let event = events.json();
        if event["data"]["approval"]["id"] == asked["id"] {
            break;
        }
    }
    while !text.line().contains(id(&asked)) {}
}

#[test]
fn requests_with_huge_numbers_are_reported() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (_first, asked) = ask(&place, "asker:remove", "{}");
    let mut text = Following::start(&place, &["approvals", "watch"]);
    // From now on it receives events.
    assert!(text.line().contains(id(&asked)));
    let _second = Calling::start(&place, "asker:remove", r#"{"n": 1e400}"#);
    let line = text.line();
    assert!(line.contains("pending") && line.contains("1e400"), "{line}");
}

#[test]
fn keys_answer_on_a_terminal() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let variables = [("NO_COLOR", "1"), ("USER", "ada")];
    let mut session = Session::start(&place, &["approvals", "watch"], &variables);
    session.wait_for("no pending requests (q quits)");
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a"}"#);
    session.wait_for(&format!(
        "{} asker:remove: a approve, r reject, s show, q quit",
        id(&asked)
    ));
    session.type_in("s");
    session.wait_for("\r\narguments\r\n");
    // The user changes their mind.
    session.type_in("a");
    session.wait_for("? [y/N] ");
    session.type_in("n\n");
    session.wait_for("nothing was approved");
    assert_eq!(
        json(&place, &["approvals", "--json"])["approvals"][0]["status"],
        "pending"
    );
    session.forget();
    session.type_in("a");
    session.wait_for("? [y/N] ");
    session.type_in("y\n");
    session.wait_for(": calling ");
    assert_eq!(calling.end().0, Some(0));

    session.forget();
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/b"}"#);
    session.wait_for(&format!("{} asker:remove: a approve", id(&asked)));
    session.type_in("r");
    session.wait_for("Reason for rejecting");
    session.type_in("too dear\n");
    session.wait_for("by owner via socket");
    assert!(calling.end().1.contains("too dear"));

    session.forget();
    let (calling, asked) = ask(&place, "asker:ask_person", FORM);
    session.wait_for(&format!("{} asker", id(&asked)));
    session.wait_for("d decline");
    session.type_in("d");
    session.wait_for("declined");
    assert!(calling.end().1.contains("decline"));
    session.wait_for("no pending requests (q quits)");
    session.type_in("q");
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
}

#[test]
fn escalation_rings_and_timeout_is_reported() {
    let place = Place::new();
    let approvals = json!({
        "rules": ["ask asker:remove"], "notify": "off", "shortTimeoutMs": 300, "longTimeoutMs": 700,
    });
    let _gateway = gateway_with(&place, &json!({"approvals": approvals}));
    let mut session = Session::start(&place, &["approvals", "watch"], &[("NO_COLOR", "1")]);
    session.wait_for("no pending requests (q quits)");
    let calling = Calling::start(&place, "asker:remove", "{}");
    session.wait_for("escalated");
    session.wait_for("\u{7}");
    session.wait_for("timed out");
    let (code, said) = calling.end();
    assert_eq!(code, Some(1), "{said}");
    session.forget();
    // Ctrl-C.
    session.type_in("\u{3}");
    assert_eq!(session.end().0, Some(0));
    let list = place.run(&["approvals", "list", "--status", "closed"]);
    assert!(
        list.out.contains("timed out  tool_call  asker:remove"),
        "{list:?}"
    );
}

#[test]
fn keys_act_on_the_named_request() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let (first, one) = ask(&place, "asker:remove", r#"{"path": "/one"}"#);
    let mut session = Session::start(&place, &["approvals", "watch"], &[("NO_COLOR", "1")]);
    session.wait_for(&format!("{} asker:remove: a approve", id(&one)));
    session.forget();
    // Another request does not change the one that the keys act on.
    let (second, two) = ask(&place, "asker:remove", r#"{"path": "/two"}"#);
    assert_ne!(id(&one), id(&two));
    session.wait_for(&format!("{} asker:remove: a approve", id(&one)));
    session.wait_for("n next");
    session.type_in("n");
    session.wait_for(&format!("{} asker:remove: a approve", id(&two)));
    session.type_in("a");
    session.wait_for(&format!("({})? [y/N] ", id(&two)));
    session.type_in("y\n");
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("/two"), "{said}");
    session.wait_for(&format!("{} asker:remove: a approve", id(&one)));
    // After SIGTERM, the terminal is restored.
    session.terminate();
    assert_eq!(session.end().0, Some(0));
    drop(first);
}
