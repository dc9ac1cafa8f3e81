//! Content: the output of tools and prompts, and the input of models.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_wire::Raw;

use super::ResourceContents;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A piece of content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// The bytes of the image, in base64.
        data: String,
        /// The MIME type, for example `image/png`.
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// The bytes of the audio, in base64.
        data: String,
        /// The MIME type, for example `audio/wav`.
        mime_type: String,
    },
    /// A link to a resource.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// The name of the resource.
        name: String,
    },
    /// An embedded resource.
    Resource {
        /// The resource.
        resource: ResourceContents,
    },
    /// Content of an unknown kind, as it was spelled.
    Other(Raw),
}

impl Content {
    /// Creates text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text, if it is text content.
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
        // An unknown kind, or a known one with a fault, is kept instead of rejected: the rest of
        // the result is still worth reading.
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
    fn unknown_kind_keeps_its_spelling() {
        let text = r#"[{"type":"text","text":"a"},{"type":"hologram","n":1.50}]"#;
        let content: Vec<Content> = serde_json::from_str(text).unwrap();
        assert_eq!(content[0].as_text(), Some("a"));
        assert!(
            matches!(&content[1], Content::Other(raw) if raw.as_str() == r#"{"type":"hologram","n":1.50}"#)
        );
        assert_eq!(serde_json::to_string(&content).unwrap(), text);
    }
}
