//! Every client with every server.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, Tools, patiently};

use crate::{
    clients::{Client, Door, Era},
    left_out::is_left_out,
    servers::{Running, Server},
};

/// The scripts, embedded when the tests are built.
const SCRIPTS: [(&str, &str); 14] = [
    ("apps_host.mjs", include_str!("scripts/apps_host.mjs")),
    ("apps_server.mjs", include_str!("scripts/apps_server.mjs")),
    (
        "fastmcp_client.py",
        include_str!("scripts/fastmcp_client.py"),
    ),
    (
        "fastmcp_server.py",
        include_str!("../../../../tests/peers/fastmcp_server.py"),
    ),
    (
        "mcp_server.py",
        include_str!("../../../../tests/peers/mcp_server.py"),
    ),
    ("python1.py", include_str!("scripts/python1.py")),
    (
        "python1_server.py",
        include_str!("scripts/python1_server.py"),
    ),
    ("python2.py", include_str!("scripts/python2.py")),
    ("tour.mjs", include_str!("scripts/tour.mjs")),
    ("tour.py", include_str!("scripts/tour.py")),
    ("typescript1.mjs", include_str!("scripts/typescript1.mjs")),
    ("typescript2.mjs", include_str!("scripts/typescript2.mjs")),
    (
        "typescript1_server.mjs",
        include_str!("scripts/typescript1_server.mjs"),
    ),
    (
        "typescript2_server.mjs",
        include_str!("scripts/typescript2_server.mjs"),
    ),
];

/// The parts of a tour.
const PARTS: [&str; 12] = [
    "tools",
    "call",
    "progress",
    "log",
    "ask",
    "sample",
    "roots",
    "prompts",
    "resources",
    "change",
    "update",
    "cancel",
];

#[test]
fn typescript_v1_server() {
    visit(Server::Typescript1);
}

#[test]
fn typescript_v2_server() {
    visit(Server::Typescript2);
}

#[test]
fn python_v2_server() {
    visit(Server::Python);
}

#[test]
fn python_v1_server() {
    visit(Server::OldPython);
}

#[test]
fn fastmcp_server() {
    visit(Server::Fastmcp);
}

#[test]
fn rust_server() {
    visit(Server::Rust);
}

#[test]
fn old_rust_server() {
    let Some(said) = visit(Server::OldRust) else {
        return;
    };
    // It was asked for the newest revision, and exited.
    assert!(said.contains("expect initialized request"), "{said}");
}

/// One tour: the client, its door, and the server.
struct Tour<'a> {
    name: String,
    /// A unique tag for the names that the tour creates.
    tag: String,
    client: Client,
    door: Door,
    era: Era,
    to: &'a Running,
    parts: Vec<&'static str>,
}

/// Sends every client on a tour of the server, by every door and in every era that it knows. Returns the
/// standard error of the server on the pipe; `None` if the test is skipped.
#[track_caller]
fn visit(server: Server) -> Option<String> {
    let tools = Tools::peers()?;
    let home = Home::new(json!({}));
    let place = home.path("peers");
    furnish(&place, &tools);
    let transports = server.transports().iter();
    let running: Vec<Running> = transports
        .map(|transport| Running::start(server, *transport, &tools, &place))
        .collect();
    let entries = running
        .iter()
        .map(|running| (running.name.clone(), running.entry.clone()));
    home.set_servers(entries.collect());

    let mut problems = Vec::new();
    for client in Client::ALL {
        // Each client has a gateway of its own: the gateway reads the lists of a server whose tools change
        // with every visitor less and less often.
        let serve = home.serve();
        let tours = tours(client, server, &running);
        let jobs = tours.iter().map(|tour| tour.job(&home, &serve)).collect();
        let said = client.tour(&tools, &place, jobs);
        for tour in &tours {
            problems.extend(tour.problems(&said, server));
        }
        serve.stop();
    }
    problems.extend(running.iter().filter_map(still_asleep));
    assert!(
        problems.is_empty(),
        "{} problems with {server:?}:\n{}",
        problems.len(),
        problems.join("\n")
    );
    running.first().map(Running::said)
}

/// Writes the scripts to a place where their imports can be resolved.
pub(crate) fn furnish(place: &Path, tools: &Tools) {
    fs::create_dir(place).unwrap();
    for (name, text) in SCRIPTS {
        fs::write(place.join(name), text).unwrap();
    }
    let modules = fs::canonicalize(tools.node_modules()).unwrap();
    symlink(modules, place.join("node_modules")).unwrap();
}

/// All tours: by every door, in every era that the client knows, to the server over each of its transports.
fn tours(client: Client, server: Server, running: &[Running]) -> Vec<Tour<'_>> {
    let mut tours = Vec::new();
    for (door, era) in client.ways() {
        for to in running {
            let is_kept = |part: &&str| !is_left_out(part, (client, *era), (server, to.transport));
            tours.push(Tour {
                name: format!("{client:?}, {door:?}, {era:?} -> {:?}", to.transport),
                tag: format!("{client:?}-{door:?}-{era:?}").to_lowercase(),
                client,
                door: *door,
                era: *era,
                to,
                parts: PARTS.into_iter().filter(is_kept).collect(),
            });
        }
    }
    tours
}

impl Tour<'_> {
    /// The tour in the form that the client reads.
    fn job(&self, home: &Home, serve: &Serve<'_>) -> Value {
        let name = &self.to.name;
        let origin = format!("http://{}", serve.address);
        let mut job = json!({
            "name": self.name,
            "tag": self.tag,
            "modern": self.era == Era::Modern,
            "parts": self.parts,
            "token": serve.token(),
        });
        match self.door {
            Door::Http => job["url"] = format!("{origin}/mcp/s/{name}").into(),
            Door::Sse => job["sse"] = format!("{origin}/sse/s/{name}").into(),
            Door::Stdio => {
                let stdio = home.command(&["stdio", "--view", &format!("server:{name}")]);
                let words = [stdio.get_program()].into_iter().chain(stdio.get_args());
                job["command"] = words.map(|word| word.to_str().unwrap()).collect();
            }
        }
        job
    }

    /// The differences between the client's reports and the expected ones.
    fn problems(&self, said: &[Value], server: Server) -> Vec<String> {
        let parts = ["connect"].iter().chain(&self.parts).chain(&["close"]);
        let mut problems = Vec::new();
        for part in parts {
            let line = said
                .iter()
                .find(|line| line["tour"] == self.name && line["part"] == *part);
            let expected = self.expected(part, server);
            match line {
                Some(line) if line.get("error").is_none() && same(&line["value"], &expected) => {}
                Some(line) => {
                    let found = line.get("error").unwrap_or(&line["value"]);
                    let name = &self.name;
                    problems.push(format!("{name}: {part}: {found}, not {expected}"));
                }
                None => problems.push(format!("{}: {part}: not a word of it", self.name)),
            }
        }
        problems
    }

    fn expected(&self, part: &str, server: Server) -> Value {
        match part {
            "connect" => self.client.revision(self.era).into(),
            "close" => Value::Null,
            "tools" => {
                let all = [
                    "add", "ask", "count", "fail", "learn", "log", "roots", "sample", "set_note",
                    "sleep",
                ];
                let has = |name: &&str| {
                    server != Server::Fastmcp || !["learn", "set_note"].contains(name)
                };
                all.into_iter().filter(has).collect()
            }
            "call" => json!(["5", true, "no luck"]),
            "progress" => json!([
                [1, 3, "step 1"],
                [2, 3, "step 2"],
                [3, 3, "step 3"],
                "counted to 3",
            ]),
            "log" => {
                let data = match server {
                    Server::Fastmcp => json!({ "msg": "hello", "extra": null }),
                    _ => json!("hello"),
                };
                json!([["info", "peer", data], "logged"])
            }
            "ask" => json!(["accept: Ada", "decline"]),
            "sample" => json!("tester: Paris"),
            "roots" => json!("file:///tour"),
            "prompts" => json!([["greet"], "Say hello to Ada."]),
            "resources" => json!([
                ["peer://about"],
                "a peer for tests",
                ["note://{name}"],
                "hello",
            ]),
            "update" => json!([format!("note://{}", self.tag), "new"]),
            "change" => json!(true),
            "cancel" => json!(["withdrawn", "5"]),
            part => panic!("there is no part {part:?}"),
        }
    }
}

/// Tests if two values are equal, no matter if a number is written as 1 or as 1.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

/// An error message if the server still works on calls that were cancelled.
fn still_asleep(running: &Running) -> Option<String> {
    let count = || {
        let said = running.said();
        ["sleep began", "sleep was cancelled"].map(|what| said.matches(what).count())
    };
    let ended = patiently(|| {
        let [began, ended] = count();
        began > 0 && began == ended
    });
    let ([began, ended], None) = (count(), ended) else {
        return None;
    };
    let transport = running.transport;
    Some(format!(
        "{transport:?}: of {began} calls that were withdrawn, {ended} ended"
    ))
}
