//! Redaction of secrets by form and by value.
#![allow(clippy::expect_used, reason = "to panic is what a check is for")]

use serde_json::Value;
use switchboard_redact::{Secret, Secrets, redact, redact_text};
use switchboard_wire::Raw;

const FORM: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const VALUE: &str = "pl@nted \"v4lue\" /\\ of a server";

/// A planted secret is removed, JSON remains JSON, and redaction is idempotent.
pub fn redaction(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = redact_text(&text);
    assert_eq!(redact_text(&clean), clean, "once is enough");
    let middle = text.floor_char_boundary(text.len() / 2);
    let planted = format!("{} {FORM} {}", &text[..middle], &text[middle..]);
    assert!(!redact_text(&planted).contains(FORM));

    let set = [Secret::new("x", VALUE), Secret::new("y", &VALUE[..9])];
    let set = Secrets::default().with("", set).expect("room for two");
    let planted = format!("{}{VALUE}{}", &text[..middle], &text[middle..]);
    let clean = set.scrub(&planted).into_owned();
    assert!(!clean.contains(&VALUE[..9]));
    assert_eq!(set.scrub(&clean), clean, "once is enough");

    let document = serde_json::json!({ "a": [planted, text], "password": VALUE }).to_string();
    let clean = set.scrub_json(&document).into_owned();
    let read: Value = serde_json::from_str(&clean).expect("JSON stays JSON");
    let kept = read["a"][0].as_str().unwrap_or_default();
    assert!(!kept.contains(&VALUE[..9]));
    let raw = Raw::parse(document).expect("JSON");
    let kept = redact(&raw, 1000);
    assert!(kept.as_bytes().len() <= 1000);
    assert!(serde_json::from_str::<Value>(kept.as_str()).is_ok());
    if let Ok(raw) = Raw::parse(data.to_vec()) {
        let clean = set.scrub_json(raw.as_str()).into_owned();
        assert!(Raw::parse(clean).is_ok(), "JSON stays JSON");
    }
}
