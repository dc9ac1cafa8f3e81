//! Connections without a token: no matter how many there are and what they do, the others are served.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use rustix::{
    net::sockopt::set_socket_recv_buffer_size,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use serde_json::json;
use switchboard_test_support::{Home, Serve, processes, server, until, with};

const MIB: u64 = 1024 * 1024;
/// Clients that request a long result and do not read it.
const READERS: usize = 10;

/// The most places that clients without a token share.
const PLACES: usize = 1_024;

/// Raises the limit of open files, and returns how many of the wanted connections fit, which has to be more
/// than `least`.
fn connections(wanted: usize, least: usize) -> usize {
    let most = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let room = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap());
    let count = wanted.min(room.saturating_sub(200));
    assert!(count > least, "raise the hard limit of open files: {room}");
    count
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    stream
}

#[track_caller]
fn assert_healthy(serve: &Serve<'_>) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(serve.address).unwrap();
    let wait = Some(Duration::from_secs(10));
    stream.set_read_timeout(wait).unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    eprintln!("healthy after {:?}", began.elapsed());
}

#[test]
fn connections_that_never_read_block_no_others() {
    let count = connections(8_192, PLACES);
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let before = processes::resident(serve.pid());
    let request = "GET /console/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let crowd: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(serve.address).unwrap();
            stream.set_nonblocking(true).unwrap();
            // A connection that has lost its place cannot write.
            let _ = stream.write(request.as_bytes());
            stream
        })
        .collect();
    for _ in 0..5 {
        assert_healthy(&serve);
    }
    assert_eq!(serve.status()["state"], "running");
    let grown = processes::resident(serve.pid()).saturating_sub(before);
    eprintln!(
        "{count} connections that never read: grown by {} KiB",
        grown / 1024
    );
    assert!(grown < 100 * MIB, "grown by {} MiB", grown / MIB);
    drop(crowd);
    serve.stop();
}

#[test]
fn long_heads_are_refused_and_cost_little() {
    let count = connections(800, 700);
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let before = processes::resident(serve.pid());
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: {}",
        "x".repeat(371 * 1024)
    );
    let mut crowd: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = connect(serve.address);
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let grown = processes::resident(serve.pid()).saturating_sub(before);
    eprintln!("{count} long heads: grown by {} KiB", grown / 1024);
    assert!(grown < 30 * MIB, "grown by {} MiB", grown / MIB);
    assert_healthy(&serve);
    let last = crowd.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut answer = [0; 12];
    last.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 431");
    serve.stop();
}

#[test]
fn stalled_readers_of_long_results_are_dropped() {
    let whole = json!({ "maxResultBytes": 64 * MIB, "maxResultTokens": 64 * MIB });
    let home = Home::new(json!({ "a": with(server(&[]), whole) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut client = serve.client();
    client.call("a__pid", json!({})).unwrap();
    let open_files = || {
        fs::read_dir(format!("/proc/{}/fd", serve.pid()))
            .unwrap()
            .count()
    };
    let before = open_files();
    let call = json!({ "name": "a:big", "arguments": { "bytes": 12 * MIB } }).to_string();
    let _deaf: Vec<_> = (0..READERS)
        .map(|_| {
            let mut http = serve.http();
            // Otherwise the system may buffer the whole result.
            set_socket_recv_buffer_size(http.raw(), 128 * 1024).unwrap();
            http.send("POST", "/api/v1/tools/call", &[], call.as_bytes())
                .unwrap();
            http
        })
        .collect();
    until("all are connected", || {
        (open_files() >= before + READERS).then_some(())
    });
    until("stalled readers are let go", || {
        (open_files() < before + READERS / 2).then_some(())
    });
    serve.stop();
}

#[test]
fn anonymous_clients_leave_room_for_the_owner() {
    /// A quarter of these are for connections with the token.
    const OPEN_FILES: u64 = 256;
    let few = Rlimit {
        current: Some(OPEN_FILES),
        maximum: Some(OPEN_FILES),
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let home = Home::new(json!({}));
    home.set_config(json!({ "mcpServers": {}, "auth": { "mcp": "none" } }));
    let serve = home.serve();
    let _crowd: Vec<_> = (0..OPEN_FILES / 4)
        .map(|_| {
            let mut http = serve.http();
            http.send("GET", "/sse", &[("Authorization", "")], b"")
                .unwrap();
            assert_eq!(http.head().unwrap().status, 200);
            http
        })
        .collect();
    assert_eq!(serve.http().get("/api/v1/status").status, 200);
    serve.client().tools();
    serve.stop();
}
