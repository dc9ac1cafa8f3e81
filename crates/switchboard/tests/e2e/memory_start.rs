//! The memory starts in any state of its store: its tools are listed at once, and problems are reported by
//! calls and the status.

use std::{fs, os::unix::fs::FileExt};

use rusqlite::Connection;
use serde_json::{Value, json};
use switchboard_test_support::{Home, pipe::Pipe, until};

/// A home with memories, and the ID of one of them.
fn furnished() -> (Home, String) {
    let home = Home::remembering();
    let mut pipe = Pipe::open_memory(&home);
    let mut id = String::new();
    for number in 0..200 {
        let content =
            format!("Note {number}: the lighthouse keeper counts gulls before breakfast.");
        let stored = call(&mut pipe, "store_memory", json!({ "content": content }));
        stored["id"].as_str().unwrap().clone_into(&mut id);
    }
    pipe.leave();
    assert!(pipe.ended().success());
    (home, id)
}

#[track_caller]
fn call(pipe: &mut Pipe, tool: &str, arguments: Value) -> Value {
    let id = pipe.begin_call(tool, arguments);
    let mut answer = pipe.finish(&id);
    assert!(answer["result"]["isError"] != true, "{tool}: {answer}");
    assert!(answer.get("error").is_none(), "{tool}: {answer}");
    answer["result"]["structuredContent"].take()
}

/// Opens the memory and checks that its tools are listed.
fn opened(home: &Home) -> Pipe {
    let mut pipe = Pipe::open_memory(home);
    let listed = pipe.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(
        tools.iter().any(|tool| tool["name"] == "recall"),
        "{listed}"
    );
    pipe
}

/// Waits until the status reports that the store does not work, and why.
fn complaint(pipe: &mut Pipe) -> String {
    until("the status tells", || {
        let status = call(pipe, "get_status", json!({}));
        let store = &status["parts"]["store"];
        (status["status"] == "error" && store["state"] == "error").then(|| store.to_string())
    })
}

/// The error of a call, as clients of either era receive it.
fn errors(home: &Home, pipe: &mut Pipe, tool: &str, arguments: Value) -> (Value, String) {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = pipe.request("tools/call", params.clone());
    let mut modern = Pipe::start_memory(home);
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "e2e", "version": "1.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let result = modern.request("tools/call", params);
    modern.leave();
    assert!(modern.ended().success());
    assert_eq!(result["result"]["isError"], true, "{result}");
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    (answer["error"].clone(), text.to_owned())
}

#[test]
fn locked_store_is_reported_and_recovers() {
    let (home, id) = furnished();
    let lock = Connection::open(home.path("switchboard.db")).unwrap();
    lock.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;")
        .unwrap();
    let mut pipe = opened(&home);
    let said = complaint(&mut pipe);
    assert!(said.contains("lock"), "{said}");
    let calls = [
        ("list_memories", json!({})),
        (
            "store_memory",
            json!({ "content": "The lighthouse is closed in winter." }),
        ),
        ("recall", json!({ "query": "gulls" })),
    ];
    for (tool, arguments) in calls {
        let (error, text) = errors(&home, &mut pipe, tool, arguments);
        assert_eq!(error["code"], -32003, "{tool}: {error}");
        assert_eq!(error["data"]["part"], "store", "{tool}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains("lock"),
            "{tool}: {error}"
        );
        assert!(text.contains("lock"), "{tool}: {text}");
    }

    drop(lock);
    until("it works again, without a restart", || {
        let params = json!({ "name": "get_memory", "arguments": { "id": id } });
        let answer = pipe.request("tools/call", params);
        answer.get("error").is_none().then_some(())
    });
    let found = call(
        &mut pipe,
        "recall",
        json!({ "query": "gulls before breakfast", "limit": 1 }),
    );
    assert_eq!(found["count"], 1, "{found}");
    let status = call(&mut pipe, "get_status", json!({}));
    assert_eq!(status["status"], "ready", "{status}");
    assert_eq!(status["memories"], 200, "{status}");
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn damaged_store_is_reported_with_its_repair() {
    let garbage = [0xa5; 100];
    let zeros = [0; 4096];
    for what in ["beginning", "middle"] {
        let (home, _) = furnished();
        let path = home.path("switchboard.db");
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        if what == "beginning" {
            file.write_all_at(&garbage, 0).unwrap();
        } else {
            let page = page_of_memories(&path);
            file.write_all_at(&zeros, (page - 1) * 4096).unwrap();
        }
        drop(file);
        let mut pipe = opened(&home);
        let said = complaint(&mut pipe);
        assert!(said.contains("switchboard memory repair"), "{what}: {said}");
        let stored = json!({ "content": "The lighthouse is closed in winter." });
        for (tool, arguments) in [("list_memories", json!({})), ("store_memory", stored)] {
            let (error, text) = errors(&home, &mut pipe, tool, arguments);
            assert_eq!(error["code"], -32003, "{what}: {error}");
            assert_eq!(error["data"]["part"], "store", "{what}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.contains("switchboard memory repair"),
                "{what}: {error}"
            );
            assert!(text.contains("switchboard memory repair"), "{what}: {text}");
        }
        pipe.leave();
        assert!(pipe.ended().success());

        // It is reported until the user decides.
        let mut pipe = opened(&home);
        let said = complaint(&mut pipe);
        assert!(said.contains("switchboard memory repair"), "{what}: {said}");
        pipe.leave();
        assert!(pipe.ended().success());
    }
}

/// A page of the file that contains memories, counted from 1.
fn page_of_memories(path: &std::path::Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let text = b"the lighthouse keeper counts gulls";
    let pages = bytes.chunks(4096).enumerate().skip(1);
    let holds = |page: &[u8]| page.windows(text.len()).any(|window| window == text);
    let mut holding = pages
        .filter(|(_, page)| holds(page))
        .map(|(number, _)| number as u64 + 1);
    holding.nth(1).expect("memories are on more than one page")
}
