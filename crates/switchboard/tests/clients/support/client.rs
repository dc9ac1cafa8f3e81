//! A client in a process of its own, and its output.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};
use switchboard_test_support::PATIENCE;

use super::{Door, Place};

/// The SDK of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    TypescriptV1,
    TypescriptV2,
    Python,
    /// Version 1, of the handshake revisions; it only follows a script.
    PythonV1,
    Fastmcp,
}

/// A client. On drop, it is killed if it still runs.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    name: String,
}

impl Client {
    /// Starts a client that runs these parts of the tour at a door of the gateway, in the direct view.
    pub(crate) fn start(
        place: &Place,
        kind: Kind,
        door: Door,
        modern: bool,
        parts: &[&str],
    ) -> Self {
        let way = match door {
            Door::Http => json!({ "url": place.url(), "token": place.token() }),
            Door::Stdio => json!({ "command": place.stdio(&[]) }),
        };
        let how = json!({ "parts": parts, "modern": modern, "prefix": "everything__" });
        Self::start_with(place, kind, &[way, how])
    }

    /// Starts a client with a job that is merged from these objects.
    pub(crate) fn start_with(place: &Place, kind: Kind, job: &[Value]) -> Self {
        let (program, script) = match kind {
            Kind::TypescriptV1 => (place.tools.node(), "v1.mjs"),
            Kind::TypescriptV2 => (place.tools.node(), "v2.mjs"),
            Kind::Python => (place.tools.python(), "sdk.py"),
            Kind::PythonV1 => (place.tools.python1(), "sdk1.py"),
            Kind::Fastmcp => (place.tools.python(), "fast.py"),
        };
        let members = job
            .iter()
            .flat_map(|part| part.as_object().unwrap().clone());
        let job: Value = members.collect();
        let mut child = Command::new(program)
            .env_remove("SWITCHBOARD_HOME")
            .env("HOME", place.path(""))
            .current_dir(place.path(""))
            .arg(script)
            .arg(job.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let line = line.unwrap();
                // If the receiver is gone, the test has already failed.
                let _ = sender.send(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            name: format!("{kind:?} {job}"),
        }
    }

    /// Sends a step to a scripted client; `wish` is JSON, and may have no representation in Rust.
    pub(crate) fn tell(&mut self, wish: &str) {
        // In ASCII, so that no language sees a line break in the middle of a text.
        let mut line = String::new();
        for letter in wish.chars() {
            if letter.is_ascii() {
                line.push(letter);
            } else {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(line, "\\u{unit:04x}").unwrap();
                }
            }
        }
        line.push('\n');
        let input = self.input.as_mut().expect("it has not been let go");
        input.write_all(line.as_bytes()).unwrap();
    }

    /// The next line of output.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|_| panic!("{}: nothing", self.name))
    }

    /// The next line of output, which has to be this step.
    #[track_caller]
    pub(crate) fn step(&self, step: &str) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|_| panic!("{}: nothing in place of {step}", self.name));
        assert_eq!(line["step"], step, "{}: {line}", self.name);
        line
    }

    /// The next line of output, which has to be this step with these members.
    #[track_caller]
    pub(crate) fn says(&self, step: &str, members: &Value) {
        let line = self.step(step);
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(line[name], *value, "{}: {line}", self.name);
        }
    }

    /// Lets a client exit that waits for its input to end.
    pub(crate) fn let_go(&mut self) {
        self.input = None;
    }

    /// Waits for the client to exit with success.
    #[track_caller]
    pub(crate) fn leaves(mut self) {
        self.step("closed");
        let more = self.lines.recv_timeout(PATIENCE);
        assert!(more.is_err(), "{}: {more:?}", self.name);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{}: {status}", self.name);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
