//! Connects to a server over HTTP+SSE, the deprecated transport of 2024-11-05, and calls a tool.
//!
//! ```text
//! npx -y @modelcontextprotocol/server-everything sse     # in another terminal
//! cargo run -p switchboard-client --example http_sse
//! cargo run -p switchboard-client --example http_sse -- http://127.0.0.1:3001/sse
//! ```
//!
//! `Http` detects such servers, too. `Sse` saves the attempts to reach them in another way.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{env, error::Error};

use serde_json::json;
use switchboard_client::{Client, sse::Sse};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1);
    let url = url.as_deref().unwrap_or("http://127.0.0.1:3001/sse");
    let client = Client::connect(Sse::new(url)?);

    let session = client.ready().await?;
    println!("revision {}", session.revision);
    let result = client
        .call_tool("get-sum", json!({ "a": 2, "b": 40 }))
        .await?;
    println!("{}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}
