//! Answers a server that requests a completion by a model.
//!
//! ```text
//! cargo run -p switchboard-client --example sampling
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{error::Error, time::Duration};

use serde_json::json;
use switchboard_client::{
    Client, ErrorObject,
    model::{Content, SamplingRequest, SamplingResult},
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::builder("sampling-example", "1.0")
        // The handler declares the capability `sampling`.
        .on_sampling(|request| async move { complete(&request) })
        .connect(Stdio::new(server));

    let arguments = json!({ "prompt": "Name a colour.", "maxTokens": 20 });
    let call = client.call_tool("trigger-sampling-request", arguments);
    // The deadline of the call includes the time that the handler takes.
    let result = call.timeout(Duration::from_mins(2)).await?;
    println!("the tool returned: {}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}

/// Completes a conversation. A program would call a model here, and show the request to the user first.
fn complete(request: &SamplingRequest) -> Result<SamplingResult, ErrorObject> {
    let last = request.messages.last();
    let prompt = last.and_then(|message| message.content.iter().find_map(Content::as_text));
    let Some(prompt) = prompt else {
        // The server receives this error.
        return Err(ErrorObject::new(-1, "the conversation has no text"));
    };
    println!(
        "the server asks: {prompt:?}, up to {} tokens",
        request.max_tokens
    );
    Ok(SamplingResult::text("no-model", "Blue."))
}
