//! Tasks of 2026-07-28, whose clients answer their questions.

use super::{
    handles::{Realms, altered, client_of, config_of},
    *,
};

/// A server of 2026-07-28 whose tasks ask a question.
fn stage_of_tasks() -> Stage {
    let stage = Stage::new(&[tool("job", "Works.")]);
    let asked = json!({ "type": "object", "properties": {} });
    let question = json!({ "message": "zqquestion?", "requestedSchema": asked });
    let question = json!({ "method": "elicitation/create", "params": question });
    let complete = json!({ "resultType": "complete" });
    let state = json!({
        "resultType": "complete",
        "taskId": "t",
        "status": "input_required",
        "inputRequests": { "q": question },
    });
    for (method, result) in [
        ("tasks/get", state),
        ("tasks/update", complete.clone()),
        ("tasks/cancel", complete),
    ] {
        stage.set_answer(method, &format!("\"result\":{result}"));
    }
    stage
}

/// The parameters of a request about a task, with an answer to its question.
fn about(task: &str) -> Value {
    let answer = json!({ "action": "decline" });
    json!({ "taskId": task, "inputResponses": { "q": answer } })
}

#[tokio::test]
async fn tasks_of_other_callers_cannot_be_answered() {
    let stage = stage_of_tasks();
    let mut entry = stage.modern_entry();
    entry["trust"] = json!("always");
    let rig = Rig::configured(config_of(&entry)).await;
    rig.until_tools("s", 1).await;
    let realms = Realms::new(&rig).await;
    let realms = realms.all();
    let mut tasks = Vec::new();
    for (number, realm) in realms.into_iter().enumerate() {
        let task =
            json!({ "resultType": "task", "taskId": format!("t{number}"), "status": "working" });
        stage.set_result("job", &task.to_string());
        let mut client = client_of(&rig, realm, Some("s"), MODERN).await;
        let call = json!({ "name": "job", "arguments": {} });
        let begun = client.ask("tools/call", call).await;
        let task = begun["result"]["taskId"].as_str();
        tasks.push(task.unwrap_or_else(|| panic!("{begun}")).to_owned());
    }
    let mut own = Vec::new();
    for (number, realm) in realms.into_iter().enumerate() {
        for (view, one) in [("one", Some("s")), ("all", None)] {
            let mut client = client_of(&rig, realm, one, MODERN).await;
            for (owner, task) in tasks.iter().enumerate() {
                for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                    let of_theirs = client.answer(method, &about("NAME"), task).await;
                    if owner == number {
                        let is_done = of_theirs["result"].is_object();
                        assert!(is_done, "{view} {method}: {of_theirs}");
                        own.push(format!("{method} t{number}"));
                        continue;
                    }
                    let missing = altered(task);
                    let of_missing = client.answer(method, &about("NAME"), &missing).await;
                    assert_eq!(of_theirs, of_missing, "{view} {method}");
                    assert!(of_theirs["error"].is_object(), "{view} {of_theirs}");
                }
            }
        }
    }
    let asked = stage.asked();
    let asked = asked.iter().filter(|line| line.starts_with("tasks/"));
    let asked = asked.map(|line| {
        let (method, params) = line.split_once(' ').unwrap();
        let params: Value = serde_json::from_str(params).unwrap();
        format!("{method} {}", params["taskId"].as_str().unwrap())
    });
    assert_eq!(asked.collect::<Vec<_>>(), own);
    rig.stop().await;
}
