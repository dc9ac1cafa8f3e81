//! Clients of 2026-07-28 receive a state, and retry with it.

use serde_json::{Value, json};

use super::{asks_deletions, mute, sampling, staged, told};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, Web, refusal_of},
};

fn with_state(params: &Value, state: &Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = state.clone();
    params
}

/// Makes a call that is suspended, and returns the state.
async fn sent_away(client: &mut Pipe, params: &Value) -> Value {
    let call = client.send("tools/call", params.clone()).await;
    let answer = client.finish(&call).await.json;
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    assert!(result["inputRequests"].is_null(), "{answer}");
    assert!(result["requestState"].is_string(), "{answer}");
    result["requestState"].clone()
}

/// Asserts that the response is not a result.
#[track_caller]
fn is_refused(answer: &Value) {
    let refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
    assert!(refused, "{answer}");
}

#[tokio::test]
async fn state_is_bound_and_used_once() {
    let mut config = asks_deletions();
    config["auth"] = json!({ "mcp": "none" });
    let (stage, rig) = staged(config).await;
    let mut client = mute(&rig, MODERN).await;
    let params = json!({ "name": "delete_file", "arguments": { "path": "/a" } });
    let state = sent_away(&mut client, &params).await;
    let asked = rig.one_waiting().await;
    let text = state.as_str().unwrap();
    // Every eighth character, to save time.
    for at in (0..text.len()).step_by(8) {
        let mut flipped = text.to_owned().into_bytes();
        flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
        let flipped = json!(String::from_utf8(flipped).unwrap());
        let call = client
            .send("tools/call", with_state(&params, &flipped))
            .await;
        is_refused(&client.finish(&call).await.json);
    }
    let other = json!({ "name": "delete_file", "arguments": { "path": "/" } });
    let call = client.send("tools/call", with_state(&other, &state)).await;
    is_refused(&client.finish(&call).await.json);
    let stranger = Web::open_able(&rig, "/mcp/s/s", MODERN, false, json!({})).await;
    let answer = stranger
        .ask("tools/call", with_state(&params, &state))
        .await
        .json;
    is_refused(&answer);
    // No other approval was requested, and the first is still pending.
    assert_eq!(rig.one_waiting().await["id"], asked["id"]);
    rig.decided(&asked["id"], "approve", json!({})).await;
    let call = client.send("tools/call", with_state(&params, &state)).await;
    let answer = client.finish(&call).await.json;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(stage.calls(), 1);
    let call = client.send("tools/call", with_state(&params, &state)).await;
    is_refused(&client.finish(&call).await.json);
    assert_eq!(stage.calls(), 1);
    assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
    rig.stop().await;
}

#[tokio::test]
async fn early_retry_waits_for_the_result() {
    let (_stage, rig) = staged(asks_deletions()).await;
    for (tool, arguments) in [("ask", sampling("Why?")), ("delete_file", json!({}))] {
        let mut client = mute(&rig, MODERN).await;
        let params = json!({ "name": tool, "arguments": arguments });
        let state = sent_away(&mut client, &params).await;
        let asked = rig.one_waiting().await;
        let call = client.send("tools/call", with_state(&params, &state)).await;
        if tool == "ask" {
            rig.decided(&asked["id"], "respond", json!({ "text": "So." }))
                .await;
        } else {
            rig.decided(&asked["id"], "approve", json!({})).await;
        }
        let answer = client.finish(&call).await.json;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
    rig.stop().await;
}

/// The gateway crashes between the client's attempts, while the request is pending.
#[tokio::test]
async fn answer_survives_a_crash_once() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, MODERN).await;
    let gated = json!({ "name": "delete_file", "arguments": { "path": "/a" } });
    let asking = json!({ "name": "ask", "arguments": sampling("Why?") });
    let gated_state = sent_away(&mut client, &gated).await;
    let asking_state = sent_away(&mut client, &asking).await;
    let waiting = rig.until_waiting(2).await;
    let rig = super::gate::crashed(rig).await;
    for one in &waiting {
        rig.until_status(&one["id"], "orphaned").await;
    }
    let again = rig.until_waiting(2).await;
    assert_eq!(again.len(), 2);
    for one in &waiting {
        let decided = match one["kind"].as_str().unwrap() {
            "sampling" => {
                rig.decided(&one["id"], "respond", json!({ "text": "So." }))
                    .await
            }
            _ => rig.decided(&one["id"], "approve", json!({})).await,
        };
        assert!(decided["deliveredAt"].is_null(), "{decided}");
    }
    assert_eq!(stage.calls_of("delete_file").len(), 0);
    let mut client = mute(&rig, MODERN).await;
    let answer = come_back(&mut client, &gated, gated_state.clone()).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(stage.calls_of("delete_file").len(), 1);
    let answer = come_back(&mut client, &asking, asking_state).await;
    assert_eq!(
        told(&answer["result"])["q"]["content"]["text"],
        "So.",
        "{answer}"
    );
    for one in &waiting {
        let one = rig.approval(&one["id"]).await;
        assert!(one["deliveredAt"].is_string(), "{one}");
    }
    assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
    // Only once: the next identical call requires another approval.
    let call = client.send("tools/call", gated.clone()).await;
    let asked = rig.one_waiting().await;
    assert!(waiting.iter().all(|one| one["id"] != asked["id"]));
    client.finish(&call).await;
    rig.decided(&asked["id"], "reject", json!({})).await;
    rig.stop().await;
}

/// Retries until there is a final response.
async fn come_back(client: &mut Pipe, params: &Value, mut state: Value) -> Value {
    for _ in 0..5 {
        let call = client.send("tools/call", with_state(params, &state)).await;
        let answer = client.finish(&call).await.json;
        if answer["result"]["resultType"] != "input_required" {
            return answer;
        }
        state = answer["result"]["requestState"].clone();
    }
    panic!("sent away again and again");
}

/// A rejection that was given while the client was away is kept for it, too.
#[tokio::test]
async fn rejection_survives_a_crash() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, MODERN).await;
    let gated = json!({ "name": "delete_file", "arguments": { "path": "/a" } });
    let state = sent_away(&mut client, &gated).await;
    let asked = rig.one_waiting().await;
    let rig: Rig = super::gate::crashed(rig).await;
    rig.until_status(&asked["id"], "orphaned").await;
    rig.decided(&asked["id"], "reject", json!({ "reason": "keep it" }))
        .await;
    let mut client = mute(&rig, MODERN).await;
    let answer = come_back(&mut client, &gated, state).await;
    assert!(refusal_of(&answer).contains("keep it"), "{answer}");
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// A clean shutdown loses nothing either.
#[tokio::test]
async fn pending_requests_survive_a_restart() {
    for revision in [LEGACY, MODERN] {
        let (stage, rig) = staged(asks_deletions()).await;
        let mut client = mute(&rig, revision).await;
        client
            .send_call("delete_file", json!({ "path": "/a" }))
            .await;
        client.send_call("ask", sampling("Why?")).await;
        let waiting = rig.until_waiting(2).await;
        let rig = rig.restarted(|_| {}).await;
        rig.until_tools("s", super::tools().len()).await;
        for one in &waiting {
            rig.until_status(&one["id"], "orphaned").await;
        }
        assert_eq!(rig.until_waiting(2).await.len(), 2);
        for one in &waiting {
            let (how, body) = match one["kind"].as_str().unwrap() {
                "sampling" => ("respond", json!({ "text": "So." })),
                _ => ("approve", json!({})),
            };
            rig.decided(&one["id"], how, body).await;
        }
        let mut client = mute(&rig, LEGACY).await;
        client.call("delete_file", json!({ "path": "/a" })).await;
        let result = client.call("ask", sampling("Why?")).await;
        assert_eq!(told(&result)["q"]["content"]["text"], "So.");
        assert_eq!(stage.calls_of("delete_file").len(), 1);
        rig.stop().await;
    }
}

/// Timeouts run while the gateway is down.
#[tokio::test]
async fn requests_expire_while_the_gateway_is_down() {
    let mut config = asks_deletions();
    config["approvals"]["shortTimeoutMs"] = json!(100);
    config["approvals"]["longTimeoutMs"] = json!(400);
    let (_stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    let rig = super::gate::crashed(rig).await;
    let over = rig.until_status(&asked["id"], "timed_out").await;
    assert!(over["deliveredAt"].is_null(), "{over}");
    rig.decide(&asked["id"], "approve", json!({}))
        .await
        .problem(409);
    rig.stop().await;
}

/// Of two identical requests, one was approved: the first client that retries gets that answer.
#[tokio::test]
async fn answer_is_found_beside_a_pending_duplicate() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    for _ in 0..2 {
        client
            .send_call("delete_file", json!({ "path": "/a" }))
            .await;
    }
    let mut waiting = rig.until_waiting(2).await;
    waiting.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
    let rig = super::gate::crashed(rig).await;
    for one in &waiting {
        rig.until_status(&one["id"], "orphaned").await;
    }
    // Regardless of the order of lookup, the other one has the answer.
    rig.decided(&waiting[1]["id"], "approve", json!({})).await;
    let mut client = mute(&rig, LEGACY).await;
    client.call("delete_file", json!({ "path": "/a" })).await;
    assert_eq!(stage.calls_of("delete_file").len(), 1);
    assert_eq!(rig.approval(&waiting[0]["id"]).await["status"], "orphaned");
    rig.stop().await;
}

/// A permanent denial holds from the first call, even if the configuration has changed.
#[tokio::test]
async fn remembered_denial_holds_before_the_store_opens() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    let body = json!({ "remember": { "scope": "always" } });
    rig.decided(&asked["id"], "reject", body).await;
    client.finish(&call).await;
    let entry = stage.entry();
    let rig = rig
        .restarted(|home| {
            let config = json!({ "mcpServers": { "s": entry } });
            std::fs::write(home.config_file(), config.to_string()).unwrap();
        })
        .await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    client.finish(&call).await;
    assert_eq!(stage.calls(), 0, "called although it was denied for always");
    rig.stop().await;
}

/// Requests that are not announced again still count.
#[tokio::test]
async fn status_counts_pending_requests_after_two_restarts() {
    let mut config = asks_deletions();
    // It must not change by itself.
    config["approvals"]["shortTimeoutMs"] = json!(600_000);
    let (_stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    client.send_call("delete_file", json!({})).await;
    let waiting = rig.one_waiting().await;
    let rig = rig.restarted(|_| {}).await;
    rig.until_status(&waiting["id"], "orphaned").await;
    let rig = rig.restarted(|_| {}).await;
    rig.until("/api/v1/status", |status| status["approvals"] == 1)
        .await;
    rig.stop().await;
}
