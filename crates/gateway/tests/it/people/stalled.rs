//! A thousand who do not read are in nobody's way.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpSocket, time::interval};

use super::{EVENTS, asks_deletions, mute, staged};
use crate::{api_rig::TOKEN, mcp_rig::LEGACY};

const READERS: usize = 1_000;
const A_SECOND: u64 = 100;
/// Fewer without optimisation, where all other tests run beside it.
const SECONDS: u64 = if cfg!(debug_assertions) { 3 } else { 10 };

/// Bounds that hold on a busy machine without optimisation; the figure is printed.
const P99: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 500 });

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_reaches_who_reads_at_once_though_a_thousand_do_not() {
    let mut config = asks_deletions();
    config["approvals"]["longTimeoutMs"] = json!(600_000);
    let (_stage, rig) = staged(config).await;
    let mut stalled = Vec::new();
    for _ in 0..READERS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2_048).unwrap();
        let address = ([127, 0, 0, 1], rig.port).into();
        let Ok(mut stream) = socket.connect(address).await else {
            break;
        };
        let head = format!(
            "GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    let mut live = rig.follow(EVENTS).await;
    let reading = tokio::spawn(async move {
        let mut took = Vec::new();
        while took.len() < usize::try_from(A_SECOND * SECONDS).unwrap() {
            let asked = live.until("approval.created").await;
            let sent = asked["request"]["arguments"]["sent"].as_u64().unwrap();
            took.push(now_micros().saturating_sub(sent));
        }
        took
    });
    // One client has no more than 128 calls under way at a time.
    let mut clients = Vec::new();
    for _ in 0..SECONDS {
        clients.push(mute(&rig, LEGACY).await);
    }
    let mut beat = interval(Duration::from_micros(1_000_000 / A_SECOND));
    let began = Instant::now();
    for n in 0..A_SECOND * SECONDS {
        beat.tick().await;
        let turn = usize::try_from(n % SECONDS).unwrap();
        clients[turn]
            .send_call("delete_file", json!({ "n": n, "sent": now_micros() }))
            .await;
    }
    let mut took = tokio::time::timeout(Duration::from_secs(30), reading)
        .await
        .unwrap()
        .unwrap();
    took.sort_unstable();
    let at = |part: usize| Duration::from_micros(took[(took.len() - 1) * part / 100]);
    eprintln!(
        "{} stalled readers, {} requests in {:?}: p50 {:?}, p99 {:?}, most {:?}",
        stalled.len(),
        took.len(),
        began.elapsed(),
        at(50),
        at(99),
        at(100)
    );
    assert!(at(99) < P99, "p99 {:?}", at(99));
    drop(clients);
    rig.stop().await;
}

fn now_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_micros()).unwrap()
}
