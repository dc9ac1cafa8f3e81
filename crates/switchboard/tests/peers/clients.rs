//! The clients: their SDKs, the doors that they use, and the reports of their tours.

use std::{
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};
use switchboard_test_support::{Tools, until};

/// The SDK of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// `@modelcontextprotocol/sdk`.
    Typescript1,
    /// `@modelcontextprotocol/client`.
    Typescript2,
    /// `mcp` 2.
    Python,
    /// `mcp` 1.
    OldPython,
    /// `fastmcp` 4.
    Fastmcp,
    /// `rmcp` 3.
    Rust,
    /// `rmcp` 0.10.
    OldRust,
}

/// The way a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Http,
    Sse,
    Stdio,
}

/// The era that a client speaks: before 2026-07-28, or from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Client {
    pub(crate) const ALL: [Self; 7] = [
        Self::Typescript1,
        Self::Typescript2,
        Self::Python,
        Self::OldPython,
        Self::Fastmcp,
        Self::Rust,
        Self::OldRust,
    ];

    /// The doors that the client uses, each with the era.
    pub(crate) fn ways(self) -> &'static [(Door, Era)] {
        use Door::{Http, Sse, Stdio};
        use Era::{Legacy, Modern};
        match self {
            Self::Typescript1 | Self::OldPython | Self::OldRust => {
                &[(Http, Legacy), (Stdio, Legacy), (Sse, Legacy)]
            }
            Self::Typescript2 | Self::Python | Self::Fastmcp => &[
                (Http, Legacy),
                (Http, Modern),
                (Stdio, Legacy),
                (Stdio, Modern),
                (Sse, Legacy),
            ],
            // It no longer has HTTP+SSE.
            Self::Rust => &[
                (Http, Legacy),
                (Http, Modern),
                (Stdio, Legacy),
                (Stdio, Modern),
            ],
        }
    }

    /// The revision that is negotiated.
    pub(crate) fn revision(self, era: Era) -> &'static str {
        match (self, era) {
            (_, Era::Modern) => "2026-07-28",
            (Self::OldRust, Era::Legacy) => "2025-06-18",
            (_, Era::Legacy) => "2025-11-25",
        }
    }

    /// Sends the client on these tours, and returns its reports.
    pub(crate) fn tour(self, tools: &Tools, place: &Path, tours: Vec<Value>) -> Vec<Value> {
        let mut command = match self {
            Self::Typescript1 => script(&tools.node(), "typescript1.mjs"),
            Self::Typescript2 => script(&tools.node(), "typescript2.mjs"),
            Self::Python => script(&tools.python(), "python2.py"),
            Self::OldPython => script(&tools.python1(), "python1.py"),
            Self::Fastmcp => script(&tools.python(), "fastmcp_client.py"),
            Self::Rust => script(&tools.rust_peer(), "client new"),
            Self::OldRust => script(&tools.rust_peer(), "client old"),
        };
        let child = command
            .arg(json!({ "tours": tours }).to_string())
            .env_remove("SWITCHBOARD_HOME")
            .env("HOME", place)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Ended(child.unwrap());
        let mut output = child.0.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut said = String::new();
            let _ = output.read_to_string(&mut said);
            said
        });
        until("the client is done", || child.0.try_wait().unwrap());
        let said = reader.join().unwrap();
        let lines = said.lines();
        // A library may print something, too.
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }
}

fn script(program: &Path, args: &str) -> Command {
    let mut command = Command::new(program);
    command.args(args.split(' '));
    command
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
