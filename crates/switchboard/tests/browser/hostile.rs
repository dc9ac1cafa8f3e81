//! Hostile text of servers and clients, in every place where the console shows it: it stays plain text.

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    browser::Browser,
    place::Place,
    vectors::{VECTORS, long_word},
};

/// A server may have any name.
const SERVER: &str = "<img src=x onerror=window.canary=1>";

/// Elements and attributes that no page of the console has: they can only come from a text.
const STRANGE: &str = "return [...document.querySelectorAll('*')].filter((one) =>
    one.matches('iframe, object, embed, base, video, audio, marquee, math, meta[http-equiv], form[action], image, animate, style')
    || (one.matches('script, link, img') && !/^(\\/console\\/|data:image\\/)/.test(one.getAttribute('src') ?? one.getAttribute('href') ?? ''))
    || (one.matches('a') && !(one.getAttribute('href') ?? '#').startsWith('#') && !(one.getAttribute('href')).startsWith('blob:'))
    || [...one.attributes].some((attribute) => attribute.name.startsWith('on') || attribute.name.includes(':href')))
    .map((one) => one.outerHTML.slice(0, 200))";

/// Opens all folded parts, so that everything on the page is visible.
const UNFOLD: &str = "document.querySelectorAll('details').forEach((one) => { one.open = true; })";

/// Returns the texts that are missing on the page. Invisible characters may be spelled out by the console, or
/// not.
const READS: &str = "const unseen = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb]|[\\u{e0000}-\\u{e01ef}]/gu;
    const bare = (text) => text.replace(unseen, (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
    const fields = [...document.querySelectorAll('input, textarea')].map((one) => one.value).join('\\n');
    const page = bare(document.body.textContent + '\\n' + fields).replace(/\\s+/g, ' ');
    return arguments[0].filter((one) => !page.includes(bare(one).replace(/\\s+/g, ' ').trim()))";

/// Checks that the page consists of its own elements only, and that it contains all of these texts.
#[track_caller]
pub(crate) fn check(browser: &Browser, page: &str, texts: &[&str]) {
    browser.execute(UNFOLD, &json!([]));
    let texts = json!([texts]);
    let mut missing = Value::Null;
    for _ in 0..200 {
        missing = browser.execute(READS, &texts);
        if missing == json!([]) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(missing, json!([]), "not to be read on {page}");
    let strange = browser.execute(STRANGE, &json!([]));
    assert_eq!(strange, json!([]), "{page}");
    let canary = browser.execute("return String(window.canary)", &json!([]));
    assert_eq!(canary, "undefined", "{page}");
    let wide = browser.execute(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
        &json!([]),
    );
    assert!(wide.as_i64() <= Some(0), "{page} is {wide} pixels too wide");
}

/// Tests if a tool may have this name.
fn tool_name(vector: &str) -> bool {
    vector.len() <= 128
}

/// A form with one field per vector, all of it hostile.
fn form(vectors: &[&str]) -> Value {
    let properties: Value = vectors
        .iter()
        .enumerate()
        .map(|(k, vector)| {
            let field = match k % 3 {
                0 => json!({ "type": "string", "title": vector, "description": vector, "default": vector }),
                1 => json!({ "type": "string", "title": vector, "enum": ["a", "b"], "enumNames": [vector, "b"] }),
                _ => json!({ "type": "boolean", "title": vector, "description": vector }),
            };
            (format!("field{k}"), field)
        })
        .collect();
    json!({ "type": "object", "properties": properties })
}

fn plan() -> Value {
    let mut tools = vec![json!({ "name": "ask", "inputSchema": { "type": "object" } })];
    let mut does = json!({});
    for (k, vector) in VECTORS.iter().enumerate() {
        tools.push(json!({
            "name": format!("t{k}"), "title": vector, "description": vector,
            "annotations": { "title": vector },
            "inputSchema": { "type": "object", "title": vector, "properties": {
                "plain": { "type": "string", "title": vector, "description": vector, "default": vector },
                "one": { "title": vector, "enum": [vector, "b"], "enumNames": [vector, "b"] },
                *vector: { "type": "string" },
            } },
        }));
        does[format!("t{k}")] = json!({
            "says": [vector.replace('\n', " ")],
            "error": { "code": -32000, "message": vector, "data": { "more": vector } },
        });
        if tool_name(vector) {
            tools.push(
                json!({ "name": vector, "description": "x", "inputSchema": { "type": "object" } }),
            );
        }
    }
    let messages: Vec<_> = VECTORS
        .iter()
        .map(|vector| json!({ "role": "user", "content": { "type": "text", "text": vector } }))
        .collect();
    let hints: Vec<_> = VECTORS
        .iter()
        .map(|vector| json!({ "name": vector }))
        .collect();
    let sampling = json!(["sampling/createMessage", {
        "messages": messages, "systemPrompt": VECTORS.join("\n"), "maxTokens": 10,
        "modelPreferences": { "hints": hints }, "stopSequences": VECTORS.to_vec(),
    }]);
    let pictures = json!(["sampling/createMessage", { "maxTokens": 10, "messages": [
        { "role": "user", "content": { "type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImNhbmFyeT0xIi8+" } },
        { "role": "user", "content": { "type": "image", "mimeType": "image/png\" onerror=\"canary=1", "data": "x\" onerror=\"canary=1" } },
        { "role": "assistant", "content": { "type": "text", "text": long_word() } },
    ] }]);
    let mut asks = vec![sampling, pictures];
    for vectors in VECTORS.chunks(10) {
        asks.push(json!(["elicitation/create", { "message": vectors.join("\n"), "requestedSchema": form(vectors) }]));
    }
    // One each, for the line in lists.
    for vector in VECTORS {
        asks.push(json!(["elicitation/create", { "message": vector, "requestedSchema": form(&[vector]) }]));
    }
    does["ask"] = json!({ "asks": asks });
    json!({ "tools": tools, "does": does, "instructions": VECTORS.join("\n") })
}

pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |text, byte| text + &format!("%{byte:02X}"))
}

/// A gateway with the server twice: one whose tools are always shown, and one whose tools are held.
fn hostile() -> Place {
    // The server asks more in one call than is allowed by default.
    let approvals = json!({
        "rules": ["ask *:t1"],
        "questionsPerCall": 1_000,
        "questionsPerMinute": 1_000,
    });
    // Without a model there is nothing to edit. This one is never called.
    let provider = json!({ "kind": "openai", "baseUrl": "http://127.0.0.1:9", "model": "none", "apiKey": "k" });
    let settings = json!({
        "approvals": approvals,
        "sampling": { "provider": provider },
        "profiles": { "all": {} },
    });
    Place::hostile(&[SERVER, "held"], &plan(), &settings)
}

#[test]
fn hostile_text_is_inert_on_every_page() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = hostile();
    place.open(&browser);
    let name = encode(SERVER);
    // Every client has a hostile name, and every call fails with a hostile error.
    for (k, client) in VECTORS.iter().enumerate().filter(|(k, _)| *k != 1) {
        let called = place.call_and_wait(client, &format!("t{k}"));
        assert!(called["error"].is_object(), "{called}");
    }
    for page in [
        "overview",
        "servers",
        "tools",
        "activity",
        "access",
        "settings",
        "approvals",
    ] {
        browser.go(&place.url(page));
        browser.until("document.querySelector('main h1') !== null");
        let texts: &[&str] = match page {
            "activity" => &VECTORS[45..],
            "tools" => &[VECTORS[0], VECTORS[10], VECTORS[30]],
            "servers" | "access" => &[SERVER],
            _ => &[],
        };
        check(&browser, page, texts);
    }
    browser.go(&place.url(&format!("servers/{name}")));
    check(&browser, "the server", &VECTORS);
    browser.screenshot("hostile-server");
    browser.go(&place.url("access/all"));
    browser.until_reads("Its clients find these tools by search");
    // A few tools are shown at a time.
    browser.until(
        "document.querySelector('main .show-more:not([hidden])')?.click() === undefined
        && !document.querySelector('main .show-more:not([hidden])')",
    );
    check(&browser, "the profile", &VECTORS);
    browser.screenshot("hostile-profile");
    for (k, vector) in VECTORS.iter().enumerate() {
        for server in [&*name, "held"] {
            browser.go(&place.url(&format!("tools/{server}/t{k}")));
            check(&browser, vector, &[vector]);
        }
    }
    browser.screenshot("hostile-tool");
    for vector in VECTORS {
        browser.go(&place.url(&format!("tools/{name}/{}", encode(vector))));
        check(&browser, vector, &[vector]);
    }
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests_elsewhere(&place.console), [""; 0]);
}

#[test]
fn hostile_requests_are_inert_in_approvals() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = hostile();
    place.open(&browser);
    let client = VECTORS[10];
    let call = place.call(client, &place.shown_name("ask"), json!({}));
    let asked = 2 + VECTORS.chunks(10).len() + VECTORS.len();
    let waiting = || {
        let mut waiting = place.waiting();
        // Held definitions are requests, too.
        waiting.retain(|approval| approval["kind"] != "trust");
        waiting
    };
    until("everything is asked", || waiting().len() == asked);
    browser.go(&place.url("approvals"));
    // This many requests of one server are folded.
    browser.until("document.querySelector('details.ask-group') !== null");
    browser.execute(UNFOLD, &json!([]));
    browser.until(&format!(
        "document.querySelectorAll('ul.asks > li').length >= {asked}"
    ));
    check(&browser, "approvals", &[SERVER]);
    browser.screenshot("hostile-approvals");
    let mut seen = 0;
    for approval in waiting() {
        let id = approval["id"].as_str().unwrap();
        let whole = place.get(&format!("/api/v1/approvals/{id}")).json();
        browser.go(&place.url(&format!("approvals/{id}")));
        browser.until("document.querySelector('fieldset.decide') !== null");
        let message = whole["request"]["message"].as_str();
        let texts: Vec<&str> = match message {
            Some(message) => message.split('\n').collect(),
            None if whole["request"]["systemPrompt"].is_string() => VECTORS.to_vec(),
            None => vec![],
        };
        seen += texts.len();
        check(&browser, id, &texts);
        if message.is_none() {
            browser.screenshot(&format!("hostile-sampling-{}", texts.len()));
            // The editor shows the text in fields, and the diff.
            browser.click(&browser.by_role("button", "Edit"));
            check(&browser, "the editor", &texts);
        }
    }
    assert!(seen > 2 * VECTORS.len(), "{seen}");
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.requests_elsewhere(&place.console), [""; 0]);
    drop(place);
    let _ = call.join();
}
