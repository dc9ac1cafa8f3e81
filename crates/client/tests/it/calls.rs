//! Calls: requests, responses, and every way in which a call can end.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use switchboard_client::{CallError, Error, ErrorKind, Raw, model::CompletionRef};

use crate::peer::{Peer, World, builder, connect, connect_with_depth, ready};

#[tokio::test(start_paused = true)]
async fn result_keeps_every_byte() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(
        client
            .request("vendor/thing", Raw::parse(r#"{"n": 1.50}"#).unwrap())
            .into_future(),
    );
    let request = peer.recv().await;
    assert_eq!(request["params"], json!({"n": 1.50}));
    let spelled = r#"{"z":1e400,"a" : 12345678901234567890123}"#;
    peer.send_raw(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{spelled}}}"#,
        request["id"]
    ))
    .await;
    assert_eq!(call.await.unwrap().unwrap().as_str(), spelled);
}

#[tokio::test(start_paused = true)]
async fn modern_request_carries_client_info_and_capabilities() {
    let (client, _listener, mut peer) = ready(builder().roots([]), World::New).await;
    let _call = tokio::spawn(
        client
            .call_tool("add", json!({"a": 1}))
            .traceparent("00-a-b-01")
            .into_future(),
    );
    let request = peer.expect("tools/call").await;
    let meta = &request["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "test");
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}})
    );
    assert_eq!(meta["traceparent"], "00-a-b-01");
    assert_eq!(request["params"]["arguments"], json!({"a": 1}));
}

#[tokio::test(start_paused = true)]
async fn early_call_waits_for_the_connection() {
    let (client, mut listener) = connect(builder());
    let call = tokio::spawn(client.request("x", None).into_future());
    let mut peer = listener.accept_and_greet(World::Old).await;
    let request = peer.expect("x").await;
    peer.answer(&request, json!({})).await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn fail_fast_call_does_not_wait() {
    let (client, _listener) = connect(builder());
    let error = client.request("x", None).fail_fast().await.unwrap_err();
    assert!(matches!(error, Error::Call(CallError::NotReady { .. })));
    assert_eq!(error.kind(), ErrorKind::State);
}

#[tokio::test(start_paused = true)]
async fn deadline_covers_the_wait_for_the_connection() {
    let (client, _listener) = connect(builder());
    let started = tokio::time::Instant::now();
    let error = client
        .request("x", None)
        .timeout(Duration::from_secs(3))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Call(CallError::Timeout { sent: false, .. })),
        "{error}"
    );
    assert_eq!(started.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn call_past_its_deadline_is_cancelled_once() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let error = client
        .request("x", None)
        .timeout(Duration::from_secs(1))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::Call(CallError::Timeout { sent: true, .. })
    ));
    assert!(error.is_retryable());
    let request = peer.expect("x").await;
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    peer.answer(&request, json!({})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.counters().late, 1);
    assert!(peer.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn dropped_call_is_cancelled() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.request("x", None).into_future());
    let request = peer.expect("x").await;
    call.abort();
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn cancellation_reason_reaches_both_sides() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = client.request("x", None).cancellable();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    peer.expect("x").await;
    canceller.cancel("changed my mind");
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["reason"], "changed my mind");
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Cancelled))
    ));
}

#[tokio::test(start_paused = true)]
async fn cancellation_reason_survives_an_immediate_drop() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let mut call = client.request("x", None).cancellable();
    let canceller = call.canceller();
    tokio::select! {
        biased;
        _ = &mut call => panic!("answered"),
        _ = peer.expect("x") => {}
    }
    canceller.cancel("the client left");
    drop(call);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["reason"], "the client left");
    // It is sent once, and nothing is left behind.
    client.notify("n", None).await.unwrap();
    peer.expect("n").await;
    assert_eq!(client.counters().cancelled, 1);
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_in_order_before_the_response() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let call = client.request("x", None).on_progress(move |progress| {
        told.lock().unwrap().push(progress.progress);
    });
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for step in 0..500 {
        let params = json!({"progressToken": token, "progress": step});
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await;
    }
    peer.answer(&request, json!({})).await;
    call.await.unwrap().unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 500);
    assert!(seen.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn progress_moves_the_deadline_up_to_the_cap() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let started = tokio::time::Instant::now();
    let call = client
        .request("x", None)
        .timeout(Duration::from_secs(2))
        .extend_on_progress(Duration::from_secs(5))
        .on_progress(drop);
    let call = tokio::spawn(call.into_future());
    let request = peer.expect("x").await;
    let params =
        json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
    while !call.is_finished() {
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Timeout { .. }))
    ));
    assert!((5.0..5.6).contains(&started.elapsed().as_secs_f64()));
}

#[tokio::test(start_paused = true)]
async fn server_error_is_passed_on_unchanged() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = tokio::spawn(client.call_tool("nope", ()).into_future());
    let request = peer.expect("tools/call").await;
    assert_eq!(
        request["params"],
        json!({"name": "nope"}),
        "no arguments are no arguments"
    );
    let error = json!({"code": -32602, "message": "unknown tool", "data": {"did_you_mean": "yes"}});
    peer.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
        .await;
    let Err(Error::Server(error)) = call.await.unwrap() else {
        panic!("no server error");
    };
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32602, "unknown tool")
    );
    assert_eq!(error.data.unwrap().as_str(), r#"{"did_you_mean":"yes"}"#);
}

#[tokio::test(start_paused = true)]
async fn busy_transport_fails_a_call_after_three_attempts() {
    let (client, mut listener) = connect_with_depth(builder(), 1);
    let mut peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    // One frame fills the queue, which the server does not read.
    let first = tokio::spawn(client.request("first", None).into_future());
    tokio::task::yield_now().await;
    let error = client.request("second", None).await.unwrap_err();
    assert!(
        matches!(error, Error::Call(CallError::Backpressure { attempts: 3 })),
        "{error}"
    );
    assert_eq!(error.to_string(), "transport busy after 3 attempts");
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!((client.counters().busy, client.counters().retries), (3, 2));
    let request = peer.expect("first").await;
    assert!(peer.try_recv().is_none(), "the second was never sent");
    peer.answer(&request, json!({})).await;
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn call_over_the_limit_fails_without_affecting_others() {
    let (client, _listener, mut peer) = ready(builder().max_in_flight(2), World::Old).await;
    let calls: Vec<_> = (0..2)
        .map(|_| tokio::spawn(client.request("x", None).into_future()))
        .collect();
    let requests = [peer.expect("x").await, peer.expect("x").await];
    let error = client.request("y", None).await.unwrap_err();
    assert!(matches!(
        error,
        Error::Call(CallError::Backpressure { attempts: 0 })
    ));
    for request in &requests {
        peer.answer(request, json!({})).await;
    }
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn list_is_paginated_and_invalid_items_are_skipped() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let tools = tokio::spawn(async move { client.tools().all().await });
    let first = peer.expect("tools/list").await;
    assert!(first.get("params").is_none());
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}, "x": 1});
    let page = json!({"tools": [tool("a"), {"name": 7}, tool("b")], "nextCursor": ""});
    peer.answer(&first, page).await;
    let second = peer.expect("tools/list").await;
    assert_eq!(
        second["params"],
        json!({"cursor": ""}),
        "an empty cursor is a cursor"
    );
    peer.answer(&second, json!({"tools": [tool("c")]})).await;
    let tools = tools.await.unwrap().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(tools[0].raw().member("x").unwrap().as_str(), "1");
}

#[tokio::test(start_paused = true)]
async fn invalid_member_does_not_discard_its_item() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let listed = client.clone();
    let tools = tokio::spawn(async move { listed.tools().all().await });
    let tool = json!({"name": "a", "title": null, "description": 42, "annotations": {"readOnlyHint": "yes", "title": "A"}});
    let request = peer.expect("tools/list").await;
    peer.answer(&request, json!({"tools": [tool]})).await;
    let tools = tools.await.unwrap().unwrap();
    let annotations = tools[0].annotations.as_ref().unwrap();
    assert_eq!(tools[0].description, None);
    assert_eq!(tools[0].input_schema.as_str(), r#"{"type":"object"}"#);
    assert_eq!(annotations.title.as_deref(), Some("A"));
    assert_eq!(annotations.read_only_hint, None);

    let prompts = tokio::spawn(async move { client.prompts().all().await });
    let prompt = json!({"name": "p", "arguments": [7, {"name": "x", "required": "yes"}]});
    let request = peer.expect("prompts/list").await;
    peer.answer(&request, json!({"prompts": [prompt]})).await;
    let prompts = prompts.await.unwrap().unwrap();
    assert_eq!(prompts[0].arguments.len(), 1);
    assert!(!prompts[0].arguments[0].required);
}

#[tokio::test(start_paused = true)]
async fn endless_list_is_an_error() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let tools = tokio::spawn(async move { client.tools().all().await });
    for _ in 0..2 {
        let request = peer.expect("tools/list").await;
        peer.answer(&request, json!({"tools": [], "nextCursor": "more"}))
            .await;
    }
    assert!(matches!(tools.await.unwrap(), Err(Error::Endless { .. })));
}

#[tokio::test(start_paused = true)]
async fn typed_calls_follow_the_protocol() {
    let (client, _listener, mut peer) = ready(builder(), World::Old).await;
    let call = client.get_prompt("greet", json!({"name": "Ada"}));
    let call = async move {
        Ok(call.await?.messages[0]
            .content
            .as_text()
            .unwrap()
            .to_owned())
    };
    let result = json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]});
    let params = json!({"name": "greet", "arguments": {"name": "Ada"}});
    check(&mut peer, call, "prompts/get", params, result, "hi").await;

    let call = client.read_resource("a://b");
    let call = async move { Ok(call.await?.contents[0].text.clone().unwrap()) };
    let result = json!({"contents": [{"uri": "a://b", "text": "t"}]});
    check(
        &mut peer,
        call,
        "resources/read",
        json!({"uri": "a://b"}),
        result,
        "t",
    )
    .await;

    let of = CompletionRef::Prompt {
        name: "p".to_owned(),
    };
    let context = [("x".to_owned(), "y".to_owned())].into();
    let call = client.complete(&of, "arg", "v", &context);
    let call = async move { Ok(call.await?.completion.values.join(",")) };
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "arg", "value": "v"},
        "context": {"arguments": {"x": "y"}}});
    let result = json!({"completion": {"values": ["v1", "v2"]}});
    check(
        &mut peer,
        call,
        "completion/complete",
        params,
        result,
        "v1,v2",
    )
    .await;

    let call = client.call_tool("t", json!({}));
    let call = async move {
        let result = call.await?;
        assert!(result.is_error);
        Ok(format!(
            "{} {}",
            result.text(),
            result.structured_content.clone().unwrap()
        ))
    };
    let result = json!({"content": [{"type": "text", "text": "no"}], "structuredContent": [1], "isError": true});
    check(
        &mut peer,
        call,
        "tools/call",
        json!({"name": "t", "arguments": {}}),
        result,
        "no [1]",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn notifications_of_a_handle_stay_ordered_under_backpressure() {
    let (client, mut listener) = connect_with_depth(builder(), 1);
    let mut peer = listener.accept_and_greet(World::Old).await;
    client.ready().await.unwrap();
    let client = Arc::new(client);
    let notes: Vec<_> = (0..6)
        .map(|n| {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.notify(format!("note/{n}"), None).await })
        })
        .collect();
    for n in 0..6 {
        peer.expect(&format!("note/{n}")).await;
    }
    for note in notes {
        note.await.unwrap().unwrap();
    }
    assert!(client.counters().busy > 0, "the transport was busy");
}

#[tokio::test(start_paused = true)]
async fn array_parameters_are_rejected_as_usage_error() {
    let (client, _listener, _peer) = ready(builder(), World::New).await;
    let error = client
        .request("x", Raw::parse("[1]").unwrap())
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Call(CallError::InvalidParams { .. })),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::Usage);
}

async fn check(
    peer: &mut Peer,
    call: impl Future<Output = Result<String, Error>> + Send + 'static,
    method: &str,
    params: Value,
    result: Value,
    read: &str,
) {
    let call = tokio::spawn(call);
    let request = peer.expect(method).await;
    assert_eq!(request["params"], params);
    peer.answer(&request, result).await;
    assert_eq!(call.await.unwrap().unwrap(), read);
}
