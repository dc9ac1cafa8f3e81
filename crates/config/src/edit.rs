//! Changes to the text of a configuration that leave the rest of it as it is: comments, order,
//! indentation and line ends.
//!
//! A change is a few patches at offsets that the parser found. The result is read again before it
//! is given out, so that no edit can make a file that the next start cannot read.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use switchboard_text::nearest;

use crate::json::{self, Json, Member, Node, skip_trivia};
use crate::layout::{Layout, entry_text, key_text, line_start, same_line_end};
use crate::load::{lines, only_hint};
use crate::name::{NameError, check_server_name};
use crate::parse;
use crate::problem::{Problem, Problems};

/// What problems call a text that comes without a name.
const FILE: &str = "switchboard.json";

/// Why a text was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text is no JSON, or would not be afterwards.
    #[error(
        "the configuration has to be mended before it can be changed\n{}",
        lines(problems)
    )]
    Text {
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// Something is no object that has to be one.
    #[error("{what} is not an object, so it cannot be changed")]
    Shape {
        /// What it is.
        what: String,
    },
    /// The new server's name cannot be one.
    #[error("{0}")]
    Name(NameError),
    /// The new server's entry is wrong.
    #[error("the server {name:?} cannot be added: {}", messages(problems))]
    Entry {
        /// The server.
        name: String,
        /// What is wrong with its entry; the places are those in a text that nobody has.
        problems: Vec<Problem>,
    },
    /// There is a server of this name.
    #[error("there is a server {name:?} already")]
    Exists {
        /// The server.
        name: String,
    },
    /// There is no server of this name.
    #[error("there is no server {name:?}")]
    Missing {
        /// The server.
        name: String,
        /// The server that may be meant.
        nearest: Option<String>,
    },
}

impl EditError {
    /// Advice for the user, apart from the message. Several problems have it in their lines.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Text { .. } => return None,
            Self::Shape { .. } => "fix the configuration first".into(),
            Self::Name(error) => return error.hint(),
            Self::Entry { problems, .. } => return only_hint(problems),
            Self::Exists { .. } => "remove it first, or choose another name".into(),
            Self::Missing { nearest, .. } => match nearest {
                Some(name) => format!("did you mean {name:?}?").into(),
                None => "`switchboard list` shows the names".into(),
            },
        })
    }
}

/// Adds a server behind the others. An empty text becomes a configuration.
pub fn add_server(text: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    add_servers(text, [(name, entry)])
}

/// Adds servers behind the others, all or none. An empty text becomes a configuration.
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
    let root = read(text)?;
    let layout = Layout::of(text, root.as_ref());
    let server = |layout: &Layout| {
        let entry = |(name, entry): &(&str, &Value)| {
            format!("{}: {}", key_text(name), entry_text(entry, layout))
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        entries.join(&layout.between())
    };
    let section = |layout: &Layout| {
        format!(
            "\"mcpServers\": {}",
            layout.braces(&server(&layout.deeper()))
        )
    };
    let mut patches = Patches::default();
    match &root {
        None => patches.insert(
            text.len(),
            layout.document(text, &section(&layout.deeper())),
        ),
        Some(root) => {
            expect_object(root, || "the configuration".to_owned())?;
            match root.get("mcpServers") {
                None => patches.append(text, root, &layout, &section),
                Some(Member { node: servers, .. }) => {
                    expect_object(servers, || "\"mcpServers\"".to_owned())?;
                    let known: HashSet<_> = servers
                        .members()
                        .unwrap_or_default()
                        .iter()
                        .map(|member| member.key.as_ref())
                        .collect();
                    if let Some((name, _)) = entries.iter().find(|(name, _)| known.contains(name)) {
                        let name = (*name).to_owned();
                        return Err(EditError::Exists { name });
                    }
                    patches.append(text, servers, &layout, &server);
                }
            }
        }
    }
    patches.apply(text)
}

/// Removes a server, with a comment behind it on its last line. Comments above it stay.
pub fn remove_server(text: &str, name: &str) -> Result<String, EditError> {
    let root = read(text)?;
    let (servers, at) = find(root.as_ref(), name)?;
    let mut patches = Patches::default();
    patches.remove(text, servers, at);
    patches.apply(text)
}

/// Enables or disables a server, through `enabled` or, where the entry has it, `disabled`.
pub fn set_enabled(text: &str, name: &str, enabled: bool) -> Result<String, EditError> {
    let root = read(text)?;
    let (servers, at) = find(root.as_ref(), name)?;
    let server = &servers.members().unwrap_or_default()[at].node;
    expect_object(server, || format!("the server {name:?}"))?;
    let mut patches = Patches::default();
    let mut said = false;
    for (key, value) in [("enabled", enabled), ("disabled", !enabled)] {
        if let Some(Member { node, .. }) = server.get(key) {
            said = true;
            if !matches!(node.value, Json::Bool(now) if now == value) {
                patches.replace(node.start, node.end, value.to_string());
            }
        }
    }
    if !said && !enabled {
        let layout = Layout::of(text, root.as_ref());
        patches.append(text, server, &layout, &|_| "\"enabled\": false".to_owned());
    }
    patches.apply(text)
}

/// Lets a server that is held be started, if it is on this machine with this file, which may be empty.
pub fn release_server(text: &str, name: &str, file: Option<&str>) -> Result<String, EditError> {
    let root = read(text)?;
    let (servers, at) = find(root.as_ref(), name)?;
    let server = &servers.members().unwrap_or_default()[at].node;
    expect_object(server, || format!("the server {name:?}"))?;
    let mut patches = Patches::default();
    if let Some(Member { node, .. }) = server.get("hold") {
        patches.replace(node.start, node.end, "false".to_owned());
    }
    if let Some(file) = file {
        let file = Value::from(file).to_string();
        if let Some(Member { node, .. }) = server.get("approvedFile") {
            patches.replace(node.start, node.end, file);
        } else {
            let layout = Layout::of(text, root.as_ref());
            let member = |_: &Layout| format!("\"approvedFile\": {file}");
            patches.append(text, server, &layout, &member);
        }
    }
    patches.apply(text)
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

/// Refuses a server whose name cannot be one, or whose entry the parser would refuse.
pub fn check_server(name: &str, entry: &Value) -> Result<(), EditError> {
    check_server_name(name).map_err(EditError::Name)?;
    let alone = serde_json::json!({"mcpServers": {name: entry}}).to_string();
    match parse(&alone, FILE) {
        Ok(_) => Ok(()),
        Err(problems) => Err(EditError::Entry {
            name: name.to_owned(),
            problems,
        }),
    }
}

fn expect_object(node: &Node<'_>, what: impl FnOnce() -> String) -> Result<(), EditError> {
    match node.members() {
        Some(_) => Ok(()),
        None => Err(EditError::Shape { what: what() }),
    }
}

/// The object of servers, and which of its members has the name.
fn find<'n, 'a>(
    root: Option<&'n Node<'a>>,
    name: &str,
) -> Result<(&'n Node<'a>, usize), EditError> {
    let servers = root.and_then(|root| root.get("mcpServers"));
    let members = servers.and_then(|member| member.node.members());
    let members = members.unwrap_or_default();
    let at = members.iter().position(|member| member.key == name);
    match (servers, at) {
        (Some(servers), Some(at)) => Ok((&servers.node, at)),
        _ => Err(EditError::Missing {
            name: name.to_owned(),
            nearest: nearest(name, members.iter().map(|member| member.key.as_ref()))
                .map(str::to_owned),
        }),
    }
}

/// Pieces of text to put in place of others.
#[derive(Default)]
struct Patches(Vec<(usize, usize, String)>);

impl Patches {
    fn insert(&mut self, at: usize, text: String) {
        self.replace(at, at, text);
    }

    fn replace(&mut self, start: usize, end: usize, text: String) {
        self.0.push((start, end, text));
    }

    /// Puts a member behind the others, in the way in which the last of them is written.
    fn append(
        &mut self,
        text: &str,
        object: &Node<'_>,
        layout: &Layout,
        member: &dyn Fn(&Layout) -> String,
    ) {
        let Some(last) = object.members().and_then(<[_]>::last) else {
            return self.fill(text, object, layout, member);
        };
        let end = last.node.end;
        let comma = comma_after(text, end);
        let behind = comma.map_or(end, |comma| comma + 1);
        let start_of_line = line_start(text, last.at);
        let indent = &text[start_of_line..last.at];
        if indent.chars().all(char::is_whitespace) {
            let layout = layout.at(indent);
            if comma.is_none() {
                self.insert(end, ",".to_owned());
            }
            let new = format!("{}{}", layout.line(), member(&layout));
            let point = same_line_end(text, behind).unwrap_or(behind);
            self.insert(point, new + comma.map_or("", |_| ","));
        } else {
            let new = member(&Layout::Inline);
            match comma {
                Some(_) => self.insert(behind, format!(" {new},")),
                None => self.insert(behind, format!(", {new}")),
            }
        }
    }

    /// Puts the first member into an object.
    fn fill(
        &mut self,
        text: &str,
        object: &Node<'_>,
        layout: &Layout,
        member: &dyn Fn(&Layout) -> String,
    ) {
        let start_of_line = line_start(text, object.start);
        let line = &text[start_of_line..object.start];
        let base = &line[..line.len() - line.trim_start().len()];
        let outer = layout.at(base);
        let inner = outer.deeper();
        let new = format!("{}{}{}", inner.line(), member(&inner), outer.line());
        let (open, close) = (object.start + 1, object.end - 1);
        let inside = text[open..close].trim_end();
        // Comments inside stay where they are, and a space before the brace makes way for the line.
        self.replace(open + inside.len(), close, new);
    }

    /// Takes a member out, with its comma or the one before it.
    fn remove(&mut self, text: &str, object: &Node<'_>, at: usize) {
        let members = object.members().unwrap_or_default();
        let Member { at: key, node, .. } = &members[at];
        let comma = comma_after(text, node.end);
        let (mut start, mut end) = (*key, comma.map_or(node.end, |comma| comma + 1));
        let start_of_line = line_start(text, start);
        let first_on_line = text[start_of_line..start].trim().is_empty();
        let rest = same_line_end(text, end).unwrap_or(end);
        let end_of_line = text[rest..].trim_start_matches([' ', '\t', '\r']);
        let last_on_line = end_of_line.is_empty() || end_of_line.starts_with('\n');
        if first_on_line && last_on_line {
            start = start_of_line;
            end = (text.len() - end_of_line.len() + 1).min(text.len());
        } else if first_on_line || (comma.is_some() && !last_on_line) {
            end = text.len() - text[end..].trim_start_matches([' ', '\t']).len();
        } else {
            start = text[..start].trim_end_matches([' ', '\t']).len();
        }
        if comma.is_none()
            && let Some(before) = at.checked_sub(1)
            && let Some(comma) = comma_after(text, members[before].node.end)
        {
            self.replace(comma, comma + 1, String::new());
        }
        let (open, close) = (object.start + 1, object.end - 1);
        let nothing_left = members.len() == 1
            && text[open..start.max(open)].trim().is_empty()
            && text[end.min(close)..close].trim().is_empty();
        if nothing_left {
            (start, end) = (open, close);
        }
        self.replace(start, end, String::new());
    }

    fn apply(mut self, text: &str) -> Result<String, EditError> {
        let mut result = String::with_capacity(text.len() + 256);
        let mut done = 0;
        self.0.sort_by_key(|&(start, ..)| start);
        for (start, end, new) in self.0 {
            result.push_str(&text[done..start]);
            result.push_str(&new);
            done = end;
        }
        result.push_str(&text[done..]);
        read(&result)?;
        Ok(result)
    }
}

/// The comma behind a value, if one follows.
fn comma_after(text: &str, end: usize) -> Option<usize> {
    let next = skip_trivia(text, end).ok()?;
    (text.as_bytes().get(next) == Some(&b',')).then_some(next)
}

fn messages(problems: &[Problem]) -> String {
    if let [problem] = problems {
        return problem.message.clone();
    }
    let messages: Vec<_> = problems
        .iter()
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{}; {hint}", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    messages.join("; ")
}
