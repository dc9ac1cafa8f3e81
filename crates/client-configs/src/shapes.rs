//! The format of each client's configuration: the location of the servers in it, and the members of the
//! gateway's entry.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_jsonc::{Comment, Tree};

use crate::client::Client;
use crate::error::Error;
use crate::json;
use crate::read::{Entry, PROJECTS, entries_under};
use crate::toml;
use crate::variables::Variables;

/// The time that a client waits for a tool of the gateway. The gateway ends calls itself, and a call
/// that waits for an approver may take minutes.
const TOOL_TIMEOUT_SECONDS: u64 = 3600;

impl Client {
    /// Tests if its file is TOML; all others are JSON.
    const fn writes_toml(self) -> bool {
        matches!(self, Self::Codex)
    }

    /// The keys that lead to the servers.
    fn keys(self, file: &Path, text: &str) -> Result<&'static [&'static str], Error> {
        Ok(match self {
            Self::ClaudeDesktop
            | Self::ClaudeCode
            | Self::Cursor
            | Self::Windsurf
            | Self::GeminiCli => &["mcpServers"],
            Self::VsCode => &["servers"],
            Self::Zed => &["context_servers"],
            Self::Codex => &["mcp_servers"],
            Self::OpenCode if has_nested_servers(file, text)? => &["mcp", "servers"],
            Self::OpenCode => &["mcp"],
        })
    }

    /// The syntax of variables in its strings.
    pub(crate) const fn variables(self) -> Variables {
        match self {
            Self::ClaudeDesktop | Self::Zed | Self::Codex => Variables::None,
            Self::Cursor | Self::VsCode | Self::Windsurf => Variables::Editor,
            Self::ClaudeCode => Variables::Braces,
            Self::GeminiCli => Variables::Dollar,
            Self::OpenCode => Variables::OpenCode,
        }
    }

    /// The entry for a local program, with its members in the usual order.
    pub(crate) fn entry(self, program: &str, args: &[String]) -> Vec<(&'static str, Value)> {
        let command = ("command", Value::from(program));
        let args_only = ("args", Value::from(args));
        match self {
            Self::ClaudeCode | Self::VsCode => vec![("type", json!("stdio")), command, args_only],
            Self::OpenCode => {
                let words = std::iter::once(program).chain(args.iter().map(String::as_str));
                vec![
                    ("type", json!("local")),
                    ("command", words.collect()),
                    ("enabled", json!(true)),
                ]
            }
            Self::ClaudeDesktop
            | Self::Cursor
            | Self::Windsurf
            | Self::Zed
            | Self::Codex
            | Self::GeminiCli => vec![command, args_only],
        }
    }

    /// The entry for a server over HTTP with a token; `None` if the client has no such entries.
    pub(crate) fn http_entry(self, url: &str, token: &str) -> Option<Vec<(&'static str, Value)>> {
        let headers = (
            "headers",
            json!({ "Authorization": format!("Bearer {token}") }),
        );
        Some(match self {
            Self::ClaudeDesktop => return None,
            Self::ClaudeCode | Self::VsCode => {
                vec![("type", json!("http")), ("url", json!(url)), headers]
            }
            Self::Cursor | Self::Zed => vec![("url", json!(url)), headers],
            Self::Windsurf => vec![("serverUrl", json!(url)), headers],
            Self::GeminiCli => vec![("httpUrl", json!(url)), headers],
            Self::OpenCode => vec![
                ("type", json!("remote")),
                ("url", json!(url)),
                headers,
                ("enabled", json!(true)),
            ],
            Self::Codex => vec![("url", json!(url)), ("http_headers", headers.1)],
        })
    }

    /// The member of an entry that sets the timeout of tools, if the client has one.
    pub(crate) fn tool_timeout(
        self,
        file: &Path,
        text: &str,
    ) -> Result<Option<(&'static str, Value)>, Error> {
        let millis = json!(TOOL_TIMEOUT_SECONDS * 1000);
        Ok(match self {
            Self::Codex => Some(("tool_timeout_sec", json!(TOOL_TIMEOUT_SECONDS))),
            Self::OpenCode if has_nested_servers(file, text)? => {
                Some(("timeout", json!({ "request": millis })))
            }
            Self::ClaudeCode | Self::GeminiCli | Self::OpenCode => Some(("timeout", millis)),
            Self::ClaudeDesktop | Self::Cursor | Self::VsCode | Self::Windsurf | Self::Zed => None,
        })
    }

    /// The servers in a text, in order.
    pub(crate) fn servers(self, file: &Path, text: &str) -> Result<Vec<(String, Value)>, Error> {
        let keys = self.keys(file, text)?;
        if self.writes_toml() {
            toml::members(file, text, keys[0])
        } else {
            json::members(file, text, keys)
        }
    }

    /// The servers in a text with their places, in order: the user's, then those of single projects.
    pub(crate) fn entries(self, file: &Path, text: &str) -> Result<Vec<Entry>, Error> {
        let keys = self.keys(file, text)?;
        let mut all = entries_under(keys, self.servers(file, text)?);
        if self == Self::ClaudeCode {
            for (project, state) in json::members(file, text, &[PROJECTS])? {
                let servers = state.get("mcpServers").and_then(Value::as_object);
                let servers = servers.cloned().unwrap_or_default().into_iter().collect();
                let keys = [PROJECTS, &project, "mcpServers"];
                all.extend(entries_under(&keys, servers));
            }
        }
        Ok(all)
    }

    /// Sets members of the server's entry, which may be new.
    pub(crate) fn set(
        self,
        file: &Path,
        text: &str,
        name: &str,
        members: &[(&'static str, Value)],
    ) -> Result<String, Error> {
        let keys = self.keys(file, text)?;
        if self.writes_toml() {
            return toml::set(file, text, [keys[0], name], members);
        }
        let leaf = |value: &Value| match value {
            Value::Array(_) => Tree::Leaf(Tree::from(value).to_string()),
            other => Tree::Leaf(other.to_string()),
        };
        let members: Vec<_> = (members.iter())
            .map(|(key, value)| (*key, leaf(value)))
            .collect();
        let path = [keys, &[name]].concat();
        switchboard_jsonc::put(text, &path, &members)
            .map_err(|error| json::located(file, text, error))
    }

    /// The place of the server's entry.
    pub(crate) fn place(self, file: &Path, text: &str, name: &str) -> Result<Vec<String>, Error> {
        let keys = self.keys(file, text)?.iter().chain([&name]);
        Ok(keys.map(|key| (*key).to_owned()).collect())
    }

    /// Removes the entry at a place.
    pub(crate) fn remove(self, file: &Path, text: &str, place: &[String]) -> Result<String, Error> {
        let keys: Vec<_> = place.iter().map(String::as_str).collect();
        if self.writes_toml() {
            return toml::remove(file, text, &keys);
        }
        switchboard_jsonc::remove(text, &keys, Comment::Keep)
            .map_err(|error| json::located(file, text, error))
    }

    /// Copies the entry at a place from an earlier text of the file. Returns `None` if that has none.
    pub(crate) fn put_back(
        self,
        file: &Path,
        text: &str,
        place: &[String],
        earlier: &str,
    ) -> Result<Option<String>, Error> {
        let keys: Vec<_> = place.iter().map(String::as_str).collect();
        if self.writes_toml() {
            return toml::put_back(file, text, &keys, earlier);
        }
        let Some((name, parents)) = keys.split_last() else {
            return Ok(None);
        };
        let Some(entry) = json::spelling(file, earlier, &keys)? else {
            return Ok(None);
        };
        switchboard_jsonc::put(text, parents, &[(name, Tree::Leaf(entry))])
            .map(Some)
            .map_err(|error| json::located(file, text, error))
    }
}

/// Tests if the servers in a text of `OpenCode` are nested: in version 1 they are directly under
/// `mcp`, since version 2 under `servers` in it. A server that is named `servers` has a type or a
/// command.
fn has_nested_servers(file: &Path, text: &str) -> Result<bool, Error> {
    let mcp = json::members(file, text, &["mcp"])?;
    let nested = mcp.iter().find(|(key, _)| key == "servers");
    let nested = nested.and_then(|(_, value)| value.as_object());
    Ok(nested.is_some_and(|servers| {
        !servers.get("type").is_some_and(Value::is_string) && !servers.contains_key("command")
    }))
}
