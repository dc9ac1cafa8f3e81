//! A minimal gateway over HTTP: it has one child, and replaces the ids of envelopes. No sessions, no token,
//! no names, no records, no limits, and no supervision of the child.

use std::{
    collections::HashMap,
    io::{self, Write},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::Response,
    routing::post,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::{ChildStdout, Command},
    sync::{mpsc, oneshot},
};

use crate::Result;

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

struct Relay {
    next: AtomicU64,
    /// Callers that wait for the tail of a response, which starts at `result` or `error`.
    waiting: Mutex<HashMap<u64, oneshot::Sender<String>>>,
    lines: mpsc::UnboundedSender<String>,
}

/// Relays from HTTP to the server until it is stopped. Prints its address on standard output.
pub(crate) async fn serve(server: &[&str]) -> Result<()> {
    let (program, arguments) = server.split_first().ok_or("no server to relay to")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe to the server")?;
    let output = child.stdout.take().ok_or("no pipe from the server")?;
    let (lines, mut queue) = mpsc::unbounded_channel::<String>();
    let relay = Arc::new(Relay {
        next: AtomicU64::new(0),
        waiting: Mutex::default(),
        lines,
    });
    tokio::spawn(async move {
        let mut batch = Vec::new();
        while queue.recv_many(&mut batch, 256).await > 0 {
            if input.write_all(batch.concat().as_bytes()).await.is_err() {
                return;
            }
            batch.clear();
        }
    });
    tokio::spawn(read(Arc::clone(&relay), output));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut out = io::stdout();
    writeln!(out, "http://{}/mcp", listener.local_addr()?)?;
    let app = Router::new()
        .route("/mcp", post(relay_one))
        .with_state(relay);
    axum::serve(
        axum::serve::ListenerExt::tap_io(listener, |stream| {
            // If this fails, the stream is only slower.
            let _ = stream.set_nodelay(true);
        }),
        app,
    )
    .await?;
    Ok(())
}

async fn read(relay: Arc<Relay>, mut output: ChildStdout) {
    let mut unread = Vec::new();
    while let Ok(1..) = output.read_buf(&mut unread).await {
        let mut done = 0;
        for end in memchr::memchr_iter(b'\n', &unread) {
            let line = &unread[done..end];
            done = end + 1;
            let Ok(answer) = serde_json::from_slice::<Answer<'_>>(line) else {
                continue;
            };
            let rest = match (answer.result, answer.error) {
                (Some(result), _) => format!(r#","result":{result}}}"#),
                (None, Some(error)) => format!(r#","error":{error}}}"#),
                (None, None) => continue,
            };
            if let Some(asker) = relay.waiting.lock().remove(&answer.id) {
                let _ = asker.send(rest);
            }
        }
        unread.drain(..done);
    }
}

async fn relay_one(State(relay): State<Arc<Relay>>, body: Bytes) -> Response {
    let Ok(question) = serde_json::from_slice::<Question<'_>>(&body) else {
        return status(StatusCode::BAD_REQUEST);
    };
    let method = question.method;
    let params = question
        .params
        .map_or_else(String::new, |params| format!(r#","params":{params}"#));
    let Some(id) = question.id else {
        let _ = relay.lines.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":{method}{params}}}\n"
        ));
        return status(StatusCode::ACCEPTED);
    };
    let number = relay.next.fetch_add(1, Relaxed);
    let (asker, answer) = oneshot::channel();
    relay.waiting.lock().insert(number, asker);
    let _ = relay.lines.send(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":{method}{params}}}\n"
    ));
    let Ok(rest) = answer.await else {
        return status(StatusCode::BAD_GATEWAY);
    };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id}{rest}"#);
    Response::builder()
        .header(CONTENT_TYPE, "application/json")
        .body(answer.into())
        .unwrap_or_default()
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
