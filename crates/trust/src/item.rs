//! [`Offer`]: a definition that a server offers, and the key of its record.

use std::borrow::Cow;

use serde::Serialize;
use switchboard_wire::{Raw, tree::Json};

use crate::{Fingerprint, limits};

/// The kinds of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A listed resource.
    Resource,
    /// A template of resource URIs.
    Template,
    /// The instructions for models in the server's handshake.
    Instructions,
    /// The server as a whole, if nothing else of it needs approval.
    Server,
}

/// A definition that a server offers. A plain [`Raw`] is a tool.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The kind.
    pub kind: ItemKind,
    /// The definition, in the server's spelling.
    pub definition: &'a Raw,
}

/// The reason why a tool cannot be judged. Its text follows "it".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// It has no name, more than one, or one that is not text.
    #[error("has no valid name")]
    Unnamed,
    /// Its name is longer than [`limits::NAME_BYTES`].
    #[error("has a name longer than {} bytes", limits::NAME_BYTES)]
    LongName,
    /// It is a tool with a name that is reserved for another kind, such as `(prompt) greet`.
    #[error("has a reserved name")]
    Reserved,
    /// An earlier item of the list has the same name.
    #[error("has the same name as an earlier one")]
    Twice,
    /// The list has more than [`limits::TOOLS`] items.
    #[error("is beyond the limit of {} items", limits::TOOLS)]
    TooMany,
}

impl<'a> From<&'a Raw> for Offer<'a> {
    fn from(definition: &'a Raw) -> Self {
        let kind = ItemKind::Tool;
        Self { kind, definition }
    }
}

/// Tags that distinguish the keys of other kinds from the names of tools.
const TAGS: [(&str, ItemKind); 5] = [
    ("(prompt) ", ItemKind::Prompt),
    ("(resource) ", ItemKind::Resource),
    ("(long resource) ", ItemKind::Resource),
    ("(template) ", ItemKind::Template),
    ("(long template) ", ItemKind::Template),
];

const INSTRUCTIONS: &str = "(instructions)";
const SERVER: &str = "(server)";

/// The bytes of a long URI that are part of its key. The rest is a hash.
const LONG_URI_BYTES: usize = 120;

impl ItemKind {
    /// The word for the kind, such as `prompt`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
            Self::Server => "server",
        }
    }

    /// The key of an item's record: the name of a tool, `(prompt) NAME`, `(resource) URI` or
    /// `(template) URI`. A URI longer than [`limits::NAME_BYTES`] is cut and ends with its hash.
    pub fn key(self, name: &str) -> Cow<'_, str> {
        let long = name.len() > limits::NAME_BYTES;
        Cow::Owned(match self {
            Self::Tool => return Cow::Borrowed(name),
            Self::Instructions => return Cow::Borrowed(INSTRUCTIONS),
            Self::Server => return Cow::Borrowed(SERVER),
            Self::Resource | Self::Template if long => {
                let start = &name[..name.floor_char_boundary(LONG_URI_BYTES)];
                let hash = Fingerprint::of(name.as_bytes());
                format!("(long {}) {start}…{hash}", self.as_str())
            }
            Self::Prompt | Self::Resource | Self::Template => {
                format!("({}) {name}", self.as_str())
            }
        })
    }

    /// The kind of the item that has this key.
    pub fn of_key(key: &str) -> Self {
        match key {
            INSTRUCTIONS => Self::Instructions,
            SERVER => Self::Server,
            _ => {
                let tag = TAGS.iter().find(|(tag, _)| key.starts_with(tag));
                tag.map_or(Self::Tool, |(_, kind)| *kind)
            }
        }
    }

    /// The member of a definition that names the item.
    const fn key_member(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt | Self::Instructions | Self::Server => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// The key of a definition, parsed as the catalogue parses its name.
    pub(crate) fn read_key(self, definition: &Json<'_>) -> Result<String, LeftOut> {
        let Json::Object(members) = definition else {
            return Err(LeftOut::Unnamed);
        };
        let mut names = members.all(self.key_member());
        let name = match (names.next(), names.next()) {
            (Some(Json::Text(name)), None) if name.halves.is_empty() => &**name,
            _ => return Err(LeftOut::Unnamed),
        };
        let is_uri = matches!(self, Self::Resource | Self::Template);
        if name.len() > limits::NAME_BYTES && !is_uri {
            return Err(LeftOut::LongName);
        }
        if self == Self::Tool && Self::of_key(name) != Self::Tool {
            return Err(LeftOut::Reserved);
        }
        Ok(self.key(name).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_contain_their_kind() {
        let long = "file:///".to_owned() + &"é".repeat(300);
        let longer = long.clone() + "é";
        let kinds = [ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];
        for kind in kinds {
            for name in ["greet", "", "(tool) x", &long] {
                assert_eq!(ItemKind::of_key(&kind.key(name)), kind, "{name}");
            }
        }
        for kind in [ItemKind::Resource, ItemKind::Template] {
            let key = kind.key(&long);
            assert!(key.len() <= limits::KEY_BYTES, "{}", key.len());
            assert_ne!(key, kind.key(&longer));
            // No short URI has the key of a long one.
            let tail = key.split_once(") ").unwrap().1;
            assert_ne!(kind.key(tail), key);
        }
        assert_eq!(ItemKind::of_key("greet"), ItemKind::Tool);
        assert_eq!(ItemKind::of_key("(odd) name"), ItemKind::Tool);
        assert_eq!(ItemKind::of_key("(instructions)"), ItemKind::Instructions);
    }

    #[test]
    fn tools_cannot_take_keys_of_other_kinds() {
        for name in ["(prompt) greet", "(instructions)", "(server)"] {
            let raw = Raw::object([("name", Raw::string(name))]);
            let key = ItemKind::Tool.read_key(&Json::read(&raw));
            assert_eq!(key, Err(LeftOut::Reserved), "{name}");
        }
    }
}
