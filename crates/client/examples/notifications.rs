//! Receives the notifications of a server: log messages, updated resources and changed lists.
//!
//! ```text
//! cargo run -p switchboard-client --example notifications
//! ```
//!
//! The server is `@modelcontextprotocol/server-everything`, which npx downloads on first use.

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{error::Error, time::Duration};

use serde_json::json;
use switchboard_client::{
    Client,
    model::LogLevel,
    stdio::{Command, Stdio},
};
use tokio::{sync::mpsc, time::timeout};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-everything"]);
    let client = Client::builder("notifications-example", "1.0")
        // Notifications arrive one after another, in order. A slow handler delays only the next ones.
        .on_notification(move |notification| {
            let _ = sender.send(notification);
        })
        .connect(Stdio::new(server));

    // The client repeats both after every reconnect.
    client.set_log_level(LogLevel::Debug).await?;
    client.subscribe("demo://resource/dynamic/text/1").await?;

    // This server sends notifications only after these calls.
    for tool in ["toggle-simulated-logging", "toggle-subscriber-updates"] {
        client.call_tool(tool, json!({})).await?;
    }

    for _ in 0..6 {
        let Ok(Some(notification)) = timeout(Duration::from_secs(20), received.recv()).await else {
            break;
        };
        let params = notification
            .params
            .as_ref()
            .map_or("", |params| params.as_str());
        println!("{} {params}", notification.method);
    }

    client.stop().await;
    client.closed().await;
    Ok(())
}
