//! [`Offer`]: one definition that a server offers, and the key of its record.

use std::borrow::Cow;

use serde::Serialize;
use switchboard_wire::{Raw, tree::Json};

use crate::{Fingerprint, limits};

/// The kinds of definitions that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource that is listed.
    Resource,
    /// A template of resource URIs.
    Template,
    /// The text that the server gives to models in its handshake.
    Instructions,
    /// The server as a whole, if it offers nothing else to be approved.
    Server,
}

/// One definition that a server offers. A plain [`Raw`] is a tool.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The kind.
    pub kind: ItemKind,
    /// The definition, as the server spells it.
    pub definition: &'a Raw,
}

/// Why a tool cannot be judged. The words go after "it".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// There is no name, more than one, or none that is text.
    #[error("has no name that can be read")]
    Unnamed,
    /// More than [`limits::NAME_BYTES`].
    #[error("has a name of more than {} bytes", limits::NAME_BYTES)]
    LongName,
    /// A tool has a name that stands for an item of another kind, such as `(prompt) greet`.
    #[error("has a name that is reserved")]
    Reserved,
    /// One before it in the list has the same name.
    #[error("has the same name as one before it")]
    Twice,
    /// More than [`limits::TOOLS`].
    #[error("comes after {} others", limits::TOOLS)]
    TooMany,
}

impl<'a> From<&'a Raw> for Offer<'a> {
    fn from(definition: &'a Raw) -> Self {
        let kind = ItemKind::Tool;
        Self { kind, definition }
    }
}

/// The tags that set the keys of other kinds apart from the names of tools.
const TAGS: [(&str, ItemKind); 5] = [
    ("(prompt) ", ItemKind::Prompt),
    ("(resource) ", ItemKind::Resource),
    ("(long resource) ", ItemKind::Resource),
    ("(template) ", ItemKind::Template),
    ("(long template) ", ItemKind::Template),
];

const INSTRUCTIONS: &str = "(instructions)";
const SERVER: &str = "(server)";

/// How much of a long URI is part of its key. The rest is a hash.
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

    /// The key of an item's record: the name of a tool as it is, `(prompt) NAME`, `(resource) URI`,
    /// `(template) URI`. A URI longer than [`limits::NAME_BYTES`] is cut and ends in its hash.
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

    /// The key of a definition, read as the catalogue reads its name.
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
    fn keys_tell_their_kind() {
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
            // No short URI takes the key of a long one.
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
