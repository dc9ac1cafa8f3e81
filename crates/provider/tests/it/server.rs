//! A server that sends a prepared reply to each connection, and records the requests.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The reply to a connection.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Json(u16, Value),
    Text(u16, &'static str, String),
    /// A status with one additional header.
    Header(u16, &'static str, String),
    /// Reads the request and never responds.
    Silence,
    /// Reads the request and disconnects.
    HangUp,
    /// Announces a longer body than it sends.
    Half,
    /// A body of this many bytes, in chunks, without a length.
    Endless(usize),
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }
}

pub(crate) struct Server {
    at: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server. Every further connection gets the last reply.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut replies: VecDeque<_> = replies.into_iter().collect();
        let notes = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reply = match replies.len() {
                    1 => replies[0].clone(),
                    _ => replies.pop_front().unwrap(),
                };
                tokio::spawn(serve(stream, reply, Arc::clone(&notes)));
            }
        });
        Self { at, seen }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.at)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, reply: Reply, notes: Arc<Mutex<Vec<Seen>>>) {
    let Some(seen) = read(&mut stream).await else {
        return;
    };
    notes.lock().unwrap().push(seen);
    let answer = |status: u16, header: &str, body: &str| {
        format!(
            "HTTP/1.1 {status} X\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let text = match reply {
        Reply::Json(status, body) => {
            answer(status, "content-type: application/json", &body.to_string())
        }
        Reply::Text(status, kind, body) => answer(status, &format!("content-type: {kind}"), &body),
        Reply::Header(status, name, value) => answer(status, &format!("{name}: {value}"), ""),
        Reply::Silence => return std::future::pending().await,
        Reply::HangUp => return,
        Reply::Half => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\"".to_owned(),
        Reply::Endless(bytes) => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
                .await;
            let piece = vec![b' '; 65_536];
            // The reader disconnects before the end, which is not an error here.
            for _ in 0..bytes / piece.len() {
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
            }
            return;
        }
    };
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let seen = Seen {
                head,
                body: Value::Null,
            };
            let length: usize = seen.header("content-length").unwrap().parse().unwrap();
            let body = &bytes[end + 4..];
            if body.len() == length {
                let body = serde_json::from_slice(body).unwrap();
                return Some(Seen { body, ..seen });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
