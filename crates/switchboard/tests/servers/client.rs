//! A client of 2025-11-25, on the pipe of a program or at an address of the gateway.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use switchboard_test_support::{PATIENCE, http::Http, until};

const REVISION: &str = "2025-11-25";

/// The response to a request: its result, or its error.
pub(crate) type Answer = Result<Value, Value>;

/// An open connection.
pub(crate) struct Client {
    way: Way,
    next_id: u64,
    /// The capabilities of the other side.
    pub(crate) capabilities: Value,
}

enum Way {
    Pipe(Pipe),
    Http(Session),
}

struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
}

struct Session {
    http: Http,
    path: String,
    id: Option<String>,
}

impl Client {
    /// Starts this program and connects to it. The program leads a process group.
    pub(crate) fn start(command: &mut Command, errors: &Path) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(
                File::options()
                    .create(true)
                    .append(true)
                    .open(errors)
                    .unwrap(),
            )
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Some servers print a greeting before they speak JSON.
                if let Ok(message) = serde_json::from_str(&line)
                    && sender.send(message).is_err()
                {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self::open(Way::Pipe(Pipe {
            child,
            stdin,
            messages,
        }))
    }

    /// Opens a session at this path of the gateway.
    pub(crate) fn connect(address: SocketAddr, token: &str, path: &str) -> Self {
        Self::open(Way::Http(Session {
            http: Http::connect(address, token),
            path: path.to_owned(),
            id: None,
        }))
    }

    fn open(way: Way) -> Self {
        // The gateway declares the same to servers, and some offer more tools to clients that answer
        // questions or show apps. Over HTTP a question would need a second connection.
        let apps =
            json!({ "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } });
        let mut capabilities = json!({ "extensions": apps });
        if let Way::Pipe(_) = way {
            capabilities["roots"] = json!({});
            capabilities["sampling"] = json!({});
            capabilities["elicitation"] = json!({ "form": {}, "url": {} });
        }
        let mut client = Self {
            way,
            next_id: 0,
            capabilities: Value::Null,
        };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": capabilities,
            "clientInfo": { "name": "servers", "version": "1.0" },
        });
        let result = client.request("initialize", &params).unwrap();
        client.capabilities = result["capabilities"].clone();
        client
            .way
            .say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// Sends a request and waits for its response.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Answer {
        self.next_id += 1;
        let id = json!(self.next_id);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut answer = match &mut self.way {
            Way::Pipe(pipe) => {
                pipe.say(&request);
                pipe.answer(&id, method)
            }
            Way::Http(session) => session.ask(&request),
        };
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Calls a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        self.request(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Disconnects, and waits for the end of the program if there is one.
    pub(crate) fn leave(mut self) {
        if let Way::Pipe(pipe) = &mut self.way {
            pipe.stdin = None;
            until("the program has ended", || pipe.child.try_wait().unwrap());
        }
    }

    /// Kills a program that may ignore the end of its input.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Way {
    fn say(&mut self, message: &Value) {
        match self {
            Self::Pipe(pipe) => pipe.say(message),
            Self::Http(session) => {
                session.ask(message);
            }
        }
    }
}

impl Pipe {
    fn say(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Waits for the response, and answers questions meanwhile.
    #[track_caller]
    fn answer(&mut self, id: &Value, method: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left);
            let message = message.unwrap_or_else(|error| panic!("no answer to {method}: {error}"));
            let Some(asked) = message["method"].as_str() else {
                if message["id"] == *id {
                    return message;
                }
                continue;
            };
            if message.get("id").is_none() {
                continue;
            }
            let mut answer = json!({ "jsonrpc": "2.0", "id": message["id"] });
            match asked {
                "ping" => answer["result"] = json!({}),
                "roots/list" => answer["result"] = json!({ "roots": [] }),
                _ => answer["error"] = json!({ "code": -32601, "message": "not for this client" }),
            }
            self.say(&answer);
        }
    }
}

/// Kills the children of the program with it.
impl Drop for Pipe {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Session {
    /// Sends a message, and returns the response to a request.
    #[track_caller]
    fn ask(&mut self, message: &Value) -> Value {
        let body = message.to_string();
        let session = self.id.clone().unwrap_or_default();
        let headers = [
            ("Mcp-Session-Id", &*session),
            (
                "MCP-Protocol-Version",
                if session.is_empty() { "" } else { REVISION },
            ),
        ];
        let answer = self.http.ask("POST", &self.path, &headers, body.as_bytes());
        if let Some(session) = answer.header("mcp-session-id") {
            self.id = Some(session.to_owned());
        }
        assert!(answer.status < 300, "{}: {}", answer.status, answer.text());
        if message.get("id").is_none() {
            return Value::Null;
        }
        if answer.header("content-type") != Some("text/event-stream") {
            return answer.json();
        }
        let text = answer.text();
        let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let messages = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
        let mut answers = messages.filter(|event| event["id"] == message["id"]);
        answers
            .next()
            .unwrap_or_else(|| panic!("no answer: {text}"))
    }
}
