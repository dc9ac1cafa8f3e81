//! HTTP+SSE, on its own and found by Streamable HTTP.

use serde_json::json;
use switchboard_client::transport::{
    Connect, Down, DownKind, SendOutcome, TransportEvent, http::Http, sse::Sse,
};
use switchboard_wire::Revision;
use tokio::net::TcpListener;

use crate::{
    Server, Wire, answer, cancel, notification, request,
    server::{Events, Incoming},
};

/// A transport that is open, and its stream.
async fn open(server: &mut Server, sse: &Sse) -> (Wire, Events) {
    let (wire, events) = tokio::join!(Wire::over(sse), async {
        let get = server.next().await;
        assert_eq!(
            (get.method.as_str(), get.header("accept")),
            ("GET", "text/event-stream")
        );
        let mut events = get.events().await;
        events
            .send("event: endpoint\ndata: /messages?session=1\n\n")
            .await;
        events
    });
    (wire, events)
}

/// Why a connection was refused.
async fn refused(server: &mut Server, sse: &Sse, answer: impl AsyncFnOnce(Incoming)) -> Down {
    let (refused, ()) = tokio::join!(sse.connect(), async {
        let get = server.next().await;
        answer(get).await;
    });
    match refused {
        Ok(_) => panic!("connected"),
        Err(down) => down,
    }
}

#[tokio::test]
async fn messages_are_posted_in_order_and_answered_on_the_stream() {
    let mut server = Server::start().await;
    let sse = Sse::new(&server.url("/sse"))
        .unwrap()
        .header("x-key", "secret")
        .unwrap();
    assert!(!format!("{sse:?}").contains("secret"));
    let (mut wire, mut events) = open(&mut server, &sse).await;
    wire.send(request(1, "initialize", json!({})));
    wire.send(notification("a"));
    let post = server.next().await;
    assert_eq!(
        (post.method.as_str(), post.path.as_str()),
        ("POST", "/messages?session=1")
    );
    assert_eq!(
        (post.rpc().as_str(), post.header("x-key")),
        ("initialize", "secret")
    );
    assert_eq!(post.header("content-type"), "application/json");
    assert!(server.is_left_alone(50).await, "one at a time");
    wire.send(cancel(1));
    let urgent = server.next().await;
    assert_eq!(urgent.rpc(), "notifications/cancelled");
    urgent.accept().await;
    wire.send(answer(9));
    let urgent = server.next().await;
    assert_eq!(urgent.message()["id"], 9);
    urgent.accept().await;
    post.respond(200, "content-type: application/json\r\n", "{\"id\":1}")
        .await;
    events
        .send("event: message\ndata: {\"id\":1,\"result\":{}}\n\n")
        .await;
    assert_eq!(
        wire.message().await["id"],
        1,
        "what the POST answers is not looked at"
    );
    let post = server.next().await;
    assert_eq!(post.rpc(), "a");
    post.accept().await;
    wire.negotiated(Revision::V2025_06_18);
    wire.send(notification("b"));
    let post = server.next().await;
    assert_eq!(post.header("mcp-protocol-version"), "2025-06-18");
    post.accept().await;
    events.end().await;
    assert_eq!(
        wire.down().await,
        (DownKind::Closed, "the event stream ended".to_owned())
    );
    assert_eq!(wire.0.send(notification("c")), SendOutcome::Closed);
    assert!(wire.is_quiet(20).await, "down is the last word");
}

#[tokio::test]
async fn a_server_that_is_none_is_refused() {
    let mut server = Server::start().await;
    let other = Server::start().await;
    let sse = Sse::new(&server.url("/sse?key=secret")).unwrap();
    for (status, headers, kind, expected) in [
        (401, "", DownKind::Permanent, "HTTP 401"),
        (403, "", DownKind::Permanent, "HTTP 403"),
        (404, "", DownKind::Unreachable, "HTTP 404"),
        (
            503,
            "",
            DownKind::Unreachable,
            "HTTP 503 Service Unavailable: no luck",
        ),
        (
            200,
            "content-type: text/html\r\n",
            DownKind::Unreachable,
            "the answer is not an event stream; is this an MCP server?: text/html",
        ),
    ] {
        let down = refused(&mut server, &sse, async |get: Incoming| {
            get.respond(status, headers, "no luck").await;
        })
        .await;
        assert_eq!(down.kind, kind);
        assert!(
            down.to_string().contains(expected) && !down.to_string().contains("secret"),
            "{down}"
        );
    }
    let elsewhere = format!("event: endpoint\ndata: {}\n\n", other.url("/messages"));
    for (events, expected) in [
        ("", "the stream ended before it named an endpoint"),
        ("data: {\"id\":1}\n\n", "the first event is not `endpoint`"),
        (&elsewhere, "leads to another origin"),
        (
            "event: endpoint\ndata: //evil.example/messages\n\n",
            "leads to another origin",
        ),
    ] {
        let down = refused(&mut server, &sse, async |get: Incoming| {
            let mut stream = get.events().await;
            stream.send(&format!(": hello\n\n{events}")).await;
            stream.end().await;
        });
        let down = down.await;
        assert_eq!(down.kind, DownKind::Unreachable);
        assert!(down.message.contains(expected), "{}", down.message);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/sse", listener.local_addr().unwrap());
    drop(listener);
    match Sse::new(&address).unwrap().connect().await {
        Ok(_) => panic!("connected"),
        Err(down) => assert_eq!(down.kind, DownKind::Unreachable),
    }
}

#[tokio::test]
async fn a_full_queue_is_busy() {
    let mut server = Server::start().await;
    let sse = Sse::new(&server.url("/sse")).unwrap();
    let (mut wire, _events) = open(&mut server, &sse).await;
    wire.send(notification("first"));
    let post = server.next().await;
    for _ in 0..64 {
        wire.send(notification("next"));
    }
    assert_eq!(wire.0.send(notification("one too many")), SendOutcome::Busy);
    post.accept().await;
    server.next().await.accept().await;
    wire.send(notification("there is room again"));
}

#[tokio::test]
async fn a_message_that_is_not_taken_fails_its_request_only() {
    let mut server = Server::start().await;
    let sse = Sse::new(&server.url("/sse")).unwrap().frame_limit(100);
    let (mut wire, mut events) = open(&mut server, &sse).await;
    wire.send(request(1, "tools/list", json!({})));
    server.next().await.respond(500, "", "no\nluck").await;
    let (id, status, message) = wire.failure().await;
    assert_eq!((id, status), (1, Some(500)));
    assert!(
        message.contains("`tools/list`") && message.ends_with("no luck"),
        "{message}"
    );
    wire.send(notification("n"));
    server.next().await.respond(401, "", "").await;
    events
        .send(&format!(
            "data: \"{}\"\n\ndata: \"{}\"\n\n",
            "x".repeat(98),
            "x".repeat(99)
        ))
        .await;
    assert_eq!(wire.frame().await.len(), 100);
    assert!(matches!(
        wire.event().await,
        TransportEvent::FrameTooLarge { limit: 100 }
    ));
}

#[tokio::test]
async fn closing_sends_what_was_accepted() {
    let mut server = Server::start().await;
    let sse = Sse::new(&server.url("/sse")).unwrap();
    let (mut wire, mut events) = open(&mut server, &sse).await;
    wire.send(notification("a"));
    wire.send(notification("b"));
    wire.0.close();
    wire.0.close();
    assert_eq!(wire.0.send(notification("late")), SendOutcome::Closed);
    for _ in 0..100 {
        events.send("data: {\"method\":\"flood\"}\n\n").await;
    }
    let (down, ()) = tokio::join!(wire.down(), async {
        for expected in ["a", "b"] {
            let post = server.next().await;
            assert_eq!(post.rpc(), expected);
            post.accept().await;
        }
    });
    assert_eq!(down, (DownKind::Closed, "closed".to_owned()));
    events.hung_up().await;
    assert!(wire.is_quiet(20).await, "down is the last word");
}

#[tokio::test]
async fn streamable_http_finds_a_server_of_the_older_transport() {
    for status in [400, 404, 405] {
        let mut server = Server::start().await;
        let mut wire = Wire::over(&Http::new(&server.url("/sse")).unwrap()).await;
        wire.send(request(1, "initialize", json!({})));
        server
            .next()
            .await
            .respond(status, "", "no such thing")
            .await;
        let get = server.next().await;
        assert_eq!((get.method.as_str(), get.path.as_str()), ("GET", "/sse"));
        let mut events = get.events().await;
        events.send("event: endpoint\ndata: /messages\n\n").await;
        // Taking up the stream is part of polling.
        let post = tokio::select! {
            post = server.next() => post,
            event = wire.event() => panic!("{event:?}"),
        };
        assert_eq!(
            (post.path.as_str(), post.rpc().as_str()),
            ("/messages", "initialize")
        );
        post.accept().await;
        events.send("data: {\"id\":1,\"result\":{}}\n\n").await;
        assert_eq!(wire.message().await["id"], 1);
        wire.negotiated(Revision::V2024_11_05);
        wire.send(notification("notifications/initialized"));
        let post = server.next().await;
        assert_eq!(
            (post.path.as_str(), post.header("mcp-protocol-version")),
            ("/messages", "")
        );
        post.accept().await;
        assert!(server.is_left_alone(50).await, "no second stream");
        wire.0.close();
        assert_eq!(wire.down().await.0, DownKind::Closed);
        events.hung_up().await;
    }
}

#[tokio::test]
async fn the_refusal_stands_if_the_server_is_not_of_the_older_transport_either() {
    let mut server = Server::start().await;
    let other = Server::start().await;
    let mut wire = Wire::to(&server).await;
    let elsewhere = format!("event: endpoint\ndata: {}\n\n", other.url("/messages"));
    for (id, events) in [
        (1, None),
        (2, Some(elsewhere.as_str())),
        (3, Some("data: {}\n\n")),
    ] {
        wire.send(request(id, "initialize", json!({})));
        server.next().await.respond(405, "", "").await;
        let get = server.next().await;
        match events {
            None => get.respond(405, "", "").await,
            Some(text) => {
                let mut events = get.events().await;
                events.send(text).await;
                events.hung_up().await;
            }
        }
        let (failed, status, _) = wire.failure().await;
        assert_eq!((failed, status), (id, Some(405)));
    }
    for (id, status, body) in [
        (
            4,
            400,
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#,
        ),
        (5, 500, ""),
    ] {
        wire.send(request(id, "initialize", json!({})));
        server.next().await.json(status, body).await;
        wire.event().await;
        assert!(server.is_left_alone(50).await, "no reason to look further");
    }
}
