//! The contract of a transport, checked for the local transports.

use std::task::{Context, Poll};

use bytes::Bytes;
use switchboard_client::{
    memory::{Memory, ServerEnd},
    stdio::{Process, ProcessGuard, Spawn, Spawning, Stdio},
    transport::Connect,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::mpsc,
};

use crate::contract::{Far, keeps_the_contract};

impl Far for ServerEnd {
    async fn recv(&mut self) -> Bytes {
        self.frames.recv().await.expect("the client sends")
    }

    async fn send(&mut self, frame: &str) {
        self.client
            .send(frame.to_owned().into())
            .await
            .expect("the client listens");
    }

    fn hang_up(self) {}
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    let (connect, mut servers) = Memory::new(8);
    keeps_the_contract(async || {
        let (transport, server) = tokio::join!(connect.connect(), servers.recv());
        (transport.expect("up"), server.expect("a connection"))
    })
    .await;
}

/// Replaces a child process with the same kind of pipes.
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
    fn poll_exit(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn explain(&self) -> String {
        "gone".to_owned()
    }
}

impl Far for PipeFar {
    async fn recv(&mut self) -> Bytes {
        let mut line = Vec::new();
        self.stdin
            .read_until(b'\n', &mut line)
            .await
            .expect("the client sends");
        assert_eq!(line.pop(), Some(b'\n'));
        line.into()
    }

    async fn send(&mut self, frame: &str) {
        self.stdout
            .write_all(frame.as_bytes())
            .await
            .expect("the client listens");
        self.stdout
            .write_all(b"\n")
            .await
            .expect("the client listens");
    }

    fn hang_up(self) {}
}

#[tokio::test]
async fn stdio_keeps_the_contract() {
    let (sender, mut servers) = mpsc::unbounded_channel();
    let connect = Stdio::new(Pipes(sender));
    keeps_the_contract(async || {
        let (transport, server) = tokio::join!(connect.connect(), servers.recv());
        (transport.expect("up"), server.expect("a process"))
    })
    .await;
}
