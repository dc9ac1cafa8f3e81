//! Requests and their responses, in all revisions.

use serde_json::{Value, json};
use switchboard_client::transport::{DownKind, SendOutcome, TransportEvent, http::Http};
use switchboard_test_support::until_async;
use tokio::net::TcpListener;

use crate::{Server, Wire, answer, cancel, modern, notification, request};

#[tokio::test]
async fn json_response_is_one_frame() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    let call = request(1, "tools/call", json!({"name": "add"}));
    let sent = call.frame.clone();
    wire.send(call);
    let post = server.next().await;
    assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/mcp"));
    assert_eq!(post.header("accept"), "application/json, text/event-stream");
    assert_eq!(post.header("content-type"), "application/json");
    assert_eq!(post.body, sent);
    for absent in [
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "cookie",
    ] {
        assert_eq!(post.header(absent), "", "{absent}");
    }
    let body = r#"{"id":1, "jsonrpc":"2.0", "result":{"n":1.0, "big":12345678901234567890123}}"#;
    post.json(200, body).await;
    assert_eq!(wire.frame().await, body, "byte for byte");
}

#[tokio::test]
async fn modern_request_carries_its_headers() {
    let mut server = Server::start().await;
    let http = Http::new(&server.url("/mcp?tenant=1")).unwrap();
    let http = http.header("Authorization", "Bearer secret").unwrap();
    assert!(!format!("{http:?}").contains("secret"));
    let mut wire = Wire::over(&http).await;
    let mut call = modern(1, "tools/call", json!({"name": "Grüße"}));
    call.headers = [("Mcp-Param-Region".to_owned(), "us west 1".to_owned())].into();
    wire.send(call);
    let post = server.next().await;
    assert_eq!(post.path, "/mcp?tenant=1");
    for (name, value) in [
        ("authorization", "Bearer secret"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?R3LDvMOfZQ==?="),
        ("mcp-param-region", "us west 1"),
    ] {
        assert_eq!(post.header(name), value, "{name}");
    }
    post.result(json!({})).await;
    wire.frame().await;
}

#[tokio::test]
async fn invalid_header_fails_only_its_request() {
    let server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    let mut call = modern(1, "tools/call", json!({"name": "x"}));
    call.headers = [("Mcp-Param-A".to_owned(), "a\r\nb".to_owned())].into();
    wire.send(call);
    let (id, status, message) = wire.failure().await;
    assert_eq!((id, status), (1, None));
    assert!(
        message.contains("Mcp-Param-A") || message.contains("mcp-param-a"),
        "{message}"
    );
}

#[tokio::test]
async fn stream_delivers_all_messages_in_order() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(modern(1, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    let text = concat!(
        ": keep-alive\n\n",
        "data: {\"method\":\"a\"}\n\n",
        "event: message\r\ndata: {\"method\":\r\ndata: \"b\"}\r\n\r\n",
        "event: other\ndata: {\"method\":\"x\"}\n\n",
        "id: 1\ndata:\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    );
    let sender = tokio::spawn(async move {
        for character in text.chars() {
            events.send(&character.to_string()).await;
        }
        events.end().await;
    });
    assert_eq!(wire.message().await["method"], "a");
    assert_eq!(wire.message().await["method"], "b");
    assert_eq!(wire.message().await["id"], 1);
    sender.await.unwrap();
    assert!(wire.is_quiet(50).await);
}

#[tokio::test]
async fn failure_affects_only_its_request_with_a_reason() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    let html = "content-type: text/html\r\n";
    let json_type = "content-type: application/json\r\n";
    let cases = [
        (
            500,
            html,
            "<h1>Oops\n\x1b[0m</h1>",
            "HTTP 500 Internal Server Error: <h1>Oops [0m</h1>",
        ),
        (400, "", "", "HTTP 400 Bad Request"),
        (
            401,
            json_type,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
            "HTTP 401 Unauthorized: {",
        ),
        (403, "", "go away", "HTTP 403 Forbidden: go away"),
        (404, "", "", "HTTP 404 Not Found"),
        (302, "", "", "HTTP 302 Found"),
        (
            200,
            html,
            "<p>",
            "the response is neither JSON nor an event stream; is this an MCP server?: text/html",
        ),
        (200, json_type, " ", "accepted without a response"),
        (200, "", "", "accepted without a response"),
        (202, "", "", "accepted without a response"),
        (
            202,
            "content-type: text/plain\r\n",
            "ok",
            "accepted without a response",
        ),
    ];
    for (id, (status, headers, body, expected)) in (1..).zip(cases) {
        wire.send(request(id, "tools/list", json!({})));
        server.next().await.respond(status, headers, body).await;
        let (failed, code, message) = wire.failure().await;
        assert_eq!((failed, code), (id, Some(status)));
        let prefix = format!(
            "`tools/list` to http://127.0.0.1:{}: HTTP {status}",
            server.port()
        );
        assert!(message.starts_with(&prefix), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    wire.send(request(99, "tools/list", json!({})));
    server.next().await.result(json!({})).await;
    assert_eq!(wire.message().await["id"], 99);
}

#[tokio::test]
async fn challenge_of_a_refusal_is_reported() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    let challenge = "www-authenticate: Bearer\r\n";
    for (id, headers) in [(1, ""), (2, challenge)] {
        wire.send(request(id, "tools/list", json!({})));
        server.next().await.respond(403, headers, "no").await;
        match wire.event().await {
            TransportEvent::RequestFailed { failure, .. } => {
                assert_eq!(failure.challenged, !headers.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn response_to_another_request_is_a_failure() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "tools/list", json!({})));
    server
        .next()
        .await
        .json(200, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)
        .await;
    assert_eq!(wire.message().await["id"], 2, "it is shown all the same");
    let (id, _, message) = wire.failure().await;
    assert!(
        id == 1 && message.contains("not the response to this request"),
        "{message}"
    );
}

#[tokio::test]
async fn truncated_response_fails_its_request() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(request(1, "tools/list", json!({})));
    let mut chunks = server
        .next()
        .await
        .stream("content-type: application/json\r\n")
        .await;
    chunks.send("{\"jsonrpc\"").await;
    drop(chunks);
    let (id, _, message) = wire.failure().await;
    assert!(
        id == 1 && message.contains("the response was cut off"),
        "{message}"
    );
    wire.send(request(2, "tools/list", json!({})));
    drop(server.next().await);
    assert_eq!(wire.failure().await.0, 2, "hung up without a word");
}

#[tokio::test]
async fn json_rpc_refusal_reaches_the_caller_as_response() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    for (status, id, code) in [
        (400, Value::Null, -32020),
        (400, json!(2), -32022),
        (404, json!(3), -32601),
        (500, Value::Null, -32603),
    ] {
        let own = id.as_u64().unwrap_or(1);
        wire.send(modern(own, "server/discover", json!({})));
        let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": {"a": 1}}});
        server.next().await.json(status, body.to_string()).await;
        let message = wire.message().await;
        assert_eq!(message["id"], own);
        assert_eq!(message["error"], body["error"]);
    }
    wire.send(modern(5, "server/discover", json!({})));
    let other = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}"#;
    server.next().await.json(404, other).await;
    assert_eq!((wire.failure().await.0, wire.is_quiet(20).await), (5, true));
}

#[tokio::test]
async fn unreachable_server_ends_the_transport() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let address = format!("http://127.0.0.1:{port}/mcp");
    for first in [
        request(1, "initialize", json!({})),
        modern(1, "server/discover", json!({})),
    ] {
        let mut wire = Wire::over(&Http::new(&address).unwrap()).await;
        wire.send(first);
        let (id, status, message) = wire.failure().await;
        assert_eq!((id, status), (1, None));
        assert!(
            message.contains("cannot reach the server: Connection refused"),
            "{message}"
        );
        assert_eq!(wire.down().await, (DownKind::Unreachable, message));
        assert_eq!(wire.0.send(notification("n")), SendOutcome::Closed);
        assert!(wire.is_quiet(20).await, "down is the last word");
    }
    let mut wire = Wire::over(&Http::new(&address).unwrap()).await;
    wire.send(notification("n"));
    assert_eq!(wire.down().await.0, DownKind::Unreachable);
}

#[tokio::test]
async fn server_without_tls_is_unreachable_over_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok();
        }
    });
    let https = Http::new(&format!("https://127.0.0.1:{port}/mcp"));
    let https = https.expect("the certificates of the system (ca-certificates) are installed");
    let mut wire = Wire::over(&https).await;
    wire.send(request(1, "initialize", json!({})));
    assert_eq!(wire.failure().await.0, 1);
    assert_eq!(wire.down().await.0, DownKind::Unreachable);
}

#[tokio::test]
async fn modern_stream_that_ends_early_is_lost() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    for (id, expected) in [
        (1, "the stream ended before the response"),
        (2, "the stream broke before the response"),
    ] {
        wire.send(modern(id, "tools/call", json!({"name": "x"})));
        let mut events = server.next().await.events().await;
        events
            .send("id: 7\nretry: 20\ndata: {\"method\":\"a\"}\n\n")
            .await;
        wire.frame().await;
        match id {
            1 => events.end().await,
            _ => drop(events),
        }
        let (failed, _, message) = wire.failure().await;
        assert_eq!(failed, id);
        assert!(message.contains(expected), "{message}");
    }
    assert!(server.is_left_alone(100).await, "nothing is taken up again");
}

#[tokio::test]
async fn limit_is_exact() {
    let mut server = Server::start().await;
    let http = Http::new(&server.url("/mcp")).unwrap().frame_limit(100);
    let mut wire = Wire::over(&http).await;
    let body = |id: u64, size: usize| {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"x"}}"#);
        frame.replace('x', &"x".repeat(size - frame.len() + 1))
    };
    let mut id = 0;
    for (size, is_stream) in [(100, false), (101, false), (100, true), (101, true)] {
        id += 1;
        wire.send(request(id, "tools/list", json!({})));
        let post = server.next().await;
        let text = body(id, size);
        assert_eq!(text.len(), size);
        if is_stream {
            let mut events = post.events().await;
            events.message("", &text).await;
            events.end().await;
        } else {
            post.json(200, text).await;
        }
        match wire.event().await {
            TransportEvent::Frame { frame, .. } => assert_eq!((frame.len(), size), (100, 100)),
            TransportEvent::FrameTooLarge { limit } => assert_eq!((limit, size), (100, 101)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn oversized_response_is_not_read_to_its_end() {
    let mut server = Server::start().await;
    let http = Http::new(&server.url("/mcp")).unwrap().frame_limit(1000);
    let mut wire = Wire::over(&http).await;
    wire.send(request(1, "tools/list", json!({})));
    let mut chunks = server
        .next()
        .await
        .stream("content-type: application/json\r\n")
        .await;
    chunks.send(&"x".repeat(1001)).await;
    assert!(matches!(
        wire.event().await,
        TransportEvent::FrameTooLarge { limit: 1000 }
    ));
    chunks.hung_up().await;
}

#[tokio::test]
async fn transport_at_its_limit_rejects_only_requests() {
    let mut server = Server::start().await;
    let http = Http::new(&server.url("/mcp")).unwrap().in_flight_limit(2);
    let mut wire = Wire::over(&http).await;
    wire.send(request(1, "tools/list", json!({})));
    wire.send(request(2, "tools/list", json!({})));
    assert_eq!(
        wire.0.send(request(3, "tools/list", json!({}))),
        SendOutcome::Busy
    );
    let (first, second) = (server.next().await, server.next().await);
    wire.send(answer(9));
    let post = server.next().await;
    assert_eq!(post.message()["id"], 9, "an answer gets through");
    post.accept().await;
    first.result(json!({})).await;
    wire.frame().await;
    until_async("there is room again", async || {
        wire.0.send(request(4, "tools/list", json!({}))) != SendOutcome::Busy
    })
    .await;
    server.next().await.result(json!({})).await;
    second.result(json!({})).await;
    wire.frame().await;
    wire.frame().await;
}

#[tokio::test]
async fn modern_request_is_cancelled_by_disconnecting() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(modern(1, "tools/call", json!({"name": "x"})));
    wire.send(modern(2, "tools/call", json!({"name": "x"})));
    let (one, two) = (server.next().await, server.next().await);
    let (silent, streaming) = if one.message()["id"] == 1 {
        (one, two)
    } else {
        (two, one)
    };
    let mut events = streaming.events().await;
    events.send("data: {\"method\":\"a\"}\n\n").await;
    wire.frame().await;
    wire.send(cancel(1));
    wire.send(cancel(2));
    silent.hung_up().await;
    events.hung_up().await;
    wire.send(cancel(2));
    assert!(server.is_left_alone(50).await, "nothing else is said");
    assert!(wire.is_quiet(20).await);
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin() {
    let mut server = Server::start().await;
    let http = Http::new(&server.url("/mcp"))
        .unwrap()
        .header("x-key", "secret")
        .unwrap();
    let mut wire = Wire::over(&http).await;
    for (id, status) in [(1, 307), (2, 308), (3, 301), (4, 302)] {
        let call = request(id, "tools/list", json!({}));
        let frame = call.frame.clone();
        wire.send(call);
        let location = format!("location: {}\r\n", server.url("/mcp/?x=1"));
        server.next().await.respond(status, &location, "").await;
        let again = server.next().await;
        assert_eq!(
            (again.method.as_str(), again.path.as_str()),
            ("POST", "/mcp/?x=1")
        );
        assert_eq!(again.header("x-key"), "secret");
        assert_eq!(again.body, frame);
        again.result(json!({})).await;
        assert_eq!(wire.message().await["id"], id);
    }
    wire.send(request(5, "tools/list", json!({})));
    server
        .next()
        .await
        .respond(303, "location: /elsewhere\r\n", "")
        .await;
    let (id, status, _) = wire.failure().await;
    assert_eq!((id, status), (5, Some(303)), "a POST does not become a GET");
}

#[tokio::test]
async fn redirects_to_other_origins_and_loops_are_rejected() {
    let mut server = Server::start().await;
    let mut other = Server::start().await;
    let http = Http::new(&server.url("/mcp"))
        .unwrap()
        .header("x-key", "secret")
        .unwrap();
    let mut wire = Wire::over(&http).await;
    let same_host = format!("http://localhost:{}/mcp", server.port());
    for (id, target) in [(1, other.url("/mcp")), (2, same_host)] {
        wire.send(request(id, "tools/list", json!({})));
        let location = format!("location: {target}?token=secret\r\n");
        server.next().await.respond(307, &location, "").await;
        let (failed, status, message) = wire.failure().await;
        assert_eq!((failed, status), (id, Some(307)));
        let origin = target.trim_end_matches("/mcp");
        let expected = "the redirect leads to another origin";
        let is_told = message.contains(expected) && message.ends_with(origin);
        assert!(is_told && !message.contains("secret"), "{message}");
    }
    assert!(other.is_left_alone(50).await);
    wire.send(request(3, "tools/list", json!({})));
    for _ in 0..6 {
        server
            .next()
            .await
            .respond(307, "location: /mcp\r\n", "")
            .await;
    }
    assert!(wire.failure().await.2.contains("more than 5 redirects"));
}

#[tokio::test]
async fn flood_is_held_back_until_it_is_polled() {
    let mut server = Server::start().await;
    let mut wire = Wire::to(&server).await;
    wire.send(modern(1, "tools/call", json!({"name": "x"})));
    let mut events = server.next().await.events().await;
    let event = format!("data: {{\"method\":\"{}\"}}\n\n", "x".repeat(1 << 20));
    let mut sent = 0;
    while !events.stalls(&event).await {
        sent += 1;
        assert!(sent < 200, "nothing holds the server back");
    }
    for _ in 0..sent {
        assert_eq!(
            wire.message().await["method"].as_str().unwrap().len(),
            1 << 20
        );
    }
}
