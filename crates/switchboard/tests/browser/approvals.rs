//! Decisions in the browser: the server gets exactly what the user sees, edits and answers.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    browser::{Browser, CONTROL, ENTER, READY, TAB},
    place::Place,
};

fn plan() -> Value {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let form = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Your name", "minLength": 2 },
            "age": { "type": "integer", "title": "Your age", "minimum": 0, "maximum": 150 },
            "news": { "type": "boolean", "title": "Send me news" },
        },
        "required": ["name"],
    });
    let sampling = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "Say hello to Anna." } }],
        "systemPrompt": "You are polite.", "maxTokens": 100,
    });
    json!({
        "tools": [tool("delete_file"), tool("ask"), tool("think")],
        "does": {
            "ask": { "asks": [["elicitation/create", { "message": "Who are you?", "requestedSchema": form }]] },
            "think": { "asks": [["sampling/createMessage", sampling]] },
        },
    })
}

fn place(more: &Value) -> Place {
    let mut settings = json!({ "approvals": {
        "rules": ["ask files:delete_*"], "shortTimeoutMs": 30_000, "longTimeoutMs": 60_000,
    } });
    for (key, value) in more.as_object().unwrap() {
        settings[key] = value.clone();
    }
    Place::new(&["files"], &plan(), &settings)
}

/// Waits until the buttons are enabled: a key that was meant for the previous page must not decide.
#[track_caller]
fn until_ready(browser: &Browser) {
    browser.until(&READY.replace(", main h1", ""));
}

/// The answer that the server got to its question.
#[track_caller]
fn answer(place: &Place) -> Value {
    until("the server has its answer", || {
        place
            .heard()
            .iter()
            .any(|heard| heard["answer"].is_object())
    });
    let heard = place.heard();
    heard
        .iter()
        .find(|heard| heard["answer"].is_object())
        .unwrap()["answer"]
        .clone()
}

#[test]
fn new_call_appears_and_runs_as_edited() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    browser.go(&place.url("approvals"));
    browser.until_reads("No pending requests");
    browser.execute("window.same = true", &json!([]));
    let call = place.call(
        "claude-code",
        "files__delete_file",
        json!({ "path": "notes.txt" }),
    );
    browser.until_reads("notes.txt");
    assert_eq!(
        browser.execute("return window.same", &json!([])),
        true,
        "no reload"
    );
    browser.until("document.title.includes('1')");
    browser.until("document.querySelector('ul.asks li:not(.fresh) a.row') !== null");
    browser.click(&browser.find("ul.asks a.row"));
    browser.until_reads("ask files:delete_*");
    browser.click(&browser.by_role("button", "Edit"));
    let editor = browser.by_role("textbox", "Arguments as JSON");
    browser.fill(&editor, "{\"path\": ");
    browser.click(&browser.by_role("button", "Approve"));
    browser.until_reads("not valid JSON");
    assert!(place.heard().is_empty());
    browser.fill(&editor, "{\"path\": \"other.txt\"}");
    browser.until_reads("Your changes");
    browser.screenshot("approval-edited-1280-light");
    browser.click(&browser.by_role("button", "Approve with changes"));
    let result = call.join().unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "done", "{result}");
    assert_eq!(
        place.heard(),
        [json!({ "called": "delete_file", "arguments": { "path": "other.txt" } })]
    );
    browser.until_reads("approved");
    browser.until("!document.title.includes('1')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn question_is_answered_by_keyboard_alone() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    let call = place.call("claude-code", "files__ask", json!({}));
    until("it waits", || !place.waiting().is_empty());
    browser.press("ga");
    browser.until("document.querySelector('ul.asks a.row') !== null");
    browser.press("j");
    browser.until("document.activeElement?.matches('a.row') === true");
    browser.press(ENTER);
    browser.until_reads("Who are you?");
    until_ready(&browser);
    browser.tab_to("textbox", "Your age");
    browser.press("200");
    browser.tab_to("textbox", "Your name");
    browser.press("A");
    browser.tab_to("button", "Send answer");
    browser.press(ENTER);
    // Each invalid field shows its error, and the first of them has the focus.
    browser.until_reads("at least 2 characters");
    browser.until_reads("at most 150");
    browser.until("document.activeElement?.matches('[aria-invalid=true]') === true");
    assert!(browser.focus().1.starts_with("Your age"));
    browser.press(&format!("{CONTROL}a"));
    browser.press("41");
    browser.press(TAB);
    browser.tab_to("textbox", "Your name");
    browser.press(&format!("{CONTROL}a"));
    browser.press("Anna");
    browser.tab_to("checkbox", "Send me news");
    browser.press(" ");
    browser.tab_to("button", "Send answer");
    browser.press(ENTER);
    let said =
        json!({ "action": "accept", "content": { "name": "Anna", "age": 41, "news": true } });
    assert_eq!(answer(&place), said);
    assert!(call.join().unwrap()["result"].is_object());
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn rejection_reaches_the_caller_with_its_reason() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    let call = place.call("claude-code", "files__delete_file", json!({ "path": "a" }));
    until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.go(&place.url(&format!("approvals/{id}")));
    until_ready(&browser);
    browser.press("r");
    browser.until("document.activeElement?.matches('.reject input') === true");
    browser.press("not today");
    browser.press(ENTER);
    let result = call.join().unwrap().to_string();
    assert!(result.contains("not today"), "{result}");
    assert!(place.heard().is_empty());
    browser.until_reads("rejected");
}

#[test]
fn only_control_enter_decides() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    let call = place.call("claude-code", "files__delete_file", json!({ "path": "a" }));
    until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.go(&place.url(&format!("approvals/{id}")));
    until_ready(&browser);
    browser.press("a");
    browser.until("document.activeElement?.textContent === 'Approve'");
    browser.press("ga");
    browser.until("location.hash === '#approvals'");
    assert_eq!(place.waiting().len(), 1);
    browser.go(&place.url(&format!("approvals/{id}")));
    until_ready(&browser);
    // A page that has just come to the front does not accept a decision yet.
    browser.execute("dispatchEvent(new Event('focus'))", &json!([]));
    browser.until("document.querySelector('fieldset.decide button:disabled') !== null");
    until_ready(&browser);
    browser.press("r");
    browser.until("document.activeElement?.matches('.reject input') === true");
    browser.execute(
        "document.querySelector('.approval-title').focus()",
        &json!([]),
    );
    browser.press(&format!("{CONTROL}{ENTER}"));
    assert!(call.join().unwrap()["result"].is_object());
    assert_eq!(
        place.heard(),
        [json!({ "called": "delete_file", "arguments": { "path": "a" } })]
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn cut_text_must_be_opened_before_approval() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    let command = format!("rm -rf ~ #{}ls", " ".repeat(5_900));
    let long = json!({ "cmd": command, "note": "word ".repeat(20_000), "path": "at the end" });
    let call = place.call("claude-code", "files__delete_file", long.clone());
    until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.go(&place.url(&format!("approvals/{id}")));
    browser.until_reads("at the end");
    browser.until_reads("rm -rf ~ #U+0020 × 5900ls");
    browser.until_reads("show everything before you approve");
    let approve = "document.querySelector('fieldset.decide button.primary').disabled";
    browser.until(approve);
    browser.click(&browser.by_role("button", "Show it"));
    browser.until(&format!("!{approve}"));
    browser.click(&browser.by_role("button", "Approve"));
    assert!(call.join().unwrap()["result"].is_object());
    assert_eq!(
        place.heard(),
        [json!({ "called": "delete_file", "arguments": long })]
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn late_decision_reports_the_earlier_one() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    let call = place.call("claude-code", "files__delete_file", json!({ "path": "a" }));
    until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.go(&place.url(&format!("approvals/{id}")));
    browser.click(&browser.by_role("button", "Edit"));
    let editor = browser.by_role("textbox", "Arguments as JSON");
    browser.fill(&editor, "{\"path\": \"b\"}");
    let path = format!("/api/v1/approvals/{id}/reject");
    let answer = place.post(&path, &json!({ "by": "the other one" }));
    assert_eq!(answer.status, 200, "{answer:?}");
    browser.until_reads("Already rejected by owner via tcp");
    browser.until_reads("Your input was not sent");
    assert!(place.heard().is_empty());
    call.join().unwrap();
}

/// A model that always gives the same answer, and reports the requests that it got.
fn model() -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end().to_lowercase();
                if let Some(bytes) = line.strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sender.send(serde_json::from_slice(&body).unwrap()).unwrap();
            let said = json!({
                "id": "1", "object": "chat.completion", "created": 0, "model": "test-model",
                "choices": [{ "index": 0, "finish_reason": "stop",
                    "message": { "role": "assistant", "content": "Hello Anna." } }],
                "usage": { "prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14 },
            })
            .to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                said.len()
            );
            reader
                .get_mut()
                .write_all((head + &said).as_bytes())
                .unwrap();
        }
    });
    (address, asked)
}

#[test]
fn model_gets_edited_request_and_answer_is_reviewed() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (address, asked) = model();
    let provider =
        json!({ "kind": "openai", "baseUrl": address, "model": "test-model", "apiKey": "k" });
    let place = place(&json!({ "sampling": { "provider": provider, "review": true } }));
    place.open(&browser);
    let call = place.call("claude-code", "files__think", json!({}));
    browser.go(&place.url("approvals"));
    browser.until("document.querySelector('ul.asks li:not(.fresh) a.row') !== null");
    browser.click(&browser.find("ul.asks a.row"));
    browser.until_reads("Say hello to Anna.");
    browser.screenshot("approval-sampling-1280-light");
    browser.click(&browser.by_role("button", "Edit"));
    browser.fill(
        &browser.by_role("textbox", "Message 1, User"),
        "Say hello to Bert.",
    );
    browser.click(&browser.by_role("button", "Approve with changes"));
    let sent = asked
        .recv_timeout(switchboard_test_support::PATIENCE)
        .unwrap();
    let sent = sent["messages"].to_string();
    assert!(
        sent.contains("You are polite.") && sent.contains("Say hello to Bert."),
        "{sent}"
    );
    assert!(!sent.contains("Say hello to Anna."), "{sent}");
    browser.until_reads("before it is delivered");
    browser.until_reads("Hello Anna.");
    browser.screenshot("approval-review-1280-light");
    browser.click(&browser.by_role("button", "Edit"));
    browser.fill(
        &browser.by_role("textbox", "The model's answer"),
        "Hello Bert.",
    );
    browser.click(&browser.by_role("button", "Approve with changes"));
    let said = answer(&place);
    assert_eq!(said["content"]["text"], "Hello Bert.", "{said}");
    assert_eq!(said["role"], "assistant", "{said}");
    assert!(call.join().unwrap()["result"].is_object());
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn user_answers_in_place_of_the_model() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (address, _asked) = model();
    let provider =
        json!({ "kind": "openai", "baseUrl": address, "model": "test-model", "apiKey": "k" });
    let place = place(&json!({ "sampling": { "provider": provider } }));
    place.open(&browser);
    let call = place.call("claude-code", "files__think", json!({}));
    until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.go(&place.url(&format!("approvals/{id}")));
    browser.click(&browser.by_role("button", "Answer yourself"));
    browser.fill(
        &browser.by_role("textbox", "Your answer"),
        "Hello from a person.",
    );
    browser.click(&browser.by_role("button", "Send answer"));
    assert_eq!(answer(&place)["content"]["text"], "Hello from a person.");
    call.join().unwrap();
}

#[test]
fn held_server_is_shown_with_its_command() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place(&json!({}));
    place.open(&browser);
    browser.go(&place.url("approvals"));
    browser.until_reads("No pending requests");
    let server = json!({
        "command": "sh", "args": ["-c", "echo 'a b' >&2"], "cwd": "/srv",
        "env": {
            "NODE_OPTIONS": "--require=./x.js", "KEY": "${env:HOME}",
            "A_TOKEN": "ghp_0123456789abcdef0123456789abcdef0123",
        },
    });
    let added = place.post(
        "/api/v1/servers",
        &json!({ "name": "held", "server": server }),
    );
    assert_eq!(added.status, 201);
    browser.until_reads("held wants to start this program");
    let id = place.waiting()[0]["id"].clone();
    browser.go(&place.url(&format!("approvals/{}", id.as_str().unwrap())));
    for part in [
        r"sh -c 'echo '\''a b'\'' >&2'",
        "--require=./x.js",
        "A_TOKEN",
        "not shown",
        "/bin/sh",
        "Secrets and variables that it uses",
        "${env:HOME}",
        "cwd",
        "/srv",
        "Fingerprint",
    ] {
        browser.until_reads(part);
    }
    assert!(!browser.text().contains("ghp_"));
    until_ready(&browser);
    browser.click(&browser.by_role("button", "Approve"));
    until("it may start", || {
        let config = place.get("/api/v1/config").json();
        config["config"]["mcpServers"]["held"]["hold"] == false
    });
}
