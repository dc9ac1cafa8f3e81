//! Declares the directories that the client works in, and changes them later.
//!
//! ```text
//! cargo run -p switchboard-client --example roots
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{error::Error, time::Duration};

use serde_json::json;
use switchboard_client::{
    Client,
    model::Root,
    stdio::{Command, Stdio},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::builder("roots-example", "1.0")
        .roots([Root::new("file:///projects/site")])
        .connect(Stdio::new(server));

    let result = client.call_tool("get-roots-list", json!({})).await?;
    println!("{}\n", result.text());

    let mut docs = Root::new("file:///projects/docs");
    docs.name = Some("Docs".to_owned());
    // A server of an older revision is notified; one of 2026-07-28 requests the roots when it needs them.
    client.set_roots([docs]).await?;
    tokio::time::sleep(Duration::from_secs(1)).await; // This server requests the new roots in the background.
    let result = client.call_tool("get-roots-list", json!({})).await?;
    println!("{}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}
