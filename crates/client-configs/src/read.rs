//! Taking servers over from the files of clients.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::client::Client;
use crate::error::Error;
use crate::import::{Imported, import};
use crate::locations::{self, Dirs};
use crate::{files, json, toml};

/// The most servers that are taken over from one file.
const SERVERS: usize = 1000;

/// The longest name, with room for a number behind it.
const NAME_LETTERS: usize = 56;

/// What is in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Whose file it is, where that is known.
    pub client: Option<Client>,
    /// The file.
    pub file: PathBuf,
    /// It comes with a repository, which may be another person's. Secrets that it names are called
    /// `SERVER.NAME`, so that they are none that another server has.
    pub is_project: bool,
    /// Its servers, in their order, no name twice.
    pub servers: Vec<Imported>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// The servers in the user's own files of a client. One that a variable of the environment moves into a repository
/// counts as the repository's.
pub fn read(client: Client, dirs: &Dirs) -> Result<Vec<Found>, Error> {
    let files = locations::of_the_user(client, dirs);
    read_all(client, files, &|file| {
        locations::is_moved_into_a_project(file, dirs)
    })
}

/// The servers in the files that the current project has for a client. They come with a repository,
/// which may be another person's.
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

/// The servers in a file, whoever's it is; the form is seen from what it says. It counts as a repository's
/// if it is below the current folder, has a `.git` above it or the name of a project's file, unless it is
/// one of the user's own files or directly in the home. A link counts by its own place and by that of its target.
pub fn read_file(path: &Path, dirs: &Dirs) -> Result<Found, Error> {
    let Some(text) = files::read(path)? else {
        return Err(Error::Unfit {
            file: path.to_owned(),
            why: "does not exist",
            fix: Some("check the spelling, and the folder that you are in"),
        });
    };
    let client = guess(path, &text)?;
    let is_project = locations::is_of_a_project(path, dirs);
    read_text(client, is_project, path, &text)
}

fn read_text(
    client: Option<Client>,
    is_project: bool,
    file: &Path,
    text: &str,
) -> Result<Found, Error> {
    if text.trim().is_empty() {
        return Err(Error::Unfit {
            file: file.to_owned(),
            why: "is empty, so there is nothing to take over",
            fix: None,
        });
    }
    let mut found = Found {
        client,
        file: file.to_owned(),
        is_project,
        servers: Vec::new(),
        notes: Vec::new(),
    };
    let servers = match client {
        Some(client) => client.servers(file, text)?,
        None => json::members(file, text, anonymous_keys(file, text)?)?,
    };
    let mut names = HashSet::new();
    for (name, entry) in &servers {
        found.add(&mut names, name, entry, None);
    }
    match client {
        Some(Client::ClaudeCode) => {
            for (project, state) in json::members(file, text, &["projects"])? {
                let servers = state.get("mcpServers").and_then(Value::as_object);
                for (name, entry) in servers.into_iter().flatten() {
                    found.add(&mut names, name, entry, Some(&project));
                }
            }
        }
        Some(Client::GeminiCli) => found.switch_off(&json::members(file, text, &["mcp"])?),
        _ => {}
    }
    Ok(found)
}

impl Found {
    fn add(
        &mut self,
        names: &mut HashSet<String>,
        name: &str,
        entry: &Value,
        project: Option<&str>,
    ) {
        let owner = self.is_project.then_some(name);
        let mut imported = match import(self.client, owner, name, entry) {
            Ok(imported) => imported,
            Err(why) => {
                self.notes.push(format!("`{name}` was left out: {why}"));
                return;
            }
        };
        if imported.is_gateway() {
            let note = format!("`{name}` was left out: it is the gateway itself");
            self.notes.push(note);
            return;
        }
        if self.servers.len() >= SERVERS {
            let note = format!("only the first {SERVERS} servers were taken over");
            // Once is enough.
            if self.notes.last() != Some(&note) {
                self.notes.push(note);
            }
            return;
        }
        imported.name = allowed_name(name);
        if imported.name != name {
            let note = format!("its name was changed from `{name}`, which cannot be used here");
            imported.notes.push(note);
        }
        if let Some(project) = project {
            let same =
                |known: &Imported| (&known.name, &known.entry) == (&imported.name, &imported.entry);
            if self.servers.iter().any(same) {
                return;
            }
            imported
                .notes
                .push(format!("it was set up for the project {project} only"));
        }
        let base = imported.name.clone();
        let mut number = 2;
        while !names.insert(imported.name.clone()) {
            imported.name = format!("{base}-{number}");
            number += 1;
        }
        self.servers.push(imported);
    }

    /// What Gemini is told not to use, it keeps in a list of its own.
    fn switch_off(&mut self, settings: &[(String, Value)]) {
        let list = |key: &str| {
            let (_, list) = settings.iter().find(|(name, _)| name == key)?;
            let names = list.as_array()?.iter().filter_map(Value::as_str);
            Some(names.map(allowed_name).collect::<HashSet<_>>())
        };
        let (allowed, excluded) = (list("allowed"), list("excluded"));
        for server in &mut self.servers {
            let name = server.name.as_str();
            let is_off = excluded.as_ref().is_some_and(|names| names.contains(name))
                || allowed.as_ref().is_some_and(|names| !names.contains(name));
            if is_off && let Some(entry) = server.entry.as_object_mut() {
                entry.insert("enabled".to_owned(), false.into());
            }
        }
    }
}

/// The name as far as a server can be called so.
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

/// Whose file it is, from what it says and where it is.
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
        // It may be TOML under another name, if it says something in it.
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
        // What VS Code once kept in its settings has a `servers` too, but no types of `OpenCode`'s.
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

/// Where the servers are in a file of nobody's: under a key, or all of it is servers.
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
        why: "has no servers in any form that is known: mcpServers, servers, context_servers, \
              mcp or mcp_servers",
        fix: None,
    })
}
