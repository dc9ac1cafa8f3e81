//! One memory for clients of different kinds, through one gateway.

use std::collections::BTreeSet;

use serde_json::json;
use switchboard_test_support::Tools;

use super::{Agent, At, contents};

use crate::support::{Kind, Place};

#[test]
fn clients_of_different_kinds_share_memories_at_once() {
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let mut typescript = Agent::start(&place, Kind::TypescriptV1, false, At::Serve);
    let mut python = Agent::start(&place, Kind::Python, true, At::Direct);

    let first = json!({ "content": "The release is cut on Thursdays", "namespace": "team" });
    let first = typescript.stores(first);
    let wish = json!({ "query": "when is the release cut", "namespace": "team" });
    let found = python.gives("recall", wish.clone());
    assert_eq!(found["memories"][0]["id"], first, "{found}");

    let change = json!({ "id": first, "content": "The release is cut on Fridays" });
    python.gives("update_memory", change);
    let found = typescript.gives("recall", wish.clone());
    assert_eq!(contents(&found), ["The release is cut on Fridays"]);

    typescript.gives(
        "invalidate",
        json!({ "id": first, "reason": "no releases" }),
    );
    assert_eq!(python.gives("recall", wish.clone())["count"], 0);
    python.gives("delete_memory", json!({ "id": first }));
    let mut wish = wish;
    wish["include_invalid"] = json!(true);
    assert_eq!(typescript.gives("recall", wish)["count"], 0);

    python.gives("create_entity", json!({ "name": "Ada" }));
    let again = typescript.gives("create_entity", json!({ "name": " ADA " }));
    assert_eq!(again["created"], false, "{again}");
    typescript.leaves();
    python.leaves();
}

#[test]
fn concurrent_stores_lose_nothing() {
    const EACH: usize = 50;
    let Some(tools) = Tools::peers() else { return };
    let place = Place::remembering(tools);
    let mut agents = [
        Agent::start(&place, Kind::TypescriptV1, false, At::Serve),
        Agent::start(&place, Kind::TypescriptV2, true, At::Alone),
        Agent::start(&place, Kind::Python, false, At::Stdio),
        Agent::start(&place, Kind::PythonV1, false, At::Direct),
    ];
    // All clients get all their work before the test reads any result.
    for number in 0..EACH {
        for (of, agent) in agents.iter_mut().enumerate() {
            let content = format!("note {number} of {of}");
            let call = agent.call("store_memory", json!({ "content": content }));
            agent.client.tell(&call.to_string());
        }
    }
    let mut ids = BTreeSet::new();
    for agent in &agents {
        for _ in 0..EACH {
            let done = agent.client.step("did");
            let given = agent.given(&done["result"]);
            ids.insert(given["id"].as_str().expect("an id").to_owned());
        }
    }
    assert_eq!(ids.len(), agents.len() * EACH);
    for mut agent in agents {
        // Pages are small enough that no view cuts them.
        let mut listed = BTreeSet::new();
        let mut offset = json!(0);
        while !offset.is_null() {
            let page = json!({ "limit": 50, "offset": offset });
            let page = agent.gives("list_memories", page);
            let memories = page["memories"].as_array().expect("memories");
            listed.extend(
                memories
                    .iter()
                    .map(|one| one["id"].as_str().unwrap().to_owned()),
            );
            offset = page["next_offset"].clone();
        }
        assert!(listed == ids, "{}", agent.name);
        agent.leaves();
    }
}
