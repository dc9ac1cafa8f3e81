//! Connects to a server over Streamable HTTP, lists its tools and reads a resource.
//!
//! ```text
//! npx -y @modelcontextprotocol/server-everything streamableHttp     # in another terminal
//! cargo run -p switchboard-client --example streamable_http
//! MCP_TOKEN=… cargo run -p switchboard-client --example streamable_http -- https://example.com/mcp
//! ```

#![expect(clippy::print_stdout, reason = "it is a command")]

use std::{env, error::Error};

use switchboard_client::{Client, http::Http};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1);
    let url = url.as_deref().unwrap_or("http://127.0.0.1:3001/mcp");

    let mut server = Http::new(url)?;
    if let Ok(token) = env::var("MCP_TOKEN") {
        // Header values are secrets: they appear in no log and go to no other origin.
        server = server.header("authorization", &format!("Bearer {token}"))?;
    }
    let client = Client::connect(server);

    // The list is a stream: each page is fetched when the loop reaches it.
    let mut tools = client.tools();
    while let Some(tool) = tools.next().await {
        println!("tool      {}", tool?.name);
    }

    let mut resources = client.resources();
    if let Some(resource) = resources.next().await {
        let uri = &resource?.uri;
        let read = client.read_resource(uri).await?;
        let text = read.contents.iter().filter_map(|part| part.text.as_deref());
        println!(
            "resource  {uri}: {} bytes of text",
            text.map(str::len).sum::<usize>()
        );
    }

    client.stop().await;
    client.closed().await;
    Ok(())
}
