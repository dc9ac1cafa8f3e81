//! The prompts that a model expects in front of a text, by the purpose of the text.

use std::fs;

use serde_json::{Value, json};
use switchboard_embed::{Embedder, MiniLm, ModelError, Role, limits};
use tempfile::TempDir;

use crate::folder::{Files, refused};

const FILE: &str = "config_sentence_transformers.json";

/// A folder with the small model and these settings.
fn folder(settings: impl AsRef<[u8]>) -> TempDir {
    let folder = Files::new().write();
    fs::write(folder.path().join(FILE), settings).unwrap();
    folder
}

fn with(settings: &Value) -> MiniLm {
    MiniLm::open(folder(settings.to_string()).path()).unwrap()
}

fn plain() -> MiniLm {
    MiniLm::open(Files::new().write().path()).unwrap()
}

fn query(model: &MiniLm, text: &str) -> Option<Vec<f32>> {
    model.embed(Role::Query, text).unwrap()
}

fn passage(model: &MiniLm, text: &str) -> Option<Vec<f32>> {
    model.embed(Role::Passage, text).unwrap()
}

#[test]
fn prompt_is_put_before_the_text() {
    let plain = plain();
    let model = with(&json!({ "prompts": { "query": "read: ", "passage": "file " } }));
    // Three pieces fit.
    assert_eq!(query(&model, "file"), passage(&plain, "read: file"));
    assert_eq!(
        passage(&model, "read read"),
        query(&plain, "file read read")
    );
    assert_ne!(query(&model, "file"), passage(&model, "file"));
    let together = model.embed_all(Role::Query, &["file", "", "read"]).unwrap();
    assert_eq!(together[0], query(&plain, "read: file"));
    assert_eq!(together[2], query(&plain, "read: read"));
    // A prompt alone is not a text.
    assert_eq!(together[1], None);
    assert_eq!(passage(&model, " \n\u{0} "), None);
}

#[test]
fn empty_prompts_change_nothing() {
    let plain = plain();
    assert_eq!(query(&plain, "read files"), passage(&plain, "read files"));
    for settings in [
        json!({}),
        json!({ "__version__": { "pytorch": "1.8.1" } }),
        json!({ "prompts": null, "default_prompt_name": null }),
        json!({ "prompts": {}, "default_prompt_name": "query" }),
        json!({ "prompts": { "query": "", "document": "" }, "similarity_fn_name": "cosine" }),
        json!({ "prompts": { "query": null, "clustering": "read " } }),
    ] {
        let model = with(&settings);
        assert_eq!(model.fingerprint(), plain.fingerprint(), "{settings}");
        assert_eq!(query(&model, "file"), query(&plain, "file"), "{settings}");
        assert_eq!(passage(&model, "file"), query(&plain, "file"), "{settings}");
    }
}

#[test]
fn prompts_are_chosen_by_name() {
    let plain = plain();
    for (prompts, default, before_query, before_passage) in [
        (json!({ "query": "read " }), json!(null), "read ", ""),
        (json!({ "document": "read " }), json!(null), "", "read "),
        (json!({ "corpus": "read " }), json!(null), "", "read "),
        (
            json!({ "passage": "read ", "document": "file " }),
            json!(null),
            "",
            "file ",
        ),
        (
            json!({ "any": "read ", "document": "file " }),
            json!("any"),
            "read ",
            "file ",
        ),
        (
            json!({ "any": "read ", "document": "" }),
            json!("any"),
            "read ",
            "",
        ),
        (json!({ "any": "read " }), json!("other"), "", ""),
    ] {
        let model = with(&json!({ "prompts": prompts, "default_prompt_name": default }));
        let expected = |before: &str| query(&plain, &format!("{before}file"));
        assert_eq!(query(&model, "file"), expected(before_query), "{prompts}");
        assert_eq!(
            passage(&model, "file"),
            expected(before_passage),
            "{prompts}"
        );
    }
}

#[test]
fn prompts_are_part_of_the_fingerprint() {
    let mut prints: Vec<String> = [
        json!({}),
        json!({ "query": "read " }),
        json!({ "passage": "read " }),
        json!({ "query": "read ", "passage": "read " }),
        json!({ "query": "read read " }),
        json!({ "query": "r", "passage": "ead " }),
    ]
    .iter()
    .map(|prompts| {
        with(&json!({ "prompts": prompts }))
            .fingerprint()
            .to_owned()
    })
    .collect();
    let count = prints.len();
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), count);
}

#[test]
fn longest_prompt_and_text_are_accepted() {
    let long = "r".repeat(limits::PROMPT_BYTES);
    let model = with(&json!({ "prompts": { "query": long, "passage": "read " } }));
    assert!(query(&model, "file").is_some());
    let text = "\u{e9}".repeat(limits::TEXT_BYTES);
    assert!(passage(&model, &text).is_some());
}

#[test]
fn invalid_settings_are_refused() {
    for settings in [
        "",
        "no JSON",
        "7",
        r#"{"prompts": ["read"]}"#,
        r#"{"prompts": {"query": 7}}"#,
        r#"{"default_prompt_name": 7}"#,
        &"[".repeat(100_000),
    ] {
        let message = refused(folder(settings).path());
        assert!(message.contains(FILE), "{message}");
    }
    for name in ["query", "document", "any"] {
        let long = "r".repeat(limits::PROMPT_BYTES + 1);
        let settings = json!({ "prompts": { name: long }, "default_prompt_name": "any" });
        let message = refused(folder(settings.to_string()).path());
        assert!(message.contains("a prompt has 513 bytes"), "{message}");
    }
    let error = MiniLm::open(folder(" ".repeat(2 << 20)).path()).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { .. }), "{error:?}");
    let folder = Files::new().write();
    fs::create_dir(folder.path().join(FILE)).unwrap();
    assert!(refused(folder.path()).contains(FILE));
}
