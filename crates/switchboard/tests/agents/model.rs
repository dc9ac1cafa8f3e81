//! A model on loopback that follows a script: it calls one tool after another, and then reports that it is
//! done.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};

use crate::dialect::{Dialect, Says};

/// One turn of the model: a tool, and its arguments, computed from the results so far.
pub(crate) type Turn = (&'static str, fn(&[String]) -> Value);

/// The last message of the model.
pub(crate) const DONE: &str = "All steps are done.";

/// The longest request that is read, in bytes.
const REQUEST_BYTES: usize = 16 * 1024 * 1024;

pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    script: Arc<Script>,
}

struct Script {
    dialect: Dialect,
    turns: Vec<Turn>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The tool results in the longest conversation.
    results: Vec<String>,
    /// The tools that the agent has offered, as the text of each list.
    offered: Vec<String>,
    /// The requests of the agent, for the message of a failed test.
    requests: Vec<String>,
}

impl Model {
    pub(crate) fn start(dialect: Dialect, turns: &[Turn]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Script {
            dialect,
            turns: turns.to_vec(),
            seen: Mutex::default(),
        });
        let following = Arc::clone(&script);
        // The thread ends with the process: nothing else uses this port.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = Arc::clone(&following);
                thread::spawn(move || script.serve(stream));
            }
        });
        Self { address, script }
    }

    /// The tool results that the agent has sent.
    pub(crate) fn results(&self) -> Vec<String> {
        self.script.seen().results.clone()
    }

    /// The text of all tools that the agent has offered.
    pub(crate) fn offered(&self) -> String {
        self.script.seen().offered.join("\n")
    }

    /// A summary of the agent's requests.
    pub(crate) fn requests(&self) -> String {
        self.script.seen().requests.join("\n")
    }
}

impl Script {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request. It is fine if the agent hangs up.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let (path, body) = read(&stream)?;
        let (status, kind, body) = self.answer(&path, &body);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()
    }

    fn answer(&self, path: &str, body: &[u8]) -> (&'static str, &'static str, String) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let tools = request["tools"].to_string();
        self.seen().offered.push(tools.clone());
        self.seen().requests.push(format!(
            "{path}: {} bytes, with tools {}",
            body.len(),
            tools.chars().take(2_000).collect::<String>()
        ));
        let counts = ["count_tokens", "countTokens"];
        if counts.iter().any(|count| path.contains(count)) {
            let count = json!({ "input_tokens": 1, "totalTokens": 1 });
            return ("200 OK", "application/json", count.to_string());
        }
        if request.is_null() {
            return ("404 Not Found", "application/json", "{}".to_owned());
        }
        // Agents also ask for titles and the like, without tools.
        let says = if tools.contains("fixture__echo") {
            self.next(&request)
        } else {
            Says::Text(r#"{"title": "A test", "next_speaker": "user", "reasoning": "done"}"#)
        };
        let streamed = request["stream"] == true || path.contains("streamGenerateContent");
        let (kind, body) = self.dialect.response(&says, streamed);
        ("200 OK", kind, body)
    }

    fn next(&self, request: &Value) -> Says {
        let results = self.dialect.results(request);
        let number = results.len();
        let says = match self.turns.get(number) {
            Some((tool, arguments)) => Says::Call {
                tool,
                arguments: arguments(&results),
                number,
            },
            None => Says::Text(DONE),
        };
        let mut seen = self.seen();
        if results.len() > seen.results.len() {
            seen.results = results;
        }
        says
    }
}

/// The path and the body of a request.
fn read(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let header = line()?.to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(given) = header.strip_prefix("content-length:") {
            length = given.trim().parse().ok()?;
        }
    }
    if length > REQUEST_BYTES {
        return None;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}
