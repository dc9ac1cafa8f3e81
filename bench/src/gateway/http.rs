//! The load: HTTP/1.1 connections with keep-alive, each with its own MCP session if the era has sessions, and
//! no more of a client than that takes.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use memchr::memmem;
use serde_json::Value;
use switchboard_wire::Era;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::Result;

/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The last of the parameters of a request of the modern era.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The address of a subject, and what it requires of clients.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) path: &'static str,
    pub(super) token: Option<String>,
    /// The name of the echo tool at the subject.
    pub(super) tool: &'static str,
    /// The era of its clients.
    pub(super) era: Era,
}

/// One connection, with a session if the era has sessions.
pub(super) struct Connection {
    stream: TcpStream,
    /// The request up to the length of its body.
    head: String,
    tool: &'static str,
    era: Era,
    request: Vec<u8>,
    received: Vec<u8>,
    body: Vec<u8>,
    calls: u64,
    number: u64,
}

struct Reply {
    status: u16,
    session: Option<String>,
}

impl Connection {
    /// Connects, and opens a session or discovers the server, depending on the era.
    pub(super) async fn open(door: &Door, number: u64) -> Result<Self> {
        let stream = TcpStream::connect(door.address).await?;
        stream.set_nodelay(true)?;
        let token = door.token.as_ref();
        let token = token.map_or_else(String::new, |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{token}",
            door.path, door.address
        );
        let mut connection = Self {
            stream,
            head,
            tool: door.tool,
            era: door.era,
            request: Vec::new(),
            received: Vec::new(),
            body: Vec::new(),
            calls: 0,
            number,
        };
        match door.era {
            Era::Legacy => connection.initialize().await?,
            Era::Modern => connection.discover().await?,
        }
        Ok(connection)
    }

    async fn initialize(&mut self) -> Result<()> {
        let reply = self
            .post(
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#,
            )
            .await?;
        self.expect(&reply, 200, b"\"protocolVersion\"")?;
        if let Some(session) = reply.session {
            self.head.extend(["Mcp-Session-Id: ", &session, "\r\n"]);
        }
        self.head += "MCP-Protocol-Version: 2025-06-18\r\n";
        let reply = self
            .post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await?;
        self.expect(&reply, 202, b"")
    }

    async fn discover(&mut self) -> Result<()> {
        self.head += "MCP-Protocol-Version: 2026-07-28\r\n";
        let open = self.head.len();
        self.head += "Mcp-Method: server/discover\r\n";
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{{META}}}}}"#);
        let reply = self.post(&message).await?;
        self.expect(&reply, 200, b"\"supportedVersions\"")?;
        // Only calls follow.
        self.head.truncate(open);
        let tool = self.tool;
        self.head
            .extend(["Mcp-Method: tools/call\r\nMcp-Name: ", tool, "\r\n"]);
        Ok(())
    }

    /// Calls the echo tool and verifies the response. Returns the duration.
    pub(super) async fn call(&mut self) -> Result<Duration> {
        self.calls += 1;
        let (number, calls, tool) = (self.number, self.calls, self.tool);
        let said = format!("connection {number} says the quick brown fox {calls}");
        let (comma, meta) = match self.era {
            Era::Legacy => ("", ""),
            Era::Modern => (",", META),
        };
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{calls},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{said}"}}{comma}{meta}}}}}"#
        );
        let begin = Instant::now();
        let reply = self.post(&message).await?;
        let taken = begin.elapsed();
        self.expect(&reply, 200, said.as_bytes())?;
        let modern = memmem::find(&self.body, b"\"resultType\":\"complete\"").is_some();
        if modern != (self.era == Era::Modern) {
            return Err("the response is of the other era".into());
        }
        Ok(taken)
    }

    /// The number of tools on all pages. Works in a session only.
    pub(super) async fn count_tools(&mut self) -> Result<usize> {
        let mut count = 0;
        let mut cursor = Value::Null;
        loop {
            self.calls += 1;
            let params = match &cursor {
                Value::Null => String::new(),
                cursor => format!(r#","params":{{"cursor":{cursor}}}"#),
            };
            let message = format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/list"{params}}}"#,
                self.calls
            );
            let reply = self.post(&message).await?;
            self.expect(&reply, 200, b"\"tools\"")?;
            let answer: Value = serde_json::from_slice(&self.body)?;
            count += answer["result"]["tools"].as_array().map_or(0, Vec::len);
            cursor = answer["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return Ok(count);
            }
        }
    }

    fn expect(&self, reply: &Reply, status: u16, text: &[u8]) -> Result<()> {
        if reply.status == status && memmem::find(&self.body, text).is_some() {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&self.body);
        let body: String = body.chars().take(300).collect();
        Err(format!("unexpected response: HTTP {} {body}", reply.status).into())
    }

    async fn post(&mut self, body: &str) -> Result<Reply> {
        self.request.clear();
        self.request.extend_from_slice(self.head.as_bytes());
        let rest = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.request.extend_from_slice(rest.as_bytes());
        self.stream.write_all(&self.request).await?;
        match timeout(PATIENCE, self.receive()).await {
            Ok(reply) => reply,
            Err(_) => Err(format!("no response within {PATIENCE:?} to {body}").into()),
        }
    }

    async fn receive(&mut self) -> Result<Reply> {
        let end = loop {
            if let Some(end) = memmem::find(&self.received, b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let head = std::str::from_utf8(&self.received[..end])?;
        let status = head.get(9..12).ok_or("invalid HTTP response")?.parse()?;
        let mut length = None;
        let mut chunked = false;
        let mut session = None;
        for (name, value) in head.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse::<usize>()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value.to_owned());
            }
        }
        self.received.drain(..end);
        self.body.clear();
        if chunked {
            while self.chunk().await? {}
        } else {
            self.take(length.unwrap_or(0)).await?;
        }
        Ok(Reply { status, session })
    }

    /// Takes the next chunk of the body; `false` if it was the last.
    async fn chunk(&mut self) -> Result<bool> {
        let end = loop {
            if let Some(end) = memmem::find(&self.received, b"\r\n") {
                break end;
            }
            self.more().await?;
        };
        let size = std::str::from_utf8(&self.received[..end])?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
        self.received.drain(..end + 2);
        self.take(size).await?;
        while self.received.len() < 2 {
            self.more().await?;
        }
        self.received.drain(..2);
        Ok(size > 0)
    }

    async fn take(&mut self, length: usize) -> Result<()> {
        while self.received.len() < length {
            self.more().await?;
        }
        self.body.extend_from_slice(&self.received[..length]);
        self.received.drain(..length);
        Ok(())
    }

    async fn more(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            return Err("the connection was closed".into());
        }
        Ok(())
    }
}
