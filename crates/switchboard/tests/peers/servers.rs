//! The servers: how each is started, and its output.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

/// The SDK of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// `@modelcontextprotocol/sdk`, of the handshake revisions.
    Typescript1,
    /// `@modelcontextprotocol/server`, of 2026-07-28 only.
    Typescript2,
    /// `mcp` 2, of every revision.
    Python,
    /// `mcp` 1, of the handshake revisions.
    OldPython,
    /// `fastmcp` 4, of every revision.
    Fastmcp,
    /// `rmcp` 3, of every revision.
    Rust,
    /// `rmcp` 0.10, of the handshake revisions; it exits when it is asked for the newest one.
    OldRust,
}

/// The way the gateway reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

impl Server {
    /// The transports of the server.
    pub(crate) fn transports(self) -> &'static [Transport] {
        use Transport::{Http, Sse, Stdio};
        match self {
            // Over HTTP+SSE, the older server is the one with a fitting revision.
            Self::Typescript1 | Self::OldPython | Self::OldRust => &[Stdio, Http, Sse],
            Self::Typescript2 | Self::Python | Self::Fastmcp | Self::Rust => &[Stdio, Http],
        }
    }

    fn command(self, tools: &Tools, scripts: &Path, transport: Transport) -> Vec<PathBuf> {
        let words: Vec<PathBuf> = match self {
            Self::Typescript1 => vec![tools.node(), scripts.join("typescript1_server.mjs")],
            Self::Typescript2 => vec![tools.node(), scripts.join("typescript2_server.mjs")],
            Self::Python => vec![tools.python(), scripts.join("mcp_server.py")],
            Self::OldPython => vec![tools.python1(), scripts.join("python1_server.py")],
            Self::Fastmcp => vec![tools.python(), scripts.join("fastmcp_server.py")],
            Self::Rust => vec![tools.rust_peer(), "server".into(), "new".into()],
            Self::OldRust => vec![tools.rust_peer(), "server".into(), "old".into()],
        };
        let transport = match transport {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
            Transport::Sse => "sse",
        };
        words.into_iter().chain([transport.into()]).collect()
    }
}

/// A server that the gateway starts, or that runs on its own.
pub(crate) struct Running {
    pub(crate) transport: Transport,
    /// Its name in the configuration, and in URLs.
    pub(crate) name: String,
    /// Its entry in the configuration.
    pub(crate) entry: Value,
    said: PathBuf,
    child: Option<Child>,
}

impl Running {
    /// Starts the server, unless the gateway does.
    pub(crate) fn start(server: Server, transport: Transport, tools: &Tools, place: &Path) -> Self {
        let name = format!("{transport:?}").to_lowercase();
        let said = place.join(format!("{name}.said"));
        let errors = File::create(&said).unwrap();
        let command = server.command(tools, place, transport);
        let mut running = Self {
            transport,
            name,
            entry: Value::Null,
            said,
            child: None,
        };
        if transport == Transport::Stdio {
            // Its standard error is kept in a file that the test can read.
            let shell = json!(["-c", r#"exec "$@" 2>>"$0""#, running.said]);
            let args: Vec<Value> = shell.as_array().unwrap().clone();
            let args: Vec<Value> = args
                .into_iter()
                .chain(command.iter().map(|word| json!(word)))
                .collect();
            running.entry = json!({ "command": "sh", "args": args });
            return running;
        }
        let child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn();
        running.child = Some(child.unwrap());
        let origin = until("the server says where it is", || running.origin());
        running.entry = match transport {
            Transport::Sse => json!({ "url": format!("{origin}/sse"), "type": "sse" }),
            _ => json!({ "url": format!("{origin}/mcp") }),
        };
        running
    }

    /// Everything that it has written to standard error.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.said).unwrap_or_default()).into_owned()
    }

    fn origin(&self) -> Option<String> {
        let said = self.said();
        let mut places = ["listening on ", "Uvicorn running on "].iter();
        let rest = places.find_map(|place| said.split_once(place))?.1;
        // An incomplete line may lack a digit.
        let end = rest.find(|end: char| end.is_whitespace())?;
        Some(rest[..end].to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
