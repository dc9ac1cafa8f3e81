//! One memory and many processes: concurrent stores and recalls, processes that end, and a damaged file.

use std::{fs, io::Read as _, process::Stdio};

use serde_json::json;
use switchboard_test_support::until;

use crate::{
    memory::{contents, store},
    support::{Client, Gateway, Place, json as answer},
};

/// Starts a client of `switchboard memory serve`.
fn client(place: &Place) -> Client {
    let client = Client::start(place.command(&["memory", "serve"]), "test");
    assert_eq!(client.server, "switchboard-memory");
    client
}

#[test]
fn many_can_store_at_once_without_a_gateway() {
    let place = Place::new();
    let children: Vec<_> = (0..8)
        .map(|number| {
            let content = format!("memory {number}");
            let mut command = place.command(&["memory", "store", &content]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
    }
    let mut contents = contents(&place, &[]);
    contents.sort();
    let expected: Vec<_> = (0..8).map(|number| format!("memory {number}")).collect();
    assert_eq!(contents, expected);
}

#[test]
fn clients_share_one_memory_with_the_command_line() {
    let place = Place::new();
    let mut first = client(&place);
    let mut second = client(&place);
    first.call("store_memory", &json!({ "content": "Ada likes tea" }));
    store(&place, &["Bob likes coffee"]);
    for client in [&mut first, &mut second] {
        let list = &client.call("list_memories", &json!({}))["structuredContent"];
        assert_eq!(list["total"], json!(2), "{list}");
    }
    assert_eq!(contents(&place, &[]), ["Ada likes tea", "Bob likes coffee"]);
}

#[test]
fn memories_outlive_the_killed_gateway() {
    let place = Place::new();
    let mut first = client(&place);
    until("others can join", || place.run(&["status"]).code == Some(0));
    let mut second = client(&place);
    for number in 0..20 {
        let content = format!("memory {number}");
        first.call("store_memory", &json!({ "content": content }));
    }
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    // The client that had joined continues, and so does the command line.
    let last = store(&place, &["the last"]);
    let list = &second.call("list_memories", &json!({}))["structuredContent"];
    assert_eq!(list["total"], json!(21), "{list}");
    assert_eq!(list["memories"][0]["id"], json!(last));
    drop(second);
    assert_eq!(contents(&place, &[]).len(), 21);
}

#[test]
fn command_that_runs_the_gateway_survives_a_kill() {
    let place = Place::new();
    let long = "many words ".repeat(2_000);
    let lines: Vec<_> = (0..100)
        .map(|number| {
            let id = format!("m{number}");
            json!({ "type": "memory", "id": id, "content": long }).to_string()
        })
        .collect();
    let done = place.run_with_input(&["memory", "import", "-"], &lines.join("\n"));
    assert_eq!(done.code, Some(0), "{done:?}");
    // The export is not read to its end, so that the process stays.
    let mut export = place
        .command(&["memory", "export"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 1];
    export
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut some)
        .unwrap();
    let holder = fs::read_to_string(place.home().join("run/lock")).unwrap_or_default();
    assert_eq!(holder.trim(), export.id().to_string());
    export.kill().unwrap();
    export.wait().unwrap();
    assert_eq!(
        answer(&place, &["memory", "stats", "--json"])["memories"],
        json!(100)
    );
}

#[test]
fn serve_waits_for_a_command_with_the_gateway() {
    let place = Place::new();
    let mut storing = place.command(&["memory", "store", "one"]);
    let mut storing = storing.stdout(Stdio::null()).spawn().unwrap();
    let _gateway = Gateway::start(&place, &[]);
    assert_eq!(storing.wait().unwrap().code(), Some(0));
    assert_eq!(contents(&place, &[]), ["one"]);
}

#[test]
fn servers_are_not_started_for_the_memory() {
    let place = Place::new();
    let mark = place.home().join("started");
    let config = json!({ "mcpServers": { "eager": {
        "command": "touch", "args": [mark], "start": "eager",
    } } });
    place.write_config(&config.to_string());
    store(&place, &["one"]);
    // This takes a while, because the command waits for the vectors.
    let found = answer(
        &place,
        &["memory", "recall", "one", "--mode", "vector", "--json"],
    );
    assert_eq!(found["count"], json!(1), "{found}");
    assert!(!mark.exists());
    // A gateway starts the server.
    let _gateway = Gateway::start(&place, &[]);
    until("the server is started", || mark.exists());
}

/// A home whose store was damaged after this many memories were stored.
fn damaged(memories: usize) -> Place {
    let place = Place::new();
    let lines: Vec<_> = (0..memories)
        .map(|number| {
            let content = format!("memory {number}");
            json!({ "type": "memory", "content": content }).to_string()
        })
        .collect();
    let done = place.run_with_input(&["memory", "import", "-"], &lines.join("\n"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let file = place.home().join("switchboard.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[..16].fill(0);
    fs::write(&file, bytes).unwrap();
    place
}

#[test]
fn a_damaged_memory_is_repaired() {
    for with_gateway in [false, true] {
        let place = damaged(50);
        let _gateway = with_gateway.then(|| Gateway::start(&place, &[]));
        let done = place.run(&["memory", "list"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(
            done.err.contains("damaged") && done.err.contains("switchboard memory repair"),
            "{}",
            done.err
        );
        assert_eq!(place.run(&["memory", "stats"]).code, Some(1));
        let done = place.run(&["memory", "repair"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.err.contains("recovered 50 versions"), "{}", done.err);
        assert_eq!(contents(&place, &[]).len(), 50);
        place.check(
            &["memory", "repair"],
            0,
            "",
            "the memory store is not damaged; there is nothing to repair\n",
        );
    }
}

#[test]
fn a_damaged_memory_is_discarded() {
    for with_gateway in [false, true] {
        let place = damaged(3);
        let _gateway = with_gateway.then(|| Gateway::start(&place, &[]));
        let done = place.run(&["memory", "repair", "--discard"]);
        assert_eq!(done.code, Some(2), "{done:?}");
        let done = place.run(&["memory", "repair", "--discard", "--yes"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(contents(&place, &[]), [""; 0]);
        store(&place, &["anew"]);
    }
}
