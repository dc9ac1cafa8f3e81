//! stdio: a child process, one message a line.
//!
//! How the child is started and ended is behind a small trait, [`Spawn`]; [`Command`] is the
//! ordinary way. The transport reads and writes its pipes from the connection's own task, without
//! a task of its own.

mod command;

use std::{
    fmt,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, BufMut, BytesMut};
use switchboard_wire::{Splitter, limits};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

pub use command::Command;

use super::{
    Connect, Connecting, Down, DownKind, Outgoing, SendOutcome, Transport, TransportEvent, closed,
};

/// Starts the process of a server.
pub trait Spawn: Send + Sync + 'static {
    /// Starts one.
    fn spawn(&self) -> Spawning;

    /// What is started, for logs. No secrets.
    fn describe(&self) -> String;
}

/// A process being started.
pub type Spawning = Pin<Box<dyn Future<Output = io::Result<Process>> + Send>>;

/// A running process.
pub struct Process {
    /// Its standard input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its end.
    pub guard: Box<dyn ProcessGuard>,
}

/// Owns the end of a process.
pub trait ProcessGuard: Send {
    /// How the process ended, if it has: what to tell a person, for example `exit status: 1` and
    /// the last line it wrote to standard error. Polled after its output ended.
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<String>;

    /// Sees to it that the process ends, in the background, by itself and without blocking. Its
    /// standard input has been closed. Dropping the guard must do the same.
    fn end(self: Box<Self>);
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

/// Connects to a server that is a child process, started anew for every attempt.
///
/// ```no_run
/// use switchboard_client::{Client, stdio::{Command, Stdio}};
///
/// # async fn run() {
/// let server = Command::new("npx").args(["-y", "@modelcontextprotocol/server-memory"]);
/// let client = Client::connect(Stdio::new(server));
/// # }
/// ```
#[derive(Clone)]
pub struct Stdio {
    spawn: Arc<dyn Spawn>,
    frame_limit: usize,
}

impl Stdio {
    /// Connects to what `spawn` starts.
    pub fn new(spawn: impl Spawn) -> Self {
        Self {
            spawn: Arc::new(spawn),
            frame_limit: limits::FRAME_BYTES,
        }
    }

    /// The largest message to accept, in bytes. 16 MiB by default.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stdio({})", self.spawn.describe())
    }
}

impl Connect for Stdio {
    fn connect(&self) -> Connecting {
        let spawn = Arc::clone(&self.spawn);
        let limit = self.frame_limit;
        Box::pin(async move {
            let process = spawn
                .spawn()
                .await
                .map_err(|error| cannot_start(&*spawn, &error))?;
            Ok(Box::new(StdioTransport::new(process, limit)) as Box<dyn Transport>)
        })
    }

    fn describe(&self) -> String {
        self.spawn.describe()
    }
}

fn cannot_start(spawn: &dyn Spawn, error: &io::Error) -> Down {
    let permanent = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
    );
    let what = spawn.describe();
    let message = match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "cannot start `{what}`: command or working directory not found; check the spelling and PATH"
            )
        }
        _ => format!("cannot start `{what}`: {error}"),
    };
    Down {
        kind: if permanent {
            DownKind::Permanent
        } else {
            DownKind::Unreachable
        },
        message: message.into(),
    }
}

/// How much may wait to be written before the transport says it is busy. One frame always may,
/// however large.
const WRITE_BUFFER: usize = 4 * 1024 * 1024;
/// How much is read at a time: what a pipe holds.
const READ_CHUNK: usize = 64 * 1024;
/// A write buffer that a large message left behind is not kept above this.
const WRITE_BUFFER_KEPT: usize = 64 * 1024;

struct StdioTransport {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    guard: Option<Box<dyn ProcessGuard>>,
    splitter: Splitter,
    outgoing: BytesMut,
    closing: bool,
}

impl StdioTransport {
    fn new(process: Process, limit: usize) -> Self {
        Self {
            stdin: Some(process.stdin),
            stdout: Some(process.stdout),
            guard: Some(process.guard),
            splitter: Splitter::new(limit),
            outgoing: BytesMut::new(),
            closing: false,
        }
    }

    /// Writes as much as the pipe takes. An error means that the server has closed its input,
    /// which its output will tell, too: what it still has to say is read first.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(stdin) = &mut self.stdin
            && !self.outgoing.is_empty()
        {
            match Pin::new(stdin).poll_write(cx, &self.outgoing) {
                Poll::Ready(Ok(written)) if written > 0 => self.outgoing.advance(written),
                Poll::Ready(_) => {
                    self.stdin = None;
                    self.outgoing = BytesMut::new();
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.outgoing.is_empty() && self.outgoing.capacity() > WRITE_BUFFER_KEPT {
            self.outgoing = BytesMut::new();
        }
        Poll::Ready(())
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        loop {
            match self.splitter.next_frame() {
                Some(Ok(frame)) => return Poll::Ready(TransportEvent::Frame(frame)),
                Some(Err(error)) => {
                    return Poll::Ready(TransportEvent::FrameTooLarge { limit: error.limit });
                }
                None => {}
            }
            let Some(stdout) = &mut self.stdout else {
                return self.exit(cx);
            };
            let buffer = self.splitter.buffer();
            buffer.reserve(READ_CHUNK);
            // The future has no state of its own, so that it may be made anew for every poll.
            match pin!(stdout.read_buf(buffer)).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => self.stdout = None,
            }
        }
    }

    /// The output has ended: wait for the word of what became of the process.
    fn exit(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        let message = match &mut self.guard {
            Some(guard) => std::task::ready!(guard.poll_exit(cx)),
            None => "closed".to_owned(),
        };
        Poll::Ready(TransportEvent::Down(closed(message)))
    }
}

impl Transport for StdioTransport {
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        if self.closing || self.stdin.is_none() {
            return SendOutcome::Closed;
        }
        let frame = outgoing.frame;
        if !self.outgoing.is_empty() && self.outgoing.len() + frame.len() >= WRITE_BUFFER {
            return SendOutcome::Busy;
        }
        self.outgoing.reserve(frame.len() + 1);
        self.outgoing.put_slice(&frame);
        self.outgoing.put_u8(b'\n');
        SendOutcome::Accepted
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        let written = self.write(cx);
        if self.closing {
            std::task::ready!(written);
            self.end();
            return Poll::Ready(TransportEvent::Down(closed("closed")));
        }
        self.read(cx)
    }

    fn close(&mut self) {
        self.closing = true;
    }
}

impl StdioTransport {
    fn end(&mut self) {
        self.stdin = None;
        self.stdout = None;
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.end();
    }
}
