//! `switchboard list`: the servers, from the running gateway or the configuration.

use std::path::Path;

use clap::Args;
use serde_json::json;
use switchboard_admin::status::describe;
use switchboard_config::{Home, Start};
use switchboard_rest::{
    servers::{Server, Servers},
    status::Status,
    trust::ServerTrust,
};
use switchboard_terminal::{
    error::Error,
    print::{self, Cell, Table},
    visible::visible_line,
};
use switchboard_wire::Raw;

use super::{config_file::ConfigFile, trust, words};
use crate::link::Link;

/// List the servers and their states.
///
/// If no gateway is running, lists the servers of the configuration file.
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(home: &Home, args: &List) -> Result<(), Error> {
    let link = Link::find(home)?;
    let servers: Raw = match &link {
        Some(link) => link.get("/api/v1/servers")?,
        None => from_config(home)?,
    };
    if args.json {
        return print::json_raw(&servers);
    }
    let servers = rows(&servers)?;
    if servers.is_empty() {
        say_none();
        return Ok(());
    }
    table(&servers, true).print()?;
    if let Some(link) = link {
        let status: Status = link.get("/api/v1/status")?;
        mention_held(&link, &status)?;
    }
    Ok(())
}

/// Reports that there are no servers, and how to add some.
pub(super) fn say_none() {
    print::say("there are no servers");
    print::hint(
        "add one with `switchboard add`, or import those of your clients with `switchboard import`",
    );
}

/// Reports that tools are held for approval, and the command to decide. Rejected ones do not count.
pub(super) fn mention_held(link: &Link, status: &Status) -> Result<(), Error> {
    if status.held == 0 {
        return Ok(());
    }
    let trust = trust::ask_briefly(link, None)?;
    let pending = trust.servers.iter().flat_map(ServerTrust::pending);
    let pending = pending.count() as u64;
    if pending > 0 {
        let tools = words::count(pending, "tool is", "tools are");
        print::warn(&format!("{tools} held and cannot be called"));
        print::hint(&words::review(pending, "switchboard trust"));
    }
    Ok(())
}

/// The table of servers; with `reasons`, each with the reason for its state.
pub(super) fn table(servers: &[Server], reasons: bool) -> Table {
    let mut table = Table::new(&["NAME", "STATE", "TOOLS", "KIND", "TARGET"]).cut_path(4);
    for server in servers {
        // The number of tools is unknown until the server has been ready once.
        let is_known = matches!(&*server.health.state, "ready" | "idle");
        let tools = Some(server.tools).filter(|tools| is_known || *tools > 0);
        table.row([
            server.name.clone().into(),
            Cell::coloured(&server.health.state, words::colour(server)),
            tools
                .map_or_else(|| "-".to_owned(), |n| n.to_string())
                .into(),
            server.kind.to_string().into(),
            short_path(&server.target).into(),
        ]);
        if reasons {
            for note in words::notes(server) {
                table.note(&note);
            }
        }
        for instance in &server.instances {
            table.row([
                Cell::indented(&format!("{}/{}", server.name, instance.number)),
                Cell::coloured(
                    &instance.health.state,
                    words::colour_of(&instance.health.state),
                ),
                String::new().into(),
                String::new().into(),
                visible_line(&short_path(&words::callers(instance))).into(),
            ]);
            if let Some(reason) = instance.health.reason.as_ref().filter(|_| reasons) {
                table.note(reason);
            }
        }
    }
    table
}

/// The text with `~` in place of the user's home directory.
pub(super) fn short_path(text: &str) -> String {
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    let Some(home) = home.as_deref().and_then(Path::to_str) else {
        return text.to_owned();
    };
    let short = |word: &str| match word.strip_prefix(home) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => word.to_owned(),
    };
    let words: Vec<_> = text.split(' ').map(short).collect();
    words.join(" ")
}

pub(super) fn rows(servers: &Raw) -> Result<Vec<Server>, Error> {
    let list: Result<Servers, _> = servers.read_owned();
    list.map(|list| list.servers)
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))
}

/// The same form as the gateway's response, as far as a file can tell.
fn from_config(home: &Home) -> Result<Raw, Error> {
    let config = ConfigFile::read(home)?.config()?;
    let servers = config.servers.iter().map(|(name, server)| {
        let (kind, target) = describe(server);
        let mut row = json!({
            "name": name,
            "state": if server.enabled { "not running" } else { "disabled" },
            "enabled": server.enabled,
            "kind": kind,
            "target": target,
            "start": match server.start {
                Some(Start::Lazy) => "lazy",
                Some(Start::Eager) => "eager",
                None => "auto",
            },
        });
        if let Some(malformed) = &server.malformed {
            row["reason"] = malformed.alone().into();
            row["action"] = malformed.hint.as_deref().into();
        }
        row
    });
    let servers = json!({"servers": servers.collect::<Vec<_>>()});
    Raw::from_value(&servers).map_err(|error| Error::new(error.to_string()))
}
