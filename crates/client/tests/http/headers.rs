//! Arguments that are sent as headers, and the update of outdated header names.

use std::future::IntoFuture;

use serde_json::{Value, json};
use switchboard_client::{Client, Era, transport::http::Http};

use crate::Server;

/// Creates a client of a newer server.
async fn connected(server: &mut Server) -> Client {
    let http = Http::new(&server.url("/mcp")).unwrap();
    let builder = Client::builder("test", "0").known_era(Era::Modern);
    let client = builder.connect(http);
    let discover = server.next().await;
    assert_eq!(discover.rpc(), "server/discover");
    let offer = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
    discover.result(offer).await;
    client.ready().await.unwrap();
    client
}

/// Returns a list with one tool, whose argument `region` is sent under this header name.
fn tools(header: &str) -> Value {
    let region = json!({"type": "string", "x-mcp-header": header});
    let schema = json!({"type": "object", "properties": {"region": region}});
    json!({"tools": [{"name": "t", "inputSchema": schema}]})
}

#[tokio::test]
async fn raw_call_with_outdated_headers_is_repeated() {
    let mut server = Server::start().await;
    let client = connected(&mut server).await;
    let listing = tokio::spawn(client.tools().all());
    server.next().await.result(tools("Old")).await;
    listing.await.unwrap().unwrap();

    let params = json!({"name": "t", "arguments": {"region": "eu"}});
    let call = tokio::spawn(client.request("tools/call", params).into_future());
    let first = server.next().await;
    assert_eq!(first.header("mcp-param-old"), "eu");
    let error = json!({"code": -32020, "message": "header mismatch"});
    let refusal = json!({"jsonrpc": "2.0", "id": first.message()["id"], "error": error});
    first.json(400, refusal.to_string()).await;
    let list = server.next().await;
    assert_eq!(list.rpc(), "tools/list");
    list.result(tools("New")).await;
    let second = server.next().await;
    assert_eq!(second.rpc(), "tools/call");
    assert_eq!(second.header("mcp-param-new"), "eu");
    assert_eq!(second.header("mcp-param-old"), "");
    second.result(json!({"content": []})).await;
    call.await.unwrap().unwrap();
}
