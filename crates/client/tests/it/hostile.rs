//! Hostile input: no panic, no unbounded growth, and a specific error for each case.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use switchboard_client::{CallError, Error, State, Violation};
use tokio::time::Instant;

use crate::peer::{World, builder, connect_with_depth, ready};

#[tokio::test(start_paused = true)]
async fn garbage_is_counted_and_the_connection_continues() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let garbage: [&[u8]; 7] = [
        b"npm warn deprecated",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xc3",
        b"{\"jsonrpc\":\"2.0\",\"id\":1}",
        b"[]",
        b"null",
        b"\0\0\0",
        deep.as_bytes(),
    ];
    for frame in garbage {
        peer.send_raw(frame.to_vec()).await;
    }
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    peer.answer(&request, json!({})).await;
    assert!(call.await.unwrap().is_ok());
    assert_eq!(client.counters().malformed, 7);
}

/// The reports of violations: `None` for a single one, else the number and bytes of the unreported
/// ones.
type Reports = Arc<Mutex<Vec<Option<(u64, u64)>>>>;

#[tokio::test(start_paused = true)]
async fn flood_of_garbage_is_reported_at_bounded_rate() {
    const FLOOD: u64 = 5_000;
    let reports = Reports::default();
    let seen = Arc::clone(&reports);
    let builder = builder().on_violation(move |violation| {
        let report = match violation {
            Violation::Frame { frame, .. } => {
                assert_eq!(*frame, Some(&b"npm warn"[..]));
                None
            }
            Violation::More { count, bytes, .. } => Some((*count, *bytes)),
            _ => panic!("{violation:?}"),
        };
        seen.lock().unwrap().push(report);
    });
    let (client, _listener, mut peer) = ready(builder, World::Old).await;
    for _ in 0..FLOOD {
        peer.send_raw("npm warn").await;
    }
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    peer.answer(&request, json!({})).await;
    assert!(call.await.unwrap().is_ok());
    assert_eq!(*reports.lock().unwrap(), [None; 10]);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let mut wanted = vec![None; 10];
    wanted.push(Some((FLOOD - 10, (FLOOD - 10) * 8)));
    assert_eq!(*reports.lock().unwrap(), wanted);
    assert_eq!(client.counters().malformed, FLOOD);
    // The end of the connection reports the rest.
    for _ in 0..3 {
        peer.send_raw("npm warn").await;
    }
    client.stop().await;
    let counted: u64 = reports
        .lock()
        .unwrap()
        .iter()
        .map(|report| report.map_or(1, |(count, _)| count))
        .sum();
    assert_eq!(counted, client.counters().malformed);
}

#[tokio::test(start_paused = true)]
async fn unknown_and_repeated_responses_are_dropped() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    for id in [json!(999_999_999), json!("x"), json!(-1)] {
        peer.send(json!({"jsonrpc": "2.0", "id": id, "result": {}}))
            .await;
    }
    peer.send(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "?"}}))
        .await;
    peer.answer(&request, json!({"first": true})).await;
    peer.answer(&request, json!({"second": true})).await;
    assert_eq!(call.await.unwrap().unwrap().as_str(), r#"{"first":true}"#);
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .await;
    peer.recv().await;
    assert_eq!(client.counters().unknown, 5);
}

#[tokio::test(start_paused = true)]
async fn batch_is_read_message_by_message() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let calls: Vec<_> = (0..2)
        .map(|_| tokio::spawn(client.request("x", None).into_future()))
        .collect();
    let requests = [peer.expect("x").await, peer.expect("x").await];
    let batch = json!([
        {"jsonrpc": "2.0", "id": requests[1]["id"], "result": {}},
        "nonsense",
        {"jsonrpc": "2.0", "id": requests[0]["id"], "result": {}},
    ]);
    peer.send(batch).await;
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(client.counters().malformed, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_notifications_is_bounded() {
    let (let_go, stuck_on) = std::sync::mpsc::channel::<()>();
    let stuck_on = Mutex::new(stuck_on);
    let stuck = builder().on_notification(move |_| {
        let _ = stuck_on.lock().unwrap().recv();
    });
    let (client, _listener, mut peer) = ready(stuck, World::Old).await;
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    for _ in 0..20_000 {
        peer.send(
            json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {}}),
        )
        .await;
    }
    peer.answer(&request, json!({})).await;
    assert!(call.await.unwrap().is_ok());
    let counters = client.counters();
    assert_eq!(counters.notifications, 20_000);
    assert!(
        counters.dropped > 18_000,
        "the queue of a stuck handler is bounded"
    );
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn flood_of_requests_is_bounded() {
    let slow = builder().on_request(|_, _| std::future::pending());
    let (client, _listener, mut peer) = ready(slow, World::Old).await;
    for id in 0..100 {
        peer.send(json!({"jsonrpc": "2.0", "id": id, "method": "vendor/slow"}))
            .await;
    }
    for _ in 64..100 {
        let refused = peer.recv().await;
        assert_eq!(refused["error"]["message"], "too many requests are pending");
    }
    peer.send(json!({"jsonrpc": "2.0", "id": 0, "method": "vendor/slow"}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}))
        .await;
    assert_eq!(peer.recv().await["id"], "ping");
    assert_eq!(client.counters().violations, 1, "one id for two requests");
}

#[tokio::test(start_paused = true)]
async fn pending_requests_are_bounded_in_bytes() {
    const MIB: usize = 1024 * 1024;
    let slow = builder().on_request(|_, _| std::future::pending());
    let (_client, _listener, mut peer) = ready(slow, World::Old).await;
    let ask = |id: usize, bytes: usize| {
        let params = json!({ "x": "y".repeat(bytes) });
        json!({"jsonrpc": "2.0", "id": id, "method": "vendor/slow", "params": params})
    };
    peer.send(ask(0, 4 * MIB)).await;
    let refused = peer.recv().await;
    assert_eq!(refused["error"]["message"], "the request is too long");
    for id in 1..=6 {
        peer.send(ask(id, 3 * MIB)).await;
    }
    let refused = peer.recv().await;
    assert_eq!(refused["id"], 6, "{refused}");
    let message = &refused["error"]["message"];
    assert_eq!(*message, "too many requests are pending");
    // A cancelled request frees its space.
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 }});
    peer.send(cancelled).await;
    peer.send(ask(7, 3 * MIB)).await;
    peer.send(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}))
        .await;
    assert_eq!(peer.recv().await["id"], "ping");
}

#[tokio::test(start_paused = true)]
async fn server_that_never_reads_fails_its_calls() {
    let (client, mut listener) = connect_with_depth(builder(), 4);
    let peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn(
                client
                    .clone()
                    .request("x", None)
                    .timeout(Duration::from_secs(1))
                    .into_future(),
            )
        })
        .collect();
    let (mut busy, mut late) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Err(Error::Call(CallError::Backpressure { attempts: 3 })) => busy += 1,
            Err(Error::Call(CallError::Timeout { sent: true, .. })) => late += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((busy, late), (46, 4));
    assert!(matches!(client.state(), State::Ready(_)));
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn newer_server_may_not_send_requests() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}))
        .await;
    let call = tokio::spawn(client.request("x", None).into_future());
    for id in [1, 2] {
        let answer = peer.recv().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32601))
        );
    }
    assert_eq!(peer.recv().await["method"], "x");
    assert_eq!(client.counters().violations, 2);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn response_nested_too_deep_fails_its_call() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    let began = Instant::now();
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let id = &request["id"];
    peer.send_raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{deep}}}"#))
        .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("nested deeper"), "{error}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}
