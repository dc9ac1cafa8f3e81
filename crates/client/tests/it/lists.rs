//! Changed lists of a newer server: none is missed, however often its stream has to be opened.

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

/// Accepts a connection of a server whose lists may all change, and takes its listen stream.
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

/// All that has been told. The clock moves only when nothing is left to be done.
async fn all_told(told: &mut Told) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    std::iter::from_fn(|| told.try_recv().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_before_the_stream_was_open_is_told_to_have_changed() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    fetch(&client, &mut peer, "prompts/list", "prompts").await;
    // Asked for, and answered only when the stream is open: the answer may be from before.
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
    // What is asked for from now on is told of by the server itself.
    fetch(&client, &mut peer, "tools/list", "tools").await;
    assert!(all_told(&mut told).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_the_first_to_know_tells_nothing() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    acknowledge(&peer, &listen).await;
    assert!(all_told(&mut told).await.is_empty());
    fetch(&client, &mut peer, "tools/list", "tools").await;
    assert!(all_told(&mut told).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_no_stream_was_open_is_told_when_one_is() {
    let (builder, mut told) = hearing();
    let (client, mut listener) = connect(builder);
    let (mut peer, listen) = accept(&mut listener, &client).await;
    acknowledge(&peer, &listen).await;
    assert!(all_told(&mut told).await.is_empty());
    fetch(&client, &mut peer, "tools/list", "tools").await;

    // A wish makes the stream a new one, opened before the old one is closed: nothing is missed.
    let wish = client.clone();
    let wish = tokio::spawn(async move { wish.subscribe("a://1").await });
    let second = peer.expect("subscriptions/listen").await;
    acknowledge(&peer, &second).await;
    wish.await.unwrap().unwrap();
    peer.expect("notifications/cancelled").await;
    assert!(all_told(&mut told).await.is_empty());

    // The server ends it, and it is opened again.
    peer.answer(&second, json!({})).await;
    let third = peer.expect("subscriptions/listen").await;
    assert!(all_told(&mut told).await.is_empty());
    acknowledge(&peer, &third).await;
    assert_eq!(all_told(&mut told).await, [TOOLS]);

    // It ends while a wish is being granted: the new one was not there in time.
    let wish = client.clone();
    let wish = tokio::spawn(async move { wish.subscribe("a://2").await });
    let fourth = peer.expect("subscriptions/listen").await;
    peer.answer(&third, json!({})).await;
    acknowledge(&peer, &fourth).await;
    wish.await.unwrap().unwrap();
    assert_eq!(all_told(&mut told).await, [TOOLS]);

    // The connection is lost, and with it what happened meanwhile.
    drop(peer);
    let (peer, listen) = accept(&mut listener, &client).await;
    assert!(all_told(&mut told).await.is_empty());
    acknowledge(&peer, &listen).await;
    assert_eq!(all_told(&mut told).await, [TOOLS]);
}
