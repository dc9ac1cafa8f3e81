//! The audit log of approvals.

use serde_json::{Value, json};

use super::{asks_deletions, form, mute, sampling, staged};
use crate::mcp_rig::LEGACY;

#[tokio::test]
async fn log_has_every_decision_and_no_secrets() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let secret = "sk-live-0123456789abcdef0123456789abcdef";
    let arguments = json!({ "path": "/a", "password": "hunter2-hunter2", "api_key": secret });
    let mut decided = Vec::new();
    for (tool, arguments, how, body) in [
        (
            "delete_file",
            arguments.clone(),
            "approve",
            json!({ "by": "ada", "edits": { "arguments": arguments } }),
        ),
        (
            "delete_file",
            json!({ "n": 2 }),
            "reject",
            json!({ "by": "bob", "reason": "because" }),
        ),
        (
            "ask",
            sampling("Why?"),
            "respond",
            json!({ "by": "cy", "text": "So." }),
        ),
        (
            "ask",
            form("Who?", json!({})),
            "respond",
            json!({ "by": "di", "action": "accept", "content": {} }),
        ),
        (
            "ask",
            form("Who?", json!({})),
            "respond",
            json!({ "by": "ed", "action": "decline" }),
        ),
    ] {
        let call = client.send_call(tool, arguments).await;
        let asked = rig.one_waiting().await;
        let by = body["by"].clone();
        rig.decided(&asked["id"], how, body).await;
        client.finish(&call).await;
        decided.push((asked["id"].clone(), by));
    }
    let call = client.send_call("delete_file", json!({ "n": 3 })).await;
    let gone = rig.one_waiting().await["id"].clone();
    client
        .tell("notifications/cancelled", json!({ "requestId": call }))
        .await;
    rig.until_status(&gone, "withdrawn").await;
    let log = rig.get("/api/v1/audit?limit=1000").await;
    assert!(!log.body.contains(secret), "{}", log.body);
    assert!(!log.body.contains("hunter2"), "{}", log.body);
    let log = log.json();
    let entries = log["entries"].as_array().unwrap();
    let of = |id: &Value, what: &str| -> Vec<&Value> {
        let of = entries.iter().filter(|entry| entry["subject"] == *id);
        of.filter(|entry| entry["what"] == what).collect()
    };
    for (id, by) in &decided {
        assert_eq!(of(id, "asked").len(), 1, "{log}");
        let decisions = of(id, "decided");
        assert_eq!(decisions.len(), 1, "{log}");
        assert_eq!(decisions[0]["body"]["note"], *by);
        assert!(decisions[0]["body"]["tookMs"].is_number());
    }
    assert_eq!(
        of(&decided[0].0, "asked")[0]["body"]["rule"],
        "ask s:delete_*"
    );
    assert_eq!(of(&decided[1].0, "decided")[0]["body"]["reason"], "because");
    assert_eq!(of(&gone, "withdrawn").len(), 1);
    let sequence: Vec<_> = entries
        .iter()
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect();
    assert!(sequence.is_sorted_by(|a, b| a + 1 == *b), "{sequence:?}");
    let since = sequence[2];
    let rest = rig
        .get(&format!("/api/v1/audit?since={since}&limit=2"))
        .await
        .json();
    assert_eq!(rest["entries"][0]["seq"], since + 1);
    let verdict = switchboard_store::verify(&rig.home.database()).unwrap();
    assert!(
        verdict.broken.is_none() && verdict.entries >= 12,
        "{verdict:?}"
    );
    let activity = rig.get("/api/v1/activity").await.body;
    assert!(!activity.contains(secret), "{activity}");
    rig.stop().await;
}

#[tokio::test]
async fn addresses_in_the_log_have_no_passwords() {
    let rules = json!(["ask resources s:postgres:*", "deny resources s:mysql:*"]);
    let config = json!({ "approvals": { "rules": rules, "notify": "off" } });
    let (_stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    let long = "x".repeat(50_000);
    let read = |scheme: &str| json!({ "uri": format!("{scheme}://ann:hunter2@db/{long}") });
    let call = client.send("resources/read", read("postgres")).await;
    let asked = rig.one_waiting().await;
    // The approver sees all of it.
    assert!(asked["tool"].as_str().unwrap().contains("hunter2"));
    let remember = json!({ "remember": { "scope": "always" } });
    rig.decided(&asked["id"], "approve", remember).await;
    client.finish(&call).await;
    client.ask("resources/read", read("mysql")).await;
    let rules = rig.get("/api/v1/approvals/rules").await.json();
    let kept = rules["rules"].as_array().unwrap().iter();
    let mut kept = kept.filter(|rule| rule["source"] == "remembered");
    let id = kept.next().unwrap()["id"].as_str().unwrap();
    let path = format!("/api/v1/approvals/rules/{id}");
    assert_eq!(rig.ask("DELETE", &path, None).await.status, 204);
    let log = rig
        .until("/api/v1/audit?limit=1000", |log| {
            let log = log.to_string();
            log.contains("\"denied\"") && log.contains("\"forgot\"")
        })
        .await;
    assert!(!log.to_string().contains("hunter2"), "{log}");
    for entry in log["entries"].as_array().unwrap() {
        assert!(entry.to_string().len() < 12_000, "{entry}");
    }
    rig.stop().await;
}

/// A client with endless requests fills neither the log nor the store; decisions are still written.
#[tokio::test]
async fn requests_of_a_busy_client_are_counted() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let long = "x".repeat(50_000);
    let mut withdrawn = Vec::new();
    for n in 0..40 {
        let call = client
            .send_call("delete_file", json!({ "n": n, "long": long }))
            .await;
        let asked = rig.one_waiting().await["id"].clone();
        client
            .tell("notifications/cancelled", json!({ "requestId": call }))
            .await;
        withdrawn.push(rig.until_status(&asked, "withdrawn").await);
    }
    for one in &withdrawn {
        let kept = one["request"].to_string();
        assert!(kept.len() < 10_000, "{} bytes are kept", kept.len());
    }
    let call = client.send_call("delete_file", json!({ "n": 40 })).await;
    let asked = rig.one_waiting().await["id"].clone();
    rig.decided(&asked, "approve", json!({})).await;
    client.finish(&call).await;
    let entries = |log: Value, what: &str| -> Vec<Value> {
        let entries = log["entries"].as_array().unwrap().clone();
        let of = entries.into_iter().filter(|entry| entry["what"] == what);
        of.collect()
    };
    let log = rig.get("/api/v1/audit?limit=1000").await.json();
    assert_eq!(entries(log.clone(), "asked").len(), 30);
    assert_eq!(entries(log.clone(), "withdrawn").len(), 30);
    let decided = entries(log, "decided");
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0]["subject"], asked);
    assert_eq!(decided[0]["body"]["request"]["arguments"]["n"], 40);
    let rig = rig.restarted(|_| {}).await;
    let log = rig.get("/api/v1/audit?limit=1000").await.json();
    let counted = entries(log, "asked").pop().unwrap();
    assert_eq!(counted["body"], json!({ "repeated": 11 }), "{counted}");
    rig.stop().await;
}
