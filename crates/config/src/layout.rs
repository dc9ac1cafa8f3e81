//! How a text is laid out, and new text in the same way.

use serde_json::{Map, Value};

use crate::json::Node;
use crate::keys::SERVER;

/// The indentation of a text that shows none.
const UNIT: &str = "  ";

/// A list up to this long stays on one line.
const LIST_MAX: usize = 72;

/// How new text is laid out.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// All on one line.
    Inline,
    /// Each member on its own line.
    Lines {
        /// What ends a line.
        newline: &'static str,
        /// What one level is indented by.
        unit: String,
        /// What this level is indented by.
        indent: String,
    },
}

impl Layout {
    /// The layout of a text at its outermost level, shown by the first key of the outer object.
    pub(crate) fn of(text: &str, root: Option<&Node<'_>>) -> Self {
        let indent = root
            .and_then(|root| root.members()?.first())
            .map(|first| &text[line_start(text, first.at)..first.at])
            .filter(|indent| !indent.is_empty() && indent.trim_matches([' ', '\t']).is_empty());
        Self::Lines {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: indent.unwrap_or(UNIT).to_owned(),
            indent: String::new(),
        }
    }

    /// The same layout at an indentation.
    pub(crate) fn at(&self, indent: &str) -> Self {
        match self {
            Self::Inline => Self::Inline,
            Self::Lines { newline, unit, .. } => Self::Lines {
                newline,
                unit: unit.clone(),
                indent: indent.to_owned(),
            },
        }
    }

    /// The layout one level further in.
    pub(crate) fn deeper(&self) -> Self {
        match self {
            Self::Inline => Self::Inline,
            Self::Lines { unit, indent, .. } => self.at(&format!("{indent}{unit}")),
        }
    }

    /// What a new line starts with.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Inline => String::new(),
            Self::Lines {
                newline, indent, ..
            } => format!("{newline}{indent}"),
        }
    }

    /// What stands between two members.
    pub(crate) fn between(&self) -> String {
        match self {
            Self::Inline => ", ".to_owned(),
            Self::Lines { .. } => format!(",{}", self.line()),
        }
    }

    /// An object around one member.
    pub(crate) fn braces(&self, member: &str) -> String {
        format!("{{{}{member}{}}}", self.deeper().line(), self.line())
    }

    /// What makes a text with nothing in it a whole configuration.
    pub(crate) fn document(&self, text: &str, member: &str) -> String {
        let line = self.line();
        let start = match text.strip_prefix('\u{feff}').unwrap_or(text) {
            "" => "",
            text if text.ends_with('\n') => "",
            _ => line.as_str(),
        };
        format!("{start}{}{line}", self.braces(member))
    }
}

/// A server's entry, its keys in the order in which people write them.
pub(crate) fn entry_text(entry: &Value, layout: &Layout) -> String {
    match entry {
        Value::Object(members) => {
            let place = |key: &str| SERVER.all.iter().position(|known| known.name == key);
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
            object_text(members.into_iter(), layout)
        }
        other => value_text(other, layout),
    }
}

/// A key or string in its quotes.
pub(crate) fn key_text(key: &str) -> String {
    Value::from(key).to_string()
}

fn object_text<'v>(
    members: impl ExactSizeIterator<Item = (&'v String, &'v Value)>,
    layout: &Layout,
) -> String {
    let inner = layout.deeper();
    let member = |(key, value): (&String, &Value)| {
        format!("{}: {}", key_text(key), value_text(value, &inner))
    };
    between('{', '}', &members.map(member).collect::<Vec<_>>(), layout)
}

fn value_text(value: &Value, layout: &Layout) -> String {
    match value {
        Value::Object(members) => object_text(Map::iter(members), layout),
        Value::Array(items) => {
            let inline = items.iter().map(|item| value_text(item, &Layout::Inline));
            let inline = between('[', ']', &inline.collect::<Vec<_>>(), &Layout::Inline);
            if inline.len() <= LIST_MAX {
                return inline;
            }
            let inner = layout.deeper();
            let items = items.iter().map(|item| value_text(item, &inner));
            between('[', ']', &items.collect::<Vec<_>>(), layout)
        }
        plain => plain.to_string(),
    }
}

fn between(open: char, close: char, items: &[String], layout: &Layout) -> String {
    if items.is_empty() {
        return format!("{open}{close}");
    }
    match layout {
        Layout::Inline => format!("{open}{}{close}", items.join(", ")),
        Layout::Lines { .. } => {
            let line = layout.deeper().line();
            let items = items.join(&format!(",{line}"));
            format!("{open}{line}{items}{}{close}", layout.line())
        }
    }
}

/// The offset of the first byte of the line that `at` is on.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    match text[start..].strip_prefix('\u{feff}') {
        Some(rest) if start == 0 => text.len() - rest.len(),
        _ => start,
    }
}

/// The offset behind the last comment that starts and ends on the line of `at`, with nothing but
/// space before it.
pub(crate) fn same_line_end(text: &str, at: usize) -> Option<usize> {
    let line = text[at..]
        .find('\n')
        .map_or(text.len(), |length| at + length);
    let mut behind = None;
    let mut from = at;
    loop {
        let comment = line - text[from..line].trim_start_matches([' ', '\t']).len();
        let rest = &text[comment..line];
        if rest.starts_with("//") {
            return Some(comment + rest.trim_end_matches('\r').len());
        }
        if !rest.starts_with("/*") {
            return behind;
        }
        // A comment that goes on below belongs to what is below.
        let Some(length) = rest[2..].find("*/") else {
            return behind;
        };
        from = comment + 2 + length + 2;
        behind = Some(from);
    }
}
