//! HTTP and server-sent events by hand, so that the judge shares nothing with the program under test.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Time after which an idle connection may be about to be closed.
const FRESH: Duration = Duration::from_secs(2);

/// An HTTP connection.
#[derive(Debug)]
pub(crate) struct Web {
    stream: BufReader<TcpStream>,
    pub(crate) last_used: Instant,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| &**value)
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// One server-sent event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: String,
}

impl Web {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            last_used: Instant::now(),
        })
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.last_used.elapsed() >= FRESH
    }

    /// A second handle to the connection, with which it can be cut.
    pub(crate) fn hold(&self) -> io::Result<TcpStream> {
        self.stream.get_ref().try_clone()
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request = format!("{request}{name}: {value}\r\n");
        }
        let mut request = format!("{request}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)
    }

    pub(crate) fn head(&mut self) -> io::Result<Head> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                return Ok(Head { status, headers });
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The whole body of a response that is not a stream.
    pub(crate) fn body(&mut self, head: &Head) -> io::Result<String> {
        let mut body = Vec::new();
        if head.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else if let Some(Ok(length)) = head.header("content-length").map(str::parse) {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// The next chunk of a body; `None` at its end.
    fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.line()?;
        let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok((size > 0).then_some(chunk))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// The events of a chunked response whose head has been read.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) web: Web,
    bytes: Vec<u8>,
    read: usize,
}

impl Events {
    pub(crate) fn of(web: Web) -> Self {
        Self {
            web,
            bytes: Vec::new(),
            read: 0,
        }
    }

    /// The next event; `None` at the end of the stream. Comments are skipped.
    pub(crate) fn next(&mut self) -> io::Result<Option<Event>> {
        let mut event = Event::default();
        let mut is_empty = true;
        loop {
            let Some(line) = self.line()? else {
                return Ok(None);
            };
            if line.is_empty() {
                if is_empty {
                    continue;
                }
                return Ok(Some(event));
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            is_empty &= field.is_empty();
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => event.name = Some(value.to_owned()),
                "retry" => event.retry = value.parse().ok(),
                "data" => event.data.push_str(value),
                _ => {}
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            let unread = &self.bytes[self.read..];
            if let Some(length) = unread.iter().position(|byte| *byte == b'\n') {
                let line =
                    String::from_utf8(unread[..length].to_vec()).map_err(io::Error::other)?;
                self.read += length + 1;
                return Ok(Some(line.trim_end_matches('\r').to_owned()));
            }
            self.bytes.drain(..self.read);
            self.read = 0;
            match self.web.chunk()? {
                Some(chunk) => self.bytes.extend(chunk),
                None => return Ok(None),
            }
        }
    }
}
