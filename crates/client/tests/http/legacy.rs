//! The older revisions: sessions, the server's own stream, and streams that are resumed.

use std::time::{Duration, Instant};

use serde_json::json;
use switchboard_client::transport::{DownKind, SendOutcome, http::Http};
use switchboard_wire::Revision;
use tokio::net::TcpListener;

use crate::{Server, Wire, cancel, modern, notification, request, server::Incoming};

const REVISION: Revision = Revision::V2025_11_25;

#[tokio::test]
async fn session_is_named_after_it_is_opened() {
    for revision in [Revision::V2025_03_26, REVISION] {
        let version = if revision == REVISION {
            "2025-11-25"
        } else {
            ""
        };
        let check = |incoming: &Incoming| {
            assert_eq!(incoming.header("mcp-session-id"), "s-1");
            assert_eq!(incoming.header("mcp-protocol-version"), version);
            assert_eq!(incoming.header("x-key"), "secret");
        };
        let mut server = Server::start().await;
        let http = Http::new(&server.url("/mcp"))
            .unwrap()
            .header("x-key", "secret")
            .unwrap();
        let mut wire = Wire::over(&http).await;
        wire.send(request(1, "initialize", json!({})));
        let post = server.next().await;
        assert_eq!(post.header("mcp-session-id"), "");
        assert_eq!(post.header("mcp-protocol-version"), "");
        post.initialized("s-1").await;
        wire.frame().await;
        wire.negotiated(revision);
        wire.send(notification("notifications/initialized"));
        let post = server.next().await;
        check(&post);
        post.accept().await;
        let get = server.next().await;
        assert_eq!(
            (get.method.as_str(), get.header("accept")),
            ("GET", "text/event-stream")
        );
        check(&get);
        get.respond(405, "", "").await;
        wire.send(request(2, "tools/list", json!({})));
        let post = server.next().await;
        check(&post);
        post.result(json!({})).await;
        wire.frame().await;
        wire.0.close();
        let (down, delete) = tokio::join!(wire.down(), server.next());
        assert_eq!(down.0, DownKind::Closed);
        assert_eq!(
            (delete.method.as_str(), delete.path.as_str()),
            ("DELETE", "/mcp")
        );
        check(&delete);
    }
}

#[tokio::test]
async fn nothing_overtakes_the_initialized_notification() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.initialized("s").await;
    wire.frame().await;
    wire.negotiated(REVISION);
    wire.send(notification("notifications/initialized"));
    wire.send(request(2, "tools/list", json!({})));
    wire.send(notification("notifications/roots/list_changed"));
    let confirm = server.next().await;
    assert_eq!(confirm.rpc(), "notifications/initialized");
    assert!(server.is_left_alone(100).await);
    confirm.accept().await;
    let stream = server.next().await;
    assert_eq!(stream.method, "GET");
    assert!(
        server.is_left_alone(100).await,
        "the stream on which the server may ask comes first"
    );
    let _events = stream.events().await;
    let mut rest = [server.next().await.rpc(), server.next().await.rpc()];
    rest.sort();
    assert_eq!(rest, ["notifications/roots/list_changed", "tools/list"]);
}

#[tokio::test]
async fn slow_stream_delays_requests_only_briefly() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.initialized("s").await;
    wire.frame().await;
    wire.negotiated(REVISION);
    wire.send(notification("notifications/initialized"));
    wire.send(request(2, "tools/list", json!({})));
    server.next().await.accept().await;
    let _never_answered = server.next().await;
    assert_eq!(server.next().await.rpc(), "tools/list");
}

#[tokio::test]
async fn server_stream_is_kept_open() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.initialized("s").await;
    wire.frame().await;
    wire.negotiated(REVISION);
    wire.send(notification("notifications/initialized"));
    server.next().await.accept().await;
    let mut events = server.next().await.events().await;
    events.send("id: 7\nretry: 100\ndata:\n\n").await;
    events
        .message("8", r#"{"jsonrpc":"2.0","method":"first"}"#)
        .await;
    assert_eq!(wire.message().await["method"], "first");
    let ended = Instant::now();
    drop(events);
    let again = server.next().await;
    assert!(
        ended.elapsed() >= Duration::from_millis(100),
        "{:?}",
        ended.elapsed()
    );
    assert_eq!(
        (again.method.as_str(), again.header("last-event-id")),
        ("GET", "8")
    );
    // A server that is busy, or has not noticed the end of the last stream, gets another request.
    again.respond(409, "", "").await;
    server.next().await.respond(503, "", "").await;
    let again = server.next().await;
    assert_eq!(again.header("last-event-id"), "8");
    let mut events = again.events().await;
    events
        .message("9", r#"{"jsonrpc":"2.0","method":"second"}"#)
        .await;
    assert_eq!(wire.message().await["method"], "second");
    events.end().await;
    server.next().await.respond(404, "", "").await;
    assert_eq!(
        wire.down().await,
        (DownKind::Closed, "session expired".to_owned())
    );
}

#[tokio::test]
async fn server_without_a_stream_is_not_asked_again() {
    for status in [404, 405, 400, 501] {
        let mut server = Server::start().await;
        let mut wire = Wire::to(&server).await;
        wire.send(request(1, "initialize", json!({})));
        server.next().await.initialized("s").await;
        wire.frame().await;
        wire.negotiated(REVISION);
        wire.send(notification("notifications/initialized"));
        server.next().await.accept().await;
        server.next().await.respond(status, "", "").await;
        assert!(server.is_left_alone(50).await, "{status}");
        assert!(wire.is_quiet(20).await, "{status}");
    }
}

#[tokio::test]
async fn lost_session_ends_the_transport() {
    let lost = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for (status, body) in [(404, ""), (404, lost), (400, lost)] {
        let mut server = Server::start().await;
        let mut wire = Wire::to(&server).await;
        wire.open_session(&mut server, "s", REVISION).await;
        wire.send(request(2, "tools/list", json!({})));
        server.next().await.json(status, body).await;
        assert_eq!(
            wire.down().await,
            (DownKind::Closed, "session expired".to_owned())
        );
        assert_eq!(
            wire.0.send(request(3, "tools/list", json!({}))),
            SendOutcome::Closed
        );
        wire.0.close();
        drop(wire);
        assert!(server.is_left_alone(50).await, "there is nothing to delete");
    }
}

#[tokio::test]
async fn notification_detects_a_lost_session() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(notification("notifications/roots/list_changed"));
    server.next().await.respond(404, "", "").await;
    assert_eq!(wire.down().await.0, DownKind::Closed);
}

#[tokio::test]
async fn status_404_without_session_fails_only_the_request() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.result(json!({})).await;
    wire.frame().await;
    wire.negotiated(REVISION);
    wire.send(request(2, "tools/list", json!({})));
    let post = server.next().await;
    assert_eq!(post.header("mcp-session-id"), "");
    post.respond(404, "", "").await;
    assert_eq!(wire.failure().await.1, Some(404));
    wire.0.close();
    wire.down().await;
    assert!(
        server.is_left_alone(50).await,
        "there is no session to delete"
    );
}

#[tokio::test]
async fn broken_stream_is_resumed_after_the_requested_delay() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send("id: e-1\nretry: 500\ndata:\n\n").await;
    events.end().await;
    let ended = Instant::now();
    let get = server.next().await;
    let waited = ended.elapsed().as_millis();
    assert!((500..1500).contains(&waited), "{waited} ms");
    assert_eq!(
        (get.method.as_str(), get.header("last-event-id")),
        ("GET", "e-1")
    );
    assert_eq!(get.header("mcp-session-id"), "s");
    assert_eq!(get.header("mcp-protocol-version"), "2025-11-25");

    let mut events = get.events().await;
    events.send("retry: 30\n\n").await;
    events
        .message("e-2", r#"{"jsonrpc":"2.0","method":"a"}"#)
        .await;
    assert_eq!(wire.message().await["method"], "a");
    drop(events);
    // Transient errors of the server are not fatal.
    server.next().await.respond(503, "", "").await;
    drop(server.next().await);
    let get = server.next().await;
    assert_eq!(get.header("last-event-id"), "e-2");
    let mut events = get.events().await;
    events
        .message("e-3", r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
        .await;
    assert_eq!(wire.message().await["id"], 2);
    events.hung_up().await;
    assert!(server.is_left_alone(100).await);
    assert!(wire.is_quiet(20).await);
}

#[tokio::test]
async fn stream_that_cannot_be_resumed_fails_its_request() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    let prime = "id: e\nretry: 20\ndata:\n\n";

    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send(prime).await;
    events.end().await;
    for _ in 0..5 {
        server.next().await.events().await.end().await;
    }
    let (id, _, message) = wire.failure().await;
    assert!(
        id == 2 && message.contains("the stream ended before the response"),
        "{message}"
    );

    wire.send(request(3, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send(prime).await;
    events.end().await;
    server.next().await.respond(405, "", "").await;
    let (id, _, message) = wire.failure().await;
    assert!(
        id == 3 && message.contains("could not be resumed: HTTP 405"),
        "{message}"
    );

    wire.send(request(4, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send("retry: 20\ndata: {\"method\":\"a\"}\n\n").await;
    wire.frame().await;
    events.end().await;
    assert_eq!(wire.failure().await.0, 4, "no event had an id");

    wire.send(request(5, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send(prime).await;
    events.end().await;
    server.next().await.respond(404, "", "").await;
    assert_eq!(wire.down().await.1, "session expired");
}

#[tokio::test]
async fn response_on_the_server_stream_ends_the_request() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "initialize", json!({})));
    server.next().await.initialized("s").await;
    wire.frame().await;
    wire.negotiated(REVISION);
    wire.send(notification("notifications/initialized"));
    server.next().await.accept().await;
    let mut unasked = server.next().await.events().await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let post = server.next().await;
    unasked
        .message("1", r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
        .await;
    assert_eq!(wire.message().await["id"], 2);
    post.hung_up().await;
}

#[tokio::test]
async fn request_is_cancelled_by_a_notification() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    events.send("data: {\"method\":\"a\"}\n\n").await;
    wire.frame().await;
    wire.send(cancel(2));
    let post = server.next().await;
    assert_eq!(post.rpc(), "notifications/cancelled");
    assert_eq!(post.header("mcp-session-id"), "s");
    events.send("data: {\"method\":\"b\"}\n\n").await;
    assert_eq!(
        wire.message().await["method"],
        "b",
        "until then the stream is read"
    );
    post.accept().await;
    events.hung_up().await;
    wire.send(cancel(2));
    assert!(
        server.is_left_alone(50).await,
        "a request that is over needs no word"
    );
}

#[tokio::test]
async fn unanswered_probe_is_dropped_for_an_older_server() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(modern(1, "server/discover", json!({})));
    let probe = server.next().await;
    wire.send(request(2, "initialize", json!({})));
    server.next().await.initialized("s").await;
    wire.frame().await;
    wire.negotiated(REVISION);
    probe.hung_up().await;
}

#[tokio::test]
async fn closing_sends_accepted_messages_and_waits_for_nothing() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let call = server.next().await;
    wire.send(notification("notifications/progress"));
    wire.0.close();
    wire.0.close();
    assert_eq!(wire.0.send(notification("late")), SendOutcome::Closed);
    let (progress, ()) = tokio::join!(server.next(), async { assert!(wire.is_quiet(20).await) });
    assert_eq!(progress.rpc(), "notifications/progress");
    call.hung_up().await;
    progress.accept().await;
    let (down, delete) = tokio::join!(wire.down(), server.next());
    assert_eq!(down, (DownKind::Closed, "closed".to_owned()));
    assert_eq!(delete.method, "DELETE");
    // The server has not responded to it.
    wire.0.close();
    assert!(wire.is_quiet(20).await, "down is the last word");
    delete.hung_up().await;
}

#[tokio::test]
async fn closing_does_not_wait_for_unread_reports() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    for _ in 0..100 {
        events.send("data: {\"method\":\"flood\"}\n\n").await;
    }
    wire.send(notification("notifications/progress"));
    let progress = server.next().await;
    assert!(server.is_left_alone(50).await);
    wire.0.close();
    progress.respond(404, "", "").await;
    assert_eq!(wire.down().await, (DownKind::Closed, "closed".to_owned()));
}

#[tokio::test]
async fn dropping_the_transport_ends_everything_immediately() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.open_session(&mut server, "s", REVISION).await;
    wire.send(request(2, "tools/call", json!({"name": "x"})));
    let call = server.next().await;
    drop(wire);
    call.hung_up().await;
    assert_eq!(
        server.next().await.method,
        "DELETE",
        "the server is told all the same"
    );
}

#[tokio::test]
async fn closing_does_not_wait_for_a_silent_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut wire = Wire::over(&Http::new(&address).unwrap()).await;
    wire.send(request(1, "initialize", json!({})));
    assert!(wire.is_quiet(20).await);
    wire.0.close();
    wire.down().await;
}
