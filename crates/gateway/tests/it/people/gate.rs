//! Calls that require approval: the outcomes of a decision, and that there is no way around it.

use serde_json::{Value, json};

use super::{asks_deletions, mute, staged, staged_modern};
use crate::{
    api_rig::{Rig, TOKEN},
    mcp_rig::{LEGACY, MODERN, Pipe, REVISIONS, Web, direct, refusal_of, search, server, text_of},
};

#[tokio::test]
async fn approved_call_uses_the_edited_arguments() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let arguments = json!({ "path": "/tmp/a", "n": 12_345_678_901_234_567_890_u64 });
    let call = client.send_call("delete_file", arguments.clone()).await;
    let asked = rig.one_waiting().await;
    assert_eq!(asked["kind"], "tool_call");
    assert_eq!(asked["tool"], "delete_file");
    assert_eq!(asked["rule"], "ask s:delete_*");
    assert_eq!(asked["request"]["name"], "delete_file");
    assert_eq!(asked["request"]["annotations"]["destructiveHint"], true);
    let text = asked["argumentsText"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), arguments);
    assert_eq!(stage.calls(), 0, "it was called before anybody agreed");
    let edited = json!({ "path": "/tmp/b" });
    let body = json!({ "edits": { "arguments": edited }, "by": "me" });
    let decided = rig.decided(&asked["id"], "approve", body).await;
    assert_eq!(decided["decision"]["edits"]["arguments"], edited);
    assert_eq!(decided["result"]["arguments"], edited);
    client.finish(&call).await;
    let calls = stage.calls_of("delete_file");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"], edited);

    let call = client
        .send_call("delete_file", json!({ "path": "/tmp/c" }))
        .await;
    let asked = rig.one_waiting().await;
    rig.decided(&asked["id"], "reject", json!({ "reason": "keep it" }))
        .await;
    let refusal = refusal_of(&client.finish(&call).await.json);
    assert!(refusal.contains("keep it"), "{refusal}");
    assert_eq!(stage.calls(), 1);
    // Calls that need no approval pass.
    client.call("read_file", json!({})).await;
    assert_eq!(rig.get(super::PENDING).await.json()["approvals"], json!([]));
    rig.stop().await;
}

#[tokio::test]
async fn rules_deny_and_allow_without_asking() {
    let rules = json!(["ask s:*", "allow s:read_*", "deny s:delete_*"]);
    let config = json!({ "approvals": { "rules": rules, "notify": "off" } });
    let (stage, rig) = staged(config).await;
    let mut client = mute(&rig, LEGACY).await;
    client.call("read_file", json!({})).await;
    let refusal = client.refusal("delete_file", json!({})).await;
    assert!(refusal.contains("denied by a rule"), "{refusal}");
    assert_eq!(stage.calls_of("delete_file").len(), 0);
    assert_eq!(
        rig.get("/api/v1/approvals").await.json()["approvals"],
        json!([])
    );
    rig.stop().await;
}

#[tokio::test]
async fn guards_ask_by_hints_and_missing_hints() {
    // A missing hint counts as the worst: `work` has none.
    let cases = [
        ("rules", vec![]),
        ("destructive", vec!["delete_file", "work"]),
        ("writes", vec!["delete_file", "work", "add_note"]),
        ("all", vec!["delete_file", "work", "add_note", "read_file"]),
    ];
    for of_server in [false, true] {
        let (stage, rig) = staged(json!({})).await;
        for (guard, asked) in &cases {
            let config = if of_server {
                let word = if *guard == "rules" { "never" } else { guard };
                let entry = stage.entry_with(&json!({ "approve": word }));
                // The server's own setting wins.
                let others = if *guard == "all" { "rules" } else { "all" };
                json!({ "mcpServers": { "s": entry }, "approvals": { "tools": others, "notify": "off" } })
            } else {
                json!({ "mcpServers": { "s": stage.entry() }, "approvals": { "tools": guard, "notify": "off" } })
            };
            rig.reconfigure(&config).await;
            rig.until_tools("s", super::tools().len()).await;
            let mut client = mute(&rig, LEGACY).await;
            for tool in ["delete_file", "work", "add_note", "read_file"] {
                let call = client.send_call(tool, json!({})).await;
                if asked.contains(&tool) {
                    let waiting = rig.one_waiting().await;
                    assert_eq!(waiting["tool"], tool);
                    rig.decided(&waiting["id"], "reject", json!({})).await;
                    refusal_of(&client.finish(&call).await.json);
                } else {
                    let answer = tokio::select! {
                        answer = client.finish(&call) => answer.json,
                        waiting = rig.one_waiting() => panic!("{of_server} {guard}: {waiting}"),
                    };
                    assert!(
                        answer["result"]["isError"] != true,
                        "{guard} {tool}: {answer}"
                    );
                }
            }
        }
        rig.stop().await;
    }
}

/// Calls, and returns `true` if an approval was requested.
async fn asks(rig: &Rig, client: &mut Pipe, arguments: Value) -> bool {
    let before = count(rig).await;
    let call = client.send_call("delete_file", arguments).await;
    let finished = client.finish(&call);
    tokio::select! {
        _ = finished => {}
        waiting = rig.one_waiting() => {
            rig.decided(&waiting["id"], "reject", json!({})).await;
            client.finish(&call).await;
        }
    }
    count(rig).await > before
}

async fn count(rig: &Rig) -> usize {
    let all = rig.get("/api/v1/approvals?limit=1000").await.json();
    all["approvals"].as_array().unwrap().len()
}

async fn approve_remembering(rig: &Rig, client: &mut Pipe, arguments: Value, remember: Value) {
    let call = client.send_call("delete_file", arguments).await;
    let waiting = rig.one_waiting().await;
    rig.decided(&waiting["id"], "approve", json!({ "remember": remember }))
        .await;
    client.finish(&call).await;
}

#[tokio::test]
async fn decision_is_remembered_within_its_scope() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut one = mute(&rig, LEGACY).await;
    let mut other = mute(&rig, LEGACY).await;
    approve_remembering(
        &rig,
        &mut one,
        json!({ "n": 1 }),
        json!({ "scope": "session" }),
    )
    .await;
    assert!(!asks(&rig, &mut one, json!({ "n": 2 })).await);
    assert!(asks(&rig, &mut other, json!({ "n": 1 })).await);
    let exact = json!({ "scope": "always", "arguments": "exact", "expiresInSeconds": 3600 });
    approve_remembering(&rig, &mut other, json!({ "n": 1, "m": 2 }), exact).await;
    assert!(!asks(&rig, &mut other, json!({ "m": 2, "n": 1 })).await);
    assert!(asks(&rig, &mut other, json!({ "n": 1, "m": 3 })).await);
    let gone = json!({ "scope": "always", "expiresInSeconds": 0 });
    approve_remembering(&rig, &mut other, json!({ "n": 9 }), gone).await;
    assert!(asks(&rig, &mut other, json!({ "n": 9 })).await);

    let rig = rig.restarted(|_| {}).await;
    rig.until_tools("s", super::tools().len()).await;
    let mut again = mute(&rig, LEGACY).await;
    // The scope `always` survives a restart of the gateway, `session` does not.
    assert!(!asks(&rig, &mut again, json!({ "n": 1, "m": 2 })).await);
    assert!(asks(&rig, &mut again, json!({ "n": 2 })).await);
    let rules = rig.get("/api/v1/approvals/rules").await.json();
    let rules = rules["rules"].as_array().unwrap();
    let kept: Vec<_> = rules
        .iter()
        .filter(|rule| rule["source"] == "remembered")
        .collect();
    assert_eq!(kept.len(), 1, "{rules:?}");
    assert!(kept[0]["expiresAt"].is_string(), "{kept:?}");
    let id = kept[0]["id"].as_str().unwrap();
    let path = format!("/api/v1/approvals/rules/{id}");
    let gone = rig.ask("DELETE", &path, None).await;
    assert!((200..300).contains(&gone.status), "{gone:?}");
    assert!(asks(&rig, &mut again, json!({ "n": 1, "m": 2 })).await);
    rig.ask("DELETE", &path, None).await.problem(404);
    // Rules of the configuration cannot be deleted this way.
    let answer = rig
        .ask("DELETE", "/api/v1/approvals/rules/config-1", None)
        .await;
    assert!((400..500).contains(&answer.status), "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn remembered_denial_wins_over_an_approval() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    approve_remembering(&rig, &mut client, json!({}), json!({ "scope": "always" })).await;
    assert!(!asks(&rig, &mut client, json!({})).await);
    let mut config = asks_deletions();
    config["approvals"]["rules"] = json!([{ "action": "deny", "server": "s", "tool": "delete_*" }]);
    config["mcpServers"] = json!({ "s": stage.entry() });
    rig.reconfigure(&config).await;
    let before = stage.calls();
    let refusal = client.refusal("delete_file", json!({})).await;
    assert!(refusal.contains("denied by a rule"), "{refusal}");
    assert_eq!(stage.calls(), before);
    rig.stop().await;
}

/// Every way to call the tool requires approval, and is rejected.
#[tokio::test]
async fn approval_cannot_be_bypassed() {
    let (stage, rig) = staged(asks_deletions()).await;
    let path = json!({ "path": "/" });
    let ways = [
        (
            search(),
            "call_tool",
            json!({ "name": "s:delete_file", "arguments": path }),
        ),
        (
            search(),
            "call_tool",
            json!({ "name": "s__delete_file", "arguments": path }),
        ),
        (direct(), "s__delete_file", path.clone()),
        (server("s"), "delete_file", path.clone()),
    ];
    for revision in REVISIONS {
        for (view, tool, arguments) in ways.clone() {
            let mut client = Pipe::open_as(&rig, view, revision).await;
            let params = json!({ "name": tool, "arguments": arguments });
            let call = client.send("tools/call", params.clone()).await;
            let waiting = rig.one_waiting().await;
            rig.decided(&waiting["id"], "reject", json!({ "reason": "no" }))
                .await;
            let mut answer = client.finish(&call).await.json;
            while answer["result"]["resultType"] == "input_required" {
                let mut again = params.clone();
                again["requestState"] = answer["result"]["requestState"].clone();
                let call = client.send("tools/call", again).await;
                answer = client.finish(&call).await.json;
            }
            let refusal = refusal_of(&answer);
            assert!(refusal.contains("no"), "{revision} {tool}: {answer}");
        }
    }
    // A client with a forged state, or that claims to have answers.
    let mut client = Pipe::open_as(&rig, server("s"), MODERN).await;
    for state in ["s1", "", "e30", "AAAA.BBBB", &"x".repeat(100_000)] {
        let params = json!({
            "name": "delete_file", "arguments": path, "requestState": state,
            "inputResponses": { "q": { "action": "accept" } },
        });
        let call = client.send("tools/call", params).await;
        tokio::select! {
            answer = client.finish(&call) => {
                let answer = answer.json;
                assert!(
                    answer.get("error").is_some() || answer["result"]["resultType"] == "input_required"
                        || answer["result"]["isError"] == true,
                    "{state:.20}: {answer}"
                );
            }
            waiting = rig.one_waiting() => drop(waiting),
        }
        for waiting in rig.get(super::PENDING).await.json()["approvals"]
            .as_array()
            .unwrap()
        {
            let _ = rig.decide(&waiting["id"], "reject", json!({})).await;
        }
    }
    // A call as a task is a call, too.
    let mut client = Pipe::open_as(&rig, server("s"), "2025-11-25").await;
    let params = json!({ "name": "delete_file", "arguments": path, "task": { "ttl": 1000 } });
    let call = client.send("tools/call", params).await;
    let outcome = tokio::select! {
        answer = client.finish(&call) => answer.json,
        waiting = rig.one_waiting() => {
            rig.decided(&waiting["id"], "reject", json!({})).await;
            client.finish(&call).await.json
        }
    };
    refusal_of(&outcome);
    // REST belongs to the owner, and requires approval as well.
    let (answer, ()) = tokio::join!(rig.call("s:delete_file", path.clone()), async {
        let waiting = rig.one_waiting().await;
        rig.decided(&waiting["id"], "reject", json!({ "reason": "no" }))
            .await;
    });
    assert!(
        answer.status >= 400 || answer.json()["isError"] == true,
        "{answer:?}"
    );
    assert_eq!(stage.calls(), 0, "{:?}", stage.asked());
    rig.stop().await;
}

/// Calls in a batch are calls like others.
#[tokio::test]
async fn each_call_of_a_batch_requires_approval() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = Pipe::open_as(&rig, server("s"), "2025-03-26").await;
    let call = |id: u64| {
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "delete_file", "arguments": { "n": id } },
        })
    };
    client
        .send_text(&json!([call(901), call(902), call(903)]).to_string())
        .await;
    for waiting in rig.until_waiting(3).await {
        let yes = waiting["request"]["arguments"]["n"] == 902;
        let how = if yes { "approve" } else { "reject" };
        rig.decided(&waiting["id"], how, json!({})).await;
    }
    crate::mcp_rig::until("the one call", async || stage.calls() == 1).await;
    let calls = stage.calls_of("delete_file");
    assert_eq!(calls[0]["arguments"]["n"], 902, "{calls:?}");
    rig.stop().await;
}

/// The approver would see one of them, and the server would read the other.
#[tokio::test]
async fn duplicate_arguments_reach_neither_approver_nor_server() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = Pipe::open_as(&rig, server("s"), LEGACY).await;
    let twice = [
        r#"{"name":"delete_file","arguments":{"path":"/tmp/a","path":"/"}}"#,
        r#"{"name":"delete_file","arguments":{"path":"/tmp/a","p\u0061th":"/"}}"#,
        r#"{"name":"delete_file","arguments":{"a":[{"b":1,"b":2}]}}"#,
        r#"{"name":"delete_file","arguments":{"path":"/tmp/a"},"arguments":{"path":"/"}}"#,
        r#"{"name":"read_file","name":"delete_file","arguments":{}}"#,
        r#"{"name":"delete_file","name":"read_file","arguments":{}}"#,
    ];
    for (n, params) in twice.iter().enumerate() {
        let id = 800 + n;
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        client.send_text(&line).await;
        let id = json!(id);
        tokio::select! {
            answer = client.finish(&id) => {
                // Refused, or every parser reads `read_file`.
                let called = stage.calls_of("delete_file");
                assert!(called.is_empty(), "{params}: {answer:?} {called:?}");
            }
            waiting = rig.one_waiting() => {
                // The approver sees exactly what the server will read.
                rig.decided(&waiting["id"], "approve", json!({})).await;
                client.finish(&id).await;
                let called = stage.asked();
                let last = called.last().unwrap();
                assert_eq!(last.matches("\"arguments\"").count(), 1, "{params}: {last}");
                assert_eq!(last.matches("\"name\"").count(), 1, "{params}: {last}");
                let last: Value =
                    serde_json::from_str(last.strip_prefix("tools/call ").unwrap()).unwrap();
                assert_eq!(last["arguments"], waiting["request"]["arguments"], "{params}");
                assert_eq!(last["name"], waiting["request"]["name"], "{params}");
            }
        }
    }
    rig.stop().await;
}

/// No tool or method that an MCP client can use decides anything.
#[tokio::test]
async fn agents_can_call_nothing_that_decides() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    for view in [search(), direct()] {
        let mut agent = Pipe::open(&rig, view).await;
        for name in agent.tools().await {
            let words = [
                "approve", "approval", "reject", "respond", "decide", "rule", "trust",
            ];
            assert!(!words.iter().any(|word| name.contains(word)), "{name}");
        }
        for name in [
            "switchboard:approve",
            "switchboard__approve",
            "approvals",
            "approve",
        ] {
            let arguments = json!({ "id": asked["id"] });
            let params = json!({ "name": name, "arguments": arguments });
            let answer = agent.ask("tools/call", params).await.json;
            refusal_of(&answer);
        }
        for method in ["approvals/approve", "approve", "switchboard/approve"] {
            let answer = agent.ask(method, json!({ "id": asked["id"] })).await.json;
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
    }
    assert_eq!(rig.approval(&asked["id"]).await["status"], "pending");
    rig.decided(&asked["id"], "reject", json!({})).await;
    client.finish(&call).await;
    rig.stop().await;
}

/// One approval is for one call, however often the client comes back.
#[tokio::test]
async fn approval_covers_one_call_despite_further_questions() {
    let config = json!({ "approvals": { "rules": ["ask s:elicit"], "notify": "off" } });
    let (stage, rig) = staged_modern(config).await;
    let mut client = Pipe::open_as(&rig, server("s"), MODERN).await;
    let params = json!({ "name": "elicit", "arguments": {} });
    let call = client.send("tools/call", params.clone()).await;
    let asked = rig.one_waiting().await;
    let away = client.finish(&call).await.json;
    rig.decided(&asked["id"], "approve", json!({})).await;
    let mut back = params.clone();
    back["requestState"] = away["result"]["requestState"].clone();
    let call = client.send("tools/call", back).await;
    let questions = client.finish(&call).await.json;
    assert!(
        questions["result"]["inputRequests"]["q"].is_object(),
        "{questions}"
    );
    let mut answered = params.clone();
    answered["requestState"] = questions["result"]["requestState"].clone();
    answered["inputResponses"] = json!({ "q": { "action": "accept", "content": { "who": "A" } } });
    let call = client.send("tools/call", answered.clone()).await;
    let done = client.finish(&call).await.json;
    assert!(text_of(&done["result"]).contains("accept"), "{done}");
    let calls = stage.calls();
    // The same state again would be a second call, which was not approved.
    let call = client.send("tools/call", answered).await;
    let again = client.finish(&call).await.json;
    let asked = rig.get(super::PENDING).await.json();
    assert_eq!(
        stage.calls(),
        calls,
        "called again without a person: {again} {asked}"
    );
    rig.stop().await;
}

/// Servers may find answers in an array or in a string.
#[tokio::test]
async fn answers_that_are_not_an_object_are_refused() {
    let rules = json!(["allow elicitation s", "ask sampling *"]);
    let config = json!({ "approvals": { "rules": rules, "notify": "off" } });
    let (stage, rig) = staged_modern(config).await;
    let mut client = Pipe::open_as(&rig, server("s"), MODERN).await;
    let params = json!({ "name": "elicit", "arguments": {} });
    for given in [
        json!([["q", { "action": "accept" }]]),
        json!("accept"),
        json!(null),
    ] {
        let call = client.send("tools/call", params.clone()).await;
        let asked = client.finish(&call).await.json;
        let state = asked["result"]["requestState"].clone();
        assert!(state.is_string(), "{asked}");
        let calls = stage.calls();
        let mut back = params.clone();
        back["requestState"] = state;
        back["inputResponses"] = given.clone();
        let call = client.send("tools/call", back).await;
        let answer = client.finish(&call).await.json;
        let refusal = refusal_of(&answer);
        assert!(refusal.contains("must be an object"), "{given}: {answer}");
        assert_eq!(stage.calls(), calls, "{given}");
    }
    rig.stop().await;
}

/// A decision for a client with the token is not for one without it.
#[tokio::test]
async fn kept_answer_is_only_for_its_requester() {
    let mut config = asks_deletions();
    config["auth"] = json!({ "mcp": "none" });
    let (stage, rig) = staged(config).await;
    let mut owner = mute(&rig, LEGACY).await;
    owner.send_call("delete_file", json!({ "n": 1 })).await;
    let waiting = rig.one_waiting().await;
    assert_eq!(waiting["rememberable"][0], "session", "{waiting}");
    let rig = crashed(rig).await;
    // Its session belonged to the previous gateway.
    let orphaned = rig.until_status(&waiting["id"], "orphaned").await;
    assert_eq!(orphaned["rememberable"][0], "always", "{orphaned}");
    rig.decided(&waiting["id"], "approve", json!({})).await;
    let stranger = Web::open_able(&rig, "/mcp/s/s", LEGACY, false, json!({})).await;
    let params = json!({ "name": "delete_file", "arguments": { "n": 1 } });
    tokio::select! {
        answer = stranger.ask("tools/call", params) => {
            panic!("the owner's answer went to somebody else: {answer:?}");
        }
        asked = rig.one_waiting() => assert_eq!(asked["status"], "pending"),
    }
    assert_eq!(stage.calls(), 0);
    rig.stop().await;
}

/// Clients with different info are different clients, even if one chooses its info so that a public hash
/// function collides.
#[tokio::test]
async fn session_approval_does_not_cover_a_lookalike() {
    let mut config = asks_deletions();
    config["auth"] = json!({ "mcp": "none" });
    let (stage, rig) = staged(config).await;
    let call = async |token: bool, info: &str| {
        let token = if token {
            format!("Authorization: Bearer {TOKEN}\r\n")
        } else {
            String::new()
        };
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: delete_file\r\n{token}"
        );
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"delete_file","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{info}}}}}}}"#
        );
        rig.ask_with("POST", "/mcp/s/s", &headers, &body).await.body
    };
    let owner = r#"{"name": "mc", "version": "1"}"#;
    let lookalike = r#"{"name":"evil","version":"1","z":"ppppppppppppppithTzX1x7YH4sWErsamCDfjQVksug3XN,jeO_*gW ~P&i~"}"#;
    let (_, ()) = tokio::join!(call(true, owner), async {
        let waiting = rig.one_waiting().await;
        assert_eq!(waiting["rememberable"][0], "session", "{waiting}");
        let remember = json!({ "remember": { "scope": "session" } });
        rig.decided(&waiting["id"], "approve", remember).await;
    });
    let again = call(true, owner).await;
    assert!(again.contains("complete"), "{again}");
    let calls = stage.calls();
    let (answer, asked) = tokio::join!(call(false, lookalike), rig.one_waiting());
    assert!(answer.contains("input_required"), "{answer}");
    assert_eq!(asked["status"], "pending");
    assert_eq!(stage.calls(), calls);
    rig.stop().await;
}

/// Restarts the gateway as after a crash: pending requests are still in the store.
pub(super) async fn crashed(rig: Rig) -> Rig {
    let home = rig.home.database();
    let copy = tempfile::TempDir::new().unwrap();
    for end in ["", "-wal", "-shm"] {
        let mut from = home.as_os_str().to_owned();
        from.push(end);
        if std::path::Path::new(&from).exists() {
            std::fs::copy(&from, copy.path().join(format!("db{end}"))).unwrap();
        }
    }
    let rig = rig
        .restarted(|home| {
            for end in ["", "-wal", "-shm"] {
                let mut to = home.database().as_os_str().to_owned();
                to.push(end);
                let _ = std::fs::remove_file(&to);
                let from = copy.path().join(format!("db{end}"));
                if from.exists() {
                    std::fs::copy(from, &to).unwrap();
                }
            }
        })
        .await;
    rig.until_tools("s", super::tools().len()).await;
    rig
}
