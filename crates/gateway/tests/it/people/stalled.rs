//! A thousand clients that do not read delay no others.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::AsyncWriteExt,
    net::TcpSocket,
    time::{interval, timeout},
};

use super::{EVENTS, asks_deletions, mute, staged};
use crate::{
    api_rig::{PATIENCE, TOKEN},
    mcp_rig::LEGACY,
};

const READERS: usize = 1_000;
const A_SECOND: u64 = 100;
/// Fewer without optimisation, because other tests run at the same time.
const SECONDS: u64 = if cfg!(debug_assertions) { 3 } else { 10 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_stalled_readers_delay_no_requests() {
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
        for _ in 0..A_SECOND * SECONDS {
            live.until("approval.created").await;
        }
    });
    // One client has at most 128 calls in flight.
    let mut clients = Vec::new();
    for _ in 0..SECONDS {
        clients.push(mute(&rig, LEGACY).await);
    }
    let mut beat = interval(Duration::from_micros(1_000_000 / A_SECOND));
    for n in 0..A_SECOND * SECONDS {
        beat.tick().await;
        let turn = usize::try_from(n % SECONDS).unwrap();
        clients[turn]
            .send_call("delete_file", json!({ "n": n }))
            .await;
    }
    // If the gateway waited for the others, no event would arrive.
    timeout(PATIENCE, reading).await.unwrap().unwrap();
    drop(clients);
    rig.stop().await;
}
