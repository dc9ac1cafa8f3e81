//! HTTP+SSE, used directly and detected by Streamable HTTP.

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

/// Opens a transport, and returns it with its stream.
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

/// Returns the reason why a connection was refused.
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
async fn posts_are_ordered_and_responses_arrive_on_stream() {
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
async fn other_servers_are_rejected() {
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
            "the response is not an event stream; is this an MCP server?: text/html",
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
async fn unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/sse", listener.local_addr().unwrap());
    drop(listener);
    match Sse::new(&address).unwrap().connect().await {
        Ok(_) => panic!("connected"),
        Err(down) => assert_eq!(down.kind, DownKind::Unreachable),
    }
}

#[tokio::test]
async fn full_queue_is_busy() {
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
async fn rejected_message_fails_only_its_request() {
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
async fn closing_sends_accepted_messages() {
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
async fn streamable_http_falls_back_to_http_sse() {
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
        // The switch to the stream happens while the transport is polled.
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
async fn refusal_is_final_without_http_sse() {
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
