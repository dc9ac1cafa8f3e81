//! Forms: content is sent only if it fits the requested schema.

use serde_json::{Value, json};

use super::{asking, form, mute, staged, told};
use crate::{api_rig::Rig, mcp_rig::LEGACY, mcp_rig::Pipe};

async fn open() -> (crate::stage_rig::Stage, Rig, Pipe) {
    let (stage, rig) = staged(json!({ "approvals": { "notify": "off" } })).await;
    let client = mute(&rig, LEGACY).await;
    (stage, rig, client)
}

#[tokio::test]
async fn content_is_checked_against_the_schema() {
    let (_stage, rig, mut client) = open().await;
    let text = |more: Value| {
        let mut field = json!({ "type": "string" });
        field
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        field
    };
    let choices = json!([{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }]);
    let cases = [
        (
            "mail",
            text(json!({ "format": "email" })),
            json!("a@example.org"),
            json!("nobody"),
        ),
        (
            "uri",
            text(json!({ "format": "uri" })),
            json!("https://example.org/a"),
            json!("no uri"),
        ),
        (
            "date",
            text(json!({ "format": "date" })),
            json!("2026-02-28"),
            json!("2026-02-30"),
        ),
        (
            "time",
            text(json!({ "format": "date-time" })),
            json!("2026-02-28T10:00:00Z"),
            json!("2026-02-28"),
        ),
        (
            "short",
            text(json!({ "maxLength": 3 })),
            json!("äöü"),
            json!("four"),
        ),
        (
            "long",
            text(json!({ "minLength": 3 })),
            json!("abc"),
            json!("ab"),
        ),
        ("text", text(json!({})), json!(""), json!(7)),
        (
            "age",
            json!({ "type": "integer", "minimum": 0, "maximum": 120 }),
            json!(30),
            json!(121),
        ),
        ("whole", json!({ "type": "integer" }), json!(3), json!(3.5)),
        (
            "score",
            json!({ "type": "number" }),
            json!(1.5),
            json!("1.5"),
        ),
        (
            "flag",
            json!({ "type": "boolean" }),
            json!(false),
            json!("false"),
        ),
        (
            "pick",
            text(json!({ "enum": ["a", "b"] })),
            json!("a"),
            json!("c"),
        ),
        (
            "titled",
            text(json!({ "oneOf": choices })),
            json!("b"),
            json!("A"),
        ),
        (
            "many",
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 2 }),
            json!(["a", "b"]),
            json!(["c"]),
        ),
        (
            "any",
            json!({ "type": "array", "items": { "anyOf": choices } }),
            json!([]),
            json!("a"),
        ),
    ];
    for (name, field, good, bad) in cases {
        let mut ask = form("?", json!({ name: field }));
        ask["questions"]["q"]["params"]["requestedSchema"]["required"] = json!([name]);
        let call = client.send_call("ask", ask).await;
        let asked = rig.one_waiting().await;
        let id = &asked["id"];
        for wrong in [
            json!({ name: bad }),
            json!({}),
            json!({ name: null }),
            json!({ name: good, "more": 1 }),
        ] {
            let body = json!({ "action": "accept", "content": wrong });
            let answer = rig.decide(id, "respond", body).await;
            answer.problem(422);
            let problems = answer.json()["problems"].clone();
            assert!(
                problems[0]["path"].is_string(),
                "{name} {wrong}: {answer:?}"
            );
            assert!(
                problems[0]["message"].is_string(),
                "{name} {wrong}: {answer:?}"
            );
            if wrong.get("more").is_none() {
                assert_eq!(problems[0]["path"], format!("/{name}"), "{wrong}");
            }
        }
        let body = json!({ "action": "accept", "content": { name: good } });
        let decided = rig.decided(id, "respond", body).await;
        assert_eq!(decided["status"], "accepted");
        let result = client.finish(&call).await.json;
        let said = told(&result["result"])["q"].clone();
        assert_eq!(
            said,
            json!({ "action": "accept", "content": { name: good } }),
            "{name}"
        );
    }
    rig.stop().await;
}

#[tokio::test]
async fn omitted_members_get_the_suggested_defaults() {
    let (_stage, rig, mut client) = open().await;
    let ask = form(
        "?",
        json!({
            "name": { "type": "string", "default": "John" },
            "age": { "type": "integer", "default": 30 },
            "sure": { "type": "boolean", "default": true },
            "note": { "type": "string" },
        }),
    );
    let call = client.send_call("ask", ask).await;
    let asked = rig.one_waiting().await;
    let body = json!({ "action": "accept", "content": { "age": 31 } });
    rig.decided(&asked["id"], "respond", body).await;
    let result = client.finish(&call).await.json;
    let content = told(&result["result"])["q"]["content"].clone();
    assert_eq!(content, json!({ "name": "John", "age": 31, "sure": true }));
    rig.stop().await;
}

#[tokio::test]
async fn secret_fields_warn_and_addresses_show_hosts() {
    let (_stage, rig, mut client) = open().await;
    let fields = json!({ "pin": { "type": "string" }, "name": { "type": "string" } });
    let call = client.send_call("ask", form("Log in", fields)).await;
    let asked = rig.one_waiting().await;
    let warnings = asked["warnings"].to_string();
    assert!(
        warnings.contains("password") && warnings.contains("`pin`"),
        "{asked}"
    );
    assert!(!warnings.contains("`name`"), "{asked}");
    rig.decided(&asked["id"], "respond", json!({ "action": "cancel" }))
        .await;
    client.finish(&call).await;
    let url = "https://login.example.org.evil.example/path?next=https://example.org";
    let params = json!({ "mode": "url", "message": "Open", "url": url, "elicitationId": "e1" });
    let call = client
        .send_call("ask", asking("elicitation/create", params))
        .await;
    let asked = rig.one_waiting().await;
    let summary = asked["summary"].as_str().unwrap();
    assert!(
        summary.contains("login.example.org.evil.example"),
        "{asked}"
    );
    let content = json!({ "action": "accept", "content": { "a": 1 } });
    let answer = rig.decide(&asked["id"], "respond", content).await;
    assert!(
        answer.status == 422 || answer.json()["result"]["content"].is_null(),
        "{answer:?}"
    );
    if answer.status == 422 {
        rig.decided(&asked["id"], "respond", json!({ "action": "accept" }))
            .await;
    }
    let result = client.finish(&call).await.json;
    assert_eq!(told(&result["result"])["q"], json!({ "action": "accept" }));
    rig.stop().await;
}

/// Invalid schemas, hostile forms, deceptive words: the gateway asks the user or not, and nothing breaks.
#[tokio::test]
async fn malformed_forms_can_be_declined() {
    let (_stage, rig, mut client) = open().await;
    let deep = (0..60).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
    );
    let strange = [
        json!({}),
        json!({ "message": 7, "requestedSchema": [] }),
        json!({ "message": "?", "requestedSchema": deep }),
        json!({ "message": "?", "requestedSchema": { "$ref": "https://evil.example/schema" } }),
        json!({ "message": "?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "string", "pattern": "(a+)+$" } } } }),
        json!({ "mode": "url", "message": "?", "url": "javascript:alert(1)" }),
        json!({ "mode": "url", "message": "?", "url": "file:///etc/passwd" }),
        json!({ "mode": "url", "message": "?" }),
        json!({ "mode": "telepathy", "message": "?" }),
        json!({ "message": "a\u{202e}b\u{0007}\n\n\u{200f}c" }),
    ];
    for params in strange {
        let call = client
            .send_call("ask", asking("elicitation/create", params.clone()))
            .await;
        let asked = rig.one_waiting().await;
        let summary = asked["summary"].as_str().unwrap();
        let deceives = |letter: char| {
            letter.is_control() || "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{200e}\u{200f}\u{2066}\u{2067}\u{2068}\u{2069}".contains(letter)
        };
        assert!(!summary.contains(deceives), "{summary:?}");
        if params["url"]
            .as_str()
            .is_some_and(|url| !url.starts_with("http"))
        {
            let answer = rig
                .decide(&asked["id"], "respond", json!({ "action": "accept" }))
                .await;
            answer.problem(422);
        }
        rig.decided(&asked["id"], "respond", json!({ "action": "decline" }))
            .await;
        let result = client.finish(&call).await.json;
        assert_eq!(
            told(&result["result"])["q"],
            json!({ "action": "decline" }),
            "{params}"
        );
    }
    rig.stop().await;
}
