//! Invalid input of clients, deliberate or not.

use std::{io::Write, thread};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    Home,
    http::Answer,
    mcp::{Client, request},
    pipe::Pipe,
    server, until,
};

const MIB: usize = 1024 * 1024;

fn home() -> Home {
    Home::new(json!({ "a": server(&[]) }))
}

#[test]
fn unknown_name_suggests_the_nearest_one() {
    let home = home();
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    for tool in ["a__ecko", "b__echo", "nothing", "", "__", "a__"] {
        let error = client.call(tool, json!({})).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
    }
    let error = client.call("a__ecko", json!({})).unwrap_err();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`a__ecko`") && message.contains("a__echo"),
        "{message}"
    );
    let error = client.request("no/such/method", json!({}))["error"].clone();
    assert_eq!(error["code"], -32601, "{error}");
    let refused = Client::try_open_at(serve.http(), "/mcp/s/nobody").map(|_| ());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("`nobody`"), "{message}");
    let nowhere = serve.http().ask("POST", "/mcp/nowhere", &[], b"{}");
    assert_eq!(nowhere.status, 404);
    serve.stop();
}

#[test]
fn removed_tool_is_an_error() {
    let home = home();
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    // The client does not wait for the new list: the call may come before or after it, and fails either way.
    client
        .call("a__remove_tool", json!({ "name": "echo" }))
        .unwrap();
    let error = client.call("a__echo", json!({ "text": "x" })).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    until("it is not listed any more", || {
        (!client.tools().contains(&"a__echo".to_owned())).then_some(())
    });
    let error = client.call("a__echo", json!({ "text": "x" })).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(client.call("a__pid", json!({})).is_ok());
    serve.stop();
}

/// Posts a body to `/mcp` with these headers in place of the usual ones.
fn post(
    serve: &switchboard_test_support::Serve<'_>,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    serve.http().ask("POST", "/mcp", headers, body)
}

#[test]
fn requests_without_valid_host_or_token_are_refused() {
    let home = home();
    let serve = home.serve();
    let ping = request(&json!(1), "ping", json!({}));
    let ping = ping.as_bytes();
    let status = |headers: &[(&str, &str)]| post(&serve, headers, ping).status;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Host", "gateway.example.com")]), 403);
    assert_eq!(status(&[("Host", "")]), 403);
    assert_eq!(status(&[("Origin", "https://example.com")]), 403);
    assert_eq!(status(&[("Origin", "null")]), 403);
    assert_eq!(status(&[("Origin", "http://localhost:5173")]), 200);
    assert_eq!(status(&[("Authorization", "")]), 401);
    assert_eq!(status(&[("Authorization", "Bearer wrong")]), 401);
    for path in ["/api/v1/status", "/api/v1/servers", "/metrics", "/nowhere"] {
        let answer = serve.http().ask("GET", path, &[("Authorization", "")], b"");
        assert_eq!(answer.status, 401, "{path}");
        let answer = serve
            .http()
            .ask("GET", path, &[("Host", "gateway.example.com")], b"");
        assert_eq!(answer.status, 403, "{path}");
    }
    let stop = serve.http().ask(
        "POST",
        "/api/v1/shutdown",
        &[("Authorization", "Bearer x")],
        b"",
    );
    assert_eq!(stop.status, 401);
    assert_eq!(serve.status()["state"], "running");
    serve.stop();
}

#[test]
fn malformed_message_is_refused() {
    let home = home();
    let serve = home.serve();
    let cases: [(&[u8], i64); 6] = [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
    ];
    for (body, code) in cases {
        let answer = post(&serve, &[], body);
        let text = String::from_utf8_lossy(body).into_owned();
        assert_eq!(answer.status, 400, "{text}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], code, "{text}");
    }
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    assert_eq!(post(&serve, &[], &deep).status, 400);
    let ping = request(&json!(1), "ping", json!({}));
    let answer = post(&serve, &[("Content-Type", "text/plain")], ping.as_bytes());
    assert_eq!(answer.status, 415);
    let answer = post(
        &serve,
        &[("Mcp-Session-Id", "0123456789abcdef")],
        ping.as_bytes(),
    );
    assert_eq!(answer.status, 404);
    let answer = post(
        &serve,
        &[("MCP-Protocol-Version", "1999-01-01")],
        ping.as_bytes(),
    );
    assert_eq!(answer.status, 400);
    let mut client = serve.client();
    let session = client.session.clone();
    let ended = client
        .http
        .ask("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], b"");
    assert_eq!(ended.status, 204);
    let answer = post(&serve, &[("Mcp-Session-Id", &session)], ping.as_bytes());
    assert_eq!(answer.status, 404);
    serve.stop();
}

#[test]
fn parameters_of_the_wrong_shape_are_refused() {
    let home = home();
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    let wrong = [
        ("tools/call", json!({})),
        ("tools/call", json!({ "name": 7 })),
        ("tools/call", json!([])),
        ("tools/list", json!({ "cursor": 7 })),
        ("tools/list", json!({ "cursor": "made up" })),
        ("prompts/get", json!({ "name": null })),
        ("resources/read", json!({})),
        ("completion/complete", json!({ "ref": [] })),
    ];
    for (method, params) in wrong {
        let answer = client.request(method, params.clone());
        assert_eq!(
            answer["error"]["code"], -32602,
            "{method} {params}: {answer}"
        );
    }
    serve.stop();
}

#[test]
fn only_bodies_over_the_limit_are_refused() {
    let home = home();
    home.set_config(json!({ "results": { "maxBytes": 64 * MIB, "maxTokens": 64 * MIB }, "mcpServers": { "a": server(&[]) } }));
    let serve = home.serve();
    serve.until_known("a");
    let call = |bytes: usize| {
        let arguments = json!({ "text": "x".repeat(bytes) });
        let params = json!({ "name": "a__echo", "arguments": arguments });
        request(&json!(1), "tools/call", params).into_bytes()
    };
    let answer = post(&serve, &[], &call(8 * MIB));
    assert_eq!(answer.status, 200);
    let text = answer.json()["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .len();
    assert_eq!(text, 8 * MIB);

    // The gateway need not read the whole body, so sending it may fail.
    let mut http = serve.http();
    let _ = http.send("POST", "/mcp", &[], &call(17 * MIB));
    let answer = http.answer().unwrap();
    assert_eq!(answer.status, 413, "{}", answer.text());
    serve.stop();
}

#[test]
fn malformed_lines_on_stdio_do_not_stop_service() {
    let home = home();
    let mut pipe = Pipe::open(&home);
    pipe.say("{");
    assert_eq!(pipe.finish(&Value::Null)["error"]["code"], -32700);
    pipe.say("[]");
    assert_eq!(pipe.finish(&Value::Null)["error"]["code"], -32600);
    pipe.say(&"x".repeat(17 * MIB));
    let answer = pipe.finish(&Value::Null);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(pipe.request("ping", json!({}))["result"], json!({}));
    // A request ID that is already in use.
    until("a is known", || pipe.call("a__pid", json!({})).ok());
    let id = pipe.begin_call("a__echo", json!({ "text": "first", "ms": 500 }));
    pipe.say(&request(&id, "ping", json!({})));
    let (one, two) = (pipe.finish(&id), pipe.finish(&id));
    assert_eq!(one["error"]["code"], -32600, "{one}");
    assert_eq!(two["result"]["content"][0]["text"], "first", "{two}");
}

#[test]
fn joined_gateway_refuses_lines_over_the_limit() {
    let home = home();
    let serve = home.serve();
    let mut pipe = Pipe::open(&home);
    pipe.say(&"x".repeat(17 * MIB));
    assert_eq!(pipe.request("ping", json!({}))["result"], json!({}));
    let answer = pipe.finish(&Value::Null);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    serve.stop();
}

#[test]
fn stalled_client_delays_no_other() {
    let home = home();
    let serve = home.serve();
    serve.until_known("a");
    let halves: [&[u8]; 4] = [
        b"",
        b"POST /mcp HT",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json",
    ];
    let mut stalled = Vec::new();
    for half in halves.iter().cycle().take(40) {
        let mut http = serve.http();
        http.raw().write_all(half).unwrap();
        stalled.push(http);
    }
    let mut client = serve.client();
    client.call("a__pid", json!({})).unwrap();
    for _ in 0..20 {
        assert_eq!(
            client.call("a__echo", json!({ "text": "x" })),
            Ok("x".to_owned())
        );
    }
    // It does not delay the shutdown, either.
    let mut serve = serve;
    serve.signal(Signal::TERM);
    assert!(serve.ended().success());
    drop(stalled);
}

#[test]
fn session_is_bound_to_its_view() {
    let home = home();
    let serve = home.serve();
    let client = serve.client();
    let ping = request(&json!(1), "ping", json!({}));
    let headers = [("Mcp-Session-Id", &*client.session)];
    let answer = serve
        .http()
        .ask("POST", "/mcp/s/a", &headers, ping.as_bytes());
    assert_eq!(answer.status, 404);
    thread::scope(|scope| {
        // A request ID belongs to one request at a time.
        serve.until_known("a");
        let mut first = client.beside();
        first.begin(&json!(5), "a__echo", json!({ "text": "x", "ms": 700 }));
        until("it is under way", || {
            (serve.server("a")["inFlight"] == 1).then_some(())
        });
        let mut second = client.beside();
        second.send(&json!(5), "ping", json!({})).unwrap();
        assert_eq!(second.http.answer().unwrap().status, 400);
        scope.spawn(move || assert_eq!(first.finish(), Ok("x".to_owned())));
    });
    serve.stop();
}
