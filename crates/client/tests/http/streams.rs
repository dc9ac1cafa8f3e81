//! The streams on which messages arrive, and the calls that they therefore belong to.

use std::future::IntoFuture;

use serde_json::{Value, json};
use switchboard_client::{Client, Era, Raw, transport::http::Http};
use switchboard_wire::Revision;
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    Server, Wire, modern, request,
    server::{Events, PATIENCE},
};

const REVISION: Revision = Revision::V2025_11_25;

fn news(name: &str) -> String {
    json!({"jsonrpc": "2.0", "method": name}).to_string()
}

fn result(id: u64) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()
}

#[tokio::test]
async fn frame_names_the_request_of_its_stream() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;

    wire.send(modern(1, "a", json!({})));
    server.next().await.result(json!({})).await;
    assert_eq!(wire.frame_via().await.1, Some(1), "in a JSON document");

    wire.send(modern(2, "b", json!({})));
    let body = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "no"}});
    server.next().await.json(404, body.to_string()).await;
    assert_eq!(wire.frame_via().await.1, Some(2), "in a refusal");

    wire.send(modern(3, "c", json!({})));
    wire.send(modern(4, "d", json!({})));
    let mut streams = Vec::new();
    for _ in 0..2 {
        let incoming = server.next().await;
        let id = incoming.message()["id"].as_u64().unwrap();
        streams.push((id, incoming.events().await));
    }
    for (id, events) in &mut streams {
        let name = format!("n/{id}");
        events.message("", &news(&name)).await;
        let (message, via) = wire.frame_via().await;
        assert_eq!((message["method"].as_str(), via), (Some(&*name), Some(*id)));
    }
    // A message after the response also arrived on its stream.
    let (id, events) = &mut streams[0];
    let both = format!("data: {}\n\ndata: {}\n\n", result(*id), news("late"));
    events.send(&both).await;
    assert_eq!(wire.frame_via().await.1, Some(*id));
    let (message, via) = wire.frame_via().await;
    assert_eq!((&message["method"], via), (&json!("late"), Some(*id)));
}

#[tokio::test]
async fn resumed_stream_still_belongs_to_its_request() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.initialized("s").await;
    assert_eq!(wire.frame_via().await.1, Some(1));
    wire.negotiated(REVISION);
    wire.send(crate::notification("notifications/initialized"));
    server.next().await.accept().await;
    let mut own = server.next().await.events().await;
    own.message("1", &news("unasked")).await;
    assert_eq!(wire.frame_via().await.1, None);

    wire.send(request(2, "a", json!({})));
    let mut events = server.next().await.events().await;
    events.send("id: e\nretry: 20\ndata:\n\n").await;
    events.message("f", &news("before")).await;
    assert_eq!(wire.frame_via().await.1, Some(2));
    drop(events);
    let again = server.next().await;
    assert_eq!(
        (&*again.method, again.header("last-event-id")),
        ("GET", "f")
    );
    let mut events = again.events().await;
    events.message("g", &news("after")).await;
    let (message, via) = wire.frame_via().await;
    assert_eq!((&message["method"], via), (&json!("after"), Some(2)));
    // A response may arrive on the server's own stream, which belongs to no request.
    own.message("2", &result(2)).await;
    assert_eq!(wire.frame_via().await.1, None);
}

/// Creates a client of an older server, and returns it with the server's own stream.
async fn connected(
    server: &mut Server,
    builder: switchboard_client::ClientBuilder,
) -> (Client, Events) {
    let http = Http::new(&server.url("/mcp")).unwrap();
    let client = builder.known_era(Era::Legacy).connect(http);
    let opening = server.next().await;
    assert_eq!(opening.rpc(), "initialize");
    let result = json!({"protocolVersion": REVISION.as_str(), "capabilities": {}});
    opening.result(result).await;
    let confirm = server.next().await;
    assert_eq!(confirm.rpc(), "notifications/initialized");
    confirm.accept().await;
    let get = server.next().await;
    assert_eq!(get.method, "GET");
    let events = get.events().await;
    client.ready().await.unwrap();
    (client, events)
}

/// Makes a call, and returns the stream on which the server responds.
async fn begin(
    server: &mut Server,
    call: switchboard_client::Call<Raw>,
) -> (
    u64,
    Events,
    JoinHandle<Result<Raw, switchboard_client::Error>>,
) {
    let call = tokio::spawn(call.into_future());
    let incoming = server.next().await;
    let id = incoming.message()["id"].as_u64().unwrap();
    (id, incoming.events().await, call)
}

/// Sends a request on a stream, and returns the response of the client.
async fn ask(server: &mut Server, events: &mut Events, id: &str) -> Value {
    let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create"});
    events.message("", &question.to_string()).await;
    let incoming = timeout(PATIENCE, server.next()).await.unwrap();
    let answer = incoming.message();
    incoming.accept().await;
    assert_eq!(answer["id"], id);
    answer["result"].clone()
}

#[tokio::test]
async fn server_request_carries_the_tag_of_its_stream() {
    let builder = Client::builder("test", "0").on_asked(|asked| async move {
        Ok(match (asked.tag, asked.of_request) {
            (Some(tag), true) => Raw::number(tag),
            (None, of_request) => Raw::from(of_request),
            (Some(_), false) => Raw::string("a tag without a request"),
        })
    });
    let mut server = Server::start().await;
    let (client, mut own) = connected(&mut server, builder).await;
    let (first, mut of_first, first_call) =
        begin(&mut server, client.request("a/b", None).tag(11)).await;
    let (_, mut of_second, _second) = begin(&mut server, client.request("a/b", None).tag(22)).await;
    let (_, mut of_third, _third) = begin(&mut server, client.request("a/b", None)).await;
    assert_eq!(ask(&mut server, &mut of_second, "q1").await, 22);
    assert_eq!(ask(&mut server, &mut of_first, "q2").await, 11);
    // On the stream of a request without a tag, and on the server's own stream.
    assert_eq!(ask(&mut server, &mut of_third, "q3").await, true);
    assert_eq!(ask(&mut server, &mut own, "q4").await, false);
    // The call has ended, and its tag with it.
    of_first.message("", &result(first)).await;
    first_call.await.unwrap().unwrap();
    assert_eq!(ask(&mut server, &mut of_first, "q5").await, true);
    assert_eq!(ask(&mut server, &mut of_second, "q6").await, 22);
}

#[tokio::test]
async fn call_receives_the_log_messages_of_its_stream() {
    let (sender, mut rest) = tokio::sync::mpsc::unbounded_channel();
    let builder = Client::builder("test", "0").on_notification(move |news| {
        sender.send(news.params.unwrap()).unwrap();
    });
    let mut server = Server::start().await;
    let (client, mut own) = connected(&mut server, builder).await;
    let hearing = || {
        let (sender, heard) = std::sync::mpsc::channel();
        let call = client.request("a/b", None);
        let call = call.on_raw_log(move |log| sender.send(log.params).unwrap());
        (call, heard)
    };
    let log = |n: u64| {
        let params = json!({"level": "info", "data": n});
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}).to_string()
    };
    let ((first, first_heard), (second, second_heard)) = (hearing(), hearing());
    let mut first = begin(&mut server, first).await;
    let mut second = begin(&mut server, second).await;
    second.1.message("", &log(1)).await;
    first.1.message("", &log(2)).await;
    first.1.message("", &log(3)).await;
    own.message("", &log(4)).await;
    let data = |params: Raw| params.member("data").unwrap().as_str().to_owned();
    assert_eq!(data(rest.recv().await.unwrap()), "4");
    for (id, events, call) in [&mut first, &mut second] {
        events.message("", &result(*id)).await;
        call.await.unwrap().unwrap();
    }
    assert_eq!(first_heard.iter().map(data).collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(second_heard.iter().map(data).collect::<Vec<_>>(), ["1"]);
}
