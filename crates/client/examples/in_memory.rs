//! Connects to a server in the same process, for tests and for embedded servers.
//!
//! ```text
//! cargo run -p switchboard-client --example in_memory
//! ```

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::error::Error;

use serde_json::{Value, json};
use switchboard_client::{
    Client,
    memory::{Memory, ServerEnd},
};

/// Frames that each direction buffers.
const DEPTH: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (memory, mut connections) = Memory::new(DEPTH);
    // The client may reconnect, so the server accepts more than one connection.
    tokio::spawn(async move {
        while let Some(connection) = connections.recv().await {
            tokio::spawn(serve(connection));
        }
    });

    let client = Client::connect(memory);
    for tool in client.tools().all().await? {
        println!(
            "{}: {}",
            tool.name,
            tool.description.as_deref().unwrap_or_default()
        );
    }
    let result = client
        .call_tool("shout", json!({ "text": "hello" }))
        .await?;
    println!("{}", result.text());

    client.stop().await;
    client.closed().await;
    Ok(())
}

/// Serves one connection: a frame is one JSON-RPC message.
async fn serve(mut connection: ServerEnd) {
    while let Some(frame) = connection.frames.recv().await {
        let Ok(message) = serde_json::from_slice::<Value>(&frame) else {
            continue;
        };
        // A message without an id is a notification, which has no response.
        let Some(id) = message.get("id") else {
            continue;
        };
        let mut response = match answer(&message) {
            Some(result) => json!({ "result": result }),
            // The client first asks in the newest revision. This error makes it fall back to `initialize`.
            None => json!({ "error": { "code": -32601, "message": "method not found" } }),
        };
        response["jsonrpc"] = json!("2.0");
        response["id"] = id.clone();
        if connection
            .client
            .send(response.to_string().into())
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Returns the result of a request; `None` if the method is unknown.
fn answer(request: &Value) -> Option<Value> {
    Some(match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "in-memory", "version": "1.0" },
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": [{
            "name": "shout",
            "description": "Returns a text in upper case",
            "inputSchema": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
            },
        }] }),
        "tools/call" => {
            let text = request["params"]["arguments"]["text"].as_str()?;
            json!({ "content": [{ "type": "text", "text": text.to_uppercase() }] })
        }
        _ => return None,
    })
}
