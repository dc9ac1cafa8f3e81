//! The memory page: memories are listed, found, changed, deleted, drawn as a graph, exported and imported.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
};

use serde_json::{Value, json};
use switchboard_test_support::until;
use tempfile::TempDir;

use crate::{
    browser::{Browser, ENTER},
    hostile::{check, encode},
    place::Place,
    vectors::{VECTORS, long_word},
};

/// The keys that move through the graph.
const ARROW_RIGHT: &str = "\u{e014}";
const ARROW_LEFT: &str = "\u{e012}";

fn nothing() -> Value {
    json!({ "tools": [], "does": {} })
}

fn place() -> Place {
    Place::new(&[], &nothing(), &json!({}))
}

fn total(place: &Place, which: &Value) -> u64 {
    let listed = place.memory("list_memories", which);
    listed["total"].as_u64().unwrap()
}

/// The number of elements that match a selector.
fn count(browser: &Browser, css: &str) -> u64 {
    let count = "return document.querySelectorAll(arguments[0]).length";
    browser.execute(count, &json!([css])).as_u64().unwrap()
}

#[test]
fn memory_is_added_found_changed_and_deleted() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    place.open(&browser);
    browser.go(&place.url("memory"));
    browser.until_reads("No memories yet.");
    browser.click(&browser.by_role("link", "Add a memory"));
    let content = browser.by_role("textbox", "Content");
    browser.click(&browser.by_role("button", "Store"));
    browser.until_reads("Enter the text to remember.");
    browser.fill(&content, "The backup runs at noon.");
    browser.fill(&browser.by_role("textbox", "Mentions"), "Backup Robot");
    browser.fill(&browser.by_role("combobox", "User"), "ada");
    browser.click(&browser.by_role("button", "Store"));
    browser.until_reads("The memory is stored.");
    let stored = place.memory("list_memories", &json!({ "user_id": "ada" }));
    let stored = &stored["memories"][0];
    assert_eq!(stored["content"], "The backup runs at noon.");
    assert_eq!(stored["importance"], 0.5);
    assert!(
        stored["entities"]
            .as_array()
            .unwrap()
            .contains(&json!("Backup Robot"))
    );

    browser.click(&browser.by_role("link", "Open the memory"));
    browser.until_reads("Version 1");
    browser.click(&browser.by_role("button", "Edit"));
    let importance = browser.by_role("textbox", "Importance");
    browser.fill(&importance, "7");
    browser.click(&browser.by_role("button", "Save"));
    browser.until_reads("a number from 0 to 1");
    browser.fill(&importance, "0.9");
    let content = browser.by_role("textbox", "Content");
    browser.fill(&content, "The backup runs at midnight.");
    browser.click(&browser.by_role("button", "Save"));
    // Both versions, and the changes between them.
    browser.until_reads("Version 2");
    browser.until_reads("The backup runs at noon.");
    browser.until_reads("Importance: 0.5 → 0.9");
    let id = json!({ "id": stored["id"] });
    let changed = place.memory("get_memory", &id);
    assert_eq!(changed["content"], "The backup runs at midnight.");
    assert_eq!(changed["importance"], 0.9);
    assert_eq!(changed["version"], 2);
    // Fields that the user did not touch are unchanged.
    assert!(changed.get("valid_from").is_none(), "{changed}");

    browser.go(&place.url("memory"));
    browser.fill(
        &browser.by_role("searchbox", "Search memories"),
        "when does the backup run",
    );
    browser.until_reads("1 memory found");
    browser.until("document.querySelector('.why .chip')?.innerText === 'words'");
    browser.until("document.querySelector('.why meter').value > 0");
    browser.click(&browser.by_role("link", "The backup runs at midnight."));

    browser.click(&browser.by_role("button", "No longer valid"));
    browser.fill(&browser.by_role("textbox", "Reason"), "There is no backup.");
    browser.click(&browser.by_role("button", "Mark as no longer valid"));
    browser.until_reads("There is no backup.");
    assert_eq!(total(&place, &json!({})), 0);
    assert_eq!(total(&place, &json!({ "include_invalid": true })), 1);

    browser.click(&browser.by_role("button", "Delete"));
    browser.until("document.querySelector('dialog[open]') !== null");
    browser.click(&browser.by_role("button", "Cancel"));
    browser.click(&browser.by_role("button", "Delete"));
    browser.click(&browser.by_role("button", "Delete memory"));
    browser.until_reads("Deleted.");
    assert_eq!(total(&place, &json!({ "include_invalid": true })), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn list_is_filtered_by_scope() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    for at in 0..25 {
        let user = if at % 5 == 0 { "ada" } else { "bob" };
        let content = format!("Note {at} of {user}");
        place.memory(
            "store_memory",
            &json!({ "content": content, "user_id": user, "namespace": "work" }),
        );
    }
    place.memory(
        "store_memory",
        &json!({ "content": "Nobody's note", "memory_type": "episodic" }),
    );
    place.open(&browser);
    browser.go(&place.url("memory"));
    browser.until_reads("26 memories, newest first");
    browser.until_reads("Nobody's note");
    assert_eq!(count(&browser, ".memories > li"), 20);
    browser.click(&browser.by_role("button", "Show more"));
    browser.until("document.querySelectorAll('.memories > li').length === 26");
    browser.until_reads("Note 0 of ada");
    browser.choose("select[aria-label=User]", "ada");
    browser.until_reads("5 memories, newest first");
    assert_eq!(count(&browser, ".memories > li"), 5);
    // The filter stays when the page changes, and applies to searches, too.
    browser.fill(&browser.by_role("searchbox", "Search memories"), "note");
    browser.until_reads("5 memories found");
    browser.fill(&browser.by_role("searchbox", "Search memories"), "");
    browser.choose("select[aria-label=User]", "");
    browser.choose("select[aria-label=Type]", "episodic");
    browser.until_reads("1 memory, newest first");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn graph_opens_the_chosen_entity() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    for content in ["Ada leads Falcon.", "Ada met Bob.", "Bob likes Falcon."] {
        let names: Vec<&str> = ["Ada", "Bob", "Falcon"]
            .into_iter()
            .filter(|name| content.contains(name))
            .collect();
        place.memory(
            "store_memory",
            &json!({ "content": content, "entities": names }),
        );
    }
    for (from, to, kind) in [("Ada", "Falcon", "leads"), ("Ada", "Bob", "met")] {
        let relation = json!({ "from": from, "to": to, "relation_type": kind });
        place.memory("create_relation", &relation);
    }
    browser.look(1280, false);
    place.open(&browser);
    browser.go(&place.url("memory/graph"));
    browser.until("document.querySelectorAll('.graph circle').length >= 3");
    assert_eq!(count(&browser, ".edges path"), 2);
    let words = "[...document.querySelectorAll('.edge-words text')].map((one) => one.textContent).sort().join()";
    browser.until(&format!("{words} === 'leads,met'"));
    // Each node is inside the picture, and no two are in the same place.
    let places = browser.until(
        "[...document.querySelectorAll('.graph circle')].map((one) => one.getBoundingClientRect()).map((one) => [Math.round(one.x), Math.round(one.y)])",
    );
    let places = places.as_array().unwrap();
    for (at, one) in places.iter().enumerate() {
        assert!(!places[..at].contains(one), "{places:?}");
    }
    // The same graph is always drawn in the same way.
    browser.go(&place.url("memory"));
    browser.until_reads("3 memories");
    browser.go(&place.url("memory/graph"));
    browser.until("document.querySelectorAll('.graph circle').length >= 3");
    let again = browser.until(
        "[...document.querySelectorAll('.graph circle')].map((one) => one.getBoundingClientRect()).map((one) => [Math.round(one.x), Math.round(one.y)])",
    );
    assert_eq!(again.as_array().unwrap(), places);

    let ada = browser.by_role("button", "Ada, mentioned in 2 memories");
    browser.click(&ada);
    browser.until("document.querySelector('.graph-side h2')?.innerText === 'Ada'");
    browser.until_reads("Ada leads Falcon.");
    browser.until_reads("Ada met Bob.");
    let relations = browser.execute(
        "return [...document.querySelectorAll('.graph-side .relations li')].map((one) => one.innerText)",
        &json!([]),
    );
    assert_eq!(relations, json!(["Ada leads Falcon", "Ada met Bob"]));
    assert_eq!(count(&browser, ".edges [data-state=near]"), 2);

    // The arrow keys move from one node to another.
    browser.execute(
        "document.querySelector('.graph circle[tabindex=\"0\"]').focus()",
        &json!([]),
    );
    let before = browser.focus();
    assert!(before.1.starts_with("Ada"), "{before:?}");
    browser.press(ARROW_RIGHT);
    if browser.focus() == before {
        browser.press(ARROW_LEFT);
    }
    let (_, name) = browser.focus();
    assert_ne!(name, before.1);
    browser.press(ENTER);
    let name = name.split(',').next().unwrap();
    browser.until(&format!(
        "document.querySelector('.graph-side h2')?.innerText === {}",
        Value::from(name)
    ));
    // The same graph is available as a list.
    browser.click(&browser.by_role("DisclosureTriangle", "As a list"));
    browser.until_reads("Falcon, mentioned in 2 memories");
    browser.screenshot("memory-graph-entity");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn duplicates_are_merged_after_review() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    for content in [
        "The lamp is in the hall.",
        "The lamp is in the hall.",
        "Cats sleep a lot.",
    ] {
        place.memory("store_memory", &json!({ "content": content }));
    }
    place.open(&browser);
    browser.go(&place.url("memory/duplicates"));
    browser.until_reads("1 group.");
    browser.until_reads("The texts are identical.");
    assert_eq!(total(&place, &json!({})), 3);
    browser.click(&browser.by_role("button", "Merge 1 memory"));
    browser.until("document.querySelector('dialog[open]') !== null");
    browser.click(&browser.by_role("button", "Merge"));
    browser.until_reads("No duplicates.");
    assert_eq!(total(&place, &json!({})), 2);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn memories_are_exported_and_imported() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    let stored = place.memory(
        "store_memory",
        &json!({ "content": "Ünïcode and \"quotes\"", "entities": ["Ada", "Bob"] }),
    );
    let id = json!({ "id": stored["id"] });
    place.memory(
        "update_memory",
        &json!({ "id": stored["id"], "content": "Ünïcode, \"quotes\" and more" }),
    );
    place.memory(
        "create_relation",
        &json!({ "from": "Ada", "to": "Bob", "relation_type": "knows" }),
    );
    let folder = TempDir::new().unwrap();
    browser.save_to(folder.path());
    place.open(&browser);
    browser.go(&place.url("memory/store"));
    let saved = |ending: &str| {
        let files = fs::read_dir(folder.path()).unwrap().flatten();
        // A browser creates an empty file first, and replaces it with the whole one.
        let files = files.filter(|file| file.metadata().is_ok_and(|about| about.len() > 0));
        let mut files = files.map(|file| file.path());
        files.find(|file| file.extension().is_some_and(|end| end == ending))
    };
    browser.click(&browser.by_role("button", "Export Markdown"));
    until("the Markdown is saved", || saved("md").is_some());
    let text = fs::read_to_string(saved("md").unwrap()).unwrap();
    assert!(text.contains("and more"), "{text}");
    browser.click(&browser.by_role("button", "Export JSON lines"));
    until("the lines are saved", || saved("jsonl").is_some());
    let file = saved("jsonl").unwrap();
    let mut text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("\"type\":\"memory\"").count(), 2, "{text}");

    place.memory("delete_memory", &id);
    text.push_str("this is no line\n");
    fs::write(&file, &text).unwrap();
    let lines = text.lines().count();
    browser.choose_file("input[type=file]", &file);
    browser.until_reads("In the file: 1 memory, ");
    browser.until_reads(&format!("Line {lines}:"));
    assert_eq!(total(&place, &json!({})), 0);
    browser.click(&browser.by_role("button", "Import"));
    browser.until_reads("Imported: 1 memory, ");
    let found = place.memory(
        "get_memory",
        &json!({ "id": stored["id"], "history": true }),
    );
    assert_eq!(found["content"], "Ünïcode, \"quotes\" and more");
    assert_eq!(found["history"].as_array().unwrap().len(), 2, "{found}");
    let related = place.memory("get_related", &json!({ "entity": "Ada" }));
    assert_eq!(related["relations"][0]["relation_type"], "knows");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn damaged_file_is_reported_and_repaired() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    place.memory(
        "store_memory",
        &json!({ "content": "The key is under the mat." }),
    );
    let place = place.after(|home| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(home.join("switchboard.db"))
            .unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.write_all(&[b'x'; 40]).unwrap();
    });
    place.open(&browser);
    for page in ["memory", "memory/graph", "memory/store"] {
        browser.go(&place.url(page));
        browser.until_reads("Store: not working.");
        browser.until_reads("set aside");
        browser.until_reads("switchboard memory repair");
    }
    browser.screenshot("memory-damaged");
    browser.click(&browser.by_role("button", "Recover readable memories"));
    browser.until_reads("Embedding model");
    browser.until("!document.body.innerText.includes('not working')");
    assert_eq!(total(&place, &json!({})), 1);
}

#[test]
fn missing_memory_is_reported() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let off = Place::new(&[], &nothing(), &json!({ "memory": { "enabled": false } }));
    off.open(&browser);
    browser.go(&off.url("memory"));
    browser.until_reads("The memory is disabled in the configuration.");
    browser.until_reads("\"enabled\": true");
    assert_eq!(browser.complaints(), [""; 0]);
    browser.go("about:blank");
    drop(off);
    let replaced = Place::new(&["memory"], &nothing(), &json!({}));
    replaced.open(&browser);
    browser.go(&replaced.url("memory"));
    browser.until_reads("Another server replaces the built-in memory.");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn hostile_memories_are_inert_text() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    let word = long_word();
    let mut ids = Vec::new();
    for vector in VECTORS {
        let stored = place.memory("store_memory", &json!({
            "content": vector, "namespace": vector, "user_id": vector,
            "entities": [{ "name": vector, "entity_type": vector }], "metadata": { vector: vector },
        }));
        ids.push(stored["id"].as_str().unwrap().to_owned());
        place.memory("invalidate", &json!({ "id": ids[0], "reason": vector }));
        place.memory("create_relation", &json!({ "from": vector, "to": vector, "relation_type": vector, "namespace": vector, "user_id": vector }));
    }
    place.memory(
        "store_memory",
        &json!({ "content": word, "entities": [&word[..500]] }),
    );
    place.memory("store_memory", &json!({ "content": word }));
    place.open(&browser);
    for width in [1280, 390] {
        browser.look(width, false);
        browser.go(&place.url("memory"));
        browser.until("document.querySelectorAll('.memories > li').length === 20");
        check(&browser, "memories", &VECTORS[VECTORS.len() - 15..]);
        browser.screenshot(&format!("hostile-memories-{width}"));
        for page in [
            "memory/graph",
            "memory/duplicates",
            "memory/store",
            "memory/new",
        ] {
            browser.go("about:blank");
            browser.go(&place.url(page));
            browser.until("document.querySelector('main .stack .stack') !== null");
            check(&browser, page, &[]);
        }
    }
    browser.look(1280, false);
    browser.go(&place.url("memory/graph"));
    browser.choose("select[aria-label='Number of entities']", "150");
    browser.until(&format!(
        "document.querySelectorAll('.graph circle').length >= {}",
        VECTORS.len()
    ));
    check(&browser, "the graph", &[]);
    browser.screenshot("hostile-graph");
    for (vector, id) in VECTORS.iter().zip(&ids) {
        browser.go(&place.url(&format!("memory/one/{id}")));
        browser.until("document.querySelector('ol.history') !== null");
        check(&browser, vector, &[vector]);
    }
    browser.click(&browser.by_role("button", "Edit"));
    check(&browser, "the editor", &[VECTORS[VECTORS.len() - 1]]);
    for vector in &VECTORS[..10] {
        let name = encode(vector);
        browser.go(&place.url(&format!("memory/graph/{name}")));
        browser.until("document.querySelector('.graph-side h2') !== null");
        check(&browser, vector, &[vector]);
    }
    browser.screenshot("hostile-entity");
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests_elsewhere(&place.console), [""; 0]);
}
