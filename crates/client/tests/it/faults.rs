//! Regression tests, each for a fault that occurred once.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use serde_json::json;
use switchboard_client::{
    CallError, Error, State,
    model::{LogLevel, Root},
};
use tokio::time::{Instant, sleep, timeout};

use crate::peer::{World, builder, connect, connect_with_depth, ready};

#[tokio::test(start_paused = true)]
async fn call_cancelled_before_submission_is_cancelled() {
    let (client, _listener, _peer) = ready(builder(), World::Old).await;
    let call = client.request("x", None).cancellable();
    call.canceller().cancel("why");
    assert!(matches!(call.await, Err(Error::Call(CallError::Cancelled))));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_handle_stay_ordered_under_backpressure() {
    let (client, mut listener) = connect_with_depth(builder(), 1);
    let mut peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    let mut calls = Vec::new();
    for name in ["a", "b", "c"] {
        calls.push(tokio::spawn(client.request(name, None).into_future()));
        sleep(Duration::from_micros(1)).await;
    }
    peer.expect("a").await;
    calls.push(tokio::spawn(client.request("d", None).into_future()));
    for name in ["b", "c", "d"] {
        peer.expect(name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_progress_handler_loses_no_progress() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let seen = Arc::new(AtomicUsize::new(0));
    let (let_go, held) = mpsc::channel::<()>();
    let call = client.request("x", None).on_progress({
        let seen = Arc::clone(&seen);
        move |_| {
            if seen.fetch_add(1, SeqCst) == 0 {
                let _ = held.recv();
            }
        }
    });
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for n in 0..600 {
        let params = json!({"progressToken": token, "progress": n});
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await;
    }
    peer.answer(&request, json!({})).await;
    while client.counters().answered == 0 {
        tokio::task::yield_now().await;
    }
    drop(let_go);
    call.await.unwrap().unwrap();
    assert_eq!(seen.load(SeqCst), 600);
}

#[tokio::test(start_paused = true)]
async fn maximum_timeouts_and_limits_do_no_harm() {
    let (client, mut listener) = connect(
        builder()
            .handshake_timeout(Duration::MAX)
            .max_in_flight(usize::MAX),
    );
    let mut peer = listener.accept_and_greet(World::Old).await;
    for call in [
        client.request("x", None).timeout(Duration::MAX),
        client.request("x", None).no_timeout(),
    ] {
        let call = tokio::spawn(call.into_future());
        let request = peer.expect("x").await;
        sleep(Duration::from_hours(1)).await;
        peer.answer(&request, json!({})).await;
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn extending_the_deadline_requests_progress() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = client
        .request("x", None)
        .extend_on_progress(Duration::from_mins(10));
    let _call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    assert!(request["params"]["_meta"]["progressToken"].is_number());
}

#[tokio::test(start_paused = true)]
async fn extended_deadline_applies_to_later_rounds() {
    let asked =
        json!({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}});
    let (client, _listener, mut peer) =
        ready(builder().roots([Root::new("file:///p")]), World::New).await;
    let call = client
        .call_tool("t", json!({}))
        .timeout(Duration::from_secs(10))
        .extend_on_progress(Duration::from_secs(100));
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("tools/call").await;
    sleep(Duration::from_secs(9)).await;
    let params =
        json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
        .await;
    sleep(Duration::from_secs(5)).await;
    peer.answer(&request, asked).await;
    let request = peer.expect("tools/call").await;
    peer.answer(&request, json!({"content": []})).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn parameters_of_a_round_are_not_repeated() {
    let (client, _listener, mut peer) =
        ready(builder().roots([Root::new("file:///p")]), World::New).await;
    let _call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let request = peer.expect("tools/call").await;
    let asked = json!({"a": {"method": "roots/list"}});
    peer.answer(
        &request,
        json!({"resultType": "input_required", "inputRequests": asked, "requestState": "S1"}),
    )
    .await;
    let request = peer.expect("tools/call").await;
    assert_eq!(request["params"]["requestState"], "S1");
    let asked = json!({"b": {"method": "roots/list"}});
    peer.answer(
        &request,
        json!({"resultType": "input_required", "inputRequests": asked}),
    )
    .await;
    let request = peer.expect("tools/call").await;
    assert!(request["params"].get("requestState").is_none());
    assert!(request["params"]["inputResponses"].get("a").is_none());
    peer.answer(
        &request,
        json!({"resultType": "input_required", "requestState": "S3"}),
    )
    .await;
    let request = peer.expect("tools/call").await;
    assert!(request["params"].get("inputResponses").is_none());
}

#[tokio::test(start_paused = true)]
async fn result_of_an_unknown_kind_is_an_error() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let request = peer.expect("tools/call").await;
    peer.answer(&request, json!({"resultType": "task", "taskId": "1"}))
        .await;
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::UnexpectedAnswer { .. })
    ));
    // Raw calls return it.
    let call = tokio::spawn(client.request("tools/call", None).into_future());
    let request = peer.expect("tools/call").await;
    peer.answer(
        &request,
        json!({"resultType": "input_required", "requestState": "s"}),
    )
    .await;
    assert!(
        call.await
            .unwrap()
            .unwrap()
            .as_str()
            .contains("requestState")
    );
}

#[tokio::test(start_paused = true)]
async fn raw_call_keeps_its_own_meta() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    client.set_log_level(LogLevel::Error).await.unwrap();
    let of = |name: &str| format!("io.modelcontextprotocol/{name}");
    let own = [
        ("clientCapabilities", json!({"roots": {}})),
        (
            "clientInfo",
            json!({"name": "somebody else", "version": "9"}),
        ),
        ("logLevel", json!("debug")),
    ];
    let mut meta = serde_json::Map::new();
    for (name, value) in &own {
        meta.insert(of(name), value.clone());
    }
    // The connection sets these itself.
    meta.insert(of("protocolVersion"), json!("1999-01-01"));
    meta.insert("progressToken".to_owned(), json!("theirs"));
    let call = client
        .request("x", json!({"_meta": meta}))
        .on_progress(drop);
    let _call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    let meta = &request["params"]["_meta"];
    for (name, value) in &own {
        assert_eq!(&meta[of(name)], value);
    }
    assert_eq!(meta[of("protocolVersion")], "2026-07-28");
    assert_eq!(meta["progressToken"], request["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_handler_delays_neither_requests_nor_connection() {
    let (let_go, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let blocking = builder()
        .roots([Root::new("file:///p")])
        .on_notification(move |_| {
            let _ = held.lock().unwrap().recv();
        });
    let (client, _listener, mut peer) = ready(blocking, World::Old).await;
    for _ in 0..3_000 {
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/x"}))
            .await;
    }
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))
        .await;
    assert_eq!(peer.recv().await["result"]["roots"][0]["uri"], "file:///p");
    assert_eq!(client.counters().notifications, 3_000);
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn last_handle_ends_the_connection_during_a_subscription() {
    let (client, mut listener, mut peer) = ready(builder(), World::Old).await;
    let asking = client.clone();
    let asking = tokio::spawn(async move { asking.subscribe("a://1").await });
    peer.expect("resources/subscribe").await;
    asking.abort();
    let _ = asking.await;
    let started = Instant::now();
    drop(client);
    assert!(listener.is_over().await);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn refused_listen_stream_is_retried() {
    let (_client, _listener, mut peer) = ready(builder().on_notification(drop), World::New).await;
    for _ in 0..3 {
        let listen = peer.expect("subscriptions/listen").await;
        peer.refuse(&listen, -32603).await;
    }
    let listen = peer.expect("subscriptions/listen").await;
    peer.refuse(&listen, -32601).await;
    let again = timeout(Duration::from_hours(1), peer.recv()).await;
    assert!(
        again.is_err(),
        "a server that knows no such thing is left alone"
    );
}

#[tokio::test(start_paused = true)]
async fn refused_unsubscribe_can_be_retried() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let client = Arc::new(client);
    let wish = |on: bool| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            if on {
                client.subscribe("a://1").await
            } else {
                client.unsubscribe("a://1").await
            }
        })
    };
    let wished = wish(true);
    let request = peer.expect("resources/subscribe").await;
    peer.answer(&request, json!({})).await;
    wished.await.unwrap().unwrap();
    let wished = wish(false);
    let request = peer.expect("resources/unsubscribe").await;
    peer.refuse(&request, -32603).await;
    wished.await.unwrap().unwrap_err();
    let wished = wish(false);
    let request = peer.expect("resources/unsubscribe").await;
    peer.answer(&request, json!({})).await;
    wished.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn queued_subscription_ends_within_its_deadline() {
    let (client, _listener) = connect(builder().request_timeout(Duration::from_secs(3)));
    let client = Arc::new(client);
    let started = Instant::now();
    let wishes: Vec<_> = (0..20)
        .map(|n| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.subscribe(&format!("a://{n}")).await })
        })
        .collect();
    for wish in wishes {
        wish.await.unwrap().unwrap_err();
    }
    assert_eq!(started.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn nulls_and_unpaired_surrogates_are_accepted() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).into_future());
    let request = peer.expect("tools/call").await;
    peer.send_raw(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"cut \ud83d"}}],"isError":null}},"error":null}}"#,
        request["id"]
    ))
    .await;
    assert_eq!(call.await.unwrap().unwrap().text(), "cut \u{fffd}");
    let prompts = tokio::spawn(client.prompts().all());
    let request = peer.expect("prompts/list").await;
    peer.answer(
        &request,
        json!({"prompts": [{"name": "p", "arguments": null}]}),
    )
    .await;
    assert_eq!(prompts.await.unwrap().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn missing_list_is_not_an_empty_list() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let tools = tokio::spawn(client.tools().all());
    let request = peer.expect("tools/list").await;
    peer.answer(&request, json!({"tools": null})).await;
    let error = tools.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::UnexpectedAnswer { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn early_request_is_counted_once() {
    let (client, mut listener) = connect(builder().roots([Root::new("file:///p")]));
    let mut peer = listener.accept().await;
    let probe = peer.recv().await;
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}))
        .await;
    peer.refuse(&probe, -32601).await;
    let request = peer.expect("initialize").await;
    peer.answer(
        &request,
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    )
    .await;
    client.ready().await.unwrap();
    assert_eq!(client.counters().server_requests, 1);
}

#[tokio::test(start_paused = true)]
async fn relisting_tools_counts_towards_the_deadline() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    let started = Instant::now();
    let call = client
        .call_tool("t", json!({}))
        .timeout(Duration::from_secs(1));
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("tools/call").await;
    peer.refuse(&request, -32020).await;
    peer.expect("tools/list").await;
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Timeout { .. }))
    ));
    assert_eq!(started.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn timed_out_call_reports_the_connection_failure() {
    let (client, mut listener) = connect(builder());
    let call = tokio::spawn(
        client
            .request("x", None)
            .timeout(Duration::from_secs(20))
            .into_future(),
    );
    for _ in 0..2 {
        let mut peer = listener.accept().await;
        peer.recv().await;
        drop(peer);
    }
    let mut state = client.watch_state();
    state
        .wait_for(|state| matches!(state, State::Backoff { .. }))
        .await
        .unwrap();
    let _open_but_silent = listener.accept().await;
    let error = call.await.unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with("connection not ready within 20.0s: "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn early_subscription_is_requested_once() {
    let (client, mut listener) = connect(builder());
    let wish = tokio::spawn(async move {
        let wished = client.subscribe("a://1").await;
        (client, wished)
    });
    tokio::task::yield_now().await;
    let mut peer = listener.accept_and_greet(World::Old).await;
    let request = peer.expect("resources/subscribe").await;
    peer.answer(&request, json!({})).await;
    let (_client, wished) = wish.await.unwrap();
    wished.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(peer.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn parameters_that_are_no_object_are_rejected() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    for call in [
        client.request("x", json!([1])),
        client.request("x", json!(null)),
    ] {
        let error = call.await.unwrap_err();
        assert!(
            matches!(error, Error::Call(CallError::InvalidParams { .. })),
            "{error}"
        );
    }
    let error = client.call_tool("t", "text").await.unwrap_err();
    assert!(
        matches!(error, Error::Call(CallError::InvalidParams { .. })),
        "{error}"
    );
    assert!(peer.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn output_of_a_non_mcp_server_is_reported() {
    let (client, mut listener) = connect(builder());
    let peer = listener.accept().await;
    let long = format!("keys={}", "é".repeat(40));
    peer.send_raw(long.into_bytes()).await;
    let mut state = client.watch_state();
    let state = state
        .wait_for(|state| matches!(state, State::Backoff { .. }))
        .await
        .unwrap()
        .clone();
    let reason = state.to_string();
    assert!(reason.contains("is it an MCP server?"), "{reason}");
    let cut = format!("; the server said: keys={}…", "é".repeat(27));
    assert!(reason.contains(&cut), "{reason}");
    let State::Backoff { reason, .. } = state else {
        panic!("{state}");
    };
    assert!(!reason.contains("keys="), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn raw_call_relists_tools_once_without_asking_back() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    let asked = json!({"resultType": "input_required", "requestState": "s"});
    for refused in [true, false] {
        let params = json!({"name": "t"});
        let call = tokio::spawn(client.request("tools/call", params.clone()).into_future());
        let request = peer.expect("tools/call").await;
        peer.refuse(&request, -32020).await;
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({"tools": []})).await;
        let again = peer.expect("tools/call").await;
        assert_eq!(again["params"]["name"], params["name"]);
        if refused {
            peer.refuse(&again, -32020).await;
        } else {
            peer.answer(&again, asked.clone()).await;
        }
        match call.await.unwrap() {
            Ok(answer) => assert_eq!(answer.read::<serde_json::Value>().unwrap(), asked),
            Err(Error::Server(error)) => assert_eq!((error.code, refused), (-32020, true)),
            Err(other) => panic!("{other}"),
        }
        assert!(peer.try_recv().is_none());
    }
}
