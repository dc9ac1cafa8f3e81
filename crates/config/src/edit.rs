//! Edits of a configuration's text that keep everything else: comments, order, indentation and line
//! ends.
//!
//! The result is parsed before it is returned, so that no edit can produce a file that the next start
//! cannot read.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use switchboard_jsonc::{Comment, Tree};
use switchboard_text::nearest;

use crate::diagnostic::{Diagnostic, Problems};
use crate::json::{self, Json, Node};
use crate::keys::SERVER;
use crate::load::{lines, only_hint, problems};
use crate::name::{NameError, check_server_name};

/// The file name in problems of a text without a name.
const FILE: &str = "switchboard.json";

/// The reason why an edit failed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is not JSON, or would not be after the edit.
    #[error(
        "cannot change the configuration, because it has errors\n{}",
        lines(problems)
    )]
    Text {
        /// The problems.
        problems: Vec<Diagnostic>,
    },
    /// A value that has to be an object is not one.
    #[error("cannot change {what}: it is not an object")]
    Shape {
        /// The name of the value.
        what: String,
    },
    /// The new server's name is invalid.
    #[error("{0}")]
    Name(NameError),
    /// The new server's entry is invalid.
    #[error("cannot add the server `{name}`: {}", messages(problems))]
    Entry {
        /// The server.
        name: String,
        /// The problems of the entry. Their positions refer to a temporary text.
        problems: Vec<Diagnostic>,
    },
    /// A server of this name exists.
    #[error("server `{name}` already exists")]
    Exists {
        /// The server.
        name: String,
    },
    /// There is no server of this name.
    #[error("there is no server `{name}`")]
    Missing {
        /// The server.
        name: String,
        /// The server that was probably meant.
        nearest: Option<String>,
        /// There are no servers at all.
        is_empty: bool,
    },
}

impl EditError {
    /// The error for a name that is not one of these.
    pub fn missing<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let mut known = known.peekable();
        Self::Missing {
            name: name.to_owned(),
            is_empty: known.peek().is_none(),
            nearest: nearest(name, known).map(str::to_owned),
        }
    }

    /// A hint for the user, separate from the message. If there are several problems, their lines have
    /// the hints.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Text { .. } => return None,
            Self::Shape { .. } => "fix the configuration first".into(),
            Self::Name(error) => return error.hint(),
            Self::Entry { problems, .. } => return only_hint(problems),
            Self::Exists { .. } => "remove it first, or choose another name".into(),
            Self::Missing {
                nearest: Some(name),
                ..
            } => format!("did you mean `{name}`?").into(),
            Self::Missing { is_empty: true, .. } => "add one with `switchboard add`".into(),
            Self::Missing { .. } => "`switchboard list` shows the names".into(),
        })
    }
}

/// Adds a server after the existing ones. An empty text becomes a configuration.
pub fn add_server(text: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    add_servers(text, [(name, entry)])
}

/// Adds servers after the existing ones, all or none. An empty text becomes a configuration.
pub fn add_servers<'a>(
    text: &str,
    entries: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Result<String, EditError> {
    let entries: Vec<_> = entries.into_iter().collect();
    for (name, entry) in &entries {
        check_server(name, entry)?;
    }
    if entries.is_empty() {
        return Ok(text.to_owned());
    }
    if let Some(root) = read(text)? {
        expect_object(&root, || "the configuration".to_owned())?;
        if let Some(servers) = root.get("mcpServers") {
            expect_object(&servers.node, || "\"mcpServers\"".to_owned())?;
            let known = servers.node.members().unwrap_or_default().iter();
            let known: HashSet<_> = known.map(|member| member.key.as_ref()).collect();
            if let Some((name, _)) = entries.iter().find(|(name, _)| known.contains(name)) {
                let name = (*name).to_owned();
                return Err(EditError::Exists { name });
            }
        }
    }
    let entries: Vec<_> = (entries.into_iter())
        .map(|(name, entry)| (name, entry_tree(entry)))
        .collect();
    checked(switchboard_jsonc::put(text, &["mcpServers"], &entries))
}

/// Removes a server, together with a comment after it on its last line. Comments above it stay.
pub fn remove_server(text: &str, name: &str) -> Result<String, EditError> {
    let root = read(text)?;
    find(root.as_ref(), name)?;
    let keys = ["mcpServers", name];
    checked(switchboard_jsonc::remove(text, &keys, Comment::Remove))
}

/// Enables or disables a server, through `enabled` or, where the entry has it, `disabled`.
pub fn set_enabled(text: &str, name: &str, enabled: bool) -> Result<String, EditError> {
    let root = read(text)?;
    let server = find_object(root.as_ref(), name)?;
    let mut changes = Vec::new();
    let mut said = false;
    for (key, value) in [("enabled", enabled), ("disabled", !enabled)] {
        if let Some(member) = server.get(key) {
            said = true;
            if !matches!(member.node.value, Json::Bool(now) if now == value) {
                changes.push((key, Tree::Leaf(value.to_string())));
            }
        }
    }
    if !said && !enabled {
        changes.push(("enabled", Tree::Leaf("false".to_owned())));
    }
    change(text, name, &changes)
}

/// Clears `hold` of a server. For a local program, `file` becomes its `approvedFile` and may be empty.
pub fn release_server(text: &str, name: &str, file: Option<&str>) -> Result<String, EditError> {
    let root = read(text)?;
    let server = find_object(root.as_ref(), name)?;
    let hold = server.get("hold").map(|_| Value::from(false));
    let changes = [("hold", hold), ("approvedFile", file.map(Value::from))];
    let changes: Vec<_> = (changes.iter())
        .filter_map(|(key, value)| Some((*key, Tree::from(value.as_ref()?))))
        .collect();
    change(text, name, &changes)
}

/// Changes members of a server's entry.
fn change(text: &str, name: &str, members: &[(&str, Tree<'_>)]) -> Result<String, EditError> {
    checked(switchboard_jsonc::put(text, &["mcpServers", name], members))
}

/// Parses a changed text.
fn checked(changed: Result<String, switchboard_jsonc::Error>) -> Result<String, EditError> {
    let changed = changed.map_err(|error| {
        // The original text was valid, so a position would refer to a text that does not exist.
        let mut problems = Problems::default();
        problems.add(0, error.message);
        let problems = problems.report(FILE, "");
        EditError::Text { problems }
    })?;
    read(&changed)?;
    Ok(changed)
}

/// A server's entry with its keys in the conventional order.
fn entry_tree(entry: &Value) -> Tree<'_> {
    let mut tree = Tree::from(entry);
    if let Tree::Object(members) = &mut tree {
        let place = |key: &str| SERVER.all.iter().position(|known| known.name == key);
        members.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
    }
    tree
}

fn read(text: &str) -> Result<Option<Node<'_>>, EditError> {
    let mut problems = Problems::default();
    match json::read(text, &mut problems) {
        Ok(root) if problems.is_empty() => Ok(root),
        _ => Err(EditError::Text {
            problems: problems.report(FILE, text),
        }),
    }
}

/// Rejects a server with an invalid name, or with an entry that the parser would reject or that has a malformed
/// reference.
pub fn check_server(name: &str, entry: &Value) -> Result<(), EditError> {
    check_server_name(name).map_err(EditError::Name)?;
    let alone = serde_json::json!({"mcpServers": {name: entry}}).to_string();
    let problems = problems(&alone, FILE);
    if problems.is_empty() {
        return Ok(());
    }
    Err(EditError::Entry {
        name: name.to_owned(),
        problems,
    })
}

fn expect_object(node: &Node<'_>, what: impl FnOnce() -> String) -> Result<(), EditError> {
    match node.members() {
        Some(_) => Ok(()),
        None => Err(EditError::Shape { what: what() }),
    }
}

/// The entry of the server with this name.
fn find<'n, 'a>(root: Option<&'n Node<'a>>, name: &str) -> Result<&'n Node<'a>, EditError> {
    let servers = root.and_then(|root| root.get("mcpServers"));
    let members = servers.and_then(|member| member.node.members());
    let members = members.unwrap_or_default();
    let found = members.iter().find(|member| member.key == name);
    found.map(|member| &member.node).ok_or_else(|| {
        let known = members.iter().map(|member| member.key.as_ref());
        EditError::missing(name, known)
    })
}

/// The entry of the server with this name, if it is an object.
fn find_object<'n, 'a>(root: Option<&'n Node<'a>>, name: &str) -> Result<&'n Node<'a>, EditError> {
    let server = find(root, name)?;
    expect_object(server, || format!("the server `{name}`"))?;
    Ok(server)
}

fn messages(problems: &[Diagnostic]) -> String {
    if let [problem] = problems {
        return problem.message.clone();
    }
    let messages: Vec<_> = problems
        .iter()
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    messages.join("; ")
}
