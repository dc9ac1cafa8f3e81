//! `switchboard trust`: approved tools, held tools and the reasons, and decisions about them.
//!
//! The definitions of servers are hostile until the user has read them: names are made safe for a terminal
//! and a shell, and invisible characters are spelled out before a definition is shown.

mod asked;
mod decide;
mod definition;
mod list;
mod show;
mod start;
mod words;

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use switchboard_catalog::escape;
use switchboard_config::Home;
use switchboard_rest::{
    servers::Servers,
    trust::{HeldTool, ServerTrust, ToolTrust, Trust as Answer},
};

pub(super) use asked::{Asked, Definitions};
pub(super) use start::lines as start_lines;
pub(super) use words::reason;

use switchboard_terminal::error::Error;

use crate::link::Link;

/// Review held tools, and approve or reject them.
///
/// The definition of a tool, prompt, resource or template is pinned when it is approved, which happens
/// automatically when it is first seen unless the server has `"trust": "ask"`. A definition that changes
/// later, or that contains hidden characters or dangerous text, is held: agents can neither see nor use it
/// until you approve it.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Trust {
    #[command(subcommand)]
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(after_long_help = "\
Examples:
  switchboard trust list
  switchboard trust list files --json")]
    List(list::List),
    #[command(after_long_help = "\
Examples:
  switchboard trust show files:read_file
  switchboard trust show 'files:(prompt) greet'
  switchboard trust show files")]
    Show(show::Show),
    #[command(after_long_help = "\
Examples:
  switchboard trust approve files:read_file
  switchboard trust approve files              review and approve all held tools
  switchboard trust approve files --all --yes")]
    Approve(decide::Approve),
    #[command(after_long_help = "\
Example:
  switchboard trust reject files:read_file")]
    Reject(decide::Reject),
}

/// Runs the command.
pub fn run(home: &Home, args: &Trust) -> Result<(), Error> {
    match &args.what {
        None => list::run(home, &list::List::all(args.json)),
        Some(What::List(args)) => list::run(home, args),
        Some(What::Show(args)) => show::run(home, args),
        Some(What::Approve(args)) => decide::approve(home, args),
        Some(What::Reject(args)) => decide::reject(home, args),
    }
}

/// Fetches the trust in all servers, or in one.
pub(super) fn ask<T: DeserializeOwned>(link: &Link, server: Option<&str>) -> Result<T, Error> {
    link.get(&match server {
        Some(name) => format!("/api/v1/trust?server={}", escape(name)),
        None => "/api/v1/trust".to_owned(),
    })
}

/// Like [`ask`], without the texts of definitions, which may be long.
pub(super) fn ask_briefly(link: &Link, server: Option<&str>) -> Result<Answer, Error> {
    let which = server.map_or_else(String::new, |name| format!("&server={}", escape(name)));
    match link.get(&format!("/api/v1/trust?brief=true{which}")) {
        // A running gateway of an older version has no such list.
        Err(failure) if !failure.is_unreachable() => ask(link, server),
        answer => answer,
    }
}

/// Fetches the trust in one server.
fn ask_one(link: &Link, server: &str) -> Result<ServerTrust, Error> {
    let answer: Answer = ask(link, Some(server))?;
    let found = answer.servers.into_iter().next();
    found.ok_or_else(|| gone(server))
}

fn gone(server: &str) -> Error {
    Error::new(format!("server `{server}` no longer exists"))
}

/// Fetches one tool, as it is approved and as it is held.
fn ask_tool<T: DeserializeOwned>(link: &Link, server: &str, tool: &str) -> Result<T, Error> {
    let (server, tool) = (escape(server), escape(tool));
    link.get(&format!("/api/v1/trust/{server}?tool={tool}"))
}

/// Fetches the texts of a definition that the list left out.
fn read_omitted(link: &Link, server: &str, held: &mut HeldTool) -> Result<(), Error> {
    if held.omitted {
        let shown: ToolTrust = ask_tool(link, server, &held.tool)?;
        let gone = || Error::new(format!("`{}` is no longer held", held.name));
        *held = shown.held.ok_or_else(gone)?;
    }
    Ok(())
}

/// The target of a name: a server, or one of its tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) server: &'a str,
    pub(super) tool: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Resolves a name. Both parts may contain colons, so the split depends on the known servers.
    pub(super) fn find(link: &Link, name: &'a str) -> Result<Self, Error> {
        let known: Servers = link.get("/api/v1/servers")?;
        let is_server = |name: &str| known.servers.iter().any(|server| server.name == name);
        Ok(Self::split(name, is_server))
    }

    fn split(name: &'a str, is_server: impl Fn(&str) -> bool) -> Self {
        let at = |(at, _)| Self {
            server: &name[..at],
            tool: Some(&name[at + 1..]),
        };
        let whole = Self {
            server: name,
            tool: None,
        };
        if is_server(name) {
            return whole;
        }
        let mut pairs = name.match_indices(':').map(at);
        let first = name.match_indices(':').map(at).next();
        let found = pairs.find(|pair| is_server(pair.server));
        // If the server does not exist, the gateway suggests one.
        found.or(first).unwrap_or(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_a_server() {
        let is_server = |name: &str| matches!(name, "files" | "a:b" | "My server: 1");
        for (name, server, tool) in [
            ("files", "files", None),
            ("files:read", "files", Some("read")),
            ("files:a:b", "files", Some("a:b")),
            ("a:b", "a:b", None),
            ("a:b:c", "a:b", Some("c")),
            ("My server: 1:x", "My server: 1", Some("x")),
            ("flies:read:x", "flies", Some("read:x")),
            ("flies", "flies", None),
            ("files:", "files", Some("")),
        ] {
            assert_eq!(Target::split(name, is_server), Target { server, tool });
        }
    }
}
