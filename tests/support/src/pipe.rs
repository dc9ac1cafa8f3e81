//! `switchboard stdio`, as run by a client.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    Home, PATIENCE,
    mcp::{Outcome, outcome, request},
    processes, until,
};

/// A client over pipes.
pub struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that arrived while another one was awaited.
    aside: Vec<Value>,
    next_id: u64,
    /// Keeps the pipe open even if it is not read.
    _held: Sender<()>,
}

impl Pipe {
    /// Starts the program, and initializes the session.
    pub fn open(home: &Home) -> Self {
        let mut pipe = Self::start(home);
        pipe.initialize();
        pipe
    }

    /// Starts the program under a profile, and initializes the session.
    pub fn open_under(home: &Home, profile: &str) -> Self {
        let words = ["stdio", "--log-level", "debug", "--profile", profile];
        let mut pipe = Self::start_as(home, &words, usize::MAX);
        pipe.initialize();
        pipe
    }

    /// Starts the program, and does not read its output after the session is initialized.
    pub fn open_deaf(home: &Home) -> Self {
        let mut pipe = Self::start_reading(home, 1);
        pipe.initialize();
        pipe
    }

    /// Starts the program.
    pub fn start(home: &Home) -> Self {
        Self::start_reading(home, usize::MAX)
    }

    /// Starts the program in this directory with these variables, and initializes the session.
    pub fn open_in(home: &Home, dir: &Path, variables: &[(&str, &OsStr)]) -> Self {
        let mut command = home.command(&["stdio", "--log-level", "debug"]);
        command.current_dir(dir).envs(variables.iter().copied());
        let mut pipe = Self::spawn(home, command, usize::MAX);
        pipe.initialize();
        pipe
    }

    /// The same with these variables and no others.
    pub fn open_alone(home: &Home, dir: &Path, variables: &[(&str, &OsStr)]) -> Self {
        let mut command = home.command(&["stdio", "--log-level", "debug"]);
        command.env_clear().current_dir(dir);
        command.envs(variables.iter().copied());
        let mut pipe = Self::spawn(home, command, usize::MAX);
        pipe.initialize();
        pipe
    }

    /// Starts the program with its most verbose log, which is not read, and initializes the session.
    pub fn open_unlogged(home: &Home) -> Self {
        let command = home.command(&["stdio", "--log-level", "trace"]);
        let mut pipe = Self::spawn_with(command, usize::MAX, Stdio::piped());
        pipe.initialize();
        pipe
    }

    /// The unread log, after the program has ended.
    pub fn unread(&mut self) -> Vec<u8> {
        let mut log = Vec::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_end(&mut log).unwrap();
        log
    }

    /// Starts the program as the memory server alone, and initializes the session.
    pub fn open_memory(home: &Home) -> Self {
        let mut pipe = Self::start_memory(home);
        pipe.initialize();
        pipe
    }

    /// Starts the program as the memory server alone.
    pub fn start_memory(home: &Home) -> Self {
        let words = ["memory", "serve", "--log-level", "warn"];
        Self::start_as(home, &words, usize::MAX)
    }

    /// Starts the program and reads at most `wanted` messages.
    fn start_reading(home: &Home, wanted: usize) -> Self {
        Self::start_as(home, &["stdio", "--log-level", "debug"], wanted)
    }

    fn start_as(home: &Home, words: &[&str], wanted: usize) -> Self {
        Self::spawn(home, home.command(words), wanted)
    }

    fn spawn(home: &Home, command: Command, wanted: usize) -> Self {
        let errors = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.path("stderr"))
            .unwrap();
        Self::spawn_with(command, wanted, errors.into())
    }

    fn spawn_with(mut command: Command, wanted: usize, errors: Stdio) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        let (held, until_dropped) = mpsc::channel::<()>();
        thread::spawn(move || {
            let mut lines = stdout.lines();
            for line in lines.by_ref().take(wanted).map_while(Result::ok) {
                let message =
                    serde_json::from_str(&line).unwrap_or_else(|_| json!({ "line": line }));
                if sender.send(message).is_err() {
                    return;
                }
            }
            // The receiver has to notice that no more messages follow. If the output was not read to its end,
            // the pipe stays open, and full.
            drop(sender);
            let _ = until_dropped.recv();
        });
        Self {
            stdin: child.stdin.take(),
            child,
            messages,
            aside: Vec::new(),
            next_id: 0,
            _held: held,
        }
    }

    pub fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "e2e-pipe", "version": "1.0" },
        });
        let answer = self.request("initialize", params);
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-06-18",
            "{answer}"
        );
        self.tell("notifications/initialized", json!({}));
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends these lines from a separate thread, without waiting for it. No other messages can be sent
    /// afterwards.
    pub fn burst(&mut self, lines: Vec<String>) {
        let mut stdin = self.stdin.take().unwrap();
        thread::spawn(move || {
            for line in lines {
                if stdin.write_all(format!("{line}\n").as_bytes()).is_err() {
                    return;
                }
            }
            // Closing it would end the session.
            std::mem::forget(stdin);
        });
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request, and returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.say(&request(&id, method, params));
        id
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.begin(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    pub fn finish(&mut self, id: &Value) -> Value {
        self.until(&format!("answer to {id}"), |message| {
            message["id"] == *id && message.get("method").is_none()
        })
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.finish(&id)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let id = self.begin_call(tool, arguments);
        outcome(&self.finish(&id))
    }

    /// Waits for a notification of this method.
    pub fn until_told(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
    }

    pub fn forget_news(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.aside.push(message);
        }
        self.aside.retain(|message| message.get("method").is_none());
    }

    #[track_caller]
    fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.aside.iter().position(&is_it) {
            return self.aside.remove(place);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(message) if is_it(&message) => return message,
                Ok(message) => self.aside.push(message),
                Err(RecvTimeoutError::Timeout) => panic!("not within {PATIENCE:?}: {what}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it left before: {what}"),
            }
        }
    }

    /// Sends a request to a program that may be gone.
    pub fn try_begin(&mut self, method: &str, params: Value) -> Option<Value> {
        self.next_id += 1;
        let id = json!(self.next_id);
        let line = format!("{}\n", request(&id, method, params));
        let sent = self.stdin.as_mut()?.write_all(line.as_bytes());
        sent.is_ok().then_some(id)
    }

    /// The next message; `None` if the program is gone and there are no more messages.
    #[track_caller]
    pub fn next(&mut self) -> Option<Value> {
        if !self.aside.is_empty() {
            return Some(self.aside.remove(0));
        }
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing was said within {PATIENCE:?}"),
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        processes::signal(self.pid(), signal);
    }

    /// Closes the pipe, as a client that disconnects.
    pub fn leave(&mut self) {
        self.stdin = None;
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        until("the program has ended", || self.child.try_wait().unwrap())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
