//! Every client at every server.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, Tools, patiently};

use crate::{
    clients::{Client, Door, Era},
    left_out::is_left_out,
    servers::{Running, Server},
};

/// The scripts, as they are when the tests are built.
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

/// What a tour has in it.
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
fn a_server_in_typescript() {
    visit(Server::Typescript1);
}

#[test]
fn a_server_in_typescript_of_the_newest_revision_only() {
    visit(Server::Typescript2);
}

#[test]
fn a_server_in_python() {
    visit(Server::Python);
}

#[test]
fn a_server_in_python_of_the_first_line() {
    visit(Server::OldPython);
}

#[test]
fn a_server_on_fastmcp() {
    visit(Server::Fastmcp);
}

#[test]
fn a_server_in_rust() {
    visit(Server::Rust);
}

#[test]
fn a_server_in_rust_of_a_year_ago() {
    let Some(said) = visit(Server::OldRust) else {
        return;
    };
    // It was asked whether it knows the newest revision, and left.
    assert!(said.contains("expect initialized request"), "{said}");
}

/// One tour: who, how, and where to.
struct Tour<'a> {
    name: String,
    /// For what it makes there.
    tag: String,
    client: Client,
    door: Door,
    era: Era,
    to: &'a Running,
    parts: Vec<&'static str>,
}

/// Every client goes on a tour of the server, by every door and in every era that it knows. Gives what the
/// server on the pipe has said; `None` if the test is left out.
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
        // Each has a gateway of its own: one whose server's tools change with every visitor asks less and
        // less often what has become of them.
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

/// Puts the scripts where they find what they import.
pub(crate) fn furnish(place: &Path, tools: &Tools) {
    fs::create_dir(place).unwrap();
    for (name, text) in SCRIPTS {
        fs::write(place.join(name), text).unwrap();
    }
    let modules = fs::canonicalize(tools.node_modules()).unwrap();
    symlink(modules, place.join("node_modules")).unwrap();
}

/// By every door, in every era that the client knows, to the server by each of its transports.
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
    /// As the client is told.
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

    /// What the client has not found as it should be.
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

/// Whether they are the same, be a number written as 1 or as 1.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

/// What is wrong if the server still works at calls that were withdrawn.
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
