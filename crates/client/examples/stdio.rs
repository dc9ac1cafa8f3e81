//! Starts a server as a child process, lists its tools and calls one of them.
//!
//! ```text
//! cargo run -p switchboard-client --example stdio
//! cargo run -p switchboard-client --example stdio -- COMMAND [ARG…]
//! ```
//!
//! The default server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "it is a command")]

use std::{env, error::Error};

use serde_json::json;
use switchboard_client::{
    Client, State,
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let server = match args.split_first() {
        Some((program, args)) => Command::new(program).args(args),
        None => Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]),
    };
    let server = server.on_stderr(|line| eprintln!("server: {line}"));

    // Returns immediately. The server starts in the background, and the first call waits for it.
    let client = Client::connect(Stdio::new(server));
    report_failures(&client);

    let tools = client.tools().all().await?;
    let session = client.ready().await?;
    println!("{} tools, revision {}", tools.len(), session.revision);
    for tool in &tools {
        let description = tool.description.as_deref().unwrap_or_default();
        let first_line = description.lines().next().unwrap_or_default();
        println!("{:32} {first_line}", tool.name);
    }

    if tools.iter().any(|tool| tool.name == "echo") {
        let arguments = json!({ "message": "hello" });
        let result = client.call_tool("echo", arguments).await?;
        // A tool that ran and failed is not an `Err`: its text describes the failure.
        let outcome = if result.is_error {
            "failed"
        } else {
            "returned"
        };
        println!("echo {outcome}: {}", result.text());
    }

    client.stop().await; // Every waiting call ends.
    client.closed().await; // The process has exited.
    Ok(())
}

/// Prints each failed attempt to connect. The client retries by itself; calls wait meanwhile.
fn report_failures(client: &Client) {
    let mut state = client.watch_state();
    tokio::spawn(async move {
        while state.changed().await.is_ok() {
            if let failed @ State::Backoff { .. } = &*state.borrow_and_update() {
                eprintln!("{failed}");
            }
        }
    });
}
