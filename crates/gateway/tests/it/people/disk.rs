//! The disk contains something other than the gateway expects.

use serde_json::{Value, json};
use switchboard_store::{Approval, Change, Store};

use super::{asks_deletions, mute, staged};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, refusal_of},
};

/// Writes another version of a request, bypassing the gateway.
async fn rewrite(rig: &Rig, id: &Value, change: impl FnOnce(&mut Value)) {
    let store = Store::open(rig.home.database());
    let row = store.approval(id.as_str().unwrap()).await.unwrap().unwrap();
    let mut body: Value = serde_json::from_str(&row.body).unwrap();
    let was = row.version;
    body["version"] = json!(was + 1);
    change(&mut body);
    let row = Approval {
        version: was + 1,
        status: body["status"].as_str().unwrap().into(),
        open: body["status"] == "pending",
        body: body.to_string().into(),
        ..row
    };
    let changes = vec![Change::Approval { row, was }];
    store.write(changes).await.unwrap();
    store.close();
    store.closed().await;
}

#[tokio::test]
async fn decision_reported_as_failed_but_written_holds() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    rewrite(&rig, &asked["id"], |body| {
        body["status"] = json!("rejected");
        body["delivered"] = json!(1);
        body["decided"] = json!({ "action": "reject", "by": "ada", "at": 1, "reason": "keep it" });
    })
    .await;
    let late = rig.decide(&asked["id"], "approve", json!({})).await;
    late.problem(409);
    let answer = client.finish(&call).await.json;
    assert!(refusal_of(&answer).contains("keep it"), "{answer}");
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

#[tokio::test]
async fn changes_apply_to_the_request_on_disk() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    rewrite(&rig, &asked["id"], |body| body["escalated"] = json!(1)).await;
    let decided = rig.decided(&asked["id"], "approve", json!({})).await;
    assert_eq!(decided["version"], 3, "{decided}");
    client.finish(&call).await;
    assert_eq!(stage.calls(), 1);
    rig.stop().await;
}
