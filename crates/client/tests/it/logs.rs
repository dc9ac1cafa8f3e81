//! Log messages: delivered to their call, in order and before it ends, or to the notification handler.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use switchboard_client::{Call, Client, ClientBuilder, Raw};
use tokio::sync::mpsc;

use crate::peer::{Peer, World, builder, ready};

type Heard = Arc<Mutex<Vec<Value>>>;

fn read(params: &Raw) -> Value {
    params.read().unwrap()
}

/// Creates a client whose notification handler passes on log messages.
fn overhearing() -> (ClientBuilder, mpsc::UnboundedReceiver<Value>) {
    let (sender, rest) = mpsc::unbounded_channel();
    let builder = builder().on_notification(move |news| {
        if news.method == "notifications/message" {
            let params = news.params.unwrap();
            sender.send(read(&params)["data"].clone()).unwrap();
        }
    });
    (builder, rest)
}

/// Creates a call that collects its log messages.
fn hearing(client: &Client, method: &'static str) -> (Call<Raw>, Heard) {
    let heard = Heard::default();
    let log = Arc::clone(&heard);
    let call = client
        .request(method, None)
        .on_raw_log(move |said| log.lock().unwrap().push(read(&said.params)["data"].clone()));
    (call, heard)
}

async fn log(peer: &Peer, data: u64) {
    let params = json!({"level": "info", "data": data});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn log_messages_precede_the_response_in_order() {
    let (builder, mut rest) = overhearing();
    let (client, _listener, mut peer) = ready(builder, World::Old).await;
    let (call, heard) = hearing(&client, "x");
    let progress = Arc::clone(&heard);
    let call = call.on_raw_progress(move |params| {
        progress
            .lock()
            .unwrap()
            .push(read(&params)["progress"].clone());
    });
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for n in 0..200 {
        log(&peer, 2 * n).await;
        let params = json!({"progressToken": token, "progress": 2 * n + 1});
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await;
    }
    peer.answer(&request, json!({})).await;
    // The call has ended; later messages belong to no call.
    log(&peer, 1_000).await;
    call.await.unwrap().unwrap();
    let expected: Vec<_> = (0..400).map(Value::from).collect();
    assert_eq!(*heard.lock().unwrap(), expected);
    assert_eq!(rest.recv().await, Some(json!(1_000)));
}

#[tokio::test(start_paused = true)]
async fn log_message_of_concurrent_requests_belongs_to_none() {
    let (builder, mut rest) = overhearing();
    let (client, _listener, mut peer) = ready(builder, World::Old).await;
    let (call, heard) = hearing(&client, "x");
    let call = tokio::spawn(call.into_future());
    let first = peer.expect("x").await;
    log(&peer, 1).await;
    let other = tokio::spawn(client.request("y", None).into_future());
    let second = peer.expect("y").await;
    log(&peer, 2).await;
    assert_eq!(rest.recv().await, Some(json!(2)));
    peer.answer(&second, json!({})).await;
    other.await.unwrap().unwrap();
    log(&peer, 3).await;
    peer.answer(&first, json!({})).await;
    call.await.unwrap().unwrap();
    assert_eq!(*heard.lock().unwrap(), [json!(1), json!(3)]);

    // This is the only request, but it has no log handler.
    let deaf = tokio::spawn(client.request("z", None).into_future());
    let request = peer.expect("z").await;
    log(&peer, 4).await;
    assert_eq!(rest.recv().await, Some(json!(4)));
    peer.answer(&request, json!({})).await;
    deaf.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn log_message_never_belongs_to_a_listen_stream() {
    let (builder, mut rest) = overhearing();
    let (client, _listener, mut peer) = ready(builder, World::New).await;
    let listen = peer.expect("subscriptions/listen").await;
    log(&peer, 1).await;
    assert_eq!(rest.recv().await, Some(json!(1)));
    let (call, heard) = hearing(&client, "x");
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    log(&peer, 2).await;
    peer.answer(&request, json!({})).await;
    call.await.unwrap().unwrap();
    assert_eq!(*heard.lock().unwrap(), [json!(2)]);
    drop(listen);
}

#[tokio::test(start_paused = true)]
async fn excess_log_messages_are_dropped_and_counted() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let (call, heard) = hearing(&client, "x");
    let mut call = call.into_future();
    let request = tokio::select! {
        biased;
        _ = &mut call => panic!("answered"),
        request = peer.expect("x") => request,
    };
    // The call is not polled meanwhile.
    for n in 0..1_100 {
        log(&peer, n).await;
    }
    peer.answer(&request, json!({})).await;
    while client.counters().answered == 0 {
        tokio::task::yield_now().await;
    }
    call.await.unwrap();
    assert_eq!(heard.lock().unwrap().len(), 1_024);
    assert_eq!(client.counters().dropped, 1_100 - 1_024);
}
