//! stdio: a child process, with one message per line.
//!
//! The trait [`Spawn`] starts the child and ends it; [`Command`] is the usual implementation. The transport
//! reads and writes the pipes on the connection's own task, without a separate one.

mod command;

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use switchboard_wire::{Splitter, limits, method, put_line};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    time::Sleep,
};

pub use command::Command;

use super::{
    Connect, Connecting, Down, DownKind, Ended, Outgoing, OutgoingKind, RequestFailure,
    SendOutcome, Transport, TransportEvent, closed,
};

/// Starts the process of a server.
pub trait Spawn: Send + Sync + 'static {
    /// Starts a process.
    fn spawn(&self) -> Spawning;

    /// Describes the process for logs. Must not contain secrets.
    fn describe(&self) -> String;

    /// Waits until all processes that were started have exited, within their grace periods.
    fn ended(&self) -> Ended {
        Box::pin(std::future::ready(()))
    }
}

/// A process being started.
pub type Spawning = Pin<Box<dyn Future<Output = io::Result<Process>> + Send>>;

/// A running process.
pub struct Process {
    /// The standard input of the process.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// The standard output of the process.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// The guard that ends the process.
    pub guard: Box<dyn ProcessGuard>,
}

/// Ends a process: dropping the guard makes the process exit, in the background and without blocking. Its
/// standard input has been closed by then.
pub trait ProcessGuard: Send {
    /// Ready when the process has ended.
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Describes the end: `the server exited (exit status: 1)`, or, if it has not ended, that it closed its
    /// output. Contains no text from the server.
    fn explain(&self) -> String;

    /// The last lines that the process wrote to standard error, for the user only: they may contain secrets.
    fn last_words(&self) -> Option<String> {
        None
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Process")
    }
}

/// Connects to a server in a child process. Each attempt starts a new process; one that exits when it is asked in
/// the newest revision is started again for the older handshake.
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
    /// Connects to the process that `spawn` starts.
    pub fn new(spawn: impl Spawn) -> Self {
        Self {
            spawn: Arc::new(spawn),
            frame_limit: limits::FRAME_BYTES,
        }
    }

    /// Sets the largest message to accept, in bytes. 16 MiB by default.
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

    fn ended(&self) -> Ended {
        self.spawn.ended()
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
            format!("cannot run `{what}`: command or working directory not found")
        }
        _ => format!("cannot run `{what}`: {error}"),
    };
    Down {
        kind: if permanent {
            DownKind::Permanent
        } else {
            DownKind::Unreachable
        },
        message: message.into(),
        said: None,
    }
}

/// The most bytes that wait to be written before the transport reports that it is busy. A single frame is
/// always accepted, regardless of its size.
const WRITE_BUFFER: usize = 4 * 1024 * 1024;
/// The number of bytes read at a time: the capacity of a pipe.
const READ_CHUNK: usize = 64 * 1024;
/// The least free space in the buffer before a read; below this, the buffer grows.
const READ_ROOM: usize = 4 * 1024;
/// The largest write buffer that is kept after a large message.
const WRITE_BUFFER_KEPT: usize = 64 * 1024;

/// The time that a server may take to finish after its process has ended or it has closed a pipe. Its last
/// output may still be on its way, but a child process may hold the pipe open forever.
const SETTLE: Duration = Duration::from_millis(200);

struct StdioTransport {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    guard: Option<Box<dyn ProcessGuard>>,
    splitter: Splitter,
    outgoing: BytesMut,
    /// The requests in `outgoing`. Each is sent once the number of bytes before its id has been written.
    unwritten: VecDeque<(u64, u64)>,
    /// Requests that the server has not received and will not receive.
    unsent: VecDeque<u64>,
    accepted: u64,
    written: u64,
    exited: bool,
    settling: Option<Pin<Box<Sleep>>>,
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
            unwritten: VecDeque::new(),
            unsent: VecDeque::new(),
            accepted: 0,
            written: 0,
            exited: false,
            settling: None,
            closing: false,
        }
    }

    /// Writes as much as the pipe accepts. An error means that the server has closed its input; its remaining
    /// output is read first.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(stdin) = &mut self.stdin
            && !self.outgoing.is_empty()
        {
            match Pin::new(stdin).poll_write(cx, &self.outgoing) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.outgoing.advance(written);
                    self.written += written as u64;
                    while let Some((end, _)) = self.unwritten.front()
                        && *end <= self.written
                    {
                        self.unwritten.pop_front();
                    }
                }
                Poll::Ready(_) => {
                    self.stdin = None;
                    self.outgoing = BytesMut::new();
                    // A line without its end is not a message, so the server has not received partly written
                    // requests.
                    self.unsent
                        .extend(self.unwritten.drain(..).map(|(_, id)| id));
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
                Some(Ok(frame)) => {
                    return Poll::Ready(TransportEvent::Frame { frame, via: None });
                }
                Some(Err(error)) => {
                    let limit = error.limit;
                    return Poll::Ready(TransportEvent::FrameTooLarge { limit });
                }
                None => {}
            }
            let Some(stdout) = &mut self.stdout else {
                return self.settle(cx);
            };
            let buffer = self.splitter.buffer();
            // Use up the free space of the buffer first: earlier frames may still share its memory.
            if buffer.capacity() - buffer.len() < READ_ROOM {
                buffer.reserve(READ_CHUNK);
            }
            // The future has no state of its own, so a new one can be created for every poll.
            match pin!(stdout.read_buf(buffer)).poll(cx) {
                Poll::Pending => return self.settle(cx),
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => self.stdout = None,
            }
        }
    }

    /// Handles the absence of output: decides if the transport has ended, and returns the reason.
    fn settle(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        let Some(guard) = &mut self.guard else {
            return Poll::Ready(TransportEvent::Down(closed("closed")));
        };
        self.exited = self.exited || guard.poll_exit(cx).is_ready();
        let ending = self.exited || self.stdout.is_none() || self.stdin.is_none();
        if !ending {
            return Poll::Pending;
        }
        if !(self.exited && self.stdout.is_none()) {
            let settling = self
                .settling
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(SETTLE)));
            std::task::ready!(settling.as_mut().poll(cx));
        }
        Poll::Ready(TransportEvent::Down(Down {
            said: guard.last_words().map(Into::into),
            ..closed(guard.explain())
        }))
    }
}

impl Transport for StdioTransport {
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        // A server that has closed its output cannot respond.
        if self.closing || self.stdin.is_none() || self.stdout.is_none() {
            return SendOutcome::Closed;
        }
        let frame = outgoing.frame;
        if !self.outgoing.is_empty() && self.outgoing.len() + frame.len() >= WRITE_BUFFER {
            return SendOutcome::Busy;
        }
        put_line(&mut self.outgoing, &frame);
        self.accepted += frame.len() as u64 + 1;
        if let OutgoingKind::Request { id, method } = outgoing.kind
            // Not for the handshake: if the server ends during it, the reason for its end is the error to
            // report.
            && !matches!(&*method, method::INITIALIZE | method::DISCOVER)
        {
            self.unwritten.push_back((self.accepted, id));
        }
        SendOutcome::Accepted
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        let written = self.write(cx);
        if let Some(id) = self.unsent.pop_front() {
            let failure = RequestFailure {
                status: None,
                message: "the server closed its input before the request was written".into(),
                said: None,
                sent: false,
                challenged: false,
            };
            return Poll::Ready(TransportEvent::RequestFailed { id, failure });
        }
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
    /// Drops everything: the pipes first, then the guard, which ends the process.
    fn end(&mut self) {
        self.stdin = None;
        self.stdout = None;
        self.guard = None;
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.end();
    }
}
