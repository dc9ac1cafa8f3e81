//! Servers that request input, in both ways: with a request, and with a result that asks for input.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use switchboard_client::{
    CallError, ClientBuilder, Error, ErrorObject, Raw,
    model::{ElicitationAnswer, Root, SamplingResult},
};

use crate::peer::{Peer, World, builder, ready};

fn helpful() -> ClientBuilder {
    builder()
        .roots([Root::new("file:///p")])
        .on_elicitation(
            |question| async move { Ok(ElicitationAnswer::accept(question.defaults())) },
        )
        .on_sampling(|request| async move {
            let said = request.messages[0].content[0]
                .as_text()
                .unwrap_or_default()
                .to_owned();
            Ok(SamplingResult::text("m", format!("re: {said}")))
        })
}

fn questions() -> [(&'static str, Value, Value); 3] {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}});
    let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
    [
        (
            "elicitation/create",
            json!({"message": "?", "requestedSchema": schema}),
            json!({"action": "accept", "content": {"name": "Ada"}}),
        ),
        (
            "sampling/createMessage",
            json!({"messages": [message], "maxTokens": 9}),
            json!({"role": "assistant", "content": {"type": "text", "text": "re: hi"}, "model": "m", "stopReason": "endTurn"}),
        ),
        (
            "roots/list",
            json!({}),
            json!({"roots": [{"uri": "file:///p"}]}),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn requests_of_an_older_server_are_answered() {
    let (_client, _listener, mut peer) = ready(helpful(), World::Old).await;
    for (n, (method, params, answer)) in questions().into_iter().enumerate() {
        let id = json!(format!("q{n}"));
        peer.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        assert_eq!(
            peer.recv().await,
            json!({"jsonrpc": "2.0", "id": id, "result": answer})
        );
    }
    peer.send(json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}))
        .await;
    assert_eq!(
        peer.recv().await,
        json!({"jsonrpc": "2.0", "id": 0, "result": {}})
    );
    peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "vendor/x"}))
        .await;
    assert_eq!(peer.recv().await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn input_is_provided_and_the_call_continues() {
    let (client, _listener, mut peer) = ready(helpful(), World::New).await;
    let call = tokio::spawn(client.call_tool("t", json!({"a": 1})).into_future());
    let first = peer.expect("tools/call").await;
    let keys = ["e", "s", "r"];
    let asked = questions();
    let requests: serde_json::Map<_, _> = keys
        .iter()
        .zip(&asked)
        .map(|(key, (method, params, _))| {
            (
                (*key).to_owned(),
                json!({"method": method, "params": params}),
            )
        })
        .collect();
    let id = &first["id"];
    // Re-encoding would change the spelling of this state.
    peer.send_raw(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{},"requestState":"\u0061\/b"}}}}"#,
        Value::Object(requests)
    ))
    .await;
    let second = peer.recv().await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["params"]["arguments"], json!({"a": 1}));
    assert_eq!(second["params"]["requestState"], "a/b");
    for (key, (_, _, answer)) in keys.iter().zip(&asked) {
        assert_eq!(&second["params"]["inputResponses"][key], answer);
    }
    // Another round, with only a state: a pause.
    let more = json!({"resultType": "input_required", "requestState": "s2"});
    peer.answer(&second, more).await;
    let third = peer.recv().await;
    assert_eq!(third["params"]["requestState"], "s2");
    peer.answer(
        &third,
        json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
    )
    .await;
    assert_eq!(call.await.unwrap().unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn server_that_never_stops_asking_is_rejected() {
    let (client, _listener, mut peer) = ready(helpful(), World::New).await;
    let call = tokio::spawn(client.call_tool("t", ()).into_future());
    for _ in 0..11 {
        let request = peer.expect("tools/call").await;
        let asked = json!({"r": {"method": "roots/list"}});
        peer.answer(
            &request,
            json!({"resultType": "input_required", "inputRequests": asked}),
        )
        .await;
    }
    assert!(matches!(call.await.unwrap(), Err(Error::Endless { .. })));
}

#[tokio::test(start_paused = true)]
async fn call_is_repeated_after_pauses_until_its_deadline() {
    let (client, _listener, mut peer) = ready(helpful(), World::New).await;
    let call = client.call_tool("t", ()).timeout(Duration::from_mins(1));
    let call = tokio::spawn(call.into_future());
    let mut rounds = 0;
    while !call.is_finished() {
        if let Ok(request) = tokio::time::timeout(Duration::from_secs(10), peer.recv()).await {
            rounds += 1;
            peer.answer(
                &request,
                json!({"resultType": "input_required", "requestState": "s"}),
            )
            .await;
        }
    }
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Timeout { .. }))
    ));
    assert!((10..25).contains(&rounds), "the pauses grow: {rounds}");
}

#[tokio::test(start_paused = true)]
async fn missing_input_ends_the_call_with_the_reason() {
    let (client, _listener, mut peer) = ready(builder(), World::New).await;
    let call = tokio::spawn(client.call_tool("t", ()).into_future());
    let request = peer.expect("tools/call").await;
    let asked = json!({"k": {"method": "elicitation/create", "params": {"message": "?"}}});
    peer.answer(
        &request,
        json!({"resultType": "input_required", "inputRequests": asked}),
    )
    .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::InputRefused { .. }));
    assert!(error.to_string().contains("elicitation/create"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn call_can_be_cancelled_during_elicitation() {
    let slow = builder().on_elicitation(|_| std::future::pending());
    let (client, _listener, mut peer) = ready(slow, World::New).await;
    let call = client.call_tool("t", ()).cancellable();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    ask_in_result(&mut peer).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    canceller.cancel("enough");
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Cancelled))
    ));
}

#[tokio::test(start_paused = true)]
async fn deadline_applies_during_elicitation() {
    let slow = builder().on_elicitation(|_| std::future::pending());
    let (client, _listener, mut peer) = ready(slow, World::New).await;
    let call = tokio::spawn(
        client
            .call_tool("t", ())
            .timeout(Duration::from_secs(4))
            .into_future(),
    );
    ask_in_result(&mut peer).await;
    let started = tokio::time::Instant::now();
    assert!(matches!(
        call.await.unwrap(),
        Err(Error::Call(CallError::Timeout { .. }))
    ));
    assert_eq!(started.elapsed().as_secs(), 4);
}

#[tokio::test(start_paused = true)]
async fn handler_that_panics_responds_with_an_error() {
    let rude = builder()
        .on_sampling(|_| async move { panic!("on purpose") })
        .on_notification(|news| assert_ne!(news.method, "notifications/bad", "on purpose"))
        .on_request(|method, _| async move {
            match method.as_str() {
                "vendor/no" => Err(ErrorObject::new(7, "no")),
                _ => Ok(Raw::string(&method)),
            }
        });
    let (_client, _listener, mut peer) = ready(rude, World::Old).await;
    let params = json!({"messages": [], "maxTokens": 1});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/bad"}))
        .await;
    peer.send(
        json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}),
    )
    .await;
    assert_eq!(peer.recv().await["error"]["code"], -32603);
    peer.send(json!({"jsonrpc": "2.0", "id": 2, "method": "vendor/x"}))
        .await;
    assert_eq!(peer.recv().await["result"], "vendor/x");
    peer.send(json!({"jsonrpc": "2.0", "id": 3, "method": "vendor/no"}))
        .await;
    assert_eq!(peer.recv().await["error"]["code"], 7);
}

#[tokio::test(start_paused = true)]
async fn request_cancelled_by_the_server_is_dropped() {
    let dropped = Arc::new(Mutex::new(false));
    let watched = Arc::clone(&dropped);
    let (entered, mut asked) = tokio::sync::mpsc::channel(1);
    let slow = builder().on_elicitation(move |_| {
        entered.try_send(()).unwrap();
        let tell = TellDrop(Arc::clone(&watched));
        async move {
            let _tell = tell;
            std::future::pending().await
        }
    });
    let (_client, _listener, mut peer) = ready(slow, World::Old).await;
    peer.send(json!({"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": {"message": "?"}})).await;
    asked.recv().await;
    let params = json!({"requestId": 5});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "id": 6, "method": "ping"}))
        .await;
    assert_eq!(
        peer.recv().await["id"],
        6,
        "no answer to what was taken back"
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(*dropped.lock().unwrap());
}

#[tokio::test(start_paused = true)]
async fn messages_before_the_end_of_handshake_are_held() {
    let (heard, mut news) = tokio::sync::mpsc::unbounded_channel();
    let listening = helpful().on_notification(move |news| drop(heard.send(news.method)));
    let (client, mut listener) = crate::peer::connect(listening);
    let mut peer = listener.accept().await;
    let probe = peer.expect("server/discover").await;
    peer.send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))
        .await;
    assert_eq!(
        peer.recv().await["id"],
        "p",
        "a ping is answered at any time"
    );
    peer.send(json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        .await;
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}))
        .await;
    peer.refuse(&probe, -32601).await;
    let request = peer.expect("initialize").await;
    assert_eq!(news.recv().await.as_deref(), Some("notifications/message"));
    assert!(news.is_empty());
    peer.answer(
        &request,
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    )
    .await;
    peer.expect("notifications/initialized").await;
    assert_eq!(peer.recv().await["id"], "r");
    client.ready().await.unwrap();
    let next = news.recv().await;
    assert_eq!(next.as_deref(), Some("notifications/tools/list_changed"));
}

#[tokio::test(start_paused = true)]
async fn asked_handler_receives_all_requests_as_they_arrived() {
    let raw = helpful().on_asked(|asked| async move {
        assert_eq!(asked.tag, None, "the transport does not say on which call");
        let params = asked.params.unwrap_or_else(|| Raw::from(false));
        Ok(Raw::object([
            ("method", Raw::string(&asked.method)),
            ("params", params),
        ]))
    });
    let (client, mut listener) = crate::peer::connect(raw);
    let mut peer = listener.accept().await;
    let probe = peer.expect("server/discover").await;
    // Sent before the handshake is done, and answered after it.
    peer.send_raw(r#"{"jsonrpc":"2.0","id":"early","method":"roots/list"}"#)
        .await;
    peer.refuse(&probe, -32601).await;
    let request = peer.expect("initialize").await;
    peer.answer(
        &request,
        json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
    )
    .await;
    peer.expect("notifications/initialized").await;
    let early = json!({"method": "roots/list", "params": false});
    assert_eq!(peer.recv().await["result"], early);
    for method in ["sampling/createMessage", "elicitation/create", "vendor/x"] {
        // The typed handlers could not read this.
        let params = json!({"mode": "url", "n": 1});
        peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await;
        let answer = json!({"method": method, "params": params});
        assert_eq!(peer.recv().await["result"], answer);
    }
    peer.send(json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}))
        .await;
    assert_eq!(peer.recv().await["result"], json!({}));
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn request_is_handled_before_a_later_response() {
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&order);
    let raw = builder().on_asked(move |_| {
        seen.lock().unwrap().push("asked");
        std::future::ready(Ok(Raw::empty_object()))
    });
    let (client, _listener, mut peer) = ready(raw, World::Old).await;
    let seen = Arc::clone(&order);
    let calling = client.request("x/y", None).into_future();
    let calling = tokio::spawn(async move {
        calling.await.unwrap();
        seen.lock().unwrap().push("answered");
    });
    let call = peer.expect("x/y").await;
    peer.send(json!({"jsonrpc": "2.0", "id": "q", "method": "vendor/x"}))
        .await;
    peer.answer(&call, json!({})).await;
    calling.await.unwrap();
    assert_eq!(peer.recv().await["id"], "q");
    assert_eq!(*order.lock().unwrap(), ["asked", "answered"]);
}

#[tokio::test(start_paused = true)]
async fn input_request_carries_the_tag_of_its_call() {
    let raw = builder().on_asked(|asked| async move {
        assert_eq!(asked.method, "elicitation/create");
        Ok(Raw::object([(
            "tag",
            asked.tag.map_or_else(|| Raw::from(false), Raw::number),
        )]))
    });
    let (client, _listener, mut peer) = ready(raw, World::New).await;
    for (tag, seen) in [(Some(7), json!(7)), (None, json!(false))] {
        let mut call = client.call_tool("t", ());
        if let Some(tag) = tag {
            call = call.tag(tag);
        }
        let call = tokio::spawn(call.into_future());
        ask_in_result(&mut peer).await;
        let again = peer.expect("tools/call").await;
        assert_eq!(again["params"]["inputResponses"]["k"]["tag"], seen);
        peer.answer(&again, json!({"content": []})).await;
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn raw_request_cancelled_by_the_server_is_dropped() {
    let (entered, mut asked) = tokio::sync::mpsc::channel(1);
    let slow = builder().on_asked(move |_| {
        let entered = entered.clone();
        async move {
            let (gone, dropped) = tokio::sync::oneshot::channel::<()>();
            entered.try_send(dropped).unwrap();
            let _gone = gone;
            std::future::pending().await
        }
    });
    let (_client, _listener, peer) = ready(slow, World::Old).await;
    peer.send(json!({"jsonrpc": "2.0", "id": 5, "method": "vendor/x"}))
        .await;
    let dropped = asked.recv().await.unwrap();
    let params = json!({"requestId": 5});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    dropped.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn declared_capabilities_replace_those_of_the_handlers() {
    let declared = json!({"elicitation": {"url": {}}, "experimental": {"x": {}}});
    for (given, seen) in [(declared.clone(), declared), (json!([1]), json!({}))] {
        for world in [World::Old, World::New] {
            let given = Raw::parse(given.to_string()).unwrap();
            let (client, mut listener) = crate::peer::connect(helpful().capabilities(given));
            let mut peer = listener.accept().await;
            let probe = peer.expect("server/discover").await;
            let meta = &probe["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], seen);
            if world == World::Old {
                peer.refuse(&probe, -32601).await;
                let request = peer.expect("initialize").await;
                assert_eq!(request["params"]["capabilities"], seen);
            } else {
                let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
                peer.answer(&probe, result).await;
                let call = tokio::spawn(client.request("x/y", None).into_future());
                let call_meta = peer.recv().await["params"]["_meta"].clone();
                assert_eq!(
                    call_meta["io.modelcontextprotocol/clientCapabilities"],
                    seen
                );
                call.abort();
            }
        }
    }
}

async fn ask_in_result(peer: &mut Peer) {
    let request = peer.expect("tools/call").await;
    let asked = json!({"k": {"method": "elicitation/create", "params": {"message": "?"}}});
    peer.answer(
        &request,
        json!({"resultType": "input_required", "inputRequests": asked}),
    )
    .await;
}

struct TellDrop(Arc<Mutex<bool>>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = true;
    }
}
