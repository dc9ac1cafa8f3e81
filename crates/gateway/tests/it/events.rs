//! Events: missed events are sent again, and clients that do not read delay no others.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};

use crate::api_rig::{Event, PATIENCE, Rig, TOKEN, fixture};

const EVENTS: &str = "/api/v1/events";

/// Emits `count` events with consecutive numbers from `from`.
fn tell(rig: &Rig, from: usize, count: usize) {
    for number in from..from + count {
        rig.gateway.refuse_config(&number.to_string());
    }
}

/// The number in an event, and its id.
fn number(event: &Event) -> (usize, u64) {
    assert_eq!(event.kind, "config.refused", "{event:?}");
    let data: Value = serde_json::from_str(&event.data).unwrap();
    let number = data["data"]["problem"].as_str().unwrap().parse().unwrap();
    (number, event.id.parse().unwrap())
}

#[tokio::test]
async fn returning_client_gets_missed_events_first() {
    let rig = Rig::with(json!({})).await;
    let mut first = rig.follow(EVENTS).await;
    tell(&rig, 0, 5);
    let mut ids = Vec::new();
    for expected in 0..5 {
        let (number, id) = number(&first.next().await.unwrap());
        assert_eq!(number, expected);
        ids.push(id);
    }
    assert!(ids.is_sorted_by(|a, b| a + 1 == *b), "{ids:?}");
    drop(first);
    tell(&rig, 5, 5);
    let since = format!("{EVENTS}?since={}", ids[2]);
    let newer = format!("Last-Event-ID: {}\r\n", ids[4]);
    for (path, headers, from) in [
        (&*since, "", 3),
        (EVENTS, &*newer, 5),
        // The header is newer than the parameter in the address.
        (&*since, &*newer, 5),
    ] {
        let mut again = rig.follow_with(path, headers).await;
        for expected in from..10 {
            assert_eq!(number(&again.next().await.unwrap()).0, expected);
        }
    }
    let mut live = rig.follow_with(EVENTS, &newer).await;
    tell(&rig, 10, 5);
    for expected in 5..15 {
        assert_eq!(number(&live.next().await.unwrap()).0, expected);
    }
    rig.stop().await;
}

#[tokio::test]
async fn lagged_event_follows_a_long_absence() {
    let rig = Rig::with(json!({})).await;
    let mut first = rig.follow(EVENTS).await;
    tell(&rig, 0, 1);
    let (_, id) = number(&first.next().await.unwrap());
    drop(first);
    tell(&rig, 1, 1_100);
    let next = async |said: &str| {
        let headers = format!("Last-Event-ID: {said}\r\n");
        let mut events = rig.follow_with(EVENTS, &headers).await;
        let event = events.next().await.unwrap();
        assert_eq!(event.kind, "lagged", "{said}");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        tell(&rig, 0, 1);
        let (_, after) = number(&events.next().await.unwrap());
        // A client that disconnects now resumes after this event.
        assert_eq!(event.id, (after - 1).to_string());
        data["missed"].clone()
    };
    assert_eq!(next(&id.to_string()).await, 1_100);
    for unknown in ["1", "99999999999999999", "18446744073709551615", "x", "-1"] {
        assert_eq!(next(unknown).await, Value::Null, "{unknown}");
    }
    let detail = rig.get(&format!("{EVENTS}?since=x")).await.problem(400);
    assert!(detail.contains("`since`"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn ids_increase_across_a_restart() {
    let rig = Rig::with(json!({})).await;
    let mut events = rig.follow(EVENTS).await;
    tell(&rig, 0, 1);
    let (_, before) = number(&events.next().await.unwrap());
    let rig = rig.restarted(|_| {}).await;
    let headers = format!("Last-Event-ID: {before}\r\n");
    let mut events = rig.follow_with(EVENTS, &headers).await;
    let event = events.next().await.unwrap();
    assert_eq!(
        (&*event.kind, &*event.data),
        ("lagged", "{\"missed\":null}")
    );
    tell(&rig, 1, 1);
    let (_, after) = number(&events.next().await.unwrap());
    assert!(after > before, "{after} {before}");
    rig.stop().await;
}

#[tokio::test]
async fn kinds_are_selected_by_prefix() {
    let rig = Rig::with(json!({})).await;
    let mut chosen = rig.follow(&format!("{EVENTS}?kind=nothing,config.")).await;
    let mut one = rig.follow(&format!("{EVENTS}?kind=config.applied")).await;
    tell(&rig, 0, 1);
    rig.reload().await;
    assert_eq!(number(&chosen.next().await.unwrap()).0, 0);
    assert_eq!(chosen.next().await.unwrap().kind, "config.applied");
    assert_eq!(one.next().await.unwrap().kind, "config.applied");
    rig.stop().await;
}

#[tokio::test]
async fn call_totals_are_sent_at_most_every_second() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until_known("a").await;
    let mut events = rig.follow(&format!("{EVENTS}?kind=calls")).await;
    let mut all = 0;
    let mut told = 0;
    let started = Instant::now();
    while all < 20 {
        for _ in 0..5 {
            assert_eq!(rig.call("a:echo", json!({})).await.status, 200);
        }
        all += 5;
        sleep(Duration::from_millis(100)).await;
    }
    let last = loop {
        let event: Value = serde_json::from_str(&events.next().await.unwrap().data).unwrap();
        told += 1;
        let calls = &event["data"]["servers"]["a"];
        assert_eq!(calls["errors"], 0, "{event}");
        if calls["calls"] == all {
            break event["data"]["last"].as_u64().unwrap();
        }
    };
    assert!(told <= started.elapsed().as_secs(), "{told}");
    let newest = rig.get("/api/v1/activity?limit=1").await.json();
    assert_eq!(newest["activity"][0]["id"], last);
    // No further event follows.
    let quiet = timeout(Duration::from_millis(1_500), events.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
    rig.stop().await;
}

/// Opens a stream of events that is never read, with the smallest possible buffers.
async fn stalled(port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1024).unwrap();
    let mut stream = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
    let ask = format!(
        "GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    // The gateway serves it once it has responded.
    stream.readable().await.unwrap();
    stream
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let rig = Rig::with(json!({})).await;
    let mut stream = stalled(rig.port).await;
    let problem = "x".repeat(100_000);
    for _ in 0..200 {
        rig.gateway.refuse_config(&problem);
        tokio::task::yield_now().await;
    }
    // Lets everything be sent that can be, and then half a minute pass.
    sleep(Duration::from_millis(100)).await;
    tokio::time::pause();
    sleep(Duration::from_secs(31)).await;
    tokio::time::resume();
    let rest = async {
        let mut chunk = vec![0; 64 * 1024];
        // The end is an empty read, or an error.
        while stream.read(&mut chunk).await.is_ok_and(|read| read > 0) {}
    };
    timeout(PATIENCE, rest).await.unwrap();
    rig.stop().await;
}

/// A thousand clients that do not read must not affect one that does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_stalled_readers_delay_no_others() {
    const STALLED: usize = 1_000;
    const TOLD: usize = 1_000;
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    rustix::process::setrlimit(
        rustix::process::Resource::Nofile,
        rustix::process::Rlimit {
            current: most.maximum,
            ..most
        },
    )
    .unwrap();
    let rig = Rig::with(json!({})).await;
    let mut live = rig.follow(EVENTS).await;
    let mut idle = Vec::new();
    for _ in 0..STALLED {
        idle.push(stalled(rig.port).await);
    }
    // More than fits into the buffers to any of them.
    let filling = "x".repeat(512 * 1024);
    for _ in 0..4 {
        rig.gateway.refuse_config(&filling);
        live.next().await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    let reading = tokio::spawn(async move {
        for expected in 0..TOLD {
            let event = live.next().await.unwrap();
            let data: Value = serde_json::from_str(&event.data).unwrap();
            let problem = data["data"]["problem"].as_str().unwrap();
            let number: usize = problem.trim_end_matches('x').parse().unwrap();
            assert_eq!(number, expected);
        }
    });
    let padding = "x".repeat(2_000);
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    for number in 0..TOLD {
        tick.tick().await;
        rig.gateway.refuse_config(&format!("{number}{padding}"));
    }
    // If the gateway waited for the others, no event would arrive.
    timeout(PATIENCE, reading).await.unwrap().unwrap();
    drop(idle);
    rig.stop().await;
}
