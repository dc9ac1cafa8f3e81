//! Every page: it opens without errors and without accessibility violations.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    browser::{Browser, READY},
    place::Place,
};

/// The pages that always exist.
const PAGES: [(&str, &str); 15] = [
    ("overview", "Overview"),
    ("servers", "Servers"),
    ("servers/files", "files"),
    ("tools", "Tools"),
    ("tools/files/read_file", "read_file"),
    ("approvals", "Approvals"),
    ("approvals/history", "Approvals"),
    ("activity", "Activity"),
    ("memory", "Memory"),
    ("memory/new", "Add a memory"),
    ("memory/graph", "Memory"),
    ("memory/duplicates", "Memory"),
    ("memory/store", "Status"),
    ("access", "Access"),
    ("settings", "Settings"),
];

fn plan() -> Value {
    let tool = |name: &str, description: &str| {
        json!({ "name": name, "description": description, "inputSchema": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Which file." },
                "lines": { "type": "integer", "minimum": 1 },
                "how": { "enum": ["text", "bytes"] },
                "follow": { "type": "boolean" },
            },
            "required": ["path"],
        } })
    };
    json!({
        "tools": [
            tool("read_file", "Reads a file of the project."),
            tool("delete_file", "Deletes a file."),
            tool("fail", "Fails."),
        ],
        "does": { "fail": { "result": { "isError": true, "content": [{ "type": "text", "text": "no" }] } } },
    })
}

/// A gateway that has something to show on every page.
fn furnished() -> Place {
    let settings = json!({ "approvals": { "rules": ["ask files:delete_*"] } });
    let place = Place::new(&["files", "mail"], &plan(), &settings);
    for (name, arguments) in [
        ("files:read_file", json!({ "path": "a" })),
        ("files:fail", json!({ "path": "a" })),
        ("mail:read_file", json!({ "path": "b" })),
    ] {
        let call = json!({ "name": name, "arguments": arguments });
        place.post("/api/v1/tools/call", &call);
    }
    for content in ["Ada works at Acme.", "Ada works at Acme.", "Bob left Acme."] {
        let memory = json!({ "content": content, "user_id": "ada", "entities": ["Ada", "Acme"] });
        place.memory("store_memory", &memory);
    }
    let relation =
        json!({ "from": "Ada", "to": "Acme", "relation_type": "works at", "user_id": "ada" });
    place.memory("create_relation", &relation);
    place
}

#[test]
fn link_signs_in_once() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = furnished();
    place.open(&browser);
    // The key is removed from the address, and so from the history.
    let address = browser.execute("return location.href", &json!([]));
    assert!(!address.as_str().unwrap().contains("sign-in"), "{address}");
    browser.go(&place.url("servers"));
    browser.until_reads("mail");
    // In a browser that is not signed in, the same link opens nothing.
    browser.execute("localStorage.clear()", &json!([]));
    browser.go("about:blank");
    browser.go(&place.link);
    browser.until_reads("switchboard console");
    browser.until_reads("Cannot sign in");
    assert!(browser.execute("return localStorage.length", &json!([])) == 0);
}

#[test]
fn every_page_opens_without_errors() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = furnished();
    let waiting = place.call(
        "claude-code",
        "files__delete_file",
        json!({ "path": "notes.txt" }),
    );
    switchboard_test_support::until("it waits", || !place.waiting().is_empty());
    let id = place.waiting()[0]["id"].as_str().unwrap().to_owned();
    browser.look(1280, false);
    place.open(&browser);
    let approval = format!("approvals/{id}");
    let pages = PAGES.iter().copied().chain([(&*approval, "delete_file")]);
    let mut barriers = String::new();
    let mut complaints = browser.complaints();
    for (page, heading) in pages {
        browser.go(&place.url(page));
        let reads = Value::from(heading);
        browser.until(&format!(
            "[...document.querySelectorAll('main h1, main h2')].some((one) => one.innerText.includes({reads}))"
        ));
        browser.until(READY);
        let name = match page.split_once('/') {
            Some(("approvals", rest)) if rest == id => "approval".to_owned(),
            _ => page.replace('/', "-"),
        };
        for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            browser.look(width, dark);
            let found = browser.barriers();
            if !found.is_empty() {
                let _ = writeln!(barriers, "{page} at {width}, dark {dark}:\n{found}");
            }
            let over = browser.execute(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
                &json!([]),
            );
            if over.as_i64() > Some(0) {
                let _ = writeln!(barriers, "{page} is {over} pixels wider than {width}");
            }
            let shade = if dark { "dark" } else { "light" };
            browser.screenshot(&format!("{name}-{width}-{shade}"));
        }
        browser.look(1280, false);
        complaints.extend(browser.complaints());
    }
    browser.execute("localStorage.clear()", &json!([]));
    browser.go("about:blank");
    browser.go(&place.url(""));
    browser.until_reads("You are signed out");
    browser.screenshot("signed-out-1280-light");
    barriers += &browser.barriers();
    complaints.extend(browser.complaints());
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(barriers.is_empty(), "{barriers}");
    let elsewhere = browser.requests_elsewhere(&place.console);
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let answer = place.post(&format!("/api/v1/approvals/{id}/reject"), &json!({}));
    assert_eq!(answer.status, 200, "{answer:?}");
    waiting.join().unwrap();
}
