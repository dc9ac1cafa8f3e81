//! Tools that are held back are put to a person like everything else that waits for one.

use serde_json::{Value, json};

use crate::{
    api_rig::Rig,
    stage_rig::{Stage, tool},
};

fn tools(paint: &str, cook: &str) -> Vec<Value> {
    vec![tool("paint", paint), tool("cook", cook)]
}

async fn staged(stage: &Stage) -> Rig {
    let rig = Rig::with(json!({ "s": stage.entry() })).await;
    rig.until_tools("s", 2).await;
    rig
}

/// The question about server `s` that waits, once there is one about so many tools.
async fn asked(rig: &Rig, tools: usize) -> Value {
    let path = "/api/v1/approvals?status=pending&kind=trust";
    let of = |only: &Value| only["request"]["tools"].as_array().map(Vec::len);
    let answer = rig
        .until(path, |answer| {
            let waiting = answer["approvals"].as_array().unwrap();
            waiting.len() == 1 && of(&waiting[0]) == Some(tools)
        })
        .await;
    answer["approvals"][0].clone()
}

#[tokio::test]
async fn tools_that_changed_are_approved_together() {
    let stage = Stage::new(&tools("Paints.", "Cooks."));
    let rig = staged(&stage).await;
    stage
        .change_tools(&tools("Paints red.", "Cooks soup."))
        .await;
    let asked = asked(&rig, 2).await;
    assert_eq!(asked["server"], "s");
    assert!(asked.get("expiresAt").is_none(), "{asked}");
    let diff = asked["request"]["tools"].to_string();
    assert!(diff.contains("{+ red+}"), "{diff}");
    let id = asked["id"].as_str().unwrap();
    let approved = rig
        .post(&format!("/api/v1/approvals/{id}/approve"), &json!({}))
        .await;
    assert_eq!(approved.status, 200, "{approved:?}");
    rig.until_tools("s", 2).await;
    let waiting = rig.get("/api/v1/approvals?status=pending").await.json();
    assert_eq!(waiting["approvals"], json!([]));
    rig.stop().await;
}

#[tokio::test]
async fn a_rejected_tool_is_not_asked_about_again_until_it_changes() {
    let stage = Stage::new(&tools("Paints.", "Cooks."));
    let rig = staged(&stage).await;
    stage.change_tools(&tools("Paints red.", "Cooks.")).await;
    let first = asked(&rig, 1).await;
    let id = first["id"].as_str().unwrap();
    let rejected = rig
        .post(
            &format!("/api/v1/approvals/{id}/reject"),
            &json!({ "reason": "no" }),
        )
        .await;
    assert_eq!(rejected.status, 200, "{rejected:?}");
    rig.until("/api/v1/trust?server=s", |answer| {
        answer["servers"][0]["held"][0]["why"] == "rejected"
    })
    .await;
    // It changes once more, and so does another.
    stage
        .change_tools(&tools("Paints blue.", "Cooks soup."))
        .await;
    let second = asked(&rig, 2).await;
    assert_ne!(second["id"], first["id"]);
    rig.stop().await;
}

#[tokio::test]
async fn what_is_decided_elsewhere_is_withdrawn() {
    let stage = Stage::new(&tools("Paints.", "Cooks."));
    let rig = staged(&stage).await;
    stage.change_tools(&tools("Paints red.", "Cooks.")).await;
    let asked = asked(&rig, 1).await;
    let approved = rig
        .post("/api/v1/trust/s/approve", &json!({ "tool": "paint" }))
        .await;
    assert_eq!(approved.status, 200, "{approved:?}");
    let path = format!("/api/v1/approvals/{}", asked["id"].as_str().unwrap());
    rig.until(&path, |answer| answer["status"] == "withdrawn")
        .await;
    rig.stop().await;
}
