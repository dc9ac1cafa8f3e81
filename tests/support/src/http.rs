//! HTTP by hand, so that a test can also send what no library would.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

use serde_json::Value;

use crate::PATIENCE;

/// A connection to the gateway.
pub struct Http {
    address: SocketAddr,
    token: String,
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| &**value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

impl Http {
    pub fn connect(address: SocketAddr, token: &str) -> Self {
        Self::try_connect(address, token).unwrap()
    }

    pub fn try_connect(address: SocketAddr, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            address,
            token: token.to_owned(),
            stream: BufReader::new(stream),
        })
    }

    /// Another connection with the same token.
    pub fn again(&self) -> Self {
        self.try_again().unwrap()
    }

    pub fn try_again(&self) -> io::Result<Self> {
        Self::try_connect(self.address, &self.token)
    }

    /// The connection itself.
    pub fn raw(&mut self) -> &mut TcpStream {
        self.stream.get_mut()
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    /// Sends a request with the headers that a normal client sends, and reads the response.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.send(method, path, headers, body).unwrap();
        self.answer().unwrap()
    }

    /// Sends a request. A header given here replaces the default one; an empty one removes it.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let usual = [
            ("Host", self.address.to_string()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Length", body.len().to_string()),
        ];
        let given = |name: &str| headers.iter().any(|(known, _)| *known == name);
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)) {
            head = format!("{head}{name}: {value}\r\n");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head = format!("{head}{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.head()?;
        let length = answer.header("content-length").map(str::parse);
        if let Some(Ok(length)) = length {
            answer.body = vec![0; length];
            self.stream.read_exact(&mut answer.body)?;
        } else if answer.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk()? {
                answer.body.extend(chunk);
            }
        }
        Ok(answer)
    }

    /// The head of a response whose body is read in chunks.
    pub fn head(&mut self) -> io::Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else {
                return Ok(Answer {
                    status,
                    headers,
                    body: Vec::new(),
                });
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// The next chunk of a body; `None` at its end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
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
