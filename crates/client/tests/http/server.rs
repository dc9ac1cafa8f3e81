//! A server under the control of the test: it passes each request to the test, which responds by
//! hand, correctly or not.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

/// No step of these tests takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Server {
    address: SocketAddr,
    incoming: mpsc::UnboundedReceiver<Incoming>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, incoming) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                connections.spawn(async move {
                    if let Some(incoming) = Incoming::read(stream).await {
                        let _ = sender.send(incoming);
                    }
                });
            }
        });
        Self {
            address,
            incoming,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the next request.
    pub(crate) async fn next(&mut self) -> Incoming {
        timeout(PATIENCE, self.incoming.recv())
            .await
            .expect("no request")
            .unwrap()
    }

    /// The same, without a time limit.
    pub(crate) async fn wait(&mut self) -> Incoming {
        self.incoming.recv().await.unwrap()
    }

    /// Returns `true` if no request arrives for a while.
    pub(crate) async fn is_left_alone(&mut self, millis: u64) -> bool {
        timeout(Duration::from_millis(millis), self.incoming.recv())
            .await
            .is_err()
    }
}

/// A request, and the means to respond to it.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    headers: HashMap<String, String>,
    stream: TcpStream,
}

impl Incoming {
    async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let head_end = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
        let mut body = bytes.split_off(head_end + 4);
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers
            .get("content-length")
            .map_or(0, |length| length.parse().unwrap());
        while body.len() < length {
            if stream.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        Some(Self {
            method: first.next()?.to_owned(),
            path: first.next()?.to_owned(),
            body,
            headers,
            stream,
        })
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the message in the body.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the method of the message.
    pub(crate) fn rpc(&self) -> String {
        self.message()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) async fn respond(mut self, status: u16, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream.write_all(body).await.unwrap();
    }

    /// Responds with a JSON document.
    pub(crate) async fn json(self, status: u16, body: impl AsRef<[u8]>) {
        self.respond(status, "content-type: application/json\r\n", body)
            .await;
    }

    /// Responds to the request in the body with this result.
    pub(crate) async fn result(self, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": self.message()["id"], "result": result});
        self.json(200, body.to_string()).await;
    }

    /// Responds to `initialize`, with a session.
    pub(crate) async fn initialized(self, session: &str) {
        let body = json!({"jsonrpc": "2.0", "id": self.message()["id"], "result": {}});
        let headers = format!("content-type: application/json\r\nMcp-Session-Id: {session}\r\n");
        self.respond(200, &headers, body.to_string()).await;
    }

    pub(crate) async fn accept(self) {
        self.respond(202, "", "").await;
    }

    /// Responds with an event stream.
    pub(crate) async fn events(self) -> Events {
        self.stream("content-type: text/event-stream; charset=utf-8\r\n")
            .await
    }

    /// Responds with a body of unknown length.
    pub(crate) async fn stream(mut self, headers: &str) -> Events {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}transfer-encoding: chunked\r\n\r\n");
        self.stream.write_all(head.as_bytes()).await.unwrap();
        Events(self.stream)
    }

    /// Waits until the client disconnects.
    pub(crate) async fn hung_up(self) {
        Events(self.stream).hung_up().await;
    }
}

/// An event stream. Dropping it breaks the connection.
#[derive(Debug)]
pub(crate) struct Events(TcpStream);

impl Events {
    pub(crate) async fn send(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.0.write_all(chunk.as_bytes()).await.unwrap();
    }

    /// Sends a message as an event with this id.
    pub(crate) async fn message(&mut self, id: &str, message: &str) {
        self.send(&format!("id: {id}\ndata: {message}\n\n")).await;
    }

    /// Returns `true` if the client stops reading.
    pub(crate) async fn stalls(&mut self, text: &str) -> bool {
        timeout(Duration::from_millis(300), self.send(text))
            .await
            .is_err()
    }

    /// Ends the stream properly.
    pub(crate) async fn end(mut self) {
        self.0.write_all(b"0\r\n\r\n").await.unwrap();
    }

    pub(crate) async fn hung_up(mut self) {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        let read = read.expect("the client holds on");
        // A reset counts as an end.
        assert!(read.is_err() || rest.is_empty(), "more than one request");
    }
}
