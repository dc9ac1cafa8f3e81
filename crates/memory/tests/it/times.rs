//! The two time axes: the time at which something was true, and the time at which it was known.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn past_truth_and_past_knowledge_can_be_queried() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig
        .store(json!({ "content": "Ada lives in Oslo", "valid_from": "2020-01-01", "learned_at": "2020-02-01" }))
        .await;
    rig.store(json!({ "content": "Ada lives in Rome", "valid_from": "2023-01-01", "learned_at": "2023-02-01" }))
        .await;
    let gone = rig
        .call(
            "invalidate",
            json!({ "id": id, "valid_until": "2023-01-01", "reason": "moved" }),
        )
        .await;
    assert_eq!(
        (&gone["version"], &gone["reason"]),
        (&json!(2), &json!("moved"))
    );
    let lives = |more: serde_json::Value| {
        let mut wish = json!({ "query": "where does Ada live" });
        wish.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        rig.contents("recall", wish)
    };
    assert_eq!(lives(json!({})).await, ["Ada lives in Rome"]);
    assert_eq!(
        lives(json!({ "as_of": "2021-06-01" })).await,
        ["Ada lives in Oslo"]
    );
    assert!(lives(json!({ "as_of": "2019-06-01" })).await.is_empty());
    assert_eq!(lives(json!({ "include_invalid": true })).await.len(), 2);
    // In 2022 its end was not known yet.
    assert_eq!(
        lives(json!({ "known_at": "2022-01-01" })).await,
        ["Ada lives in Oslo"]
    );
    let valid = |as_of: &str| rig.contents("get_valid", json!({ "as_of": as_of }));
    assert_eq!(valid("2021-06-01").await, ["Ada lives in Oslo"]);
    assert_eq!(valid("2023-01-01").await, ["Ada lives in Rome"]);
    assert!(valid("2019-01-01").await.is_empty());
    let then = rig
        .call("get_memory", json!({ "id": id, "known_at": "2021-01-01" }))
        .await;
    assert_eq!(
        (&then["version"], &then["valid_until"]),
        (&json!(1), &json!(null))
    );
    let said = rig
        .refused("get_memory", json!({ "id": id, "known_at": "2019-01-01" }))
        .await;
    assert!(said.contains("not known"), "{said}");
}

#[tokio::test]
async fn update_keeps_fields_that_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    let id = rig
        .store(json!({ "content": "Deploys happen on Friday", "namespace": "ops", "memory_type": "procedural",
            "importance": 0.8, "valid_until": "2999-01-01", "entities": ["release train"] }))
        .await;
    let changed = rig
        .call(
            "update_memory",
            json!({ "id": id, "content": "Deploys happen on Monday", "valid_until": null }),
        )
        .await;
    assert_eq!(changed["content"], "Deploys happen on Monday");
    assert_eq!(changed["memory_type"], "procedural");
    assert_eq!(changed["importance"], 0.8);
    assert_eq!(changed["valid_until"], json!(null));
    assert!(
        changed["entities"]
            .as_array()
            .unwrap()
            .contains(&json!("release train"))
    );
    assert_eq!(
        rig.contents("recall", json!({ "query": "deploys Friday" }))
            .await,
        ["Deploys happen on Monday"]
    );
    assert_eq!(
        rig.call("get_memory", json!({ "id": id, "history": true }))
            .await["history"][0]["content"],
        "Deploys happen on Friday"
    );
}
