//! Lost connections, reconnects, and the detection of a server's era.

use std::{future::IntoFuture, time::Duration};

use serde_json::json;
use switchboard_client::{CallError, Era, Error, Revision, State, model::LogLevel};
use tokio::time::Instant;

use crate::peer::{World, builder, connect, ready};

#[tokio::test(start_paused = true)]
async fn loss_fails_sent_calls_and_later_calls_wait() {
    let (client, mut listener, mut peer) = ready(builder(), World::Old).await;
    let lost = tokio::spawn(client.request("lost", None).into_future());
    peer.expect("lost").await;
    drop(peer);
    assert!(matches!(
        lost.await.unwrap(),
        Err(Error::Call(CallError::ConnectionLost { .. }))
    ));
    assert!(matches!(client.state(), State::Backoff { failures: 1, .. }));
    let next = tokio::spawn(client.request("next", None).into_future());
    let started = Instant::now();
    let mut peer = listener.accept().await;
    assert!(
        (800..=1200).contains(&started.elapsed().as_millis()),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        peer.recv().await["method"],
        "initialize",
        "what the server is was remembered"
    );
    drop(peer);
    let mut peer = listener.accept_and_greet(World::Old).await;
    let request = peer.expect("next").await;
    peer.answer(&request, json!({})).await;
    assert!(next.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn older_server_gets_subscriptions_and_level_again() {
    let (client, mut listener, mut peer) = ready(builder(), World::Old).await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move {
            client.subscribe("a://1").await.unwrap();
            client.subscribe("a://2").await.unwrap();
            client.set_log_level(LogLevel::Warning).await.unwrap();
            client.unsubscribe("a://1").await.unwrap();
        }
    });
    let methods = [
        "resources/subscribe",
        "resources/subscribe",
        "logging/setLevel",
        "resources/unsubscribe",
    ];
    for method in methods {
        let request = peer.expect(method).await;
        peer.answer(&request, json!({})).await;
    }
    asking.await.unwrap();
    drop(peer);
    let mut peer = listener.accept_and_greet(World::Old).await;
    let level = peer.expect("logging/setLevel").await;
    assert_eq!(level["params"], json!({"level": "warning"}));
    peer.answer(&level, json!({})).await;
    let again = peer.expect("resources/subscribe").await;
    assert_eq!(again["params"], json!({"uri": "a://2"}));
}

#[tokio::test(start_paused = true)]
async fn refused_subscription_is_reported_and_not_repeated() {
    let (client, mut listener, mut peer) = ready(builder(), World::Old).await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.subscribe("a://1").await }
    });
    let request = peer.expect("resources/subscribe").await;
    peer.refuse(&request, -32602).await;
    assert!(matches!(asking.await.unwrap(), Err(Error::Server(_))));
    drop(peer);
    let mut peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(peer.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn listen_stream_grows_and_is_reopened() {
    let (client, mut listener, mut peer) = ready(builder().on_notification(drop), World::New).await;
    let first = peer.expect("subscriptions/listen").await;
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    acknowledge(&peer, &first).await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.subscribe("a://1").await }
    });
    let second = peer.expect("subscriptions/listen").await;
    let wished = json!({"toolsListChanged": true, "resourceSubscriptions": ["a://1"]});
    assert_eq!(second["params"]["notifications"], wished);
    assert!(
        peer.try_recv().is_none(),
        "the old stream stays open until the new one is"
    );
    acknowledge(&peer, &second).await;
    asking.await.unwrap().unwrap();
    let closed = peer.expect("notifications/cancelled").await;
    assert_eq!(closed["params"]["requestId"], first["id"]);

    // The server ends the stream, and it is reopened.
    peer.answer(&second, json!({})).await;
    let third = peer.expect("subscriptions/listen").await;
    assert_eq!(third["params"]["notifications"], wished);
    acknowledge(&peer, &third).await;

    drop(peer);
    let mut peer = listener.accept_and_greet(World::New).await;
    let fourth = peer.expect("subscriptions/listen").await;
    assert_eq!(fourth["params"]["notifications"], wished);
}

#[tokio::test(start_paused = true)]
async fn newer_server_gets_the_level_with_each_request() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    client.set_log_level(LogLevel::Error).await.unwrap();
    let _call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    assert_eq!(
        request["params"]["_meta"]["io.modelcontextprotocol/logLevel"],
        "error"
    );
}

#[tokio::test(start_paused = true)]
async fn server_that_exits_when_probed_is_initialized_immediately() {
    let (client, mut listener) = connect(builder());
    let started = Instant::now();
    let mut peer = listener.accept().await;
    peer.expect("server/discover").await;
    drop(peer);
    let mut peer = listener.accept().await;
    let request = peer.expect("initialize").await;
    assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
    peer.answer(
        &request,
        json!({"protocolVersion": "2024-11-05", "capabilities": {}}),
    )
    .await;
    let session = client.ready().await.unwrap();
    assert_eq!(session.revision, Revision::V2024_11_05);
    assert_eq!(client.era(), Some(Era::Legacy));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn silent_server_delays_only_the_first_handshake() {
    let (client, mut listener) = connect(builder());
    let started = Instant::now();
    let mut peer = listener.accept().await;
    peer.expect("server/discover").await;
    let request = peer.expect("initialize").await;
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    peer.answer(
        &request,
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    )
    .await;
    client.ready().await.unwrap();
    peer.expect("notifications/initialized").await;
    drop(peer);
    listener.accept().await.expect("initialize").await;
}

#[tokio::test(start_paused = true)]
async fn empty_success_identifies_an_older_server() {
    let (client, mut listener) = connect(builder());
    let mut peer = listener.accept().await;
    let probe = peer.expect("server/discover").await;
    peer.answer(&probe, json!({})).await;
    let request = peer.expect("initialize").await;
    peer.answer(
        &request,
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    )
    .await;
    assert_eq!(
        client.ready().await.unwrap().revision,
        Revision::V2025_06_18
    );
}

#[tokio::test(start_paused = true)]
async fn missing_common_version_is_final_until_a_restart() {
    let (client, mut listener) = connect(builder());
    let waiting = tokio::spawn(client.request("x", None).into_future());
    let mut peer = listener.accept().await;
    let probe = peer.expect("server/discover").await;
    peer.refuse(&probe, -32601).await;
    let request = peer.expect("initialize").await;
    peer.answer(
        &request,
        json!({"protocolVersion": "1999-01-01", "capabilities": {}}),
    )
    .await;
    let error = client.ready().await.unwrap_err();
    assert!(
        error.to_string().contains("no common protocol version"),
        "{error}"
    );
    assert!(matches!(
        waiting.await.unwrap(),
        Err(Error::Call(CallError::Failed { .. }))
    ));
    assert!(matches!(
        client.request("y", None).await,
        Err(Error::Call(CallError::Failed { .. }))
    ));
    client.restart();
    listener.accept_and_greet(World::New).await;
}

#[tokio::test(start_paused = true)]
async fn endless_handshake_is_abandoned_and_retried() {
    let (client, mut listener) = connect(builder().handshake_timeout(Duration::from_secs(5)));
    let started = Instant::now();
    let peer = listener.accept().await;
    let mut state = client.watch_state();
    state
        .wait_for(|state| matches!(state, State::Backoff { .. }))
        .await
        .unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    drop(peer);
}

async fn acknowledge(peer: &crate::peer::Peer, listen: &serde_json::Value) {
    let params = json!({
        "notifications": listen["params"]["notifications"],
        "_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
    });
    let method = "notifications/subscriptions/acknowledged";
    peer.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .await;
}
