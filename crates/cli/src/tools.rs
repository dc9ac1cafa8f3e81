//! `switchboard tools`: the tools that can be called.

use std::{
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use switchboard_config::Home;
use switchboard_rest::{
    servers::Server,
    tools,
    trust::{ServerTrust, Trust},
};
use switchboard_terminal::{
    error::Error,
    print::{self, Table, shell_word},
};
use switchboard_wire::Raw;

use super::{describe, list, progress::Progress, trust, words};
use crate::link::Link;

/// Time to wait for servers that are starting.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The most tools that are named below the table.
const MENTIONED: usize = 8;

/// List the tools of all servers, or of one.
///
/// Waits up to five seconds for servers that are starting. Tools that are held until you approve them cannot
/// be called; they are named below the table.
#[derive(Debug, Args)]
pub struct Tools {
    /// Only the tools of this server
    name: Option<String>,
    /// Print JSON, with the whole definition of every tool
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(home: &Home, args: &Tools) -> Result<(), Error> {
    let link = Link::need(home)?;
    let path = match &args.name {
        Some(name) => format!(
            "/api/v1/tools?server={}{}",
            switchboard_catalog::escape(name),
            describe::in_project()
        ),
        None => "/api/v1/tools".to_owned(),
    };
    let until = Instant::now() + PATIENCE;
    let mut progress = Progress::new();
    let (value, answer, missing) = loop {
        let value: Raw = link.get(&path)?;
        let answer: tools::Tools = value
            .read()
            .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
        let missing = missing(&link, &answer.starting)?;
        let is_on_the_way = missing
            .iter()
            .any(|server| !matches!(&*server.health.state, "parked" | "needs sign-in"));
        if !is_on_the_way || Instant::now() >= until {
            break (value, answer, missing);
        }
        let names: Vec<_> = missing.iter().map(|server| &*server.name).collect();
        progress.show(&print::one_line(&format!(
            "waiting for {}",
            names.join(", ")
        )));
        thread::sleep(LOOK_AGAIN);
    };
    progress.clear();
    let trust: Trust = trust::ask(&link, args.name.as_deref())?;
    if args.json {
        let held: Vec<_> = held(&trust).collect();
        let with_held = Raw::from_value(&held).and_then(|held| value.with_member("held", &held));
        print::json_raw(&with_held.map_err(|error| Error::new(error.to_string()))?)?;
    } else if answer.tools.is_empty() {
        if missing.is_empty() {
            say_none(&link, args.name.as_deref())?;
        }
    } else {
        let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
        for tool in answer.tools {
            table.row([tool.name, tool.description.unwrap_or_default()]);
        }
        table.print()?;
    }
    for server in missing {
        let note = match words::note(&server) {
            note if note.is_empty() => String::new(),
            note => format!(": {note}"),
        };
        print::warn(&format!(
            "the tools of `{}` are not known yet: the server is {}{note}",
            server.name, server.health.state
        ));
    }
    if !args.json {
        mention(&trust);
    }
    Ok(())
}

/// Reports why there are no tools.
fn say_none(link: &Link, name: Option<&str>) -> Result<(), Error> {
    let servers = list::rows(&link.get("/api/v1/servers")?)?;
    let one = servers.iter().find(|server| Some(&*server.name) == name);
    match (one, name) {
        (Some(server), _) if !server.enabled => {
            let name = shell_word(&server.name);
            print::say(&format!("`{name}` is disabled"));
            print::hint(&format!("enable it with `switchboard enable {name}`"));
        }
        (_, Some(name)) => print::say(&format!("`{name}` has no tools that can be called")),
        (_, None) => print::say("there are no tools"),
    }
    Ok(())
}

/// The held tools, as JSON.
fn held(trust: &Trust) -> impl Iterator<Item = Value> {
    let of = |server: &ServerTrust| {
        let held = server.held.iter();
        let held = held.map(|held| json!({"name": held.name, "server": server.name, "tool": held.tool, "why": held.why}));
        held.collect::<Vec<_>>()
    };
    trust.servers.iter().flat_map(of)
}

/// Names the tools that are held for approval, and the suspicious ones.
fn mention(trust: &Trust) {
    let held = trust.servers.iter().flat_map(ServerTrust::pending);
    let held: Vec<_> = held
        .map(|held| format!("{} ({})", print::one_line(&held.name), trust::reason(held)))
        .collect();
    let flagged = trust.servers.iter().flat_map(|server| &server.flagged);
    let flagged: Vec<_> = flagged.map(|tool| print::one_line(&tool.name)).collect();
    if !held.is_empty() {
        let tools = words::count(held.len() as u64, "tool is", "tools are");
        print::warn(&format!("{tools} held: {}", some(&held)));
    }
    if !flagged.is_empty() {
        let tools = words::count(flagged.len() as u64, "tool is", "tools are");
        print::warn(&format!("{tools} suspicious: {}", some(&flagged)));
    }
    let all = (held.len() + flagged.len()) as u64;
    if all > 0 {
        print::hint(&words::review(all, "switchboard trust"));
    }
}

/// The first few names.
fn some(names: &[String]) -> String {
    let shown = &names[..names.len().min(MENTIONED)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The servers whose tools are not known.
fn missing(link: &Link, names: &[String]) -> Result<Vec<Server>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut servers = list::rows(&link.get("/api/v1/servers")?)?;
    servers.retain(|server| names.contains(&server.name));
    Ok(servers)
}
