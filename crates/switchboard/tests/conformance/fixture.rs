//! The fixture server.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// The path of the program.
pub(crate) fn program() -> &'static str {
    switchboard_test_support::fixture("protocol_fixture")
}

/// An entry of `mcpServers` for a server that the gateway starts.
pub(crate) fn piped(revisions: &str) -> Value {
    json!({ "command": program(), "args": ["--revisions", revisions, "--transport", "stdio"] })
}

/// A server over HTTP that the gateway does not start.
pub(crate) struct Listening {
    pub(crate) url: String,
    child: Child,
}

impl Listening {
    pub(crate) fn start(revisions: &str) -> Self {
        let mut child = Command::new(program())
            .args(["--revisions", revisions, "--transport", "http"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        let url = said.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("the fixture said {said:?}"));
        Self {
            url: url.to_owned(),
            child,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
