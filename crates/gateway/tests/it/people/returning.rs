//! Clients of 2026-07-28 are sent away with a state, and come back with it.

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

/// Calls, is sent away, and gives the state.
async fn sent_away(client: &mut Pipe, params: &Value) -> Value {
    let call = client.send("tools/call", params.clone()).await;
    let answer = client.finish(&call).await.json;
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    assert!(result["inputRequests"].is_null(), "{answer}");
    assert!(result["requestState"].is_string(), "{answer}");
    result["requestState"].clone()
}

/// Whatever the client is told, it is no result, and the server has not been called.
#[track_caller]
fn is_refused(answer: &Value) {
    let refused = answer.get("error").is_some() || answer["result"]["isError"] == true;
    assert!(refused, "{answer}");
}

#[tokio::test]
async fn a_state_is_for_its_request_and_its_client_and_once() {
    let mut config = asks_deletions();
    config["auth"] = json!({ "mcp": "none" });
    let (stage, rig) = staged(config).await;
    let mut client = mute(&rig, MODERN).await;
    let params = json!({ "name": "delete_file", "arguments": { "path": "/a" } });
    let state = sent_away(&mut client, &params).await;
    let asked = rig.one_waiting().await;
    let text = state.as_str().unwrap();
    // Every eighth character, so as not to take all day.
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
    // Nobody else was asked, and the first is still there.
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
async fn who_comes_back_early_is_kept_and_gets_the_result_the_moment_it_is_there() {
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

/// The gateway dies while its client is away and while a person thinks.
#[tokio::test]
async fn after_a_crash_the_client_finds_the_answer_that_was_given_meanwhile_once() {
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
    // Once: the next call of the same is another question.
    let call = client.send("tools/call", gated.clone()).await;
    let asked = rig.one_waiting().await;
    assert!(waiting.iter().all(|one| one["id"] != asked["id"]));
    client.finish(&call).await;
    rig.decided(&asked["id"], "reject", json!({})).await;
    rig.stop().await;
}

/// Comes back as often as it is sent away.
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

/// A no that was given while the asker was away is kept for it, too.
#[tokio::test]
async fn a_no_that_was_given_meanwhile_is_found_as_well() {
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

/// A gateway that is stopped as it should be loses nothing either.
#[tokio::test]
async fn what_waits_when_the_gateway_is_stopped_waits_when_it_is_back() {
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

/// Time goes on while the gateway is down.
#[tokio::test]
async fn what_expires_while_nobody_is_there_has_expired_when_somebody_is() {
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

/// The same was asked twice, and one of the two was answered: whoever comes back first gets that answer.
#[tokio::test]
async fn an_answer_is_found_though_the_same_still_waits_beside_it() {
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
    // Whichever is looked at first, the other one has the answer.
    rig.decided(&waiting[1]["id"], "approve", json!({})).await;
    let mut client = mute(&rig, LEGACY).await;
    client.call("delete_file", json!({ "path": "/a" })).await;
    assert_eq!(stage.calls_of("delete_file").len(), 1);
    assert_eq!(rig.approval(&waiting[0]["id"]).await["status"], "orphaned");
    rig.stop().await;
}

/// A no for always holds from the first call on, whatever the configuration says by now.
#[tokio::test]
async fn a_remembered_no_holds_before_the_store_has_been_read() {
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

/// What nobody is told of anew is counted all the same.
#[tokio::test]
async fn the_status_counts_what_still_waits_after_two_restarts() {
    let mut config = asks_deletions();
    // Nothing is to happen to it by itself.
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
