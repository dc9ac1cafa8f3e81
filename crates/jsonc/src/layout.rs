//! The layout of a text, and the formatting of new text in the same layout.

use std::fmt;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged as _;
use serde_json::Value;

/// The indentation if the text has none.
const UNIT: &str = "  ";

/// The longest list, in bytes, that stays on one line.
const LIST_MAX: usize = 72;

/// A value to write. Members keep their order.
#[derive(Clone, Debug)]
pub enum Tree<'a> {
    /// JSON that is written verbatim, on one line.
    Leaf(String),
    /// A list, which is written on one line if it is short.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(&'a str, Self)>),
}

impl<'a> From<&'a Value> for Tree<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => {
                let members = members.iter();
                Self::Object(members.map(|(key, value)| (&**key, value.into())).collect())
            }
            plain => Self::Leaf(plain.to_string()),
        }
    }
}

/// Writes the value on one line.
impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Layout::of("", None).value(self, None))
    }
}

pub(crate) struct Layout<'a> {
    pub(crate) newline: &'static str,
    /// The indentation of one level.
    pub(crate) unit: &'a str,
    /// Everything is on one line.
    pub(crate) one_line: bool,
}

impl<'a> Layout<'a> {
    /// Detects the layout of a text. The first key of the outer object determines the unit.
    pub(crate) fn of(text: &'a str, root: Option<&Node<'_>>) -> Self {
        let first = root.and_then(|root| root.as_object()?.properties.first());
        let indent = first.map_or("", |first| line_before(text, first.start()));
        let is_indent = !indent.is_empty() && indent.trim_matches([' ', '\t']).is_empty();
        Self {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: if is_indent { indent } else { UNIT },
            one_line: first.is_some() && !text.trim().contains(['\n', '\r']),
        }
    }

    /// Formats a value that starts on a line of this indentation; without one, on a single line.
    pub(crate) fn value(&self, tree: &Tree<'_>, indent: Option<&str>) -> String {
        let inner = indent.map(|indent| format!("{indent}{}", self.unit));
        let inner = inner.as_deref();
        let (open, items, close) = match tree {
            Tree::Leaf(text) => return text.clone(),
            Tree::List(items) => {
                if indent.is_some() {
                    let line = self.value(tree, None);
                    if line.len() <= LIST_MAX {
                        return line;
                    }
                }
                let items: Vec<_> = items.iter().map(|item| self.value(item, inner)).collect();
                ('[', items.join(&self.separator(inner)), ']')
            }
            Tree::Object(members) => ('{', self.members(members, inner), '}'),
        };
        match (indent, inner) {
            (Some(indent), Some(inner)) if !items.is_empty() => {
                let line = self.newline;
                format!("{open}{line}{inner}{items}{line}{indent}{close}")
            }
            _ => format!("{open}{items}{close}"),
        }
    }

    /// Formats members, each on a line of this indentation; without one, all on a single line.
    pub(crate) fn members(&self, members: &[(&str, Tree<'_>)], indent: Option<&str>) -> String {
        let member = |(key, tree): &(&str, _)| {
            format!("{}: {}", Value::from(*key), self.value(tree, indent))
        };
        let members: Vec<_> = members.iter().map(member).collect();
        members.join(&self.separator(indent))
    }

    fn separator(&self, indent: Option<&str>) -> String {
        indent.map_or_else(
            || ", ".to_owned(),
            |indent| format!(",{}{indent}", self.newline),
        )
    }
}

/// The part of the line before this offset.
pub(crate) fn line_before(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    &text[start..at]
}

/// The whitespace at the start of the line of this offset.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = line_before(text, at);
    &line[..line.len() - line.trim_start().len()]
}
