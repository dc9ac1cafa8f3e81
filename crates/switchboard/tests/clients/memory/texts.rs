//! Texts of every script and length come back unchanged.

use serde_json::json;
use switchboard_test_support::Tools;

use super::{Agent, At, contents};

use crate::support::{Kind, Place};

const KINDS: [(Kind, bool, At); 4] = [
    (Kind::TypescriptV1, false, At::Serve),
    (Kind::TypescriptV2, true, At::Direct),
    (Kind::Python, true, At::Alone),
    (Kind::PythonV1, false, At::Stdio),
];

/// Texts that other programs stumble over.
const TEXTS: [&str; 10] = [
    "Grüße aus Zürich, naïve façade",
    "日本語の記憶：明日は雨です。",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb",
    "שלום עולם \u{202b}مرحبا\u{202c}",
    "e\u{301} is not é, ﬁ is not fi",
    "a line\nand\r\nanother\twith a tab",
    "\u{2028}separators\u{2029} and \u{feff}marks\u{200b}",
    "controls \u{1}\u{8}\u{1b}[31m\u{7f} and nothing \u{0} at all",
    r#"quotes " ' ` \ / \u0041 \n {"json": [1]} </script> %00 ${x}"#,
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 beyond the first plane \u{10ffff}",
];

#[test]
fn texts_of_every_script_come_back_unchanged() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let mut agents = KINDS.map(|(kind, modern, at)| Agent::start(&place, kind, modern, at));
    let count = agents.len();
    for (number, text) in TEXTS.into_iter().enumerate() {
        let metadata = json!({ text: [text, { "deep": text }] });
        let memory = json!({
            "content": text, "namespace": text, "entities": [text], "metadata": metadata,
        });
        let id = agents[number % count].stores(memory);
        for agent in &mut agents {
            let name = agent.name.clone();
            let got = agent.gives("get_memory", json!({ "id": id, "namespace": text }));
            assert_eq!(got["content"], text, "{name}");
            assert_eq!(got["namespace"], text, "{name}");
            assert_eq!(got["metadata"], metadata, "{name}");
            let listed = agent.gives("list_memories", json!({ "namespace": text }));
            assert_eq!(contents(&listed), [text], "{name}");
            let found = agent.gives("recall", json!({ "query": text, "namespace": text }));
            assert_eq!(contents(&found), [text], "{name}");
            let related = agent.gives("get_related", json!({ "entity": text, "namespace": text }));
            assert_eq!(contents(&related), [text], "{name}");
        }
    }
    // Export, delete, and import again.
    let before = agents[0].gives("list_memories", json!({ "limit": 200 }));
    let exported = agents[0].gives("export_memory", json!({}));
    for memory in before["memories"].as_array().unwrap() {
        agents[1].gives("delete_memory", json!({ "id": memory["id"] }));
    }
    let imported = agents[2].gives("import_memory", json!({ "jsonl": exported["data"] }));
    assert_eq!(imported["memories"], TEXTS.len(), "{imported}");
    assert_eq!(imported["errors"], json!([]));
    let after = agents[3].gives("list_memories", json!({ "limit": 200 }));
    let sorted = |given: &serde_json::Value| {
        let mut contents: Vec<_> = contents(given).into_iter().map(str::to_owned).collect();
        contents.sort();
        contents
    };
    assert_eq!(sorted(&after), sorted(&before));
    agents.into_iter().for_each(Agent::leaves);
}

/// The longest memory, in bytes.
const LONGEST: usize = 1 << 20;

/// A text of the maximum length, mostly of characters with three bytes.
fn longest() -> String {
    let words = "日本語 ".repeat(LONGEST / 10);
    format!("{words}{}", "x".repeat(LONGEST - words.len()))
}

#[test]
fn longest_text_is_kept_and_longer_ones_refused() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    for (kind, modern, at) in [
        (Kind::TypescriptV1, false, At::Serve),
        (Kind::TypescriptV2, true, At::Alone),
        (Kind::Python, true, At::Stdio),
        (Kind::PythonV1, false, At::Alone),
    ] {
        let mut agent = Agent::start(&place, kind, modern, at);
        let long = longest();
        let id = agent.stores(json!({ "content": long, "namespace": "long" }));
        let got = agent.gives("get_memory", json!({ "id": id }));
        assert!(got["content"] == long, "{}", agent.name);
        let found = agent.gives("recall", json!({ "query": "日本語", "namespace": "long" }));
        assert!(found["memories"][0]["content"] == long, "{}", agent.name);
        let longer = format!("{long}x");
        let said = agent.refuses("store_memory", json!({ "content": longer }));
        assert!(said.contains(&LONGEST.to_string()), "{said}");
        assert!(said.len() < 1_000, "{said}");
        agent.gives("delete_memory", json!({ "id": id }));
        agent.leaves();
    }
}

#[test]
fn cut_results_still_match_the_output_schema() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    for (kind, modern, _) in KINDS {
        let mut agent = Agent::start(&place, kind, modern, At::Direct);
        let long = longest();
        let id = agent.stores(json!({ "content": long, "namespace": "long" }));
        for (tool, args) in [
            ("get_memory", json!({ "id": id })),
            ("recall", json!({ "query": "日本語", "namespace": "long" })),
            ("list_memories", json!({ "namespace": "long" })),
            ("export_memory", json!({ "namespace": "long" })),
        ] {
            let call = agent.call(tool, args);
            let result = agent.does(&call);
            assert_ne!(result["isError"], true, "{} {tool}", agent.name);
            assert!(result.to_string().len() < 200_000, "{} {tool}", agent.name);
            let texts = result["content"].to_string();
            assert!(texts.contains("read_result"), "{} {tool}", agent.name);
        }
        agent.gives("delete_memory", json!({ "id": id }));
        agent.leaves();
    }
}

#[test]
fn lone_surrogate_becomes_a_replacement_character() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    // Python refuses to send it.
    for (kind, modern, at) in [
        (Kind::TypescriptV1, false, At::Serve),
        (Kind::TypescriptV1, false, At::Alone),
        (Kind::TypescriptV2, true, At::Direct),
    ] {
        let mut agent = Agent::start(&place, kind, modern, at);
        let call = agent.call("store_memory", json!({ "content": "half HERE" }));
        let half = call.to_string().replace("HERE", r"\ud83d.");
        agent.client.tell(&half);
        let stored = agent.client.step("did");
        let id = agent.given(&stored["result"])["id"].clone();
        let got = agent.gives("get_memory", json!({ "id": id }));
        assert_eq!(got["content"], "half \u{fffd}.", "{}", agent.name);
        agent.leaves();
    }
}
