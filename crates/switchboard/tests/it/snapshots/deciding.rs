//! Commands that decide: trust, approvals, and the audit log.

use serde_json::json;
use switchboard_test_support::until;

use super::{
    golden::Book,
    rich::{LONG_TOOL, Rich, waiting},
    stage::{Background, Stage},
};

pub(super) const FILES: &[&str] = &["approvals", "audit", "trust"];

super::at_both_widths!();

fn record(book: &mut Book) {
    alone(book);
    empty(book);
    book.scene("servers in every state");
    let mut rich = Rich::new(Stage::new(book.columns));
    look_at_requests(book, &rich);
    decide_requests(book, &mut rich);
    // Before decisions about tools, which withdraw requests and create others at any time.
    audit(book, &rich.stage);
    trust(book, &rich.stage);
}

fn alone(book: &mut Book) {
    book.scene("no gateway");
    let stage = Stage::new(book.columns);
    book.run(
        "trust",
        &stage,
        &[
            &["trust"],
            &["trust", "show", "sky:radar"],
            &["trust", "approve"],
            &["trust", "aprove", "sky:radar"],
        ],
    );
    book.run(
        "approvals",
        &stage,
        &[
            &["approvals"],
            &["approvals", "show", "k7"],
            &["approvals", "approve"],
            &["approvals", "reject", "k7", "--for", "long"],
        ],
    );
    book.run(
        "audit",
        &stage,
        &[
            &["audit"],
            &["audit", "list"],
            &["audit", "verify"],
            &["audit", "export"],
            &["audit", "archive", "all.jsonl"],
            &["audit", "archive"],
        ],
    );
}

fn empty(book: &mut Book) {
    book.scene("a gateway without servers");
    let stage = Stage::new(book.columns);
    let config = r#"{"listen": "127.0.0.1:0", "memory": {"enabled": false}, "approvals": {"notify": "off"}}"#;
    stage.write_config(config);
    let _gateway = stage.gateway();
    book.run("trust", &stage, &[&["trust"], &["trust", "list", "sky"]]);
    book.run(
        "approvals",
        &stage,
        &[
            &["approvals"],
            &["approvals", "list", "--all"],
            &["approvals", "rules"],
            &["approvals", "test", "ask files:*"],
        ],
    );
    book.converse(
        "approvals",
        &stage,
        &["approvals", "watch"],
        &[("q quits", "q")],
    );
    book.run("audit", &stage, &[&["audit", "list"], &["audit", "verify"]]);
}

fn trust(book: &mut Book, stage: &Stage) {
    book.run(
        "trust",
        stage,
        &[
            &["trust"],
            &["trust", "list", "sky"],
            &["trust", "list", "notes"],
            &["trust", "list", "nothing"],
            &["trust", "show", "sky:forecast"],
            &["trust", "show", "sky:radar"],
            &["trust", "show", "files:read_file"],
            &["trust", "show", "files"],
            &["trust", "show", "sky:nothing"],
        ],
    );
    let approve = ["trust", "approve", "sky:forecast"];
    book.converse("trust", stage, &approve, &[("[y/N] ", "n\n")]);
    book.converse("trust", stage, &approve, &[("[y/N] ", "y\n")]);
    book.run(
        "trust",
        stage,
        &[
            &approve,
            &["trust", "approve", "nothing"],
            &["trust", "reject", "sky:radar"],
            &["trust", "reject", "sky:radar"],
            &["trust", "reject", "files:read_file"],
            &["trust"],
        ],
    );
}

fn look_at_requests(book: &mut Book, rich: &Rich) {
    let (stage, id) = (&rich.stage, rich.request.as_str());
    book.run(
        "approvals",
        stage,
        &[
            &["approvals"],
            &["approvals", "list", "--status", "rejected"],
            &["approvals", "list", "--kind", "nonsense"],
            &["approvals", "show", id],
            // No ID contains a hyphen, so none begins with this.
            &["approvals", "show", "z-z"],
            &["approvals", "rules"],
            &["approvals", "test", "deny files:*"],
            &["approvals", "test", "perhaps files:*"],
            &["approvals", "forget", "config-1"],
            &["approvals", "forget", "nothing"],
            &["approvals", "respond", id, "no"],
            &["approvals", "approve", id, "--model", "large"],
            &["approvals", "approve", id, "--arguments", "[1]"],
        ],
    );
    book.converse(
        "approvals",
        stage,
        &["approvals", "watch"],
        &[("q quit", "q")],
    );
}

fn decide_requests(book: &mut Book, rich: &mut Rich) {
    let id = &rich.request.clone();
    let approve = ["approvals", "approve", id];
    book.converse("approvals", &rich.stage, &approve, &[("[y/N] ", "n\n")]);
    book.converse("approvals", &rich.stage, &approve, &[("[y/N] ", "y\n")]);
    let call = rich.take_call();
    let stage = &rich.stage;
    delivered(stage, id, call);
    book.run(
        "approvals",
        stage,
        &[
            &["approvals", "reject", id],
            &["approvals", "show", id],
            &["approvals"],
        ],
    );
    let call = stage.background(&["call", LONG_TOOL, r#"{"path": "/srv/old"}"#]);
    until("a person is asked again", || waiting(stage).len() == 2);
    let other = waiting(stage).remove(0);
    stage.call_it(&other, "m3m3m3m3");
    let reason = "not in this directory";
    // Without --exact: a rule that is truncated would be cut elsewhere next to a longer process ID.
    let reject = [
        "approvals",
        "reject",
        &other,
        reason,
        "--remember",
        "always",
    ];
    book.run("approvals", stage, &[&reject]);
    delivered(stage, &other, call);
    let rules = stage.json(&["approvals", "rules", "--json"]);
    let rules = rules["rules"].as_array().unwrap().iter();
    let mut remembered = rules.filter(|rule| rule["source"] == "remembered");
    let rule = remembered.next().unwrap()["id"].as_str().unwrap();
    stage.call_it(rule, &"r3".repeat(rule.len())[..rule.len()]);
    book.run(
        "approvals",
        stage,
        &[
            &["approvals", "list", "--all"],
            &["approvals", "rules"],
            &["approvals", "forget", rule],
        ],
    );
}

/// Waits until the caller of a decided request has the outcome.
fn delivered(stage: &Stage, id: &str, mut call: Background) {
    call.0.wait().unwrap();
    until("the caller is told", || {
        let shown = stage.json(&["approvals", "show", id, "--json"]);
        shown
            .get("deliveredAt")
            .is_some_and(|at| *at != json!(null))
    });
}

fn audit(book: &mut Book, stage: &Stage) {
    book.run(
        "audit",
        stage,
        &[
            &["audit", "list"],
            &["audit", "list", "-n", "2"],
            &["audit", "list", "-n", "few"],
            &["audit", "verify"],
            &["audit", "verify", "--expect", "1:000000000000"],
            &["audit", "verify", "--expect", "nonsense"],
            &["audit", "export", "decisions.csv", "--format", "csv"],
            &["audit", "export", "decisions.csv"],
            &["audit", "archive", "decisions.csv"],
            &["audit", "archive", "all.jsonl"],
            &["audit", "verify"],
            &["audit", "verify", "--archive", "all.jsonl"],
        ],
    );
}
