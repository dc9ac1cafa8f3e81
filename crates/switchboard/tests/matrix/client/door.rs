//! The doors: a pipe, Streamable HTTP, HTTP+SSE. Each reads in threads of its own and sends everything to one
//! inbox.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Sender},
    },
    thread,
};

use switchboard_test_support::until;

use super::{
    PATIENCE,
    arrival::Arrival,
    web::{Events, Web},
};
use crate::revision::{Revision, Way};

/// The stream of a pipe, of HTTP+SSE, and of unsolicited messages over Streamable HTTP.
pub(crate) const COMMON: u64 = 0;

/// The addresses at which a client can connect.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The program on the pipe, with its arguments.
    pub(crate) program: Vec<String>,
    pub(crate) address: SocketAddr,
    pub(crate) http_path: String,
    pub(crate) sse_path: String,
    pub(crate) token: Option<String>,
}

impl Place {
    /// The headers of every request.
    pub(crate) fn headers(&self, accept: &str) -> Headers {
        let mut headers = vec![
            ("Host".to_owned(), self.address.to_string()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), accept.to_owned()),
        ];
        if let Some(token) = &self.token {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        headers
    }
}

pub(crate) type Headers = Vec<(String, String)>;

/// An open door.
#[derive(Debug)]
pub(crate) enum Door {
    Pipe(Pipe),
    Http(Streamable),
    Sse(Sse),
}

impl Door {
    pub(crate) fn open(
        place: &Place,
        revision: Revision,
        way: Way,
        inbox: Sender<Arrival>,
    ) -> io::Result<Self> {
        Ok(match way {
            Way::Pipe => Self::Pipe(Pipe::open(place, inbox)?),
            Way::Http => Self::Http(Streamable::new(place, revision, inbox)),
            Way::Sse => Self::Sse(Sse::open(place, inbox)?),
        })
    }

    /// Sends a message, and returns the stream on which its response comes.
    pub(crate) fn send(&mut self, text: &str, more: Headers) -> io::Result<u64> {
        match self {
            Self::Pipe(pipe) => {
                let stdin = pipe.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                stdin.write_all(format!("{text}\n").as_bytes())?;
                Ok(COMMON)
            }
            Self::Http(http) => http.send("POST", more, text.as_bytes()),
            Self::Sse(sse) => {
                sse.post(text)?;
                Ok(COMMON)
            }
        }
    }

    /// Cuts a stream of Streamable HTTP.
    pub(crate) fn cut(&mut self, stream: u64) {
        if let Self::Http(http) = self {
            http.cut(stream);
        }
    }

    /// Closes the input of the program on a pipe, and waits until it exits.
    pub(crate) fn hang_up(&mut self) {
        if let Self::Pipe(pipe) = self {
            pipe.stdin = None;
            until("the program on the pipe has left", || {
                pipe.child.try_wait().unwrap()
            });
        }
    }

    pub(crate) fn http(&mut self) -> Option<&mut Streamable> {
        match self {
            Self::Http(http) => Some(http),
            Self::Pipe(_) | Self::Sse(_) => None,
        }
    }
}

/// A program that speaks over its standard input and output.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    /// `None` after the client has hung up.
    stdin: Option<ChildStdin>,
}

impl Pipe {
    fn open(place: &Place, inbox: Sender<Arrival>) -> io::Result<Self> {
        let (program, words) = place.program.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(words)
            .env_remove("SWITCHBOARD_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || io::Error::other("the program has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if inbox.send(Arrival::message(COMMON, line)).is_err() {
                    return;
                }
            }
            let _ = inbox.send(Arrival::end(COMMON, 200));
        });
        let stdin = Some(stdin);
        Ok(Self { child, stdin })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Streamable HTTP: each message is a request of its own.
#[derive(Debug)]
pub(crate) struct Streamable {
    place: Place,
    revision: Revision,
    inbox: Sender<Arrival>,
    pub(crate) session: Option<String>,
    idle: Arc<Mutex<Vec<Web>>>,
    /// The connections that are still being read, so that they can be cut.
    open: Arc<Mutex<HashMap<u64, TcpStream>>>,
    next_stream: u64,
}

impl Streamable {
    fn new(place: &Place, revision: Revision, inbox: Sender<Arrival>) -> Self {
        Self {
            place: place.clone(),
            revision,
            inbox,
            session: None,
            idle: Arc::default(),
            open: Arc::default(),
            next_stream: COMMON + 1,
        }
    }

    /// Opens the stream of unsolicited messages.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        self.begin(COMMON, "GET", Vec::new(), b"")
    }

    /// Sends an HTTP request, whose response comes on a stream of its own. A header without a value removes
    /// the usual one with that name.
    pub(crate) fn send(&mut self, method: &str, more: Headers, body: &[u8]) -> io::Result<u64> {
        let stream = self.next_stream;
        self.next_stream += 1;
        self.begin(stream, method, more, body)?;
        Ok(stream)
    }

    fn begin(&mut self, stream: u64, method: &str, more: Headers, body: &[u8]) -> io::Result<()> {
        let accept = match method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut headers = self.place.headers(accept);
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        if self.session.is_some() && self.revision >= Revision::Jun2025 {
            let version = self.revision.as_str().to_owned();
            headers.push(("MCP-Protocol-Version".to_owned(), version));
        }
        headers.retain(|(name, _)| !more.iter().any(|(known, _)| known == name));
        headers.extend(more.into_iter().filter(|(_, value)| !value.is_empty()));

        let mut web = self.connection()?;
        self.open.lock().unwrap().insert(stream, web.hold()?);
        web.send(method, &self.place.http_path, &headers, body)?;
        let (inbox, idle, open) = (self.inbox.clone(), self.idle.clone(), self.open.clone());
        thread::spawn(move || {
            let mut status = 0;
            let whole = read(web, stream, &inbox, &mut status);
            // A stream that was cut may have been read to its end before; its connection is not reused,
            // either.
            let is_cut = open.lock().unwrap().remove(&stream).is_none();
            if let (Ok(web), false) = (whole, is_cut) {
                idle.lock().unwrap().push(web);
            }
            // If the receiver is gone, the client has left.
            let _ = inbox.send(Arrival::end(stream, status));
        });
        Ok(())
    }

    fn connection(&self) -> io::Result<Web> {
        let mut idle = self.idle.lock().unwrap();
        match idle.pop().filter(|web| !web.is_stale()) {
            Some(web) => Ok(web),
            None => Web::connect(self.place.address),
        }
    }

    fn cut(&self, stream: u64) {
        if let Some(held) = self.open.lock().unwrap().remove(&stream) {
            let _ = held.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        if self.session.is_some() {
            // The client ends its session; it is fine if the gateway is gone.
            let _ = self.send("DELETE", Vec::new(), b"");
        }
        for (_, held) in self.open.lock().unwrap().drain() {
            let _ = held.shutdown(Shutdown::Read);
        }
    }
}

/// Reads one response to its end, and returns the connection if it can be reused.
fn read(mut web: Web, stream: u64, inbox: &Sender<Arrival>, status: &mut u16) -> io::Result<Web> {
    let head = web.head()?;
    *status = head.status;
    let session = head.header("mcp-session-id").map(str::to_owned);
    let hand_over = |arrival: Arrival| inbox.send(arrival).map_err(io::Error::other);
    if head.is_events() {
        let mut events = Events::of(web);
        while let Some(event) = events.next()? {
            hand_over(Arrival {
                is_event: true,
                event_id: event.id,
                retry: event.retry,
                session: session.clone(),
                ..Arrival::message(stream, event.data)
            })?;
        }
        web = events.web;
    } else {
        let body = web.body(&head)?;
        if !body.is_empty() {
            hand_over(Arrival {
                status: head.status,
                session,
                ..Arrival::message(stream, body)
            })?;
        }
    }
    web.last_used = std::time::Instant::now();
    Ok(web)
}

/// HTTP+SSE: one stream for all incoming messages, and an address for all outgoing ones.
#[derive(Debug)]
pub(crate) struct Sse {
    place: Place,
    endpoint: String,
    web: Web,
    held: TcpStream,
}

impl Sse {
    fn open(place: &Place, inbox: Sender<Arrival>) -> io::Result<Self> {
        let mut web = Web::connect(place.address)?;
        let held = web.hold()?;
        web.send(
            "GET",
            &place.sse_path,
            &place.headers("text/event-stream"),
            b"",
        )?;
        let head = web.head()?;
        if head.status != 200 || !head.is_events() {
            let body = web.body(&head).unwrap_or_default();
            let status = head.status;
            return Err(io::Error::other(format!("no stream: {status} {body}")));
        }
        let mut events = Events::of(web);
        let (found, endpoint) = mpsc::channel();
        thread::spawn(move || {
            while let Ok(Some(event)) = events.next() {
                if event.name.as_deref() == Some("endpoint") {
                    let _ = found.send(event.data);
                } else if inbox
                    .send(Arrival {
                        is_event: true,
                        event_id: event.id,
                        ..Arrival::message(COMMON, event.data)
                    })
                    .is_err()
                {
                    return;
                }
            }
            let _ = inbox.send(Arrival::end(COMMON, 200));
        });
        let endpoint = endpoint
            .recv_timeout(PATIENCE)
            .map_err(|_| io::Error::other("no `endpoint` came first"))?;
        let endpoint = resolve(&place.sse_path, &endpoint);
        Ok(Self {
            web: Web::connect(place.address)?,
            place: place.clone(),
            endpoint,
            held,
        })
    }

    fn post(&mut self, text: &str) -> io::Result<()> {
        if self.web.is_stale() {
            self.web = Web::connect(self.place.address)?;
        }
        let headers = self.place.headers("application/json");
        self.web
            .send("POST", &self.endpoint, &headers, text.as_bytes())?;
        let head = self.web.head()?;
        let body = self.web.body(&head)?;
        self.web.last_used = std::time::Instant::now();
        match head.status {
            200..=299 => Ok(()),
            status => Err(io::Error::other(format!("refused: {status} {body}"))),
        }
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        let _ = self.held.shutdown(Shutdown::Both);
    }
}

/// The path that a reference means, relative to this path.
fn resolve(base: &str, reference: &str) -> String {
    let path = match reference.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => reference,
    };
    if path.starts_with('/') {
        return path.to_owned();
    }
    if path.starts_with('?') {
        return format!("{base}{path}");
    }
    let folder = base.rfind('/').map_or("", |slash| &base[..slash]);
    format!("{folder}/{path}")
}
