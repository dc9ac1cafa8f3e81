//! `switchboard tools`: what can be called.

use std::{
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;
use switchboard_config::Home;

use super::{
    list,
    shapes::{Server, Tool},
};
use crate::{
    failure::Failure,
    link::Link,
    print::{self, Table},
};

/// How long to wait for servers that are starting.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// List the tools of all servers, or of one.
///
/// Servers that are just starting are waited for, up to five seconds.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Only the tools of this server
    name: Option<String>,
    /// Print JSON, with the whole definition of every tool
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Answer {
    tools: Vec<Tool>,
    /// Servers whose tools are not known.
    #[serde(default)]
    starting: Vec<String>,
}

pub(crate) fn run(home: &Home, args: &Tools) -> Result<(), Failure> {
    let link = Link::need(home)?;
    let path = match &args.name {
        Some(name) => format!("/api/v1/tools?server={}", switchboard_catalog::escape(name)),
        None => "/api/v1/tools".to_owned(),
    };
    let until = Instant::now() + PATIENCE;
    let (value, answer, missing) = loop {
        let value: Value = link.get(&path)?;
        let answer = Answer::deserialize(&value).map_err(|error| {
            Failure::new(format!("the gateway's list is not understood: {error}"))
        })?;
        let missing = missing(&link, &answer.starting)?;
        let is_on_the_way = missing.iter().any(|server| server.state != "parked");
        if !is_on_the_way || Instant::now() >= until {
            break (value, answer, missing);
        }
        thread::sleep(LOOK_AGAIN);
    };
    if args.json {
        print::json(&value)?;
    } else if answer.tools.is_empty() {
        if missing.is_empty() {
            print::say("there are no tools");
        }
    } else {
        let mut table = Table::new(&["TOOL", "DESCRIPTION"]);
        for tool in answer.tools {
            table.row([tool.name, tool.description.unwrap_or_default()]);
        }
        table.print()?;
    }
    for server in missing {
        let note = match server.note() {
            note if note.is_empty() => String::new(),
            note => format!(": {note}"),
        };
        print::warn(&format!(
            "the tools of `{}` are not known yet, it is {}{note}",
            server.name, server.state
        ));
    }
    Ok(())
}

/// How the servers are whose tools are not known.
fn missing(link: &Link, names: &[String]) -> Result<Vec<Server>, Failure> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut servers = list::rows(&link.get("/api/v1/servers")?)?;
    servers.retain(|server| names.contains(&server.name));
    Ok(servers)
}
