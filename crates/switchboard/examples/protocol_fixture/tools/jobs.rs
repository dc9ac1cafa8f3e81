//! Tools that run as tasks where the client knows of them, and just run where it does not.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::{count, text};
use crate::{
    call::{Call, Input, State, Stop},
    rpc::{Answer, Fault},
};

/// The least time for which a task is seen to work.
const A_WHILE: Duration = Duration::from_millis(300);

pub(super) async fn run(call: &Call) -> Option<Result<Answer, Stop>> {
    Some(match &*call.name {
        "greet" => {
            let name = call.arguments["name"].as_str().unwrap_or("World");
            Ok(text(format!("Hello, {name}!")))
        }
        "slow_compute" => {
            let seconds = count(call, "seconds", 1);
            // Who gets no task has to wait for the answer, and waits no longer than this.
            let seconds = if call.in_task() {
                seconds
            } else {
                seconds.min(1)
            };
            sleep(Duration::from_secs(seconds)).await;
            Ok(text(format!("Computed for {seconds} s")))
        }
        "failing_job" => {
            sleep(A_WHILE).await;
            Err(Stop::Failed("This job fails".to_owned()))
        }
        "protocol_error_job" => {
            sleep(A_WHILE).await;
            Err(Fault::new(-32603, "This job ends with an error of the protocol").into())
        }
        "confirm_delete" => confirm(call).await,
        "multi_input" => two_at_once(call).await,
        "test_tool_with_task" => after_a_question(call).await,
        "test_task_required" => {
            sleep(A_WHILE).await;
            Ok(text("The task has run"))
        }
        _ => return None,
    })
}

/// What a tool asks before it becomes a task.
pub(crate) fn first_questions(name: &str) -> Vec<Input> {
    match name {
        "test_tool_with_task" => {
            let fields = json!({ "name": { "type": "string" } });
            vec![Input::elicit("user_name", "What is your name?", &fields)]
        }
        _ => Vec::new(),
    }
}

async fn confirm(call: &Call) -> Result<Answer, Stop> {
    let filename = call.arguments["filename"].as_str().unwrap_or("the file");
    let fields = json!({ "confirm": { "type": "boolean" } });
    let message = format!("Delete {filename}?");
    let answer = call
        .ask(Input::elicit("confirm", &message, &fields))
        .await?;
    let confirmed = answer["content"]["confirm"] == json!(true);
    Ok(text(format!("Deleted {filename}: {confirmed}")))
}

async fn two_at_once(call: &Call) -> Result<Answer, Stop> {
    let fields = || json!({ "name": { "type": "string" } });
    let inputs = vec![
        Input::elicit("first", "The first name?", &fields()),
        Input::elicit("second", "The second name?", &fields()),
    ];
    let answers = call.ask_all(inputs, State::None).await?;
    Ok(text(json!(answers).to_string()))
}

async fn after_a_question(call: &Call) -> Result<Answer, Stop> {
    let answers = call
        .ask_all(first_questions(&call.name), State::None)
        .await?;
    sleep(A_WHILE).await;
    let name = answers[0]["content"]["name"].as_str().unwrap_or_default();
    Ok(text(format!("Hello, {name}!")))
}
