//! The fixture server as a child or at an address, and a gateway in front of it.

use std::{
    env,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, with};

use crate::{
    client::Place,
    revision::{Side, Way},
};

const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");

/// The name of the one server behind each gateway.
pub(crate) const NAME: &str = "fixture";

/// The server that speaks every revision.
fn fixture() -> &'static str {
    switchboard_test_support::fixture("protocol_fixture")
}

/// A server of one revision. A server at an address runs for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Upstream {
    words: Vec<String>,
    way: Way,
    running: Option<(Child, SocketAddr)>,
}

impl Upstream {
    pub(crate) fn start(side: Side, more: &[&str]) -> Self {
        Self::start_as(side.revision.as_str(), side.way, more)
    }

    /// Starts a server with revisions as the fixture names them.
    pub(crate) fn start_as(revisions: &str, way: Way, more: &[&str]) -> Self {
        let transport = match way {
            Way::Pipe => "stdio",
            Way::Http => "http",
            Way::Sse => "sse",
        };
        let words = ["--revisions", revisions, "--transport", transport];
        let words: Vec<_> = words
            .iter()
            .chain(more)
            .map(|word| (*word).into())
            .collect();
        let mut upstream = Self {
            words,
            way,
            running: None,
        };
        if way != Way::Pipe {
            upstream.running = Some(upstream.run());
        }
        upstream
    }

    fn run(&self) -> (Child, SocketAddr) {
        let mut child = Command::new(fixture())
            .args(&self.words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on http://")
            .and_then(|rest| rest.split('/').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("the fixture said {line:?}"));
        (child, address)
    }

    /// The entry of `mcpServers`.
    pub(crate) fn entry(&self) -> Value {
        match (&self.running, self.way) {
            (Some((_, address)), Way::Sse) => {
                json!({ "url": format!("http://{address}/sse"), "type": "sse" })
            }
            (Some((_, address)), _) => json!({ "url": format!("http://{address}/mcp") }),
            (None, _) => json!({ "command": fixture(), "args": self.words }),
        }
    }

    /// The addresses of the server itself, without a gateway.
    pub(crate) fn place(&self) -> Place {
        let program = [fixture().to_owned()].into_iter();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Place {
            program: program.chain(self.words.clone()).collect(),
            address: self
                .running
                .as_ref()
                .map_or(nowhere, |(_, address)| *address),
            http_path: "/mcp".to_owned(),
            sse_path: "/sse".to_owned(),
            token: None,
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The addresses of the one server behind a gateway.
pub(crate) fn through(serve: &Serve<'_>) -> Place {
    let view = format!("server:{NAME}");
    place(serve, &view, &format!("s/{NAME}"))
}

/// The addresses of the direct view of a gateway.
pub(crate) fn through_direct(serve: &Serve<'_>) -> Place {
    place(serve, "direct", "direct")
}

fn place(serve: &Serve<'_>, view: &str, path: &str) -> Place {
    let home = serve.home.text("");
    let program = [SWITCHBOARD, "--home", &home, "stdio", "--view", view];
    Place {
        program: program.iter().map(|word| (*word).to_owned()).collect(),
        address: serve.address,
        http_path: format!("/mcp/{path}"),
        sse_path: format!("/sse/{path}"),
        token: Some(serve.token()),
    }
}

/// A home whose gateway has this server, and where only clients answer questions.
pub(crate) fn home(upstream: &Upstream) -> Home {
    home_with(upstream, clients_answer())
}

/// Settings with which only clients are asked.
pub(crate) fn clients_answer() -> Value {
    json!({ "approvals": { "route": "client" } })
}

/// A home whose gateway has this server and these settings.
pub(crate) fn home_with(upstream: &Upstream, config: Value) -> Home {
    let servers = json!({ NAME: upstream.entry() });
    let home = Home::new(servers.clone());
    home.set_config(with(config, json!({ "mcpServers": servers })));
    home
}
