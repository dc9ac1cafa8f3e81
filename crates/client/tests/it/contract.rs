//! One contract for all transports: up once, one frame at a time and unchanged, busy when the
//! buffer is full, down once, and a close that never blocks and may be repeated.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use switchboard_client::{
    memory::{Memory, ServerEnd},
    stdio::{Process, ProcessGuard, Spawn, Spawning, Stdio},
    transport::{Connect, Outgoing, OutgoingKind, SendOutcome, Transport, TransportEvent},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::mpsc,
    time::timeout,
};

/// The server's side of the transport under test.
pub(crate) trait Far {
    /// The next frame that the client sent.
    async fn recv(&mut self) -> Bytes;
    /// Sends the client a frame.
    async fn send(&mut self, frame: &str);
    /// Ends the transport from the server's side.
    fn hang_up(self);
}

/// Everything a transport promises. `far` waits for the other end of each connection.
pub(crate) async fn keeps_the_contract<F: Far>(connect: impl Connect, mut far: impl AsyncFnMut() -> F) {
    let (transport, mut server) = tokio::join!(connect.connect(), far());
    let mut transport = transport.unwrap_or_else(|down| panic!("{down:?}"));
    carries_frames_unchanged(&mut *transport, &mut server).await;
    reports_one_event_at_a_time(&mut *transport, &mut server).await;
    is_busy_when_full_and_recovers(&mut *transport, &mut server).await;
    server.hang_up();
    assert!(matches!(next(&mut *transport).await, TransportEvent::Down(_)));

    let (transport, server) = tokio::join!(connect.connect(), far());
    let mut transport = transport.unwrap_or_else(|down| panic!("{down:?}"));
    transport.close();
    transport.close();
    assert_eq!(transport.send(request(90, "{}")), SendOutcome::Closed);
    assert!(matches!(next(&mut *transport).await, TransportEvent::Down(_)));
    transport.close();
    drop(server);
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
    let frames: Vec<_> = (0..3).map(|n| format!(r#"{{"jsonrpc":"2.0","method":"n{n}"}}"#)).collect();
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
    // Nobody reads: sooner or later there is no room, and nothing ever blocks.
    while transport.send(request(100 + accepted, &pad)) == SendOutcome::Accepted {
        accepted += 1;
        assert!(accepted < 5_000, "nothing bounds the buffer");
    }
    assert_eq!(transport.send(request(99, &pad)), SendOutcome::Busy);
    for _ in 0..accepted {
        while_polling(transport, server.recv()).await;
    }
    assert_eq!(transport.send(request(98, "{}")), SendOutcome::Accepted);
    while_polling(transport, server.recv()).await;
}

pub(crate) fn request(id: u64, params: &str) -> Outgoing {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x","params":{params}}}"#);
    Outgoing {
        frame: frame.into(),
        kind: OutgoingKind::Request { id, method: "x".into() },
        headers: Arc::from([]),
    }
}

pub(crate) async fn next(transport: &mut dyn Transport) -> TransportEvent {
    let event = poll_fn(|cx| transport.poll_event(cx));
    timeout(Duration::from_secs(10), event).await.expect("an event")
}

/// Waits for the server's side while the transport is driven, as the connection would.
async fn while_polling<T>(transport: &mut dyn Transport, far: impl Future<Output = T>) -> T {
    let far = async {
        tokio::select! {
            biased;
            done = far => done,
            event = poll_fn(|cx| transport.poll_event(cx)) => panic!("unexpected {event:?}"),
        }
    };
    timeout(Duration::from_secs(10), far).await.expect("progress")
}

fn frame(event: TransportEvent) -> Bytes {
    match event {
        TransportEvent::Frame(frame) => frame,
        other => panic!("no frame: {other:?}"),
    }
}

impl Far for ServerEnd {
    async fn recv(&mut self) -> Bytes {
        self.frames.recv().await.expect("the client sends")
    }

    async fn send(&mut self, frame: &str) {
        self.client.send(frame.to_owned().into()).await.expect("the client listens");
    }

    fn hang_up(self) {}
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    let (connect, mut servers) = Memory::new(8);
    keeps_the_contract(connect, async || servers.recv().await.expect("a connection")).await;
}

/// Stands in for a child process with the same kind of pipes.
struct Pipes(mpsc::UnboundedSender<PipeFar>);

struct PipeFar {
    stdin: BufReader<DuplexStream>,
    stdout: DuplexStream,
}

impl Spawn for Pipes {
    fn spawn(&self) -> Spawning {
        let (stdin, far_stdin) = tokio::io::duplex(64 * 1024);
        let (far_stdout, stdout) = tokio::io::duplex(64 * 1024);
        let far = PipeFar {
            stdin: BufReader::new(far_stdin),
            stdout: far_stdout,
        };
        let _ = self.0.send(far);
        let process = Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            guard: Box::new(NoProcess),
        };
        Box::pin(async move { Ok(process) })
    }

    fn describe(&self) -> String {
        "pipes".to_owned()
    }
}

struct NoProcess;

impl ProcessGuard for NoProcess {
    fn poll_exit(&mut self, _: &mut Context<'_>) -> Poll<String> {
        Poll::Ready("gone".to_owned())
    }

    fn end(self: Box<Self>) {}
}

impl Far for PipeFar {
    async fn recv(&mut self) -> Bytes {
        let mut line = Vec::new();
        self.stdin.read_until(b'\n', &mut line).await.expect("the client sends");
        assert_eq!(line.pop(), Some(b'\n'));
        line.into()
    }

    async fn send(&mut self, frame: &str) {
        self.stdout.write_all(frame.as_bytes()).await.expect("the client listens");
        self.stdout.write_all(b"\n").await.expect("the client listens");
    }

    fn hang_up(self) {}
}

#[tokio::test]
async fn stdio_keeps_the_contract() {
    let (sender, mut servers) = mpsc::unbounded_channel();
    let connect = Stdio::new(Pipes(sender));
    keeps_the_contract(connect, async || servers.recv().await.expect("a process")).await;
}
