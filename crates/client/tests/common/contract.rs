//! The contract of all transports: up once, one unchanged frame at a time, busy when the buffer is
//! full, down once, and a close that never blocks and may be repeated.

use std::{future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use switchboard_client::transport::{
    Outgoing, OutgoingKind, SendOutcome, Transport, TransportEvent,
};
use tokio::time::timeout;

/// The server's side of the transport under test.
pub(crate) trait Far {
    /// Returns the next frame that the client sent.
    async fn recv(&mut self) -> Bytes;
    /// Sends a frame to the client.
    async fn send(&mut self, frame: &str);
    /// Ends the transport from the server's side.
    fn hang_up(self);
}

/// Checks everything that a transport guarantees. `connect` opens a connection and returns both
/// ends.
pub(crate) async fn keeps_the_contract<F: Far>(
    mut connect: impl AsyncFnMut() -> (Box<dyn Transport>, F),
) {
    let (mut transport, mut server) = connect().await;
    carries_frames_unchanged(&mut *transport, &mut server).await;
    reports_one_event_at_a_time(&mut *transport, &mut server).await;
    is_busy_when_full_and_recovers(&mut *transport, &mut server).await;
    server.hang_up();
    is_told_once_that_it_is_down(&mut *transport).await;

    let (mut transport, server) = connect().await;
    transport.close();
    transport.close();
    assert_eq!(transport.send(request(90, "{}")), SendOutcome::Closed);
    assert!(matches!(
        next(&mut *transport).await,
        TransportEvent::Down(_)
    ));
    transport.close();
    drop(server);
}

/// A transport without a permanent connection notices the end with the next message.
async fn is_told_once_that_it_is_down(transport: &mut dyn Transport) {
    let _ = transport.send(request(91, "{}"));
    loop {
        match next(transport).await {
            TransportEvent::Down(_) => break,
            TransportEvent::RequestFailed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(transport.send(request(92, "{}")), SendOutcome::Closed);
}

async fn carries_frames_unchanged(transport: &mut dyn Transport, server: &mut impl Far) {
    let odd = r#"{"n": 1.50, "big":12345678901234567890123,"é":"\u00e9"}"#;
    let outgoing = request(1, odd);
    let sent = outgoing.frame.clone();
    assert_eq!(transport.send(outgoing), SendOutcome::Accepted);
    let received = while_polling(transport, server.recv()).await;
    assert_eq!(received, sent);
    let answer = format!(r#"{{"jsonrpc":"2.0","id":7, "result":{odd}}}"#);
    server.send(&answer).await;
    assert_eq!(frame(next(transport).await), answer);
}

async fn reports_one_event_at_a_time(transport: &mut dyn Transport, server: &mut impl Far) {
    let frames: Vec<_> = (0..3)
        .map(|n| format!(r#"{{"jsonrpc":"2.0","method":"n{n}"}}"#))
        .collect();
    for frame in &frames {
        server.send(frame).await;
    }
    for expected in &frames {
        assert_eq!(frame(next(transport).await), *expected);
    }
    let idle = timeout(Duration::from_millis(20), next(transport)).await;
    assert!(idle.is_err(), "{idle:?}");
}

async fn is_busy_when_full_and_recovers(transport: &mut dyn Transport, server: &mut impl Far) {
    let pad = format!(r#"{{"pad":"{}"}}"#, "x".repeat(64 * 1024));
    let mut accepted = 0;
    // The server does not read, so the buffer eventually fills up, and nothing ever blocks.
    while transport.send(notification(&pad)) == SendOutcome::Accepted {
        accepted += 1;
        assert!(accepted < 5_000, "nothing bounds the buffer");
    }
    assert_eq!(transport.send(notification(&pad)), SendOutcome::Busy);
    for _ in 0..accepted {
        while_polling(transport, server.recv()).await;
    }
    assert_eq!(transport.send(notification("{}")), SendOutcome::Accepted);
    while_polling(transport, server.recv()).await;
}

fn notification(params: &str) -> Outgoing {
    let frame = format!(r#"{{"jsonrpc":"2.0","method":"n","params":{params}}}"#);
    Outgoing {
        frame: frame.into(),
        kind: OutgoingKind::Notification { method: "n".into() },
        headers: Arc::from([]),
    }
}

fn request(id: u64, params: &str) -> Outgoing {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x","params":{params}}}"#);
    Outgoing {
        frame: frame.into(),
        kind: OutgoingKind::Request {
            id,
            method: "x".into(),
        },
        headers: Arc::from([]),
    }
}

async fn next(transport: &mut dyn Transport) -> TransportEvent {
    let event = poll_fn(|cx| transport.poll_event(cx));
    timeout(Duration::from_secs(10), event)
        .await
        .expect("an event")
}

/// Waits for the server's side while the transport is polled, as the connection would.
async fn while_polling<T>(transport: &mut dyn Transport, far: impl Future<Output = T>) -> T {
    let far = async {
        tokio::select! {
            biased;
            done = far => done,
            event = poll_fn(|cx| transport.poll_event(cx)) => panic!("unexpected {event:?}"),
        }
    };
    timeout(Duration::from_secs(10), far)
        .await
        .expect("progress")
}

fn frame(event: TransportEvent) -> Bytes {
    match event {
        TransportEvent::Frame { frame, .. } => frame,
        other => panic!("no frame: {other:?}"),
    }
}
