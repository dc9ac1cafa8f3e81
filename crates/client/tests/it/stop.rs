//! Stopping: every call gets a reply, and nothing can delay the stop.

use std::{future::IntoFuture, time::Duration};

use switchboard_client::{CallError, Error, State};
use tokio::time::Instant;

use crate::peer::{World, builder, connect, connect_with_depth, ready};

#[tokio::test(start_paused = true)]
async fn stop_ends_a_thousand_calls_and_the_task() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let calls: Vec<_> = (0..1_000)
        .map(|_| tokio::spawn(client.request("x", None).into_future()))
        .collect();
    for _ in 0..1_000 {
        peer.expect("x").await;
    }
    let started = Instant::now();
    client.stop().await;
    for call in calls {
        assert!(matches!(
            call.await.unwrap(),
            Err(Error::Call(CallError::Shutdown { .. }))
        ));
    }
    client.closed().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(peer.try_recv().is_none(), "nothing is sent on a stop");
}

#[tokio::test(start_paused = true)]
async fn repeated_stop_and_later_calls_do_no_harm() {
    let (client, _listener, _peer) = ready(builder(), World::Old).await;
    client.stop().await;
    client.stop().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.stop().await;
    assert!(matches!(client.state(), State::Closing));
    assert!(matches!(
        client.ready().await,
        Err(CallError::Shutdown { .. })
    ));
    let error = client.request("x", None).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Call(CallError::Shutdown { sent: false })
    ));
    assert_eq!(error.to_string(), "client shutting down");
    assert!(client.notify("x", None).await.is_err());
    assert!(client.subscribe("a://b").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn stop_between_retries_ends_each_call_once() {
    for wait_ms in 0..25 {
        let (client, mut listener) = connect_with_depth(builder(), 1);
        let mut peer = listener.accept_and_greet(World::Old).await;
        client.ready().await.unwrap();
        let first = tokio::spawn(client.request("first", None).into_future());
        tokio::task::yield_now().await;
        let second = tokio::spawn(client.clone().request("second", None).into_future());
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        client.stop().await;
        assert!(matches!(
            first.await.unwrap(),
            Err(Error::Call(CallError::Shutdown { .. }))
        ));
        let second = second.await.unwrap().unwrap_err();
        assert!(
            matches!(
                second,
                Error::Call(CallError::Shutdown { .. } | CallError::Backpressure { attempts: 3 })
            ),
            "{second}"
        );
        peer.expect("first").await;
        assert!(peer.try_recv().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn early_stop_ends_waiting_calls() {
    let (client, _listener) = connect(builder());
    let call = tokio::spawn(client.request("x", None).into_future());
    tokio::task::yield_now().await;
    client.stop().await;
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Shutdown { sent: false }))
    ));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_the_connection() {
    let (client, mut listener, peer) = ready(builder().on_notification(drop), World::New).await;
    let other = client.clone();
    drop(client);
    let mut state = other.watch_state();
    let call = tokio::spawn(other.request("x", None).into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;
    call.abort();
    drop(other);
    while state.changed().await.is_ok() {}
    drop(peer);
    assert!(listener.is_over().await, "reconnected");
}

#[tokio::test(start_paused = true)]
async fn response_after_the_stop_is_ignored() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    client.stop().await;
    peer.try_answer(&request);
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Shutdown { sent: true }))
    ));
}
