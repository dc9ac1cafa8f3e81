//! Changed lists of a newer server: no change is missed, no matter how often its stream is
//! reopened.

use std::{future::IntoFuture, time::Duration};

use serde_json::{Value, json};
use switchboard_client::{Client, ClientBuilder};
use tokio::sync::mpsc;

use crate::peer::{Listener, Peer, builder, connect};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

type Told = mpsc::UnboundedReceiver<String>;

fn hearing() -> (ClientBuilder, Told) {
    let (sender, told) = mpsc::unbounded_channel();
    let builder = builder().on_notification(move |news| sender.send(news.method).unwrap());
    (builder, told)
}

/// Accepts a connection as a server whose lists may all change, and receives the listen request.
async fn accept(listener: &mut Listener, client: &Client) -> (Peer, Value) {
    let mut peer = listener.accept().await;
    let request = peer.expect("server/discover").await;
    let changes = json!({"listChanged": true});
    let offer = json!({"tools": changes, "prompts": changes, "resources": changes});
    let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": offer});
    peer.answer(&request, result).await;
    client.ready().await.unwrap();
    let listen = peer.expect("subscriptions/listen").await;
    (peer, listen)
}

async fn acknowledge(peer: &Peer, listen: &Value) {
    let params = json!({
        "_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
        "notifications": listen["params"]["notifications"],
    });
    let method = "notifications/subscriptions/acknowledged";
    peer.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .await;
}

/// Fetches a list.
async fn fetch(client: &Client, peer: &mut Peer, method: &'static str, member: &str) {
    let listing = tokio::spawn(client.request(method, None).into_future());
    let request = peer.expect(method).await;
    peer.answer(&request, json!({ member: [] })).await;
    listing.await.unwrap().unwrap();
}

/// Returns all notifications so far. The paused clock advances only when no other work is left.
async fn all_told(told: &mut Told) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn list_requested_before_the_stream_is_reported() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    fetch(&client, &mut peer, "prompts/list", "prompts").await;
    // Requested before the stream is open and answered after it: the result may be from before.
    let listing = tokio::spawn(
        client
            .request("resources/templates/list", None)
            .into_future(),
    );
    let templates = peer.expect("resources/templates/list").await;
    assert!(all_told(&mut told).await.is_empty());
    acknowledge(&peer, &listen).await;
    assert_eq!(all_told(&mut told).await, [PROMPTS, RESOURCES]);
    peer.answer(&templates, json!({"resourceTemplates": []}))
        .await;
    listing.await.unwrap().unwrap();
    // The server itself reports changes of lists that are requested from now on.
    fetch(&client, &mut peer, "tools/list", "tools").await;
    assert!(all_told(&mut told).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn first_stream_before_any_list_reports_nothing() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    acknowledge(&peer, &listen).await;
    assert!(all_told(&mut told).await.is_empty());
    fetch(&client, &mut peer, "tools/list", "tools").await;
    assert!(all_told(&mut told).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_without_a_stream_are_reported_later() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    acknowledge(&peer, &listen).await;
    assert!(all_told(&mut told).await.is_empty());
    fetch(&client, &mut peer, "tools/list", "tools").await;

    // A subscription replaces the stream; the new one opens before the old one closes, so nothing
    // is missed.
    let wish = client.clone();
    let wish = tokio::spawn(async move { wish.subscribe("a://1").await });
    let second = peer.expect("subscriptions/listen").await;
    acknowledge(&peer, &second).await;
    wish.await.unwrap().unwrap();
    peer.expect("notifications/cancelled").await;
    assert!(all_told(&mut told).await.is_empty());

    // The server ends the stream, and it is reopened.
    peer.answer(&second, json!({})).await;
    let third = peer.expect("subscriptions/listen").await;
    assert!(all_told(&mut told).await.is_empty());
    acknowledge(&peer, &third).await;
    assert_eq!(all_told(&mut told).await, [TOOLS]);

    // The stream ends during a subscription: the new one was not open in time.
    let wish = client.clone();
    let wish = tokio::spawn(async move { wish.subscribe("a://2").await });
    let fourth = peer.expect("subscriptions/listen").await;
    peer.answer(&third, json!({})).await;
    acknowledge(&peer, &fourth).await;
    wish.await.unwrap().unwrap();
    assert_eq!(all_told(&mut told).await, [TOOLS]);

    // The connection is lost, and changes in the meantime with it.
    drop(peer);
    let (peer, listen) = accept(&mut listener, &client).await;
    assert!(all_told(&mut told).await.is_empty());
    acknowledge(&peer, &listen).await;
    assert_eq!(all_told(&mut told).await, [TOOLS]);
}
