//! What changes behind the client's back: lists, resources, tasks.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::offers::{list, names};
use crate::client::{Client, Reason, Sent, Setup, call_of, check, text_of};

pub(crate) const WATCHED: &str = "test://watched-resource";
pub(crate) const UPDATED: &str = "notifications/resources/updated";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Opens a stream of a modern client for this, and waits until it is acknowledged.
pub(crate) fn listen(client: &mut Client, wanted: Value) -> Result<Sent, Reason> {
    let from = client.now();
    let params = json!({ "notifications": wanted });
    let sent = client.send("subscriptions/listen", params)?;
    let stream = sent.stream;
    let first = client.until(from, "an acknowledgement", |arrival| {
        arrival.stream == stream && (arrival.method().is_some() || arrival.answers().is_some())
    })?;
    let first = &client.seen[first].message;
    let method = "notifications/subscriptions/acknowledged";
    check!(first["method"] == method, "not acknowledged first: {first}");
    let params = &first["params"];
    check!(params["notifications"] == wanted, "another filter: {first}");
    check!(
        params["_meta"][SUBSCRIPTION] == sent.id,
        "another subscription: {first}"
    );
    Ok(sent)
}

/// Waits for a notification, which for a modern client has to belong to its stream.
fn told(
    client: &mut Client,
    from: usize,
    method: &str,
    listening: Option<&Sent>,
) -> Result<Value, Reason> {
    let params = client.until_told(from, method)?;
    if let Some(sent) = listening {
        let subscription = &params["_meta"][SUBSCRIPTION];
        check!(
            *subscription == sent.id,
            "{method} for {subscription}, not {}",
            sent.id
        );
    }
    Ok(params)
}

/// The client hears of a change, and then the list is another.
pub(super) fn lists(client: &mut Client) -> Result<(), Reason> {
    let listening = if client.is_modern() {
        let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true });
        Some(listen(client, wanted)?)
    } else {
        None
    };
    let cases = [
        (
            "tools/list",
            "tools",
            "test_trigger_tool_change",
            TOOLS_CHANGED,
        ),
        (
            "prompts/list",
            "prompts",
            "test_trigger_prompt_change",
            PROMPTS_CHANGED,
        ),
    ];
    for (method, member, trigger, notification) in cases {
        let before = names(&list(client, method, member)?);
        let from = client.now();
        client.call(trigger, json!({}))?;
        told(client, from, notification, listening.as_ref())?;
        let after = names(&list(client, method, member)?);
        let difference = before.len().abs_diff(after.len());
        check!(difference == 1, "{method} is as it was: {after:?}");
    }
    match &listening {
        Some(sent) => client.cancel(sent),
        None => Ok(()),
    }
}

/// The client hears of a resource that it has asked about, and then not any more.
pub(super) fn resources(client: &mut Client) -> Result<(), Reason> {
    let listening = if client.is_modern() {
        Some(listen(
            client,
            json!({ "resourceSubscriptions": [WATCHED] }),
        )?)
    } else {
        client.result("resources/subscribe", json!({ "uri": WATCHED }))?;
        None
    };
    let from = client.now();
    client.call("test_update_watched", json!({}))?;
    let params = told(client, from, UPDATED, listening.as_ref())?;
    check!(params["uri"] == WATCHED, "{params}");
    if let Some(sent) = &listening {
        return client.cancel(sent);
    }
    client.result("resources/unsubscribe", json!({ "uri": WATCHED }))?;
    let from = client.now();
    client.call("test_update_watched", json!({}))?;
    // Whatever was said before this has arrived with it or before it.
    client.result("ping", json!({}))?;
    let unwanted = client.seen[from..]
        .iter()
        .any(|seen| seen.is_notification(UPDATED));
    check!(!unwanted, "told of it after it had unsubscribed");
    Ok(())
}

/// Every client has the result in the end, and one that knows of tasks can see it grow.
pub(super) fn tasks(client: &mut Client) -> Result<(), Reason> {
    let text = client.text("test_task_required", json!({}))?;
    check!(text == "The task has run", "{text}");
    if !client.is_modern() {
        return Ok(());
    }
    let mut setup = Setup::able(client.setup.side);
    setup.capabilities["extensions"] = json!({ TASKS: {} });
    let mut knowing = client.another(setup)?;
    let params = call_of("test_task_required", json!({}));
    let mut task = knowing.result("tools/call", params)?;
    if !client.server.revision.is_modern() {
        check!(text_of(&task) == Some("The task has run"), "{task}");
        return Ok(());
    }
    check!(task["resultType"] == "task", "no task: {task}");
    let id = task["taskId"].clone();
    for _ in 0..100 {
        match task["status"].as_str() {
            Some("working") => {}
            Some("completed") => {
                let text = text_of(&task["result"]);
                check!(text == Some("The task has run"), "{task}");
                return Ok(());
            }
            _ => return Err(format!("neither at work nor done: {task}")),
        }
        let pause = task["pollIntervalMs"].as_u64().unwrap_or(100);
        // As often as the server wants to be asked.
        thread::sleep(Duration::from_millis(pause.min(200)));
        task = knowing.result("tasks/get", json!({ "taskId": id }))?;
    }
    Err(format!("never done: {task}"))
}
