//! Rules about questions of servers: they apply no matter who could answer.

use serde_json::{Value, json};

use super::{EVENTS, PENDING, form, questions::called, sampling, staged, staged_as, told};
use crate::{
    api_rig::Rig,
    mcp_rig::{LEGACY, MODERN, Pipe, REVISIONS, Web, direct, refusal_of, search, server},
    stage_rig::{Stage, tool},
};

fn ruled(route: &str, rules: Value) -> Value {
    json!({ "approvals": { "route": route, "rules": rules, "notify": "off" } })
}

/// The capabilities of a client that answers everything.
fn able() -> Value {
    json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} } })
}

async fn until_denied(rig: &Rig, method: &str) {
    let denied = |entry: &Value| entry["what"] == "denied" && entry.to_string().contains(method);
    rig.until("/api/v1/audit?limit=1000", |audit| {
        audit["entries"].as_array().unwrap().iter().any(denied)
    })
    .await;
}

#[tokio::test]
async fn denied_questions_are_not_asked() {
    for modern in [false, true] {
        for route in ["auto", "client", "human"] {
            let rules = json!(["deny sampling s", "deny elicitation s"]);
            let (_stage, rig) = staged_as(modern, ruled(route, rules)).await;
            for revision in REVISIONS {
                for capabilities in [json!({}), able()] {
                    for (view, prefix) in [(server("s"), ""), (direct(), "s__")] {
                        let case = format!("{modern} {route} {revision} {capabilities} {prefix}");
                        let mut client =
                            Pipe::open_able(&rig, view, revision, capabilities.clone()).await;
                        for name in ["sample", "elicit"] {
                            let call = client
                                .send_call(&format!("{prefix}{name}"), json!({}))
                                .await;
                            let answer = client.finish(&call).await.json;
                            let said = answer.to_string();
                            assert!(said.contains("denied by"), "{case} {name}: {said}");
                            assert!(!said.contains("input_required"), "{case} {name}: {said}");
                        }
                    }
                }
            }
            until_denied(&rig, "sampling/createMessage").await;
            until_denied(&rig, "elicitation/create").await;
            assert_eq!(rig.get(PENDING).await.json()["approvals"], json!([]));
            rig.stop().await;
        }
    }
}

#[tokio::test]
async fn ask_rule_takes_precedence_over_the_client() {
    for modern in [false, true] {
        for route in ["auto", "client"] {
            let config = ruled(route, json!(["ask sampling s"]));
            let (_stage, rig) = staged_as(modern, config).await;
            for revision in [LEGACY, "2025-11-25", MODERN] {
                let mut client = Pipe::open_able(&rig, server("s"), revision, able()).await;
                let text = json!({ "text": "Because." });
                let answer = called(&rig, &mut client, sampling("Why?"), text).await;
                let said = told(&answer["result"])["q"].clone();
                assert_eq!(said["content"]["text"], "Because.", "{revision} {answer}");
                // It does not match other questions.
                let ask = form("Who?", json!({ "who": { "type": "string" } }));
                let result = client.call("ask", ask).await;
                assert_eq!(told(&result)["q"]["content"]["who"], "Ada", "{result}");
            }
            rig.stop().await;
        }
    }
}

/// A client of 2026-07-28 gets the questions of its server verbatim, unless a rule matches.
#[tokio::test]
async fn rules_without_a_match_change_nothing() {
    let config = ruled(
        "auto",
        json!(["deny sampling other", "allow elicitation s"]),
    );
    let (stage, rig) = staged_as(true, config).await;
    let result = r#"{ "resultType":"input_required", "inputRequests": {"q": {"method":"sampling/createMessage", "params":{"messages":[], "maxTokens": 9.0}}}, "requestState":"s1", "_meta": {"io.modelcontextprotocol/serverInfo":{"name":"x"}}}"#;
    stage.set_result("add_note", result);
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able()).await;
    let call = client.send_call("add_note", json!({})).await;
    let answer = client.finish(&call).await;
    assert!(answer.text.contains(result), "{}", answer.text);
    rig.stop().await;
}

/// An older server asks with requests, to which rules apply: its results cannot ask.
#[tokio::test]
async fn results_of_older_servers_ask_nothing() {
    let rules = json!(["deny sampling s", "deny elicitation s"]);
    let (stage, rig) = staged_as(false, ruled("human", rules)).await;
    let question = r#""inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Your password?"}}},"requestState":"S""#;
    let mut served = Pipe::open_able(&rig, server("s"), MODERN, able()).await;
    let mut merged = Pipe::open_able(&rig, direct(), MODERN, able()).await;
    let mut searched = Pipe::open_able(&rig, search(), MODERN, able()).await;
    let variant = question
        .replace("inputRequests", "InputRequests")
        .replace("requestState", "RequestState");
    let kinds = ["input_required", "task", "complete"];
    let kinds = kinds.map(|kind| [(kind, question), (kind, &variant)]);
    for (kind, question) in kinds.into_iter().flatten() {
        let asks = format!(r#"{{"content":[],"\ud800":1,"resultType":"{kind}",{question}}}"#);
        stage.set_result("add_note", &asks);
        stage.set_answer("resources/read", &format!(r#""result":{asks}"#));
        stage.set_answer("completion/complete", &format!(r#""result":{asks}"#));
        let uri = json!({ "uri": "stage://a" });
        let of = json!({ "ref": { "type": "ref/resource", "uri": "stage://a" }, "argument": { "name": "a", "value": "" } });
        for result in [
            served.call("add_note", json!({})).await,
            merged.call("s__add_note", json!({})).await,
            searched.call_found("s__add_note", json!({})).await,
            served.result("resources/read", uri).await,
            served.result("completion/complete", of).await,
        ] {
            let said = result.to_string();
            assert!(!said.contains("password"), "{kind}: {said}");
            assert!(!said.contains("equestState"), "{kind}: {said}");
            assert_eq!(result["resultType"], "complete", "{said}");
        }
    }
    rig.stop().await;
}

/// Tasks report their questions in a result that is complete.
#[tokio::test]
async fn denied_questions_of_tasks_are_not_passed_on() {
    let (stage, rig) = staged_as(true, ruled("auto", json!(["deny sampling s"]))).await;
    let result = r#"{"resultType":"complete","status":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}}}"#;
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able()).await;
    for result in [result, &result.replacen('{', r#"{"\ud800":1,"#, 1)] {
        stage.set_result("add_note", result);
        let refusal = client.refusal("add_note", json!({})).await;
        assert!(refusal.contains("denied by"), "{refusal}");
    }
    rig.stop().await;
}

/// Results in which some parsers find a sampling request.
fn disguised() -> Vec<String> {
    let asks = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}"#;
    let harmless = r#"{"method":"roots/list"}"#;
    let members = [
        r#""inputRequests":{},"inputRequests":{"q":ASKS}"#,
        r#""inputRequests":{"q":ASKS},"inputRequests":{}"#,
        r#""InputRequests":{"q":ASKS}"#,
        r#""inputReque\u017fts":{"q":ASKS}"#,
        r#""inputRequests":[ASKS]"#,
        r#""inputRequests":{"q":[ASKS]}"#,
        r#""inputRequests":{"q":["sampling/createMessage",{"messages":[],"maxTokens":9}]}"#,
        r#""inputRequests":{"q":ASKS,"q":HARMLESS}"#,
        r#""inputRequests":{"q":{"method":"sampling/createMessage","method":"roots/list"}}"#,
        r#""inputRequests":{"q":{"Method":"sampling/createMessage","params":{"messages":[]}}}"#,
    ];
    let types = [
        r#""resultType":"input_required","#,
        r#""resultType":"complete","#,
        r#""resultType":"task","#,
        "",
    ];
    let odd_types = [
        r#""resultType":"complete","resultType":"input_required","#,
        r#""resultType":"input_required","resultType":"complete","#,
        r#""ResultType":"input_required","#,
        r#""resultType":["input_required"],"#,
    ];
    let ambiguous = members
        .iter()
        .flat_map(|members| types.map(|kind| format!("{kind}{members}")));
    let plain = odd_types.map(|kind| format!(r#"{kind}"inputRequests":{{"q":ASKS}}"#));
    let all = ambiguous.chain(plain);
    let whole = |members: String| format!(r#"{{"content":[],{members},"requestState":"S"}}"#);
    let said = |result: String| result.replace("ASKS", asks).replace("HARMLESS", harmless);
    all.map(|members| said(whole(members))).collect()
}

/// Parsers differ in which of two members they use, and some ignore case.
#[tokio::test]
async fn ambiguous_questions_reach_no_client() {
    for (route, rules) in [("auto", json!(["deny sampling s"])), ("human", json!([]))] {
        let (stage, rig) = staged_as(true, ruled(route, rules)).await;
        for revision in [LEGACY, MODERN] {
            let mut served = Pipe::open_able(&rig, server("s"), revision, able()).await;
            let mut merged = Pipe::open_able(&rig, direct(), revision, able()).await;
            for result in disguised() {
                stage.set_result("add_note", &result);
                stage.set_answer("resources/read", &format!(r#""result":{result}"#));
                let uri = json!({ "uri": "stage://a" });
                for (is_served, method, params) in [
                    (true, "tools/call", json!({ "name": "add_note" })),
                    (false, "tools/call", json!({ "name": "s__add_note" })),
                    (true, "resources/read", uri),
                ] {
                    let client = if is_served { &mut served } else { &mut merged };
                    let call = client.send(method, params).await;
                    let answer = client.finish(&call).await.text;
                    assert!(
                        !answer.contains("maxTokens"),
                        "{revision} {result}: {answer}"
                    );
                    assert!(
                        !answer.contains("createMessage"),
                        "{revision} {result}: {answer}"
                    );
                    let refused = answer.contains("input requests");
                    assert!(refused, "{revision} {result}: {answer}");
                }
            }
        }
        assert_eq!(rig.get(PENDING).await.json()["approvals"], json!([]));
        rig.stop().await;
    }
}

/// Some clients answer every question in a result, regardless of its type.
#[tokio::test]
async fn questions_in_complete_results_follow_the_route() {
    let (stage, rig) = staged_as(true, ruled("human", json!([]))).await;
    let result = r#"{"content":[],"resultType":"complete","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}}}"#;
    for result in [result, &result.replace(r#""resultType":"complete","#, "")] {
        stage.set_result("add_note", result);
        let mut modern = Pipe::open_able(&rig, server("s"), MODERN, able()).await;
        let refusal = modern.refusal("add_note", json!({})).await;
        assert!(refusal.contains("does not wait for an answer"), "{refusal}");
        let mut older = Pipe::open_able(&rig, server("s"), LEGACY, able()).await;
        let answer = older.call("add_note", json!({})).await.to_string();
        assert!(!answer.contains("maxTokens"), "{answer}");
    }
    rig.stop().await;
}

/// A finished task asks nothing.
#[tokio::test]
async fn ambiguous_questions_of_tasks_reach_no_client() {
    let (stage, rig) = staged_as(true, ruled("auto", json!(["deny sampling s"]))).await;
    let mut able = able();
    able["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able).await;
    let created = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;
    stage.set_result("add_note", created);
    let created = client.call("add_note", json!({})).await;
    let task = json!({ "taskId": created["taskId"] });
    let plain = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}}}"#;
    for asks in disguised().into_iter().chain([plain.to_owned()]) {
        let inner = format!(r#"{{"resultType":"complete","taskId":"t1","result":{asks}}}"#);
        for result in [asks, inner] {
            stage.set_answer("tasks/get", &format!(r#""result":{result}"#));
            let call = client.send("tasks/get", task.clone()).await;
            let answer = client.finish(&call).await.text;
            assert!(!answer.contains("maxTokens"), "{result}: {answer}");
            assert!(answer.contains("cannot continue"), "{result}: {answer}");
        }
    }
    rig.stop().await;
}

/// The question of a read, of a task, or of one of several calls may be that of the tool in the rule.
#[tokio::test]
async fn tool_rule_applies_if_tool_is_unknown() {
    let rules = json!(["deny sampling s:add_note"]);
    let (stage, rig) = staged_as(true, ruled("auto", rules)).await;
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able()).await;
    let asks = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}},"requestState":"S"}"#;
    stage.set_answer("resources/read", &format!(r#""result":{asks}"#));
    let uri = json!({ "uri": "stage://a" });
    let read = client.ask("resources/read", uri).await.text;
    assert!(read.contains("denied by"), "{read}");
    // The tool of this call is known, and the rule does not name it.
    stage.set_result("delete_file", asks);
    let call = client.send_call("delete_file", json!({})).await;
    let answer = client.finish(&call).await.text;
    assert!(answer.contains("input_required"), "{answer}");
    rig.stop().await;
}

/// A gateway whose server fails as the test says.
async fn failing(rules: Value) -> (Stage, Rig) {
    let stage = Stage::new(&[tool("fail", "Fails.")]);
    let mut config = ruled("auto", rules);
    config["mcpServers"] = json!({ "s": stage.entry() });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    (stage, rig)
}

fn wants_opened(elicitations: &str) -> String {
    format!(
        r#"{{ "code": -32042, "message": "first this", "data": {{"elicitations":{elicitations}, "more": 1.0}}}}"#
    )
}

/// The complete response to a call that fails in this way.
async fn failed(client: &mut Pipe, revision: &str, error: &str) -> (String, Value) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": able(),
    });
    let meta = match revision {
        MODERN => format!(r#","_meta":{meta}"#),
        _ => String::new(),
    };
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":7000,"method":"tools/call","params":{{"name":"fail","arguments":{{"error":{error}}}{meta}}}}}"#
    );
    client.send_text(&line).await;
    let answer = client.finish(&json!(7_000)).await;
    (answer.text, answer.json)
}

/// The addresses that a client is asked to open.
fn addresses(answer: &Value) -> Vec<Value> {
    let told = answer["error"]["data"]["elicitations"].as_array().cloned();
    let asked = answer["result"]["inputRequests"].as_object();
    let asked = asked.map(|asked| asked.values().map(|one| one["params"].clone()).collect());
    let all: Vec<Value> = told.or(asked).unwrap_or_default();
    all.into_iter().map(|one| one["url"].clone()).collect()
}

#[tokio::test]
async fn denied_and_invalid_addresses_are_removed() {
    let rule = json!({ "action": "deny", "kind": "elicitation", "server": "s", "arguments": { "$.url": "https://evil.example/*" } });
    let (_stage, rig) = failing(json!([rule])).await;
    for revision in ["2025-11-25", MODERN] {
        let mut client = Pipe::open_able(&rig, server("s"), revision, able()).await;
        let good = r#"{"mode":"url","elicitationId":"a","url":"https://good.example/x","message":"Sign in."}"#;
        let evil = good.replace("good.", "evil.");
        let script = good.replace("https://good.example/x", "javascript:alert(1)");
        let twice = good.replace("\"url\":", r#""url":"https://good.example/","URL":"#);
        let bad = [&*evil, &script, &twice, "7", "{}"];

        let all = format!("[{},{good}]", bad.join(","));
        let (_, answer) = failed(&mut client, revision, &wants_opened(&all)).await;
        assert_eq!(addresses(&answer), ["https://good.example/x"], "{answer}");
        for bad in bad {
            let (text, answer) =
                failed(&mut client, revision, &wants_opened(&format!("[{bad}]"))).await;
            let refusal = refusal_of(&answer);
            let why = if bad == evil { "denied by" } else { "http" };
            assert!(refusal.contains(why), "{revision} {bad}: {text}");
            assert!(!text.contains("alert"), "{revision} {bad}: {text}");
            assert_eq!(addresses(&answer), [""; 0], "{revision} {bad}: {text}");
        }
        let doubled = wants_opened(&format!("[{good}],\"elicitations\":[{good}]"));
        let (text, answer) = failed(&mut client, revision, &doubled).await;
        assert_eq!(addresses(&answer), [""; 0], "{revision}: {text}");
        // A valid error is forwarded verbatim.
        let (text, answer) =
            failed(&mut client, revision, &wants_opened(&format!("[{good}]"))).await;
        assert_eq!(addresses(&answer).len(), 1, "{revision}: {text}");
        if revision != MODERN {
            let data = format!(r#"{{"elicitations":[{good}], "more": 1.0}}"#);
            assert!(text.contains(&data), "{text}");
        }
    }
    until_denied(&rig, "elicitation/create").await;
    rig.stop().await;
}

/// Some parsers read these as the code that asks the user to open an address.
#[tokio::test]
async fn denied_addresses_are_removed_in_every_spelling() {
    let (stage, rig) = failing(json!(["deny elicitation *"])).await;
    let data = r#"{"elicitations":[{"mode":"url","elicitationId":"1","url":"javascript:alert(1)","message":"m"}]}"#;
    for revision in [LEGACY, "2025-11-25", MODERN] {
        let mut client = Pipe::open_able(&rig, server("s"), revision, able()).await;
        for error in [
            r#"{"code":-32042.0,"message":"m","data":DATA}"#,
            r#"{"code":-3.2042e4,"message":"m","data":DATA}"#,
            r#"{"code":"-32042","message":"m","data":DATA}"#,
            r#"{"code":0,"code":-32042,"message":"m","data":DATA}"#,
            r#"{"code":-32042,"data":{},"message":"m","data":DATA}"#,
            r#"{"\ud800":1,"code":-32042,"message":"m","data":DATA}"#,
            r#"{"code":-32042,"message":"m","data":{"elicitations":DATA}}"#,
            r#"{"code":-32042,"message":"m","data":[DATA]}"#,
        ] {
            let error = error.replace("DATA", data);
            let (text, _) = failed(&mut client, revision, &error).await;
            assert!(!text.contains("alert"), "{revision} {error}: {text}");
        }
        // To clients, these codes are unknown.
        for error in [
            r#"{"code":"-0x7D2A","message":"m","data":DATA}"#,
            r#"{"code":[-32042],"message":"m","data":DATA}"#,
            r#"{"code":4294935254,"message":"m","data":DATA}"#,
            r#"[-32042,"m",DATA]"#,
        ] {
            let error = error.replace("DATA", data);
            let (text, answer) = failed(&mut client, revision, &error).await;
            assert_eq!(answer["error"]["code"], 0, "{revision} {error}: {text}");
        }
        if revision != MODERN {
            let plain = format!(r#""error":{{"code":-32042,"message":"m","data":{data}}}"#);
            stage.set_answer("resources/subscribe", &plain);
            let uri = json!({ "uri": "stage://a" });
            let answer = client.ask("resources/subscribe", uri).await.text;
            assert!(!answer.contains("alert"), "{revision}: {answer}");
            assert!(answer.contains("open a URL"), "{revision}: {answer}");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn rule_lets_the_user_open_addresses() {
    let (stage, rig) = staged(ruled("client", json!(["ask elicitation s"]))).await;
    let mut client = Pipe::open_able(&rig, server("s"), "2025-11-25", able()).await;
    let call = client.send_call("open", json!({})).await;
    let asked = rig.one_waiting().await;
    assert_eq!(asked["request"]["url"], "https://example.com/x", "{asked}");
    rig.decided(&asked["id"], "respond", json!({ "action": "accept" }))
        .await;
    let answer = client.finish(&call).await.json;
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(stage.calls_of("open").len(), 2);
    rig.stop().await;
}

#[tokio::test]
async fn held_server_cannot_ask() {
    let stage = Stage::new(&super::tools());
    let entry = stage.entry_with(&json!({ "trust": "ask" }));
    let config = json!({ "mcpServers": { "s": entry }, "approvals": { "notify": "off" } });
    let rig = Rig::configured(config).await;
    rig.until_held("s", "ask").await;
    stage.request(900, "elicitation/create").await;
    let answer = stage.until_asked("answer ").await;
    assert!(answer.contains("\"error\""), "{answer}");
    // Once one of its tools is approved, it may.
    let mut events = rig.follow(EVENTS).await;
    rig.post("/api/v1/trust/s/approve", &json!({ "tool": "work" }))
        .await;
    rig.until_tools("s", 1).await;
    stage.request(901, "elicitation/create").await;
    loop {
        let (kind, asked) = events.next_approval().await;
        if kind == "approval.created" && asked["kind"] == "elicitation" {
            break;
        }
    }
    rig.stop().await;
}

/// Calls `add_note`, which asks a question and answers the call without waiting for its answer. The tests do
/// so while another client waits for its own call.
async fn ask_without_waiting(stage: &Stage, client: &mut Pipe, n: u32) {
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    let params = json!({ "message": "Private.", "requestedSchema": schema });
    stage.set_unawaited("add_note", &format!("q{n}."), &params);
    client.call("add_note", json!({})).await;
}

#[tokio::test]
async fn owners_unawaited_question_reaches_no_other_client() {
    let mut config = ruled("auto", json!([]));
    config["auth"] = json!({ "mcp": "none" });
    let (stage, rig) = staged_as(false, config).await;
    let stranger = Web::open_able(&rig, "/mcp/s/s", "2025-11-25", false, able()).await;
    let waiting = stranger.ask_whatever("tools/call", json!({ "name": "wait", "arguments": {} }));
    let asking = async {
        stage.until_asked(r#""name":"wait""#).await;
        let mut owner = Pipe::open_able(&rig, server("s"), LEGACY, able()).await;
        for n in 0..8 {
            ask_without_waiting(&stage, &mut owner, n).await;
            let asked = rig.one_waiting().await;
            rig.decided(&asked["id"], "respond", json!({ "action": "decline" }))
                .await;
            stage.until_asked(&format!(r#""id":"q{n}.""#)).await;
        }
    };
    tokio::select! {
        answer = waiting => panic!("the call is over: {answer:?}"),
        () = asking => {}
    }
    rig.stop().await;
}

#[tokio::test]
async fn rule_applies_to_an_unawaited_question() {
    let rules = json!(["deny elicitation s:add_note"]);
    let (stage, rig) = staged_as(false, ruled("auto", rules)).await;
    let mut other = Pipe::open_able(&rig, server("s"), LEGACY, able()).await;
    other.send_call("wait", json!({})).await;
    stage.until_asked(r#""name":"wait""#).await;
    let mut client = Pipe::open_able(&rig, server("s"), LEGACY, able()).await;
    for n in 0..8 {
        ask_without_waiting(&stage, &mut client, n).await;
        let answer = stage.until_asked(&format!(r#""id":"q{n}.""#)).await;
        assert!(answer.contains("denied by"), "{answer}");
    }
    rig.stop().await;
}
