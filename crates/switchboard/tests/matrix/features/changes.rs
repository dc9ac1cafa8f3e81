//! Changes on the server: lists, resources, tasks.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use super::offers::{list, names};
use crate::client::{Client, Reason, Sent, Setup, call_of, check, text_of};

pub(crate) const WATCHED: &str = "test://watched-resource";
pub(crate) const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Opens a stream of a modern client for these notifications, and waits for the acknowledgement.
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

/// A client that waits for list changes.
struct Expectant<'a> {
    client: &'a mut Client,
    listening: Option<Sent>,
}

/// The changes: the method and the member of the list, the tool that changes it, and the notification.
const CHANGES: [(&str, &str, &str, &str); 2] = [
    (
        "tools/list",
        "tools",
        "test_trigger_tool_change",
        "notifications/tools/list_changed",
    ),
    (
        "prompts/list",
        "prompts",
        "test_trigger_prompt_change",
        "notifications/prompts/list_changed",
    ),
];

impl<'a> Expectant<'a> {
    fn new(client: &'a mut Client) -> Result<Self, Reason> {
        let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true });
        let listening = if client.is_modern() {
            Some(listen(client, wanted)?)
        } else {
            None
        };
        Ok(Self { client, listening })
    }

    /// The position in the arrivals and the names before a change.
    fn before(&mut self, change: usize) -> Result<(usize, Vec<String>), Reason> {
        let (method, member, ..) = CHANGES[change];
        let from = self.client.now();
        Ok((from, names(&list(self.client, method, member)?)))
    }

    /// Checks that the client is notified and the list has changed.
    fn after(
        &mut self,
        change: usize,
        (from, before): &(usize, Vec<String>),
    ) -> Result<(), Reason> {
        let (method, member, _, notification) = CHANGES[change];
        told(self.client, *from, notification, self.listening.as_ref())?;
        let after = names(&list(self.client, method, member)?);
        let difference = before.len().abs_diff(after.len());
        check!(difference == 1, "{method} is as it was: {after:?}");
        Ok(())
    }

    fn end(&mut self) -> Result<(), Reason> {
        match &self.listening {
            Some(sent) => self.client.cancel(sent),
            None => Ok(()),
        }
    }
}

pub(super) fn lists(client: &mut Client) -> Result<(), Reason> {
    lists_together(&mut [client]).remove(0)
}

/// All these clients observe the same changes: the gateway reads the lists of a server that changes all the
/// time less and less often, so that each client cannot have changes of its own.
pub(crate) fn lists_together(clients: &mut [&mut Client]) -> Vec<Result<(), Reason>> {
    let mut all: Vec<_> = clients
        .iter_mut()
        .map(|client| Expectant::new(client))
        .collect();
    for (change, (.., trigger, _)) in CHANGES.iter().enumerate() {
        let before: Vec<_> = all
            .iter_mut()
            .map(|one| {
                one.as_mut()
                    .map_err(|reason| reason.clone())?
                    .before(change)
            })
            .collect();
        let first = all.iter_mut().find_map(|one| one.as_mut().ok());
        let changed = match first {
            Some(one) => one.client.call(trigger, json!({})),
            None => Err("nobody is there to change the list".to_owned()),
        };
        for (one, before) in all.iter_mut().zip(before) {
            let heard = one
                .as_mut()
                .map_err(|reason| reason.clone())
                .and_then(|one| {
                    changed.clone()?;
                    one.after(change, &before?)
                });
            if let Err(reason) = heard {
                *one = Err(reason);
            }
        }
    }
    all.into_iter().map(|one| one?.end()).collect()
}

/// The client is notified about a resource while it is subscribed, and not afterwards.
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
    // Everything that was sent before this has arrived by now.
    client.result("ping", json!({}))?;
    let unwanted = client.seen[from..]
        .iter()
        .any(|seen| seen.is_notification(UPDATED));
    check!(!unwanted, "told of it after it had unsubscribed");
    Ok(())
}

/// Every client gets the result in the end, and one that supports tasks can follow it.
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
        // At the interval that the server asks for.
        thread::sleep(Duration::from_millis(pause.min(200)));
        task = knowing.result("tasks/get", json!({ "taskId": id }))?;
    }
    Err(format!("never done: {task}"))
}
