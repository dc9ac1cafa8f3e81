//! Tasks: their owners, and the answers to their questions.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    api_rig::Rig,
    mcp_rig::{MODERN, Pipe, Web, refusal_of, search, server, text_of},
    stage_rig::{Stage, tool},
};

/// A server of 2025-11-25 on a pipe. Its tools never answer, except `job`, which is a task.
async fn staged(mut config: Value) -> (Stage, Rig) {
    let task = |name| {
        let mut tool = tool(name, "Works.");
        tool["execution"] = json!({ "taskSupport": "required" });
        tool
    };
    let stage = Stage::new(&[tool("wait", "Waits."), task("wait_task"), task("job")]);
    let capabilities =
        r#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
    stage.set_answer(
        "initialize",
        &format!(
            r#""result":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"stage","version":"1"}}}}"#
        ),
    );
    stage.set_result("job", r#"{"task":{"taskId":"t1","status":"working"}}"#);
    config["mcpServers"] = json!({ "s": stage.entry() });
    config["auth"] = json!({ "mcp": "none" });
    config["approvals"]["notify"] = json!("off");
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 3).await;
    (stage, rig)
}

fn question(meta: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    json!({ "message": "Who?", "requestedSchema": schema, "_meta": meta })
}

/// Sends a question that does not name its call, and waits until it has arrived.
async fn ask_of_nobody(stage: &Stage) {
    let asked = question(&json!({}));
    stage.request_with(900, "elicitation/create", asked).await;
    // The response to a later request shows that.
    stage.request(901, "ping").await;
    stage.until_asked("901").await;
}

/// While a task is being created, its call is one of those to which a question can belong.
#[tokio::test]
async fn question_before_a_task_reaches_no_other_client() {
    let (stage, rig) = staged(json!({})).await;
    let mut other = Pipe::open(&rig, server("s")).await;
    let wait = other.send_call("wait", json!({})).await;
    let mut client = Pipe::open(&rig, server("s")).await;
    let task = client.send_call("wait_task", json!({})).await;
    stage.until_asked(r#""name":"wait""#).await;
    stage.until_asked(r#""name":"wait_task""#).await;
    ask_of_nobody(&stage).await;
    // It could belong to the call that ends here without a response: the user is asked.
    let cancelled = json!({ "requestId": wait });
    other.tell("notifications/cancelled", cancelled).await;
    let waiting = tokio::select! {
        said = client.finish(&task) => panic!("{said:?}"),
        waiting = rig.one_waiting() => waiting,
    };
    assert_eq!(waiting["kind"], "elicitation", "{waiting}");
    rig.stop().await;
}

/// If the call of one principal ends while its question is waiting, the other one must not get it.
#[tokio::test]
async fn question_of_cancelled_call_reaches_no_other_principal() {
    let (stage, rig) = staged(json!({})).await;
    let stranger = Web::anyone(&rig, "/mcp/s/s").await;
    let mut owner = Pipe::open(&rig, server("s")).await;
    let asking = async {
        stage.until_asked(r#""name":"wait""#).await;
        let task = owner.send_call("wait_task", json!({})).await;
        stage.until_asked(r#""name":"wait_task""#).await;
        ask_of_nobody(&stage).await;
        let cancelled = json!({ "requestId": task });
        owner.tell("notifications/cancelled", cancelled).await;
        rig.one_waiting().await
    };
    let wait = json!({ "name": "wait", "arguments": {} });
    let waiting = tokio::select! {
        said = stranger.ask("tools/call", wait) => panic!("{said:?}"),
        waiting = asking => waiting,
    };
    assert_eq!(waiting["kind"], "elicitation", "{waiting}");
    let asked = stage.asked();
    assert!(
        !asked.iter().any(|line| line.contains(r#""id":900"#)),
        "{asked:?}"
    );
    rig.stop().await;
}

/// A question names its task.
#[tokio::test]
async fn question_of_a_task_reaches_its_client() {
    let (stage, rig) = staged(json!({})).await;
    stage.set_answer("tasks/result", "");
    let mut client = Pipe::open(&rig, server("s")).await;
    let job = client.send_call("job", json!({})).await;
    stage.until_asked("tasks/result").await;
    let mut other = Pipe::open(&rig, server("s")).await;
    let wait = other.send_call("wait", json!({})).await;
    stage.until_asked(r#""name":"wait""#).await;
    for (id, task) in [(900, "t1"), (901, "t2")] {
        let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
        stage
            .request_with(id, "elicitation/create", question(&meta))
            .await;
    }
    // A question about an unknown task goes to the user.
    let waiting = rig.one_waiting().await;
    assert_eq!(waiting["kind"], "elicitation", "{waiting}");
    let answer = tokio::select! {
        said = client.finish(&job) => panic!("{said:?}"),
        answer = stage.until_asked("answer ") => answer,
    };
    assert!(answer.contains("900") && answer.contains("Ada"), "{answer}");
    let waiting = timeout(Duration::from_millis(300), other.finish(&wait)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    assert_eq!(other.told(), Vec::<&Value>::new());
    rig.stop().await;
}

#[tokio::test]
async fn tasks_of_another_principal_are_not_listed() {
    let (stage, rig) = staged(json!({})).await;
    stage.set_answer(
        "tasks/list",
        r#""result":{"tasks":[{"taskId":"t0","status":"working"},{"taskId":"t1","status":"working"}]}"#,
    );
    let mut owner = Pipe::open_as(&rig, server("s"), "2025-11-25").await;
    let params = json!({ "name": "job", "arguments": {}, "task": {} });
    let started = owner.result("tools/call", params).await;
    let task = started["task"]["taskId"].clone();
    let listed = owner.result("tasks/list", json!({})).await;
    let names: Vec<_> = listed["tasks"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{listed}");
    let result = json!({ "taskId": names[0]["taskId"] });
    assert_eq!(text_of(&owner.result("tasks/result", result).await), "done");
    let stranger = Web::anyone(&rig, "/mcp/s/s").await;
    let listed = stranger.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"], json!([]), "{listed}");
    let answer = stranger
        .ask("tasks/result", json!({ "taskId": task }))
        .await;
    assert!(answer.json["error"].is_object(), "{answer:?}");
    rig.stop().await;
}

/// A server of 2026-07-28 whose task `t1` asks a question.
async fn asking_task(config: Value) -> (Stage, Rig, Pipe, Value) {
    let stage = Stage::new(&[tool("job", "Works."), tool("elicit", "Asks.")]);
    stage.set_result(
        "job",
        r#"{"resultType":"task","taskId":"t1","status":"working"}"#,
    );
    stage.set_answer(
        "tasks/get",
        r#""result":{"resultType":"complete","taskId":"t1","status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}"#,
    );
    stage.set_answer("tasks/update", r#""result":{"resultType":"complete"}"#);
    let mut config = config;
    config["mcpServers"] = json!({ "s": stage.modern_entry() });
    config["approvals"]["notify"] = json!("off");
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 2).await;
    let able = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able).await;
    let started = client.call("job", json!({})).await;
    let task = started["taskId"].clone();
    assert!(task.is_string(), "{started}");
    (stage, rig, client, task)
}

fn answered(mut params: Value) -> Value {
    let answer = json!({ "action": "accept", "content": {} });
    params["inputResponses"] = json!({ "q": answer });
    params
}

/// Settings that send questions of servers to the user.
fn by_a_person() -> [Value; 2] {
    [
        json!({ "approvals": { "route": "human" } }),
        json!({ "approvals": { "rules": ["ask elicitation *"] } }),
    ]
}

#[tokio::test]
async fn client_cannot_answer_tasks_for_the_user() {
    for config in by_a_person() {
        let (stage, rig, mut client, task) = asking_task(config).await;
        let task = json!({ "taskId": task });
        let answer = client.ask("tasks/get", task.clone()).await;
        let refusal = refusal_of(&answer.json);
        assert!(refusal.contains("leaves to an approver"), "{answer:?}");
        assert!(!answer.text.contains("Who?"), "{answer:?}");
        let answer = client.ask("tasks/update", answered(task)).await;
        assert!(
            refusal_of(&answer.json).contains("leaves to an approver"),
            "{answer:?}"
        );
        assert!(
            !stage
                .asked()
                .iter()
                .any(|line| line.contains("tasks/update"))
        );
        rig.stop().await;
    }
}

#[tokio::test]
async fn client_answers_the_task_if_allowed() {
    for rules in [json!([]), json!(["deny sampling *", "allow elicitation s"])] {
        let config = json!({ "approvals": { "rules": rules } });
        let (stage, rig, mut client, task) = asking_task(config).await;
        let task = json!({ "taskId": task });
        let state = client.result("tasks/get", task.clone()).await;
        assert!(state["inputRequests"]["q"].is_object(), "{state}");
        client.result("tasks/update", answered(task)).await;
        let updated = stage.until_asked("tasks/update").await;
        assert!(updated.contains("accept"), "{updated}");
        rig.stop().await;
    }
}

/// A client may predict the question, and answer it in advance.
#[tokio::test]
async fn answers_in_advance_do_not_replace_approval() {
    for config in by_a_person() {
        let (stage, rig, mut client, _) = asking_task(config).await;
        for state in [None, Some("s1")] {
            let mut params = answered(json!({ "name": "elicit", "arguments": {} }));
            if let Some(state) = state {
                params["requestState"] = json!(state);
            }
            let call = client.send("tools/call", params).await;
            let answer = client.finish(&call).await;
            assert!(
                refusal_of(&answer.json).contains("inputResponses"),
                "{answer:?}"
            );
        }
        assert_eq!(stage.calls_of("elicit"), Vec::<Value>::new());
        rig.stop().await;
    }
}

/// A client can answer questions that the rules let through.
#[tokio::test]
async fn client_answers_what_a_rule_allows() {
    let config = json!({ "approvals": { "rules": ["allow elicitation s", "ask sampling *"] } });
    let (_stage, rig, mut client, _) = asking_task(config).await;
    let result = client.call("elicit", json!({})).await;
    assert!(text_of(&result).contains("accept"), "{result}");
    rig.stop().await;
}

/// A result that asks for input differs between readers, even if it says that it is cacheable.
#[tokio::test]
async fn read_that_asks_is_not_cached() {
    let (stage, rig, mut client, _) = asking_task(json!({})).await;
    stage.set_answer(
        "resources/read",
        r#""result":{"resultType":"complete","contents":[],"ttlMs":60000,"cacheScope":"private","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Who?"}}}}"#,
    );
    for _ in 0..2 {
        client.ask("resources/read", json!({ "uri": "a:b" })).await;
    }
    let asked = stage.asked();
    let reads = asked
        .iter()
        .filter(|line| line.starts_with("resources/read"));
    assert_eq!(reads.count(), 2, "{asked:?}");
    rig.stop().await;
}

/// Rules apply to it as to the error of a call.
#[tokio::test]
async fn failed_task_requests_no_address() {
    let (stage, rig, mut client, task) = asking_task(json!({})).await;
    for code in ["-32042", "-32042.0", "\"-32042\""] {
        stage.set_answer(
            "tasks/get",
            &format!(
                r#""result":{{"resultType":"complete","taskId":"t1","status":"failed","error":{{"code":{code},"message":"m","data":{{"elicitations":[{{"mode":"url","elicitationId":"e","url":"https://evil.example/"}}]}}}}}}"#
            ),
        );
        let said = client.ask("tasks/get", json!({ "taskId": task })).await;
        assert!(!said.text.contains("evil.example"), "{code}: {}", said.text);
        assert_eq!(
            said.json["result"]["error"]["code"], -32603,
            "{}",
            said.text
        );
    }
    let none =
        r#""result":{"resultType":"complete","taskId":"t1","status":"working","error":null}"#;
    stage.set_answer("tasks/get", none);
    let said = client.ask("tasks/get", json!({ "taskId": task })).await;
    assert!(said.text.contains(r#""error":null"#), "{}", said.text);
    rig.stop().await;
}

/// A task may have failed, or be done, by the time it is created.
#[tokio::test]
async fn immediately_failed_task_requests_no_address() {
    let error = |code: &str| {
        format!(
            r#"{{"code":{code},"message":"m","data":{{"elicitations":[{{"mode":"url","elicitationId":"e","url":"https://evil.example/"}}]}}}}"#
        )
    };
    let task = r#""resultType":"task","taskId":"t1","status":"failed""#;
    let rules = json!({ "approvals": { "rules": ["deny elicitation *"] } });
    let [route, asked] = by_a_person();
    for config in [json!({}), rules, route, asked] {
        let (stage, rig, mut client, _) = asking_task(config).await;
        let able = json!({ "elicitation": { "form": {}, "url": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let mut searching = Pipe::open_able(&rig, search(), MODERN, able).await;
        for code in ["-32042", "-32042.0", "\"-32042\""] {
            stage.set_result("job", &format!(r#"{{{task},"error":{}}}"#, error(code)));
            for result in [
                client.call("job", json!({})).await,
                searching.call_found("s:job", json!({})).await,
            ] {
                assert!(!result.to_string().contains("evil.example"), "{result}");
                assert_eq!(result["error"]["code"], -32603, "{result}");
                assert_ne!(result["taskId"], "t1", "{result}");
            }
        }
        let plain = r#"{"code":-1,"message":"plain"}"#;
        let twice = format!(r#"{{{task},"error":{plain},"error":{}}}"#, error("-32042"));
        let kind = format!(
            r#"{{{task},"error":{},"ResultType":"complete"}}"#,
            error("-32042")
        );
        for unclear in [twice, kind] {
            stage.set_result("job", &unclear);
            let call = json!({ "name": "job", "arguments": {} });
            let said = client.ask("tools/call", call).await;
            assert!(!said.text.contains("evil.example"), "{}", said.text);
        }
        rig.stop().await;
    }
}

/// Rules do not see questions in the result of a task, whichever response has the result, so they are
/// removed.
#[tokio::test]
async fn immediately_finished_task_asks_nothing() {
    let rules = json!({ "approvals": { "rules": ["deny elicitation *"] } });
    let (stage, rig, mut client, _) = asking_task(rules).await;
    stage.set_result(
        "job",
        r#"{"resultType":"task","taskId":"t1","status":"completed","result":{"content":[],"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Who?"}}}}}"#,
    );
    let call = json!({ "name": "job", "arguments": {} });
    let said = client.ask("tools/call", call).await;
    assert!(!said.text.contains("Who?"), "{}", said.text);
    rig.stop().await;
}

/// The client knows the task by another id than the server.
#[tokio::test]
async fn question_uses_the_clients_id_of_task() {
    let (stage, rig) = staged(json!({})).await;
    stage.set_answer("tasks/result", "");
    let mut client = Pipe::open_as(&rig, server("s"), "2025-11-25").await;
    let params = json!({ "name": "job", "arguments": {}, "task": {} });
    let started = client.result("tools/call", params).await;
    let task = json!({ "taskId": started["task"]["taskId"] });
    let waiting = client.send("tasks/result", task.clone()).await;
    stage.until_asked("tasks/result").await;
    let related = "io.modelcontextprotocol/related-task";
    let meta = json!({ related: { "taskId": "t1" }, "other": 1 });
    stage
        .request_with(900, "elicitation/create", question(&meta))
        .await;
    let asked = client.question().await;
    let named = &asked["params"]["_meta"];
    assert_eq!(named, &json!({ related: task, "other": 1 }), "{asked}");
    let answer = json!({
        "action": "accept", "content": { "who": "Ada" }, "_meta": { related: task },
    });
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer });
    client.send_text(&reply.to_string()).await;
    let answer = stage.until_asked("answer ").await;
    assert!(answer.contains(r#""taskId":"t1""#), "{answer}");
    drop(waiting);
    rig.stop().await;
}

/// The user opens an address, and the client comes back once.
#[tokio::test]
async fn state_of_an_opened_address_works_once() {
    let stage = Stage::new(&[tool("fail", "Fails.")]);
    let approvals = json!({ "route": "client", "notify": "off" });
    let config = json!({ "mcpServers": { "s": stage.modern_entry() }, "approvals": approvals });
    let rig = Rig::configured(config).await;
    rig.until_tools("s", 1).await;
    let able = json!({ "elicitation": { "form": {}, "url": {} } });
    let mut client = Pipe::open_able(&rig, server("s"), MODERN, able).await;
    let address = json!({ "mode": "url", "elicitationId": "e1", "url": "https://example.com/x", "message": "Sign in." });
    let error =
        json!({ "code": -32042, "message": "first this", "data": { "elicitations": [address] } });
    let mut params = json!({ "name": "fail", "arguments": { "error": error } });
    let id = client.send("tools/call", params.clone()).await;
    let said = client.finish(&id).await.json;
    let asked = &said["result"];
    assert_eq!(asked["resultType"], "input_required", "{said}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next();
    let key = key.unwrap().as_str();
    params["inputResponses"] = json!({ key: { "action": "accept" } });
    params["requestState"] = asked["requestState"].clone();
    let id = client.send("tools/call", params.clone()).await;
    client.finish(&id).await;
    assert_eq!(stage.calls(), 2);
    let asked = stage.asked();
    let leaked = |line: &String| line.contains("requestState") || line.contains("inputResponses");
    assert!(!asked.iter().any(leaked), "{asked:?}");
    let id = client.send("tools/call", params).await;
    let said = client.finish(&id).await.json;
    assert!(said.to_string().contains("requestState"), "{said}");
    assert_eq!(stage.calls(), 2, "{said}");
    rig.stop().await;
}
