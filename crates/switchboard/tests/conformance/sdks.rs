//! Servers on the official SDKs, alone and behind the gateway, over stdio and over HTTP.
//!
//! They are written in the style of each SDK (`tests/peers/conformance_server.*`, `tests/peers-rust`): a tool
//! that needs an answer asks for it while it runs, as most servers do. Every check that such a server passes
//! alone has to pass behind the gateway; failures of the server alone are not the gateway's.
//!
//! Servers of both eras are part of `./test`, servers of one era are part of `./test conformance`.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Tools, left_out, until};

use crate::suite::{Failures, Suite};

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// Prefixes of scenarios that are left out of the comparison. None of them is required, and they call tools
/// that the servers do not have, so that they only show how an unknown tool is refused.
const NOT_OFFERED: [&str; 2] = ["server-sse-polling:", "tasks-"];

/// The scripts, embedded when the tests are built.
const SCRIPTS: [(&str, &str); 5] = [
    (
        "conformance_inputs.py",
        include_str!("../../../../tests/peers/conformance_inputs.py"),
    ),
    (
        "conformance_server.mjs",
        include_str!("../../../../tests/peers/conformance_server.mjs"),
    ),
    (
        "conformance_server.py",
        include_str!("../../../../tests/peers/conformance_server.py"),
    ),
    (
        "fetch_http.mjs",
        include_str!("../../../../tests/peers/fetch_http.mjs"),
    ),
    (
        "skills_server.mjs",
        include_str!("../../../../tests/peers/skills_server.mjs"),
    ),
];

/// The SDK of a server.
#[derive(Clone, Copy)]
enum Sdk {
    /// `@modelcontextprotocol/server`.
    Typescript(Eras),
    /// `mcp` 2, of every revision.
    Python,
    /// `mcp` 1, of the handshake revisions.
    OldPython,
    /// `rmcp` 3.
    Rust(Eras),
}

/// The revisions that a server is configured to speak.
#[derive(Clone, Copy)]
enum Eras {
    Both,
    Old,
    New,
}

#[test]
fn dual_typescript_server_with_old_clients() {
    adds_no_failure(Sdk::Typescript(Eras::Both), OLD);
}

#[test]
fn dual_typescript_server_with_new_clients() {
    adds_no_failure(Sdk::Typescript(Eras::Both), NEW);
}

#[test]
fn old_typescript_server() {
    adds_no_failure(Sdk::Typescript(Eras::Old), OLD);
}

#[test]
fn new_typescript_server() {
    adds_no_failure(Sdk::Typescript(Eras::New), NEW);
}

#[test]
fn dual_python_server_with_old_clients() {
    adds_no_failure(Sdk::Python, OLD);
}

#[test]
fn dual_python_server_with_new_clients() {
    adds_no_failure(Sdk::Python, NEW);
}

#[test]
fn old_python_server() {
    adds_no_failure(Sdk::OldPython, OLD);
}

#[test]
fn dual_rust_server_with_old_clients() {
    adds_no_failure(Sdk::Rust(Eras::Both), OLD);
}

#[test]
fn dual_rust_server_with_new_clients() {
    adds_no_failure(Sdk::Rust(Eras::Both), NEW);
}

#[test]
fn old_rust_server() {
    adds_no_failure(Sdk::Rust(Eras::Old), OLD);
}

#[test]
fn new_rust_server() {
    adds_no_failure(Sdk::Rust(Eras::New), NEW);
}

/// Runs all requirements of a revision against the server alone and behind the gateway.
#[track_caller]
fn adds_no_failure(sdk: Sdk, revision: &str) {
    if !sdk.speaks_both() && !left_out::Suite::Conformance.is_wanted() {
        return;
    }
    compare(
        |tools, place| sdk.command(tools, place),
        |suite, url| suite.require(url, revision),
    );
}

/// Runs scenarios against a server alone and behind the gateway. The command lacks the argument for the
/// transport.
#[track_caller]
pub(crate) fn compare(
    command: impl Fn(&Tools, &Path) -> Vec<PathBuf>,
    run: impl Fn(&Suite, &str) -> Failures,
) {
    let (Some(suite), Some(tools)) = (Suite::find(), Tools::peers()) else {
        return;
    };
    let home = Home::new(json!({}));
    let place = home.path("server");
    furnish(&place, &tools);
    let command = command(&tools, &place);
    let listening = Listening::start(&command, &place);
    home.set_config(json!({
        "auth": { "mcp": "none" },
        "mcpServers": { "http": { "url": listening.url }, "stdio": piped(&command) },
    }));
    let gateway = home.serve();

    let is_offered = |(check, _): &(String, String)| {
        let mut names = NOT_OFFERED.iter();
        !names.any(|name| check.starts_with(name))
    };
    let alone = run(&suite, &listening.url);
    let alone: Failures = alone.into_iter().filter(is_offered).collect();
    assert!(alone.is_empty(), "fails alone: {alone:#?}");
    let suite = suite.with_token(&gateway.token());
    let mut added = Vec::new();
    for transport in ["http", "stdio"] {
        let url = format!("http://{}/mcp/s/{transport}", gateway.address);
        let behind = run(&suite, &url).into_iter().filter(is_offered);
        added.extend(behind.map(|failure| (transport, failure)));
    }
    assert!(
        added.is_empty(),
        "passes alone and fails behind the gateway: {added:#?}"
    );
    gateway.stop();
}

impl Sdk {
    fn speaks_both(self) -> bool {
        matches!(
            self,
            Self::Python | Self::Rust(Eras::Both) | Self::Typescript(Eras::Both)
        )
    }

    /// The command without the argument for the transport.
    fn command(self, tools: &Tools, place: &Path) -> Vec<PathBuf> {
        match self {
            Self::Typescript(eras) => {
                let script = place.join("conformance_server.mjs");
                vec![tools.node(), script, eras.word().into()]
            }
            Self::Python => vec![tools.python(), place.join("conformance_server.py")],
            Self::OldPython => vec![tools.python1(), place.join("conformance_server.py")],
            Self::Rust(eras) => {
                let words = ["conformance", eras.word()].map(PathBuf::from);
                [tools.rust_peer()].into_iter().chain(words).collect()
            }
        }
    }
}

impl Eras {
    fn word(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// Writes the scripts to a place where their imports can be resolved.
fn furnish(place: &Path, tools: &Tools) {
    fs::create_dir(place).unwrap();
    for (name, text) in SCRIPTS {
        fs::write(place.join(name), text).unwrap();
    }
    let modules = fs::canonicalize(tools.node_modules()).unwrap();
    symlink(modules, place.join("node_modules")).unwrap();
}

/// An entry of `mcpServers` for a server that the gateway starts.
fn piped(command: &[PathBuf]) -> Value {
    let args: Vec<Value> = command[1..].iter().map(|word| json!(word)).collect();
    let args: Vec<Value> = args.into_iter().chain([json!("stdio")]).collect();
    json!({ "command": command[0], "args": args })
}

/// A server over HTTP, which the gateway does not start.
struct Listening {
    url: String,
    child: Child,
}

impl Listening {
    fn start(command: &[PathBuf], place: &Path) -> Self {
        let said = place.join("http.said");
        let child = Command::new(&command[0])
            .args(&command[1..])
            .arg("http")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .spawn();
        let mut listening = Self {
            url: String::new(),
            child: child.unwrap(),
        };
        let origin = until("the server says where it is", || origin(&said));
        listening.url = format!("{origin}/mcp");
        listening
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn origin(said: &Path) -> Option<String> {
    let said = fs::read_to_string(said).ok()?;
    let mut places = ["listening on ", "Uvicorn running on "].iter();
    let rest = places.find_map(|place| said.split_once(place))?.1;
    // An incomplete line may lack a digit.
    let end = rest.find(char::is_whitespace)?;
    Some(rest[..end].to_owned())
}
