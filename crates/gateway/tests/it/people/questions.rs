//! Questions that servers ask during a call: who answers, and the result.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{EVENTS, form, mute, sampling, staged, staged_as, told};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, REVISIONS, refusal_of, server, text_of},
};

fn routed(route: &str) -> Value {
    json!({ "approvals": { "route": route, "notify": "off" } })
}

/// Makes a call of a client of any revision, in which the approver answers everything.
pub(super) async fn called(rig: &Rig, client: &mut Pipe, arguments: Value, answer: Value) -> Value {
    let params = json!({ "name": "ask", "arguments": arguments });
    let mut asked = params.clone();
    let mut decided = false;
    loop {
        let call = client.send("tools/call", asked.clone()).await;
        if !decided {
            let waiting = rig.one_waiting().await;
            rig.decided(&waiting["id"], "respond", answer.clone()).await;
            decided = true;
        }
        let answer = client.finish(&call).await.json;
        let result = &answer["result"];
        if result["resultType"] != "input_required" {
            return answer;
        }
        // The client is never asked: it only receives a state.
        assert!(result["inputRequests"].is_null(), "{answer}");
        asked = params.clone();
        asked["requestState"] = result["requestState"].clone();
        assert!(asked["requestState"].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn approver_answers_if_the_client_cannot() {
    for modern in [false, true] {
        let (_stage, rig) = staged_as(modern, routed("auto")).await;
        for revision in REVISIONS {
            let mut client = mute(&rig, revision).await;
            let text = json!({ "text": "Because." });
            let answer = called(&rig, &mut client, sampling("Why?"), text).await;
            let said = told(&answer["result"])["q"].clone();
            assert_eq!(said["content"]["text"], "Because.", "{revision} {answer}");
            let filled = json!({ "action": "accept", "content": { "who": "Ada" } });
            let ask = form("Who?", json!({ "who": { "type": "string" } }));
            let answer = called(&rig, &mut client, ask, filled).await;
            let said = told(&answer["result"])["q"].clone();
            assert_eq!(said["content"]["who"], "Ada", "{revision} {answer}");
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn capable_client_is_asked_unless_routed_elsewhere() {
    for modern in [false, true] {
        let (stage, rig) = staged_as(modern, routed("auto")).await;
        for revision in REVISIONS {
            let able = json!({ "sampling": {}, "elicitation": {} });
            let mut client = Pipe::open_able(&rig, server("s"), revision, able).await;
            let result = client.call("sample", json!({})).await;
            assert!(text_of(&result).contains("Ah."), "{revision}: {result}");
        }
        assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
        let mut config = routed("human");
        config["mcpServers"] =
            json!({ "s": if modern { stage.modern_entry() } else { stage.entry() } });
        rig.reconfigure(&config).await;
        for revision in REVISIONS {
            let able = json!({ "sampling": {}, "elicitation": {} });
            let mut client = Pipe::open_able(&rig, server("s"), revision, able).await;
            let text = json!({ "text": "I say." });
            let answer = called(&rig, &mut client, sampling("Why?"), text).await;
            let said = told(&answer["result"])["q"].clone();
            assert_eq!(said["content"]["text"], "I say.", "{revision} {answer}");
        }
        config["approvals"]["route"] = json!("client");
        rig.reconfigure(&config).await;
        for revision in REVISIONS {
            let mut client = mute(&rig, revision).await;
            let call = client.send_call("ask", sampling("Why?")).await;
            let answer = client.finish(&call).await.json;
            // Between two peers of 2026-07-28 nothing is changed: the server has asked something that it must
            // not ask.
            let passed =
                modern && revision == MODERN && !answer["result"]["inputRequests"].is_null();
            let refused = passed
                || answer.get("error").is_some()
                || answer["result"]["isError"] == true
                || told(&answer["result"])["q"]["error"].is_object();
            assert!(refused, "{revision}: {answer}");
        }
        assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
        rig.stop().await;
    }
}

/// Two questions at once, of which the client can answer one.
#[tokio::test]
async fn each_question_goes_to_a_capable_party() {
    let questions = json!({ "questions": {
        "form": form("Who?", json!({ "who": { "type": "string" } }))["questions"]["q"],
        "model": sampling("Why?")["questions"]["q"],
    } });
    let able = json!({ "elicitation": {} });
    for modern in [false, true] {
        let (_stage, rig) = staged_as(modern, routed("auto")).await;
        for revision in ["2025-06-18", "2025-11-25", MODERN] {
            let mut client = Pipe::open_able(&rig, server("s"), revision, able.clone()).await;
            let params = json!({ "name": "ask", "arguments": questions });
            let call = client.send("tools/call", params.clone()).await;
            let waiting = rig.one_waiting().await;
            assert_eq!(waiting["kind"], "sampling");
            rig.decided(&waiting["id"], "respond", json!({ "text": "So." }))
                .await;
            let mut answer = client.finish(&call).await.json;
            let mut rounds = 0;
            while answer["result"]["resultType"] == "input_required" {
                rounds += 1;
                assert!(rounds < 5, "{answer}");
                let mut again = params.clone();
                let state = &answer["result"]["requestState"];
                again["requestState"] = state.clone();
                // The approver's answer is for the server alone.
                let read = URL_SAFE_NO_PAD
                    .decode(state.as_str().unwrap())
                    .unwrap_or_default();
                let read = String::from_utf8_lossy(&read);
                assert!(
                    !read.contains("So.") && !read.contains("assistant"),
                    "{read}"
                );
                if let Some(asked) = answer["result"]["inputRequests"].as_object() {
                    let keys: Vec<_> = asked.keys().collect();
                    assert_eq!(keys.len(), 1, "{answer}");
                    assert_eq!(asked[keys[0]]["method"], "elicitation/create");
                    let filled = json!({ "action": "accept", "content": { "who": "Ada" } });
                    again["inputResponses"] = json!({ keys[0]: filled });
                }
                let call = client.send("tools/call", again).await;
                answer = client.finish(&call).await.json;
            }
            let said = told(&answer["result"]);
            assert_eq!(said["form"]["content"]["who"], "Ada", "{revision} {answer}");
            assert_eq!(
                said["model"]["content"]["text"], "So.",
                "{revision} {answer}"
            );
            assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn rejection_reaches_the_server_in_its_protocol() {
    let (_stage, rig) = staged(routed("auto")).await;
    let mut client = mute(&rig, LEGACY).await;
    let ask = form("Who?", json!({ "who": { "type": "string" } }));
    for action in ["decline", "cancel"] {
        let answer = called(&rig, &mut client, ask.clone(), json!({ "action": action })).await;
        assert_eq!(told(&answer["result"])["q"], json!({ "action": action }));
    }
    let call = client.send_call("ask", sampling("Why?")).await;
    let waiting = rig.one_waiting().await;
    rig.decided(&waiting["id"], "reject", json!({ "reason": "not today" }))
        .await;
    let answer = client.finish(&call).await.json;
    let error = told(&answer["result"])["q"]["error"].clone();
    assert_eq!(error["code"], -1);
    assert_eq!(
        error["message"],
        "User rejected sampling request: not today"
    );
    rig.stop().await;
}

/// A question that a rule denies is not asked.
#[tokio::test]
async fn rules_apply_to_questions_too() {
    let rule = json!({ "action": "deny", "server": "s", "kind": "sampling" });
    let config = json!({ "approvals": { "rules": [rule], "notify": "off" } });
    let (_stage, rig) = staged(config).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let answer = client.finish(&call).await.json;
    assert_eq!(
        told(&answer["result"])["q"]["error"]["code"],
        -1,
        "{answer}"
    );
    let ask = form("Who?", json!({}));
    let call = client.send_call("ask", ask).await;
    let (kind, asked) = events.next_approval().await;
    assert_eq!(
        (&*kind, &asked["kind"]),
        ("approval.created", &json!("elicitation"))
    );
    rig.decided(&asked["id"], "respond", json!({ "action": "decline" }))
        .await;
    client.finish(&call).await;
    rig.stop().await;
}

/// A request too long for any approver to read is refused.
#[tokio::test]
async fn oversized_question_is_refused_at_once() {
    let (_stage, rig) = staged(routed("auto")).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client
        .send_call("ask", sampling(&"x".repeat(5 * 1024 * 1024)))
        .await;
    let answer = client.finish(&call).await.json;
    let refused = match answer.get("error") {
        Some(_) => refusal_of(&answer),
        None => told(&answer["result"])["q"]["error"]["message"].to_string(),
    };
    assert!(
        refused.contains("long") || refused.contains("bytes"),
        "{refused}"
    );
    assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
    rig.stop().await;
}

#[tokio::test]
async fn questions_wait_for_remembered_decisions() {
    let stage = crate::stage_rig::Stage::new(&super::tools());
    let config = json!({
        "mcpServers": { "s": stage.entry() },
        "approvals": { "rules": ["allow sampling s"], "notify": "off" },
        "waitTimeoutMs": 300,
    });
    // The store cannot be read.
    let block = |home: &switchboard_config::Home| std::fs::create_dir(home.database()).unwrap();
    let rig = Rig::prepared(config, block).await;
    rig.until_tools("s", super::tools().len()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("ask", sampling("Why?")).await;
    let answer = client.finish(&call).await.json;
    let error = told(&answer["result"])["q"]["error"].clone();
    let said = error["message"].as_str().unwrap_or_default();
    assert!(
        said.contains("the remembered decisions are unknown"),
        "{answer}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn roots_requests_outside_of_calls_are_bounded() {
    let mut config = routed("auto");
    config["approvals"]["questionsPerMinute"] = json!(3);
    let (stage, rig) = staged(config).await;
    let mut client = Pipe::open(&rig, server("s")).await;
    let mut events = rig.follow(EVENTS).await;
    client
        .tell("notifications/roots/list_changed", json!({}))
        .await;
    stage.until_asked("notifications/roots/list_changed").await;
    for id in 900..904 {
        stage.request(id, "roots/list").await;
    }
    let refused = loop {
        let event = events.next().await.expect("an event");
        if event.kind == "question.refused" {
            break event.data;
        }
    };
    assert!(refused.contains("questionsPerMinute"), "{refused}");
    rig.stop().await;
}
