//! Many clients at once, and clients that read without end or not at all.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use switchboard_test_support::{
    Home,
    http::Http,
    mcp::{Client, request},
    pipe::Pipe,
    processes, server, with,
};

const MIB: u64 = 1024 * 1024;

#[test]
fn a_thousand_clients_at_once_are_all_served() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: most,
            maximum: most,
        },
    )
    .unwrap();
    let home = Home::new(json!({
        "a": with(server(&[]), json!({ "maxQueued": 2_000 })),
    }));
    let serve = home.serve();
    serve.until_known("a");
    let token = serve.token();
    let mut crowd: Vec<_> = (0..1_000)
        .map(|_| Http::connect(serve.address, &token))
        .collect();
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "one", "version": "1" } });
    let hello = request(&json!(0), "initialize", params);
    for http in &mut crowd {
        http.send("POST", "/mcp", &[], hello.as_bytes()).unwrap();
    }
    let sessions: Vec<_> = crowd
        .iter_mut()
        .map(|http| {
            let answer = http.answer().unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.header("mcp-session-id").unwrap().to_owned()
        })
        .collect();
    for (n, (http, session)) in crowd.iter_mut().zip(&sessions).enumerate() {
        let call = json!({ "name": "a__echo", "arguments": { "text": n.to_string() } });
        let call = request(&json!(1), "tools/call", call);
        http.send(
            "POST",
            "/mcp",
            &[("Mcp-Session-Id", session)],
            call.as_bytes(),
        )
        .unwrap();
    }
    for (n, http) in crowd.iter_mut().enumerate() {
        let answer = http.answer().unwrap().json();
        assert_eq!(
            answer["result"]["content"][0]["text"],
            n.to_string(),
            "{answer}"
        );
    }
    assert_eq!(serve.status()["clients"], 1_000);
    serve.stop();
}

/// Checks that other clients are served, and that the gateway has not grown by more than `growth`.
fn assert_well(client: &mut Client, pid: i32, before: u64, growth: u64) {
    for _ in 0..10 {
        assert_eq!(
            client.call("b__echo", json!({ "text": "x" })),
            Ok("x".to_owned())
        );
    }
    let now = processes::resident(pid);
    let grown = now.saturating_sub(before);
    assert!(
        grown < growth,
        "the gateway has grown by {} MiB",
        grown / MIB
    );
}

#[test]
fn http_client_that_never_reads_is_harmless() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    serve.until_known("b");
    let mut client = serve.client();
    client.call("b__pid", json!({})).unwrap();
    let before = processes::resident(serve.pid());
    let mut deaf = serve.client();
    for n in 0..500 {
        deaf.begin(&json!(n), "a__big", json!({ "bytes": MIB }));
    }
    // The gateway accepts results while there is room; two seconds show where that ends.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        assert_well(&mut client, serve.pid(), before, 64 * MIB);
    }
    serve.stop();
}

#[test]
fn stdio_client_that_never_reads_is_harmless() {
    let home = Home::new(json!({ "a": server(&[]), "b": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    serve.until_known("b");
    let mut client = serve.client();
    client.call("b__pid", json!({})).unwrap();
    let before = processes::resident(serve.pid());
    let mut deaf = Pipe::open_deaf(&home);
    for _ in 0..1_000 {
        deaf.begin_call("a__big", json!({ "bytes": MIB }));
    }
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        assert_well(&mut client, serve.pid(), before, 128 * MIB);
    }
    serve.stop();
}

#[test]
fn joined_pipe_answers_a_burst_of_calls() {
    let home = bursting();
    let serve = home.serve();
    serve.until_known("a");
    burst(Pipe::open(&home));
    serve.stop();
}

#[test]
fn own_pipe_answers_a_burst_of_calls() {
    let home = bursting();
    let serve = home.serve();
    serve.until_known("a");
    serve.stop();
    burst(Pipe::open(&home));
}

#[test]
fn calls_before_end_of_input_are_answered() {
    let home = bursting();
    let serve = home.serve();
    serve.until_known("a");
    let mut pipe = Pipe::open(&home);
    let ids: Vec<_> = (0..500)
        .map(|n| pipe.begin_call("a__echo", json!({ "text": n.to_string() })))
        .collect();
    pipe.leave();
    for id in ids {
        let answer = pipe.finish(&id);
        assert!(answer.get("result").is_some(), "{answer}");
    }
    serve.stop();
}

fn bursting() -> Home {
    Home::new(json!({ "a": with(server(&[]), json!({ "maxQueued": 4_000 })) }))
}

/// Sends calls as fast as they are accepted, while reading the responses as fast as they come.
fn burst(mut pipe: Pipe) {
    const CALLS: u64 = 2_000;
    const BYTES: usize = 16 * 1024;
    let padding = "x".repeat(2_000);
    let arguments = json!({ "bytes": BYTES, "padding": padding });
    let call = json!({ "name": "a__big", "arguments": arguments });
    let lines: Vec<_> = (0..CALLS)
        .map(|n| request(&json!(10_000 + n), "tools/call", call.clone()))
        .collect();
    pipe.burst(lines);
    for n in 0..CALLS {
        let answer = pipe.finish(&json!(10_000 + n));
        let text = answer["result"]["content"][0]["text"].as_str();
        assert_eq!(text.map(str::len), Some(BYTES), "{answer}");
    }
}
