//! Calls a tool of a server that requests input from the user and from a model.
//!
//! ```text
//! cargo run --example asking -- TOOL JSON COMMAND [ARG…]
//! ```

use std::{
    env,
    error::Error,
    io::{self, BufRead, Write},
    time::Duration,
};

use serde_json::{Map, Value};
use switchboard_client::{
    Client,
    model::{ElicitationAnswer, ElicitationRequest, Root, SamplingResult},
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [tool, arguments, command, rest @ ..] = args.as_slice() else {
        return Err("usage: asking TOOL JSON COMMAND [ARG…]".into());
    };
    let arguments: Value = serde_json::from_str(arguments)?;
    let client = Client::builder("asking", "1.0")
        .roots([Root::new("file:///tmp")])
        // Reading from a terminal blocks, so it runs on a thread for blocking work.
        .on_elicitation(|question| async move {
            let answer = tokio::task::spawn_blocking(move || ask(&question)).await;
            Ok(answer
                .ok()
                .flatten()
                .map_or_else(ElicitationAnswer::cancel, ElicitationAnswer::accept))
        })
        .on_sampling(|request| async move {
            let words = format!(
                "(a model would continue after {} messages)",
                request.messages.len()
            );
            Ok(SamplingResult::text("none", words))
        })
        .connect(Stdio::new(Command::new(command).args(rest)));
    // The call waits for the user, who may take minutes.
    let call = client.call_tool(tool, arguments);
    let result = call.timeout(Duration::from_mins(5)).await?;
    writeln!(io::stdout(), "{}", result.text())?;
    client.stop().await;
    client.closed().await;
    Ok(())
}

/// Fills in a form line by line; an empty line keeps the default.
fn ask(question: &ElicitationRequest) -> Option<Map<String, Value>> {
    let mut answers = question.defaults();
    let properties = question
        .requested_schema
        .as_ref()?
        .member("properties")?
        .members()?;
    writeln!(io::stderr(), "{}", question.message).ok()?;
    for (name, _) in properties {
        write!(
            io::stderr(),
            "  {name} [{}]: ",
            answers.get(&name).unwrap_or(&Value::Null)
        )
        .ok()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).ok()?;
        let line = line.trim();
        if !line.is_empty() {
            let value = serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
            answers.insert(name, value);
        }
    }
    Some(answers)
}
