//! The state of a client: its connection to the gateway, and the servers of its own.

use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::error::Error;
use crate::files;
use crate::import::{Imported, import};
use crate::locations::{self, Dirs};
use crate::plan::{GatewayEntry, HttpEntry, Plan, option, target};
use crate::read::{Found, Switches, read_text};

/// The state of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The file that a change would be made to.
    pub file: PathBuf,
    /// `true` if the client seems to be installed: one of its files or the directory for one exists.
    pub is_installed: bool,
    /// The gateway's entry: the one with its name, or else the first.
    pub connection: Option<Connection>,
    /// The number of servers in the file besides the gateway.
    pub servers: usize,
}

/// The gateway's entry in a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The name of the entry.
    pub name: String,
    /// `false` if the client does not use the entry.
    pub is_enabled: bool,
    /// The way in which the client reaches the gateway.
    pub reach: Reach,
}

/// The way in which a client reaches the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It starts the program with these arguments.
    Stdio(Vec<String>),
    /// It sends a token to this address.
    Http(HttpEntry),
}

impl Connection {
    /// The token, if the client connects over HTTP.
    pub fn token(&self) -> Option<&str> {
        match &self.reach {
            Reach::Stdio(_) => None,
            Reach::Http(http) => Some(&http.token),
        }
    }

    /// The profile in the entry. A token may be held to another one.
    pub fn profile(&self) -> Option<&str> {
        match &self.reach {
            Reach::Stdio(args) => option(args, "--profile"),
            Reach::Http(http) => after(&http.url, "/mcp/p/"),
        }
    }

    /// The only server that the entry shows, if it is limited to one.
    pub fn server(&self) -> Option<&str> {
        match &self.reach {
            Reach::Stdio(args) => option(args, "--view")?.strip_prefix("server:"),
            Reach::Http(http) => after(&http.url, "/mcp/s/"),
        }
    }

    /// Tests if the entry starts a gateway with the same home and configuration as this one.
    pub fn has_place_of(&self, gateway: &GatewayEntry) -> bool {
        let same = |name| match &self.reach {
            Reach::Stdio(args) => option(args, name) == option(&gateway.args, name),
            Reach::Http(_) => false,
        };
        same("--home") && same("--config")
    }
}

/// The rest of an address after this path.
fn after<'a>(url: &'a str, path: &str) -> Option<&'a str> {
    let (_, rest) = url.split_once(path)?;
    rest.split(['/', '?', '#']).next()
}

/// The state of a client, as its file has it.
pub fn state(client: Client, dirs: &Dirs, gateway: &GatewayEntry) -> Result<State, Error> {
    let file = target(client, dirs);
    let text = files::read(&file)?.unwrap_or_default();
    let found = found(client, dirs, &file, &text, gateway)?;
    let others = found.skipped.iter().filter(|entry| !entry.is_gateway);
    Ok(State {
        is_installed: locations::is_installed(client, dirs),
        connection: connection(client, &file, &text, gateway)?,
        servers: found.servers.len() + others.count(),
        file,
    })
}

impl Plan {
    /// The servers in the file before the change.
    pub fn servers(&self, dirs: &Dirs) -> Result<Found, Error> {
        let text = self.before.as_deref().unwrap_or_default();
        found(self.client, dirs, &self.file, text, &self.gateway)
    }

    /// The gateway's entry after the change.
    pub fn connection(&self) -> Result<Option<Connection>, Error> {
        connection(self.client, &self.file, &self.after, &self.gateway)
    }
}

fn found(
    client: Client,
    dirs: &Dirs,
    file: &Path,
    text: &str,
    gateway: &GatewayEntry,
) -> Result<Found, Error> {
    let is_project = locations::is_moved_into_a_project(file, dirs);
    if text.trim().is_empty() {
        return Ok(Found::empty(Some(client), is_project, file));
    }
    let mut found = read_text(Some(client), is_project, file, text)?;
    found.servers.retain(|server| !gateway.is(server));
    Ok(found)
}

/// The gateway's entry in a text: the one with its name, or else the first.
fn connection(
    client: Client,
    file: &Path,
    text: &str,
    gateway: &GatewayEntry,
) -> Result<Option<Connection>, Error> {
    let mut entries = Vec::new();
    for (name, value) in client.servers(file, text)? {
        let imported = import(Some(client), None, &name, &value).ok();
        entries.extend(imported.filter(|imported| gateway.is(imported)));
    }
    let named = entries.iter().position(|entry| entry.name == gateway.name);
    let Some(entry) = entries.into_iter().nth(named.unwrap_or(0)) else {
        return Ok(None);
    };
    let is_off = match client {
        Client::GeminiCli => Switches::read(file, text)?.is_off(&entry.name),
        _ => false,
    };
    Ok(Some(Connection {
        is_enabled: !is_off && entry.is_enabled(),
        reach: reach(&entry),
        name: entry.name,
    }))
}

fn reach(entry: &Imported) -> Reach {
    if let Some(token) = entry.token() {
        let url = entry.entry.get("url").and_then(|url| url.as_str());
        return Reach::Http(HttpEntry {
            url: url.unwrap_or_default().to_owned(),
            token: token.to_owned(),
        });
    }
    let (_, args) = entry.command().unwrap_or_default();
    Reach::Stdio(args.into_iter().map(str::to_owned).collect())
}
