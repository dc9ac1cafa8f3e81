//! Content: what tools and prompts give, and what models read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_wire::Raw;

use super::ResourceContents;

/// Whose words a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person's.
    User,
    /// A model's.
    Assistant,
}

/// A piece of content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Content {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes, in base64.
        data: String,
        /// Its type, for example `image/png`.
        mime_type: String,
    },
    /// Sound.
    Audio {
        /// Its bytes, in base64.
        data: String,
        /// Its type, for example `audio/wav`.
        mime_type: String,
    },
    /// The address of a resource.
    ResourceLink {
        /// The address.
        uri: String,
        /// Its name.
        name: String,
    },
    /// A resource itself.
    Resource {
        /// The resource.
        resource: ResourceContents,
    },
    /// Something of a kind that has no type here: as it was spelled.
    Other(Raw),
}

impl Content {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The words, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Known {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    ResourceLink { uri: String, name: String },
    Resource { resource: ResourceContents },
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        // A kind that is new, or a known one with a fault, is kept rather than refused: the rest
        // of the result is still worth reading.
        Ok(match raw.read_owned() {
            Ok(Known::Text { text }) => Self::Text { text },
            Ok(Known::Image { data, mime_type }) => Self::Image { data, mime_type },
            Ok(Known::Audio { data, mime_type }) => Self::Audio { data, mime_type },
            Ok(Known::ResourceLink { uri, name }) => Self::ResourceLink { uri, name },
            Ok(Known::Resource { resource }) => Self::Resource { resource },
            Err(_) => Self::Other(raw),
        })
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = match self.clone() {
            Self::Text { text } => Known::Text { text },
            Self::Image { data, mime_type } => Known::Image { data, mime_type },
            Self::Audio { data, mime_type } => Known::Audio { data, mime_type },
            Self::ResourceLink { uri, name } => Known::ResourceLink { uri, name },
            Self::Resource { resource } => Known::Resource { resource },
            Self::Other(raw) => return raw.serialize(serializer),
        };
        known.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_kept_as_it_was_spelled() {
        let text = r#"[{"type":"text","text":"a"},{"type":"hologram","n":1.50}]"#;
        let content: Vec<Content> = serde_json::from_str(text).unwrap();
        assert_eq!(content[0].as_text(), Some("a"));
        assert!(
            matches!(&content[1], Content::Other(raw) if raw.as_str() == r#"{"type":"hologram","n":1.50}"#)
        );
        assert_eq!(serde_json::to_string(&content).unwrap(), text);
    }
}
