//! Follows the progress of a long call, and cancels another one.
//!
//! ```text
//! cargo run -p switchboard-client --example progress
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{error::Error, time::Duration};

use serde_json::json;
use switchboard_client::{
    Client, ErrorKind,
    stdio::{Command, Stdio},
};

const LONG_OPERATION: &str = "trigger-long-running-operation";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::connect(Stdio::new(server));
    client.ready().await?;

    // The operation takes 6 s. Each report of progress gives the call 4 s more, up to 60 s in total.
    let result = client
        .call_tool(LONG_OPERATION, json!({ "duration": 6, "steps": 3 }))
        .timeout(Duration::from_secs(4))
        .extend_on_progress(Duration::from_mins(1))
        .on_progress(|report| println!("{} of {:?}", report.progress, report.total))
        .await?;
    println!("{}", result.text());

    // Dropping a call cancels it. A canceller does so from elsewhere, and gives the server a reason.
    let call = client
        .call_tool(LONG_OPERATION, json!({ "duration": 60, "steps": 60 }))
        .cancellable();
    let canceller = call.canceller();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        canceller.cancel("the user pressed Escape");
    });
    match call.await {
        Err(error) if error.kind() == ErrorKind::Cancelled => println!("cancelled"),
        Err(error) => return Err(error.into()),
        Ok(result) => println!("{}", result.text()),
    }

    client.stop().await;
    client.closed().await;
    Ok(())
}
