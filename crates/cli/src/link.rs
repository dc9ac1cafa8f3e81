//! The way to the running gateway: HTTP over its socket, one request to a connection.
//!
//! It is synchronous and small, because a command has to be there in a few milliseconds and asks one
//! thing. It is not hyper's client, which drops a response that arrives while the request is still being written: the
//! gateway refuses an unknown server without reading the body.

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
use switchboard_config::Home;
use switchboard_rest::status::Status;
use switchboard_terminal::error::Error;
use switchboard_wire::{SseEvent, SseParser};

/// How long the gateway may take for an answer that it has at hand, from the first byte sent to the last byte read.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a gateway may take to end its servers.
const DEPARTURE: Duration = Duration::from_secs(30);
/// How long it may take to say how it is.
const GLANCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The longest event that is followed; a line of a log has 8 KiB at most.
const EVENT_BYTES: usize = 1024 * 1024;
/// The longest result of a tool.
const RESULT_BYTES: usize = 256 * 1024 * 1024;

/// A gateway that accepts connections.
#[derive(Debug)]
pub(crate) struct Link {
    socket: PathBuf,
}

impl Link {
    /// The way to the gateway of a home, if one runs.
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
            Err(error) => Err(Error::unreachable(format!(
                "cannot reach the gateway at {}: {error}",
                socket.display()
            ))
            .hint("check who owns it; `switchboard doctor` looks at everything")),
        }
    }

    /// The same for whoever wants to change something: a gateway that is about to leave is waited for, since it takes
    /// nothing in any more.
    pub(crate) fn find_staying(home: &Home) -> Result<Option<Self>, Error> {
        let until = Instant::now() + DEPARTURE;
        while let Some(link) = Self::find(home)? {
            if !link.is_leaving() {
                return Ok(Some(link));
            }
            if Instant::now() > until {
                return Err(
                    Error::unreachable("the gateway is stopping and does not end")
                        .hint("`switchboard stop` waits for it"),
                );
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(None)
    }

    /// Tests if the gateway is stopping or has left.
    pub(crate) fn is_leaving(&self) -> bool {
        let asked = self.ask("GET", "/api/v1/status", None, Some(GLANCE));
        match asked.and_then(Answer::json::<Status>) {
            Ok(status) => status.state == "stopping",
            Err(_) => UnixStream::connect(&self.socket).is_err(),
        }
    }

    /// The way to the gateway that has to be there.
    pub(crate) fn need(home: &Home) -> Result<Self, Error> {
        Self::find(home)?.ok_or_else(|| no_gateway(home).hint("`switchboard serve` starts one"))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.ask("GET", path, None, Some(PATIENCE))?.json()
    }

    /// Asks the gateway to do something. Once its answer begins, it is done: nothing that the answer says of it, such
    /// as the words of a server, can make it look otherwise.
    pub(crate) fn post(&self, path: &str, body: Option<&Value>) -> Result<(), Error> {
        let body = body.map(Value::to_string);
        self.ask("POST", path, body.as_deref(), Some(PATIENCE))
            .map(drop)
    }

    /// The same for what takes as long as it takes: the gateway bounds it. The answer is text, to be
    /// handed on as it came.
    #[cfg(feature = "memory")]
    pub(crate) fn post_and_wait(&self, path: &str, body: &str) -> Result<String, Error> {
        self.ask("POST", path, Some(body), None)?.text()
    }

    /// Asks for something that takes as long as it takes, and hears how it goes on: the gateway bounds it.
    pub(crate) fn post_and_hear(&self, path: &str, body: &str) -> Result<Events, Error> {
        Ok(Events {
            answer: self.ask("POST", path, Some(body), None)?,
            parser: SseParser::new(RESULT_BYTES),
        })
    }

    /// The same with a body that is sent as it was spelled, for an answer that is read.
    pub(crate) fn send<T: DeserializeOwned>(&self, path: &str, body: &str) -> Result<T, Error> {
        self.ask("POST", path, Some(body), Some(PATIENCE))?.json()
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), Error> {
        self.ask("DELETE", path, None, Some(PATIENCE)).map(drop)
    }

    /// Hands over what events say, until the gateway ends the stream.
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

    /// A stream of events, from after the last that was seen.
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

    /// The same with more lines in the head.
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
            Error::unreachable(format!("the gateway is gone: {error}"))
                .hint("`switchboard serve` starts one")
        };
        let stream = UnixStream::connect(&self.socket).map_err(gone)?;
        let mut stream = Timed::new(stream, patience);
        match stream.write_all(format!("{head}{body}").as_bytes()) {
            // It may answer without reading all of it, if there is no such server.
            Err(error) if !is_closed(&error) => return Err(lost(&error)),
            _ => {}
        }
        Answer::read_head(stream)?.or_problem()
    }
}

/// A connection that is given up at its time, however slowly the other side reads and writes.
struct Timed {
    stream: UnixStream,
    until: Option<Instant>,
}

impl Timed {
    fn new(stream: UnixStream, patience: Option<Duration>) -> Self {
        let until = patience.map(|patience| Instant::now() + patience);
        Self { stream, until }
    }

    /// What is left of its time.
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
        // Whoever has time for the answer has none for a gateway that does not read.
        let left = self.left()?.unwrap_or(PATIENCE);
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// What happens in the gateway, as it happens.
pub(crate) struct Events {
    answer: Answer,
    parser: SseParser,
}

impl Events {
    /// Waits for the next event; there is none when the gateway has ended the stream.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent>, Error> {
        let mut chunk = [0; 16 * 1024];
        loop {
            // One that is too long is left out.
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

/// What an event says that tells of a problem.
pub(crate) fn told_problem(text: String) -> Error {
    body::problem(text, || {
        "the gateway tells of a problem that is not understood".to_owned()
    })
}

/// No gateway runs.
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
        // The words of the system for it are about resources.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "the gateway does not answer in time".to_owned()
        }
        _ => format!("the gateway broke off: {error}"),
    };
    Error::unreachable(what).hint(
        "`switchboard status` shows whether it still runs; what was asked of it may have been done",
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_answer_to_half_a_question_is_heard() {
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

    /// A gateway that answers a byte at a time, without an end.
    #[test]
    fn answer_that_trickles_is_given_up() {
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
        assert_eq!(failure.message(), "the gateway does not answer in time");
        assert!(failure.advice().unwrap().contains("may have been done"));
        gateway.join().unwrap();
    }
}
