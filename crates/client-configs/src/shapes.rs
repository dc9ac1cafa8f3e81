//! What the configuration of each client looks like: where the servers are in it, and what an
//! entry for the gateway is made of.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_jsonc::{Comment, Tree};

use crate::client::Client;
use crate::error::Error;
use crate::json;
use crate::toml;
use crate::variables::Variables;

/// How long a client waits for a tool of the gateway: the gateway ends calls itself, and one that waits for a person may
/// take minutes.
const TOOL_TIMEOUT_SECONDS: u64 = 3600;

impl Client {
    /// Whether its file is TOML; every other one is JSON.
    const fn writes_toml(self) -> bool {
        matches!(self, Self::Codex)
    }

    /// Under which keys the servers are.
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

    /// What stands for something else in its strings.
    pub(crate) const fn variables(self) -> Variables {
        match self {
            Self::ClaudeDesktop | Self::Zed | Self::Codex => Variables::None,
            Self::Cursor | Self::VsCode | Self::Windsurf => Variables::Editor,
            Self::ClaudeCode => Variables::Braces,
            Self::GeminiCli => Variables::Dollar,
            Self::OpenCode => Variables::OpenCode,
        }
    }

    /// The entry for a program on this machine, in the order in which people write it.
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

    /// The member of an entry that says how long a tool may take, if the client has one.
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

    /// The servers in a text, in their order.
    pub(crate) fn servers(self, file: &Path, text: &str) -> Result<Vec<(String, Value)>, Error> {
        let keys = self.keys(file, text)?;
        if self.writes_toml() {
            toml::members(file, text, keys[0])
        } else {
            json::members(file, text, keys)
        }
    }

    /// The text with these members in the server's entry, which may be new.
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

    /// The text without the server's entry.
    pub(crate) fn remove(self, file: &Path, text: &str, name: &str) -> Result<String, Error> {
        let keys = self.keys(file, text)?;
        if self.writes_toml() {
            return toml::remove(file, text, [keys[0], name]);
        }
        let path = [keys, &[name]].concat();
        switchboard_jsonc::remove(text, &path, Comment::Keep)
            .map_err(|error| json::located(file, text, error))
    }
}

/// `OpenCode` has two forms: servers directly under `mcp`, and from its second version on under
/// `servers` in it. A server that is called `servers` has a type, or a command.
fn has_nested_servers(file: &Path, text: &str) -> Result<bool, Error> {
    let mcp = json::members(file, text, &["mcp"])?;
    let nested = mcp.iter().find(|(key, _)| key == "servers");
    let nested = nested.and_then(|(_, value)| value.as_object());
    Ok(nested.is_some_and(|servers| {
        !servers.get("type").is_some_and(Value::is_string) && !servers.contains_key("command")
    }))
}
