//! Imports servers from the files of clients.

use std::collections::HashSet;
use std::fmt;
use std::mem;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::Error;
use crate::import::{Imported, import};
use crate::locations::{self, Dirs};
use crate::{files, json, toml};

/// The most servers to import from one file.
const SERVERS: usize = 1000;

/// The longest name, in characters, with room for a number after it.
const NAME_LETTERS: usize = 56;

/// The content of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The client that the file belongs to, if known.
    pub client: Option<Client>,
    /// The file.
    pub file: PathBuf,
    /// The file belongs to a repository, which may be another person's. The names of its secrets become
    /// `SERVER.NAME`, so that they never match the secrets of other servers.
    pub is_project: bool,
    /// The servers, in order, with distinct names.
    pub servers: Vec<Imported>,
    /// The entries that are no servers to import, in order.
    pub skipped: Vec<Skipped>,
    /// Notes on the file.
    pub notes: Vec<String>,
}

/// An entry that is no server to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in the file.
    pub name: String,
    /// The reason.
    pub why: String,
    /// `true` if it is the gateway itself.
    pub is_gateway: bool,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is skipped: {}", self.name, self.why)
    }
}

/// Reads the servers in the user's own files of a client. A file that an environment variable moves into
/// a repository counts as the repository's.
pub fn read(client: Client, dirs: &Dirs) -> Result<Vec<Found>, Error> {
    let files = locations::of_the_user(client, dirs);
    read_all(client, files, &|file| {
        locations::is_moved_into_a_project(file, dirs)
    })
}

/// Reads the servers in the current project's files for a client. They belong to a repository, which may
/// be another person's.
pub fn read_project(client: Client, dirs: &Dirs) -> Result<Vec<Found>, Error> {
    let of_the_user = locations::of_the_user(client, dirs);
    let mut files = locations::all(client, dirs);
    files.retain(|file| !of_the_user.contains(file));
    read_all(client, files, &|_| true)
}

fn read_all(
    client: Client,
    looked: Vec<PathBuf>,
    is_project: &dyn Fn(&Path) -> bool,
) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for file in &looked {
        if let Some(text) = files::read(file)? {
            found.push(read_text(Some(client), is_project(file), file, &text)?);
        }
    }
    if found.is_empty() {
        return Err(Error::NotConfigured { client, looked });
    }
    Ok(found)
}

/// Reads the servers in a file of any client; the content determines its form. The file counts as a
/// repository's if it is below the current directory, has a `.git` above it or has the name of a
/// project's file, unless it is one of the user's own files or directly in the home directory. A link
/// counts by its own location and by that of its target.
pub fn read_file(path: &Path, dirs: &Dirs) -> Result<Found, Error> {
    let Some(text) = files::read(path)? else {
        return Err(Error::Unfit {
            file: path.to_owned(),
            why: "does not exist",
            fix: Some("check the spelling and the current directory"),
        });
    };
    let client = guess(path, &text)?;
    let is_project = locations::is_of_a_project(path, dirs);
    read_text(client, is_project, path, &text)
}

pub(crate) fn read_text(
    client: Option<Client>,
    is_project: bool,
    file: &Path,
    text: &str,
) -> Result<Found, Error> {
    if text.trim().is_empty() {
        return Err(Error::Unfit {
            file: file.to_owned(),
            why: "is empty, so there is nothing to import",
            fix: None,
        });
    }
    let mut found = Found::empty(client, is_project, file);
    let servers = if let Some(client) = client {
        client.entries(file, text)?
    } else {
        let keys = anonymous_keys(file, text)?;
        entries_under(keys, json::members(file, text, keys)?)
    };
    let mut names = HashSet::new();
    for entry in servers {
        found.add(&mut names, entry);
    }
    if client == Some(Client::GeminiCli) {
        let switches = Switches::read(file, text)?;
        for server in found
            .servers
            .iter_mut()
            .filter(|one| switches.is_off(&one.name))
        {
            if let Some(entry) = server.entry.as_object_mut() {
                entry.insert("enabled".to_owned(), false.into());
            }
        }
    }
    Ok(found)
}

impl Found {
    pub(crate) fn empty(client: Option<Client>, is_project: bool, file: &Path) -> Self {
        Self {
            client,
            file: file.to_owned(),
            is_project,
            servers: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn add(&mut self, names: &mut HashSet<String>, (place, entry): Entry) {
        let name = place.last().map_or("", String::as_str);
        let owner = self.is_project.then_some(name);
        let mut skip = |why, is_gateway| {
            self.skipped.push(Skipped {
                name: name.to_owned(),
                why,
                is_gateway,
            });
        };
        let mut imported = match import(self.client, owner, name, &entry) {
            Ok(imported) => imported,
            Err(why) => return skip(why, false),
        };
        if imported.is_gateway() {
            return skip("it is the gateway itself".to_owned(), true);
        }
        if self.servers.len() >= SERVERS {
            let note = format!("only the first {SERVERS} servers are imported");
            // A repeated note is dropped.
            if self.notes.last() != Some(&note) {
                self.notes.push(note);
            }
            return;
        }
        let base = allowed_name(name);
        if base != name {
            let note = format!("it is renamed from `{name}`, which is not a valid server name");
            imported.notes.push(note);
        }
        if self.is_project && project_of(&place).is_none() {
            imported.share_in_projects();
        }
        imported.name = distinct(names, &base);
        imported.places.push(place);
        self.servers.push(imported);
    }

    /// Adapts the servers that the client has for single projects to a gateway for all of them: each project gets its
    /// own process, and the path of the project becomes `${project}`. Servers that are equal then become one.
    ///
    /// A server keeps its paths, and has a gap, if `is_bound` returns `true` for the project and the changed entry.
    pub fn share_in_projects(&mut self, dirs: &Dirs, is_bound: &dyn Fn(&str, &Value) -> bool) {
        let mut names = HashSet::new();
        let mut servers: Vec<Imported> = Vec::new();
        for mut server in mem::take(&mut self.servers) {
            let base = base_name(&server);
            let project = server.places.first().and_then(|place| project_of(place));
            if let Some(project) = project.map(str::to_owned) {
                server.leave_project(&project, dirs, is_bound);
                let same = |known: &&mut Imported| {
                    base_name(known) == base
                        && (&known.entry, &known.gap) == (&server.entry, &server.gap)
                };
                if let Some(known) = servers.iter_mut().find(same) {
                    known.places.append(&mut server.places);
                    continue;
                }
            }
            server.name = distinct(&mut names, &base);
            servers.push(server);
        }
        self.servers = servers;
    }
}

/// The name without a number, from the first place in the file.
fn base_name(server: &Imported) -> String {
    let name = server.places.first().and_then(|place| place.last());
    allowed_name(name.map_or("", String::as_str))
}

/// The name, with a number after it if it is in use already.
fn distinct(names: &mut HashSet<String>, base: &str) -> String {
    let mut name = base.to_owned();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

/// An entry of a server, with the keys that lead to it in its file.
pub(crate) type Entry = (Vec<String>, Value);

/// The entries under these keys, with their places.
pub(crate) fn entries_under(keys: &[&str], members: Vec<(String, Value)>) -> Vec<Entry> {
    let place = |name| {
        let keys = keys.iter().map(|key| (*key).to_owned());
        keys.chain([name]).collect()
    };
    let members = members.into_iter();
    members.map(|(name, entry)| (place(name), entry)).collect()
}

/// The project that an entry is limited to.
fn project_of(place: &[String]) -> Option<&str> {
    match place {
        [projects, project, _, _] if projects == PROJECTS => Some(project),
        _ => None,
    }
}

/// The key of Claude Code's projects.
pub(crate) const PROJECTS: &str = "projects";

/// The lists in which Gemini keeps the servers that are switched on or off.
pub(crate) struct Switches {
    allowed: Option<HashSet<String>>,
    excluded: Option<HashSet<String>>,
}

impl Switches {
    pub(crate) fn read(file: &Path, text: &str) -> Result<Self, Error> {
        let settings = json::members(file, text, &["mcp"])?;
        let list = |key: &str| {
            let (_, list) = settings.iter().find(|(name, _)| name == key)?;
            let names = list.as_array()?.iter().filter_map(Value::as_str);
            Some(names.map(allowed_name).collect())
        };
        Ok(Self {
            allowed: list("allowed"),
            excluded: list("excluded"),
        })
    }

    pub(crate) fn is_off(&self, name: &str) -> bool {
        let excluded = self.excluded.as_ref();
        let allowed = self.allowed.as_ref();
        excluded.is_some_and(|names| names.contains(name))
            || allowed.is_some_and(|names| !names.contains(name))
    }
}

/// Converts a name to one that a server may have.
fn allowed_name(name: &str) -> String {
    let letters = name.trim().chars().map(|letter| match letter {
        '/' => '-',
        other if other.is_control() => '-',
        other => other,
    });
    let name: String = letters.take(NAME_LETTERS).collect();
    let name = name.trim();
    if matches!(name, "" | "." | "..") {
        return "unnamed".to_owned();
    }
    name.to_owned()
}

/// Guesses the client from the content and location of its file.
fn guess(file: &Path, text: &str) -> Result<Option<Client>, Error> {
    if file
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        toml::parse(file, text)?;
        return Ok(Some(Client::Codex));
    }
    let root = match json::parse(file, text) {
        Ok(root) => root,
        // A TOML file with another extension counts if it has servers.
        Err(error) => {
            return match toml::members(file, text, "mcp_servers") {
                Ok(servers) if !servers.is_empty() => Ok(Some(Client::Codex)),
                _ => Err(error),
            };
        }
    };
    let Some(root) = root.as_ref().and_then(Value::as_object) else {
        return Ok(None);
    };
    if root.contains_key("context_servers") {
        return Ok(Some(Client::Zed));
    }
    if let Some(servers) = root.get("mcpServers") {
        return Ok(guess_by_place(file, servers));
    }
    if root.contains_key("servers") {
        return Ok(Some(Client::VsCode));
    }
    Ok(match root.get("mcp") {
        // VS Code's old settings also have `servers`, but no types of `OpenCode`'s.
        Some(Value::Object(mcp)) if !is_of_an_editor(mcp) => Some(Client::OpenCode),
        _ => None,
    })
}

fn guess_by_place(file: &Path, servers: &Value) -> Option<Client> {
    let name = file.file_name()?.to_str()?;
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .and_then(|folder| folder.to_str());
    let has = |key: &str| {
        let servers = servers.as_object().into_iter().flatten();
        servers
            .into_iter()
            .any(|(_, entry)| entry.get(key).is_some())
    };
    match (folder, name) {
        (_, "claude_desktop_config.json") => Some(Client::ClaudeDesktop),
        (_, ".claude.json" | ".mcp.json") => Some(Client::ClaudeCode),
        (Some(".cursor"), _) => Some(Client::Cursor),
        (Some(".gemini"), _) => Some(Client::GeminiCli),
        (_, "mcp_config.json") => Some(Client::Windsurf),
        _ if has("httpUrl") => Some(Client::GeminiCli),
        _ if has("serverUrl") => Some(Client::Windsurf),
        _ => None,
    }
}

fn is_of_an_editor(mcp: &Map<String, Value>) -> bool {
    let entries = mcp.get("servers").and_then(Value::as_object);
    let mut entries = entries.into_iter().flatten();
    entries.any(|(_, entry)| {
        !matches!(
            entry.get("type").and_then(Value::as_str),
            Some("local" | "remote")
        )
    })
}

/// The keys of the servers in a file of an unknown client; empty if the whole file is servers.
fn anonymous_keys(file: &Path, text: &str) -> Result<&'static [&'static str], Error> {
    let root = json::parse(file, text)?;
    let root = root.as_ref().and_then(Value::as_object);
    let holds = |key: &str| root.is_some_and(|root| root.contains_key(key));
    if holds("mcpServers") {
        return Ok(&["mcpServers"]);
    }
    if holds("mcp") {
        return Ok(&["mcp", "servers"]);
    }
    let is_server = |entry: &Value| entry.get("command").is_some() || entry.get("url").is_some();
    if root.is_some_and(|root| !root.is_empty() && root.values().all(is_server)) {
        return Ok(&[]);
    }
    Err(Error::Unfit {
        file: file.to_owned(),
        why: "has no servers under a known key: mcpServers, servers, context_servers, mcp or \
              mcp_servers",
        fix: None,
    })
}
