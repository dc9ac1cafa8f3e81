//! `switchboard trust list`: the trust in each server, held tools and suspicious ones.

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::trust::{HeldTool, ServerTrust, Trust};
use switchboard_terminal::{
    error::Error,
    print::{self, Table, shell_word},
};

use super::{super::list, words};
use crate::{link::Link, times::local_millis};

/// List the servers with their trust policy and their held and suspicious tools
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only this server
    name: Option<String>,
    /// Print JSON, with definitions and diffs
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn all(json: bool) -> Self {
        Self { name: None, json }
    }
}

pub(super) fn run(home: &Home, args: &List) -> Result<(), Error> {
    let link = Link::need(home)?;
    let name = args.name.as_deref();
    if args.json {
        return print::json_raw(&super::ask(&link, name)?);
    }
    let Trust { servers } = super::ask(&link, name)?;
    if servers.is_empty() {
        list::say_none();
        return Ok(());
    }
    overview(&servers).print()?;
    for server in &servers {
        if let Some(start) = &server.start {
            print::data(&format!("\n{}", super::start::page(start, &server.name)))?;
        }
    }
    if servers.iter().any(|server| !server.held.is_empty()) {
        print::data("\n")?;
        held(servers.iter().flat_map(|server| &server.held)).print()?;
    }
    if servers.iter().any(|server| !server.flagged.is_empty()) {
        print::data("\n")?;
        flagged(&servers).print()?;
    }
    advise(&servers, args);
    Ok(())
}

fn overview(servers: &[ServerTrust]) -> Table {
    let mut table = Table::new(&["SERVER", "TRUST", "APPROVED", "HELD", "SUSPICIOUS"]);
    for server in servers {
        table.row([
            server.name.clone(),
            server.trust.to_string(),
            server.approved.to_string(),
            server.held.len().to_string(),
            words::suspicious(server).to_string(),
        ]);
    }
    table
}

/// The held tools, with the worst finding of each.
pub(super) fn held<'a>(held: impl Iterator<Item = &'a HeldTool>) -> Table {
    let mut table = Table::new(&["HELD", "REASON", "SINCE"]).cut_path(0);
    for tool in held {
        table.row([
            tool.name.clone(),
            words::reason(tool).to_owned(),
            local_millis(tool.since_ms),
        ]);
        if let Some(worst) = tool.findings.first() {
            table.note(&format!("suspicious: {}", words::finding(worst)));
        }
    }
    table
}

fn flagged(servers: &[ServerTrust]) -> Table {
    let mut table = Table::new(&["SUSPICIOUS, NOT HELD"]);
    for tool in servers.iter().flat_map(|server| &server.flagged) {
        table.row([tool.name.clone()]);
        if let Some(worst) = tool.findings.first() {
            table.note(&words::finding(worst));
        }
    }
    table
}

/// Prints hints about the next steps.
fn advise(servers: &[ServerTrust], args: &List) {
    for server in servers {
        if let Some(note) = &server.note {
            print::warn(&format!("`{}`: {note}", server.name));
            print::hint(&format!(
                "start a new record with `switchboard trust approve {} --all`",
                shell_word(&server.name)
            ));
        }
    }
    let waiting: Vec<_> = servers
        .iter()
        .filter(|server| server.start.is_some())
        .collect();
    for server in &waiting {
        super::start::advise(&server.name);
    }
    if let Some(first) = servers.iter().find_map(|server| server.pending().next()) {
        let word = words::word(first);
        print::hint(&format!(
            "review it with `switchboard trust show {word}`, then run \
             `switchboard trust approve {word}` or `switchboard trust reject {word}`"
        ));
        return;
    }
    if waiting.is_empty() && servers.iter().all(|server| server.held.is_empty()) {
        print::say(&match (args.name.as_deref(), servers) {
            (Some(_), [server]) => format!("`{}` has no held definitions", server.name),
            _ => "there are no held definitions".to_owned(),
        });
    }
    let flagged = servers.iter().flat_map(|server| &server.flagged).next();
    if let Some(flagged) = flagged {
        print::hint(&format!(
            "review it with `switchboard trust show {}`; to hide a tool, add it to `tools.deny` \
             of the server in the configuration",
            shell_word(&flagged.name)
        ));
    }
}
