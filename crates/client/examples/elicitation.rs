//! Answers a server that requests input from the user: shows its form on the terminal.
//!
//! ```text
//! cargo run -p switchboard-client --example elicitation
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{
    error::Error,
    io::{self, BufRead as _, Write as _},
    time::Duration,
};

use serde_json::{Map, Value, json};
use switchboard_client::{
    Client,
    model::{ElicitationAnswer, ElicitationRequest},
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::builder("elicitation-example", "1.0")
        .on_elicitation(|form| async move {
            // Reading from a terminal blocks, so it runs on a thread for blocking work.
            let filled_in = tokio::task::spawn_blocking(move || fill_in(&form)).await;
            Ok(match filled_in {
                Ok(Ok(content)) => ElicitationAnswer::accept(content),
                // Use `decline` if the user refuses, and `cancel` if the user gives no answer.
                _ => ElicitationAnswer::cancel(),
            })
        })
        .connect(Stdio::new(server));

    let call = client.call_tool("trigger-elicitation-request", json!({}));
    // The call waits for the user, who may take minutes.
    let result = call.timeout(Duration::from_mins(5)).await?;
    println!("{}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}

/// Asks for each field of a form. An empty line keeps the default.
fn fill_in(form: &ElicitationRequest) -> io::Result<Map<String, Value>> {
    println!("{}", form.message);
    let mut content = form.defaults();
    let schema = form.requested_schema.as_ref();
    let fields = schema.and_then(|schema| schema.member("properties")?.members());
    for (name, field) in fields.unwrap_or_default() {
        let title = field.member("title").and_then(|title| title.to_text());
        let default = content.get(&name).unwrap_or(&Value::Null);
        print!("  {} [{default}]: ", title.as_ref().unwrap_or(&name));
        io::stdout().flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let line = line.trim();
        if !line.is_empty() {
            // Numbers, booleans and lists are typed as JSON, everything else as text.
            let value = serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
            content.insert(name, value);
        }
    }
    Ok(content)
}
