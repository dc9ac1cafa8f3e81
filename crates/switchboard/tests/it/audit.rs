//! `switchboard audit`: the log of decisions, with and without a gateway, and after tampering.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::{
    approvals::{ask, gateway, id, run},
    support::{Place, json},
};

#[test]
fn log_records_decisions_and_reveals_changes() {
    let place = Place::new();
    let gateway = gateway(&place);
    let (calling, asked) = ask(&place, "asker:remove", r#"{"path": "/a"}"#);
    let (code, _, err) = run(
        &place,
        &["approvals", "reject", id(&asked), "that is not yours"],
    );
    assert_eq!(code, Some(0), "{err}");
    calling.end();
    // While the gateway runs.
    let verdict = json(&place, &["audit", "verify", "--json"]);
    assert_eq!(verdict["broken"], Value::Null);
    assert!(verdict["entries"].as_u64().unwrap() >= 2, "{verdict}");
    let list = place.run(&["audit", "list"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let decided = "reject tool_call asker:remove rule `ask asker:remove`";
    assert!(list.out.contains(decided), "{list:?}");
    assert_eq!(place.run(&["stop"]).code, Some(0));
    drop(gateway);
    // And without it.
    let verdict = json(&place, &["audit", "verify", "--json"]);
    let entries = verdict["entries"].as_u64().unwrap();
    let head = verdict["head"].as_str().unwrap();
    place.check(
        &["audit", "verify"],
        0,
        &format!("verified {entries} entries\nhead  {entries}:{head}\n"),
        "",
    );
    // Against the number and hash that the user kept.
    for (kept, code) in [
        (format!("{entries}:{head}"), 0),
        (format!("{entries}:{}", &head[..12]), 0),
        (format!("1:{head}"), 1),
        (format!("{}:{head}", entries + 1), 1),
        (head.to_owned(), 2),
        (format!("0:{head}"), 2),
        ("1:abc".to_owned(), 2),
    ] {
        let done = place.run(&["audit", "verify", "--expect", &kept]);
        assert_eq!(done.code, Some(code), "{kept}: {done:?}");
    }
    let all = place.run(&["audit", "export"]);
    let all: Vec<Value> = all
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all.len() as u64, entries);
    assert_eq!(all.last().unwrap()["hash"], head);
    assert_eq!(all[0]["seq"], 1);
    let later = place.run(&["audit", "export", "--since", "1"]);
    assert_eq!(later.out.lines().count() as u64, entries - 1);
    let listed = json(&place, &["audit", "list", "-n", "1", "--json"]);
    assert_eq!(listed["entries"], json!([all.last().unwrap()]));
    let file = place.user().join("log.csv");
    let export = ["audit", "export", file.to_str().unwrap(), "--format", "csv"];
    let done = place.run(&export);
    assert_eq!(done.code, Some(0), "{done:?}");
    let csv = fs::read_to_string(&file).unwrap();
    assert!(
        csv.starts_with("seq,at,what,subject,hash,body\r\n1,"),
        "{csv}"
    );
    assert!(
        csv.contains(",asked,") && csv.contains("\"\"that is not yours\"\""),
        "{csv}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // An existing file is not overwritten.
    let done = place.run(&export);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("already exists"), "{done:?}");

    archived_and_put_back(&place, &file, entries, head);

    // Other words are written into the file.
    let database = place.home().join("switchboard.db");
    let mut bytes = fs::read(&database).unwrap();
    let (was, now) = (b"that is not yours", b"that is all yours");
    let places: Vec<usize> = (0..bytes.len() - was.len())
        .filter(|&at| bytes[at..].starts_with(was))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + now.len()].copy_from_slice(now);
    }
    fs::write(&database, bytes).unwrap();
    let done = place.run(&["audit", "verify"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.starts_with(
            "error: the log is broken at entry 2: the entry, or an earlier one, was changed\n"
        ),
        "{done:?}"
    );
    let output = place.run(&["audit", "verify", "--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let verdict: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(
        (&verdict["entries"], &verdict["broken"]["seq"]),
        (&json!(1), &json!(2))
    );
}

/// Moves the log to a file, checks both together, and restores the store.
fn archived_and_put_back(place: &Place, other: &Path, entries: u64, head: &str) {
    let archive = place.user().join("old.jsonl");
    let archive = archive.to_str().unwrap();
    let nothing = place.run(&["audit", "archive", archive, "--before", "2001-01-01"]);
    assert_eq!(nothing.code, Some(0), "{nothing:?}");
    assert!(!fs::exists(archive).unwrap(), "{nothing:?}");
    let done = place.run(&["audit", "verify", "--archive", other.to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "another file: {done:?}");
    let copy = place.home().join("copy.db");
    fs::copy(place.home().join("switchboard.db"), &copy).unwrap();
    let done = place.run(&["audit", "archive", archive]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines = fs::read_to_string(archive).unwrap();
    assert_eq!(lines.lines().count() as u64, entries);
    assert!(place.run(&["audit", "export"]).out.is_empty());
    let none = place.run(&["audit", "list"]);
    let all = format!("all {entries} entries are in archives");
    assert!(none.err.contains(&all), "{none:?}");
    let verdict = place.run(&["audit", "verify"]).out;
    let unchecked = format!("; {entries} more in archives were not checked");
    assert!(
        verdict.starts_with("verified 0 entries") && verdict.contains(&unchecked),
        "{verdict}"
    );
    let verdict = json(place, &["audit", "verify", "--archive", archive, "--json"]);
    let found = (&verdict["entries"], &verdict["archived"], &verdict["head"]);
    assert_eq!(found, (&json!(entries), &json!(entries), &json!(head)));
    // An interrupted archive and the next one share some entries.
    let again = place.user().join("again.jsonl");
    let again = again.to_str().unwrap();
    let rest: String = lines.split_inclusive('\n').skip(1).collect();
    let both = ["audit", "verify", "--archive", archive, "--archive", again];
    fs::write(again, &rest).unwrap();
    assert_eq!(place.run(&both).code, Some(0));
    fs::write(again, rest.replace("not yours", "all yours")).unwrap();
    let done = place.run(&both);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("is broken at entry 2"), "{done:?}");
    fs::write(archive, lines.replace("not yours", "all yours")).unwrap();
    let done = place.run(&["audit", "verify", "--archive", archive]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("is broken at entry 2"), "{done:?}");
    fs::rename(copy, place.home().join("switchboard.db")).unwrap();
}

#[test]
fn archive_beside_a_gateway_leaves_both_intact() {
    let place = Place::new();
    let gateway = gateway(&place);
    let decide = |path: &str| {
        let (calling, asked) = ask(&place, "asker:remove", &format!(r#"{{"path": "{path}"}}"#));
        let (code, _, err) = run(&place, &["approvals", "reject", id(&asked), "no"]);
        assert_eq!(code, Some(0), "{err}");
        calling.end();
    };
    decide("/a");
    let archive = place.user().join("old.jsonl");
    let archive = archive.to_str().unwrap();
    let done = place.run(&["audit", "archive", archive]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("while no gateway is running"), "{done:?}");
    decide("/b");
    let verdict = json(&place, &["audit", "verify", "--archive", archive, "--json"]);
    assert_eq!(verdict["broken"], Value::Null, "{verdict}");
    let counts = (verdict["entries"].as_u64(), verdict["archived"].as_u64());
    assert!(counts.0 > counts.1 && counts.1 >= Some(2), "{verdict}");
    assert_eq!(place.run(&["stop"]).code, Some(0));
    drop(gateway);
    let rest = place.user().join("rest.jsonl");
    let done = place.run(&["audit", "archive", rest.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        !done.err.contains("while no gateway is running"),
        "{done:?}"
    );
}
