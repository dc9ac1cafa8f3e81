//! The whole memory is deleted only if the user agrees: through the client, or through the gateway.

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

use super::{Agent, At};

use crate::support::{Kind, Place};

const KINDS: [(Kind, bool); 5] = [
    (Kind::TypescriptV1, false),
    (Kind::TypescriptV2, true),
    (Kind::Python, false),
    (Kind::Python, true),
    (Kind::PythonV1, false),
];

#[test]
fn nothing_is_deleted_without_consent() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let answers = [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "forget": false } }),
    ];
    for ((kind, modern), at) in KINDS.into_iter().zip(At::ALL.into_iter().cycle()) {
        let mut agent = Agent::answering(&place, kind, modern, at, &answers);
        agent.stores(json!({ "content": "To be kept" }));
        let before = agent.gives("list_memories", json!({}));
        let call = agent.call("reset_all_memory", json!({}));
        for answer in &answers {
            let asked = agent.tries(&call);
            assert_eq!(asked["step"], "asked", "{} {asked}", agent.name);
            let message = asked["message"].as_str().unwrap();
            let count = format!("all memories ({})", before["total"]);
            assert!(message.contains(&count), "{message}");
            assert_eq!(asked["schema"]["properties"]["forget"]["type"], "boolean");
            let done = agent.client.step("did");
            let said = agent.refused(&call, &done["result"]);
            assert!(
                said.contains("did not agree"),
                "{} {answer} {said}",
                agent.name
            );
            assert_eq!(agent.gives("list_memories", json!({})), before, "{answer}");
        }
        agent.leaves();
    }
}

#[test]
fn user_answers_for_client_without_elicitation() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let decisions = [
        ("respond", json!({ "action": "decline" }), false),
        ("reject", json!({}), false),
        (
            "respond",
            json!({ "action": "accept", "content": { "forget": true } }),
            true,
        ),
    ];
    for ((kind, modern), at) in KINDS.into_iter().zip(At::ALL.into_iter().rev().cycle()) {
        let mut agent = Agent::start(&place, kind, modern, at);
        agent.stores(json!({ "content": "Perhaps to be kept" }));
        let call = agent.call("reset_all_memory", json!({}));
        for (decision, answer, agrees) in &decisions {
            let before = agent.gives("get_status", json!({}));
            agent.client.tell(&call.to_string());
            decide(&place, decision, answer);
            let done = agent.client.step("did");
            let after = agent.gives("get_status", json!({}));
            if *agrees {
                let done = agent.given(&done["result"]);
                assert_eq!(done["deleted"], before["memories"], "{}", agent.name);
                assert_eq!(after["memories"], 0, "{after}");
            } else {
                agent.refused(&call, &done["result"]);
                assert_eq!(after["memories"], before["memories"], "{after}");
            }
        }
        agent.leaves();
    }
}

/// Waits for the one pending question, and decides it.
#[track_caller]
fn decide(place: &Place, decision: &str, answer: &Value) {
    let mut http = place.http();
    let asked = until("a person is asked", || {
        let list = http.get("/api/v1/approvals?status=pending").json();
        list["approvals"].get(0).cloned()
    });
    assert_eq!(asked["kind"], "elicitation", "{asked}");
    assert_eq!(asked["server"], "memory", "{asked}");
    let id = asked["id"].as_str().expect("an id");
    let path = format!("/api/v1/approvals/{id}/{decision}");
    let decided = http.ask("POST", &path, &[], answer.to_string().as_bytes());
    assert_eq!(decided.status, 200, "{}", decided.text());
}
