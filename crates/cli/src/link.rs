//! The connection to the running gateway: HTTP over its socket, one request per connection.
//!
//! It is synchronous and small, because a command makes one request and has to be done in a few milliseconds.
//! It does not use hyper's client, which drops a response that arrives while the request is still being
//! written: the gateway refuses an unknown server without reading the body.

mod body;

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use body::Answer;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchboard_config::{Home, HomeError};
use switchboard_rest::status::Status;
use switchboard_terminal::error::Error;
use switchboard_wire::{SseEvent, SseParser};

/// Time limit for a response that the gateway can give at once, from the first byte sent to the last byte
/// read.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for a gateway to stop its servers.
const DEPARTURE: Duration = Duration::from_secs(30);
/// Time limit for reading the gateway's status.
const GLANCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The longest event, in bytes; a log line has at most 8 KiB.
const EVENT_BYTES: usize = 1024 * 1024;
/// The longest result of a tool, in bytes.
const RESULT_BYTES: usize = 256 * 1024 * 1024;

/// A gateway that accepts connections.
#[derive(Debug)]
pub(crate) struct Link {
    socket: PathBuf,
}

impl Link {
    /// Finds the running gateway of a home, if there is one.
    pub(crate) fn find(home: &Home) -> Result<Option<Self>, Error> {
        let socket = home.socket();
        match UnixStream::connect(&socket) {
            Ok(_) => Ok(Some(Self { socket })),
            // No socket, or one that a killed gateway left behind.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let error = HomeError::TooLong { path: socket };
                let hint = error.hint().unwrap_or_default();
                Err(Error::unreachable(error.to_string()).hint(hint))
            }
            Err(error) => Err(Error::unreachable(format!(
                "cannot reach the gateway at {}: {error}",
                socket.display()
            ))
            .hint(
                "check its owner and permissions, or run `switchboard doctor` to find the cause",
            )),
        }
    }

    /// Like [`Link::find`], for commands that make changes: waits until a stopping gateway is gone, because
    /// it accepts no more changes.
    pub(crate) fn find_staying(home: &Home) -> Result<Option<Self>, Error> {
        let until = Instant::now() + DEPARTURE;
        while let Some(link) = Self::find(home)? {
            if !link.is_leaving() {
                return Ok(Some(link));
            }
            if Instant::now() > until {
                return Err(
                    Error::unreachable("the gateway is stopping, but does not exit")
                        .hint("`switchboard stop` waits for it"),
                );
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(None)
    }

    /// Tests if the gateway is stopping or gone.
    pub(crate) fn is_leaving(&self) -> bool {
        let asked = self.ask("GET", "/api/v1/status", None, Some(GLANCE));
        match asked.and_then(Answer::json::<Status>) {
            Ok(status) => status.state == "stopping",
            Err(_) => UnixStream::connect(&self.socket).is_err(),
        }
    }

    /// Finds the running gateway of a home, or fails.
    pub(crate) fn need(home: &Home) -> Result<Self, Error> {
        Self::find(home)?.ok_or_else(|| no_gateway(home).hint("start one with `switchboard serve`"))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.ask("GET", path, None, Some(PATIENCE))?.json()
    }

    /// Asks the gateway to do something. It is done as soon as the response begins: nothing in the response,
    /// such as the words of a server, can make it look otherwise.
    pub(crate) fn post(&self, path: &str, body: Option<&Value>) -> Result<(), Error> {
        let body = body.map(Value::to_string);
        self.ask("POST", path, body.as_deref(), Some(PATIENCE))
            .map(drop)
    }

    /// Like [`Link::post`], without a time limit: the gateway has its own. Returns the response verbatim.
    pub(crate) fn post_and_wait(&self, path: &str, body: &str) -> Result<String, Error> {
        self.ask("POST", path, Some(body), None)?.text()
    }

    /// Posts a request and follows the events of its progress, without a time limit: the gateway has its own.
    pub(crate) fn post_and_hear(&self, path: &str, body: &str) -> Result<Events, Error> {
        Ok(Events {
            answer: self.ask("POST", path, Some(body), None)?,
            parser: SseParser::new(RESULT_BYTES),
        })
    }

    /// Posts a body verbatim and parses the response.
    pub(crate) fn send<T: DeserializeOwned>(&self, path: &str, body: &str) -> Result<T, Error> {
        self.ask("POST", path, Some(body), Some(PATIENCE))?.json()
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), Error> {
        self.ask("DELETE", path, None, Some(PATIENCE)).map(drop)
    }

    /// Calls `each` with the data of every event, until the gateway ends the stream.
    pub(crate) fn follow(
        &self,
        path: &str,
        mut each: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut events = self.events(path, None)?;
        while let Some(event) = events.next()? {
            if let Ok(data) = std::str::from_utf8(&event.data) {
                each(data)?;
            }
        }
        Ok(())
    }

    /// A stream of events after the one with the ID `last`.
    pub(crate) fn events(&self, path: &str, last: Option<&str>) -> Result<Events, Error> {
        let header = last.map(|id| format!("Last-Event-ID: {id}\r\n"));
        let head = header.as_deref().unwrap_or_default();
        Ok(Events {
            answer: self.ask_with("GET", path, head, None, None)?,
            parser: SseParser::new(EVENT_BYTES),
        })
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Answer, Error> {
        self.ask_with(method, path, "", body, patience)
    }

    /// Like `ask`, with more header lines.
    fn ask_with(
        &self,
        method: &str,
        path: &str,
        more: &str,
        body: Option<&str>,
        patience: Option<Duration>,
    ) -> Result<Answer, Error> {
        let accept = "application/json, text/event-stream";
        let body = body.unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\
             Accept: {accept}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let gone = |error: io::Error| {
            Error::unreachable(format!("cannot connect to the gateway: {error}"))
                .hint("start one with `switchboard serve`")
        };
        let stream = UnixStream::connect(&self.socket).map_err(gone)?;
        let mut stream = Timed::new(stream, patience);
        match stream.write_all(format!("{head}{body}").as_bytes()) {
            // If there is no such server, the gateway may respond before it has read the whole request.
            Err(error) if !is_closed(&error) => return Err(lost(&error)),
            _ => {}
        }
        Answer::read_head(stream)?.or_problem()
    }
}

/// A connection with a deadline, no matter how slowly the other side reads and writes.
struct Timed {
    stream: UnixStream,
    until: Option<Instant>,
}

impl Timed {
    fn new(stream: UnixStream, patience: Option<Duration>) -> Self {
        let until = patience.map(|patience| Instant::now() + patience);
        Self { stream, until }
    }

    /// Time left until the deadline.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        match left {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl io::Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(into)
    }
}

impl io::Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Even without a deadline for the response, a gateway that does not read the request fails.
        let left = self.left()?.unwrap_or(PATIENCE);
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The events of the gateway, as they happen.
pub(crate) struct Events {
    answer: Answer,
    parser: SseParser,
}

impl Events {
    /// Waits for the next event. Returns `None` when the gateway has ended the stream.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, Error> {
        let mut chunk = [0; 16 * 1024];
        loop {
            // Skips events that are too long.
            while let Some(event) = self.parser.next_event() {
                if let Ok(event) = event {
                    return Ok(Some(event));
                }
            }
            let read = match self.answer.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(lost(&error)),
            };
            self.parser.push(&chunk[..read]);
        }
    }
}

/// The error in an event that reports a problem.
pub(crate) fn told_problem(text: String) -> Error {
    body::problem(text, || {
        "cannot parse the error that the gateway reported".to_owned()
    })
}

/// The error that no gateway runs.
pub(crate) fn no_gateway(home: &Home) -> Error {
    Error::unreachable(format!(
        "no gateway is running for {}",
        home.config_file().display()
    ))
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

fn lost(error: &io::Error) -> Error {
    let what = match error.kind() {
        // The system's own message speaks of resources.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "the gateway did not respond in time".to_owned()
        }
        _ => format!("lost the connection to the gateway: {error}"),
    };
    Error::unreachable(what)
        .hint("check with `switchboard status` that it is running; the request may have completed")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn response_to_unfinished_request_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let gateway = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let answer = "HTTP/1.1 404 Not Found\r\n\r\n{\"detail\":\"no such server\"}";
            stream.write_all(answer.as_bytes()).unwrap();
        });
        // More than the socket holds.
        let body = "x".repeat(8 * 1024 * 1024);
        let answer = Link { socket }.post_and_wait("/", &body);
        assert_eq!(answer.unwrap_err().message(), "no such server");
        gateway.join().unwrap();
    }

    #[test]
    fn socket_path_that_is_too_long_is_explained() {
        let long = PathBuf::from("/").join("x".repeat(120));
        let home = Home::locate(Some(&long), None).unwrap();
        let failure = Link::find(&home).unwrap_err();
        assert!(failure.is_unreachable(), "{failure}");
        assert!(failure.message().contains("bytes"), "{failure}");
        assert_eq!(failure.advice(), Some("use a shorter --home DIR"));
    }

    /// The gateway responds one byte at a time, without an end.
    #[test]
    fn trickling_response_times_out() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let gateway = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"H").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let asked = Link { socket }.ask("POST", "/", None, Some(Duration::from_millis(100)));
        let failure = asked.err().unwrap();
        assert_eq!(failure.message(), "the gateway did not respond in time");
        assert!(failure.advice().unwrap().contains("may have completed"));
        gateway.join().unwrap();
    }
}
