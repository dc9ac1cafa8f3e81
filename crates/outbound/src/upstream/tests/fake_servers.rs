//! Servers in this process, which tests start in place of real ones.
//!
//! They speak MCP over pipes and end like processes: some time after their input is closed, or at once when they crash.

use std::{
    collections::HashMap,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_client::{
    stdio::{Process, ProcessGuard, Spawn, Spawning, Stdio},
    transport::Ended,
};
use switchboard_contain::Launch;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex},
    sync::{mpsc, watch},
    task::AbortHandle,
    time::sleep,
};

/// The tool that every server has. Its arguments are those of [`Work`].
pub(crate) const TOOL: &str = "work";

/// The capacity of a pipe, in bytes.
const PIPE: usize = 64 * 1024;

/// All servers that a test has started. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeServers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    started: Vec<Arc<FakeServer>>,
    /// The number of servers that will crash as soon as they are started.
    broken: usize,
    /// The time that a server takes to exit after its input is closed.
    exit_takes: Duration,
    /// Servers list the roots when they start.
    list_roots: bool,
}

/// A server that was started.
#[derive(Debug)]
pub(crate) struct FakeServer {
    /// Its position among all.
    position: usize,
    /// The instance that it was started for.
    pub(crate) instance: String,
    /// The command of its entry, with everything substituted.
    pub(crate) program: String,
    /// The servers that were running when it was started, by their positions among all.
    pub(crate) beside: Vec<usize>,
    /// The calls that have reached it, in order.
    calls: Mutex<Vec<u64>>,
    crash: watch::Sender<bool>,
    has_ended: watch::Sender<bool>,
}

impl FakeServers {
    /// Connects to servers that are started like this.
    pub(crate) fn stdio(&self, launch: &Launch) -> Stdio {
        Stdio::new(Spawner {
            servers: self.clone(),
            instance: launch.name().to_owned(),
            program: launch.describe(),
            started: Mutex::default(),
        })
    }

    /// All servers that were ever started, in order.
    pub(crate) fn all(&self) -> Vec<Arc<FakeServer>> {
        self.0.lock().started.clone()
    }

    /// The servers that are running.
    pub(crate) fn running(&self) -> Vec<Arc<FakeServer>> {
        let state = self.0.lock();
        let running = state.started.iter().filter(|server| server.is_running());
        running.cloned().collect()
    }

    /// Has the next servers crash as soon as they are started.
    pub(crate) fn break_next(&self, servers: usize) {
        self.0.lock().broken = servers;
    }

    /// Sets the time that a server takes to exit after its input is closed.
    pub(crate) fn set_exit_takes(&self, time: Duration) {
        self.0.lock().exit_takes = time;
    }

    /// Determines whether servers list the roots when they start.
    pub(crate) fn set_list_roots(&self, list_roots: bool) {
        self.0.lock().list_roots = list_roots;
    }

    fn start(&self, instance: &str, program: &str) -> (Arc<FakeServer>, bool) {
        let mut state = self.0.lock();
        let running = state.started.iter().enumerate();
        let running = running.filter(|(_, server)| server.is_running());
        let server = Arc::new(FakeServer {
            position: state.started.len(),
            instance: instance.to_owned(),
            program: program.to_owned(),
            beside: running.map(|(at, _)| at).collect(),
            calls: Mutex::default(),
            crash: watch::Sender::new(false),
            has_ended: watch::Sender::new(false),
        });
        state.started.push(Arc::clone(&server));
        let is_broken = state.broken > 0;
        state.broken = state.broken.saturating_sub(1);
        (server, is_broken)
    }
}

impl FakeServer {
    /// Tests if it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        !*self.has_ended.borrow()
    }

    /// The calls that have reached it, in order.
    pub(crate) fn calls(&self) -> Vec<u64> {
        self.calls.lock().clone()
    }

    /// Ends it at once.
    pub(crate) fn crash(&self) {
        self.crash.send_replace(true);
    }

    async fn ended(&self) {
        let mut ended = self.has_ended.subscribe();
        // The sender is in `self`.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Serves until it crashes, or until its input is closed.
    async fn serve(self: Arc<Self>, servers: FakeServers, stdin: DuplexStream, out: DuplexStream) {
        let mut crash = self.crash.subscribe();
        let list_roots = servers.0.lock().list_roots;
        let mut session = Session::new(Arc::clone(&self), list_roots);
        tokio::select! {
            _ = crash.wait_for(|crash| *crash) => {}
            () = async {
                session.converse(stdin, out).await;
                let exit_takes = servers.0.lock().exit_takes;
                sleep(exit_takes).await;
            } => {}
        }
        self.has_ended.send_replace(true);
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Work {
    /// Identifies the call.
    pub(crate) call: u64,
    /// The time that it takes.
    pub(crate) milliseconds: u64,
    /// The question of the server before it answers.
    pub(crate) asks: Asks,
}

/// A question of a server.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) enum Asks {
    Nothing,
    User,
    Roots,
}

/// The conversation of a server with its client.
struct Session {
    server: Arc<FakeServer>,
    /// It lists the roots when it starts.
    list_roots: bool,
    answers: mpsc::Sender<Value>,
    outgoing: mpsc::Receiver<Value>,
    /// The calls in progress, by request.
    calls: HashMap<String, AbortHandle>,
    /// The calls that wait for an answer of the user, by question.
    asked: Arc<Mutex<HashMap<u64, mpsc::Sender<()>>>>,
}

impl Session {
    fn new(server: Arc<FakeServer>, list_roots: bool) -> Self {
        let (answers, outgoing) = mpsc::channel(64);
        Self {
            server,
            list_roots,
            answers,
            outgoing,
            calls: HashMap::new(),
            asked: Arc::default(),
        }
    }

    async fn converse(&mut self, stdin: DuplexStream, mut stdout: DuplexStream) {
        let mut lines = BufReader::new(stdin).lines();
        loop {
            let message = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.take(&serde_json::from_str(&line).unwrap()),
                    Ok(None) | Err(_) => return,
                },
                // This has a sender itself.
                message = self.outgoing.recv() => message,
            };
            if let Some(message) = message {
                let line = format!("{message}\n");
                // The client has left if this fails, which the next read shows.
                let _ = stdout.write_all(line.as_bytes()).await;
            }
        }
    }

    /// Handles a message of the client, and returns the response if there is one at once.
    fn take(&mut self, message: &Value) -> Option<Value> {
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            Some("ping") => json!({}),
            Some("tools/list") => {
                json!({"tools": [{"name": TOOL, "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                let work = serde_json::from_value(params["arguments"].clone()).unwrap();
                self.call(id.clone(), work);
                return None;
            }
            Some("notifications/cancelled") => {
                if let Some(call) = self.calls.remove(&params["requestId"].to_string()) {
                    call.abort();
                }
                return None;
            }
            Some("notifications/initialized") if self.list_roots => {
                return Some(list_roots(&json!("start"), self.server.position));
            }
            Some("notifications/roots/list_changed") => {
                return Some(list_roots(&json!("change"), self.server.position));
            }
            Some(_) if id.is_null() => return None,
            Some(_) => {
                let error = json!({"code": -32601, "message": "method not found"});
                return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            None => {
                if let Some(call) = id.as_u64().and_then(|id| self.asked.lock().remove(&id)) {
                    let _ = call.try_send(());
                }
                return None;
            }
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn call(&mut self, id: Value, work: Work) {
        self.server.calls.lock().push(work.call);
        let (answers, asked) = (self.answers.clone(), Arc::clone(&self.asked));
        let (request, position) = (id.to_string(), self.server.position);
        let call = tokio::spawn(async move {
            sleep(Duration::from_millis(work.milliseconds)).await;
            let question = match work.asks {
                Asks::Nothing => None,
                Asks::User => Some(ask_user(work.call)),
                Asks::Roots => Some(list_roots(&json!(work.call), position)),
            };
            if let Some(question) = question {
                let (answered, mut answer) = mpsc::channel(1);
                asked.lock().insert(work.call, answered);
                if answers.send(question).await.is_err() || answer.recv().await.is_none() {
                    return;
                }
            }
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            // An error means that the server has ended.
            let _ = answers
                .send(json!({"jsonrpc": "2.0", "id": id, "result": result}))
                .await;
        });
        self.calls.insert(request, call.abort_handle());
    }
}

fn ask_user(call: u64) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"message": call.to_string(), "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": call, "method": "elicitation/create", "params": params})
}

/// A request for roots that names the server which sends it.
fn list_roots(id: &Value, position: usize) -> Value {
    let params = json!({"position": position.to_string()});
    json!({"jsonrpc": "2.0", "id": id, "method": "roots/list", "params": params})
}

impl Drop for Session {
    fn drop(&mut self) {
        for call in self.calls.values() {
            call.abort();
        }
    }
}

/// Starts the servers of one connection.
struct Spawner {
    servers: FakeServers,
    instance: String,
    program: String,
    started: Mutex<Vec<Arc<FakeServer>>>,
}

impl Spawn for Spawner {
    fn spawn(&self) -> Spawning {
        let (server, is_broken) = self.servers.start(&self.instance, &self.program);
        self.started.lock().push(Arc::clone(&server));
        let (stdin, its_input) = duplex(PIPE);
        let (its_output, stdout) = duplex(PIPE);
        tokio::spawn(Arc::clone(&server).serve(self.servers.clone(), its_input, its_output));
        if is_broken {
            server.crash();
        }
        let process = Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            guard: Box::new(Guard(Box::pin(async move { server.ended().await }))),
        };
        Box::pin(std::future::ready(io::Result::Ok(process)))
    }

    fn describe(&self) -> String {
        self.program.clone()
    }

    fn ended(&self) -> Ended {
        let started = self.started.lock().clone();
        Box::pin(async move {
            for server in started {
                server.ended().await;
            }
        })
    }
}

struct Guard(Pin<Box<dyn Future<Output = ()> + Send>>);

impl ProcessGuard for Guard {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }

    fn explain(&self) -> String {
        "the server exited".to_owned()
    }
}
