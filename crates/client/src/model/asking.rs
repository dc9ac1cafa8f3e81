//! The requests of a server to a client, and the client's responses.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use switchboard_wire::Raw;

use super::{Content, Role, null_as_default};

/// A request of the server for a completion by a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The conversation.
    #[serde(default, deserialize_with = "null_as_default")]
    pub messages: Vec<SamplingMessage>,
    /// The system prompt for the model.
    pub system_prompt: Option<String>,
    /// The most tokens to generate.
    pub max_tokens: u64,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// Sequences at which the model stops.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stop_sequences: Vec<String>,
    /// The model that the server prefers.
    pub model_preferences: Option<Raw>,
}

/// A message of a conversation.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    #[serde(deserialize_with = "one_or_many")]
    pub content: Vec<Content>,
}

/// The completion of the model.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingResult {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    pub content: Content,
    /// The name of the model.
    pub model: String,
    /// The reason why it stopped: `endTurn`, `stopSequence`, `maxTokens`, or another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

impl SamplingResult {
    /// Creates a result with plain text from a model.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: Content::text(text),
            model: model.into(),
            stop_reason: Some("endTurn".to_owned()),
        }
    }
}

/// A request of the server to the user to fill in a form.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The message to show to the user.
    pub message: String,
    /// The form to fill in: a flat JSON Schema.
    pub requested_schema: Option<Raw>,
}

/// A request of the server to the user to open a URL.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct UrlElicitationRequest {
    /// The message to show to the user.
    pub message: String,
    /// The URL. The user must see it and agree before it is opened.
    pub url: String,
}

impl ElicitationRequest {
    /// Returns the initial values of the form: the defaults of its schema.
    pub fn defaults(&self) -> Map<String, Value> {
        let schema = self.requested_schema.as_ref();
        let properties = schema.and_then(|schema| schema.member("properties")?.members());
        properties
            .unwrap_or_default()
            .into_iter()
            .filter_map(|(name, property)| {
                Some((name, property.member("default")?.read_owned().ok()?))
            })
            .collect()
    }
}

/// The user's response.
#[derive(Debug, Clone, Serialize)]
pub struct ElicitationAnswer {
    /// The action of the user.
    pub action: ElicitationAction,
    /// The filled-in form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// The action of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    /// The user provided the input, or agreed to open the URL.
    Accept,
    /// The user explicitly declined.
    Decline,
    /// The user dismissed the request.
    Cancel,
}

impl ElicitationAnswer {
    /// The user filled in the form.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self {
            action: ElicitationAction::Accept,
            content: Some(content),
        }
    }

    /// The user agreed to open the URL.
    pub fn consent() -> Self {
        Self {
            action: ElicitationAction::Accept,
            content: None,
        }
    }

    /// The user declined.
    pub fn decline() -> Self {
        Self {
            action: ElicitationAction::Decline,
            content: None,
        }
    }

    /// The user dismissed the request.
    pub fn cancel() -> Self {
        Self {
            action: ElicitationAction::Cancel,
            content: None,
        }
    }
}

/// A directory that the client works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// The URI of the directory, which starts with `file://`.
    pub uri: String,
    /// The name to display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// Creates a root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
        }
    }
}

/// Reads one or several pieces of content. Only 2025-11-25 and later allow several.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    let pieces = raw.elements().unwrap_or_else(|| vec![raw]);
    pieces
        .iter()
        .map(|piece| piece.read_owned().map_err(serde::de::Error::custom))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_starts_with_its_defaults() {
        let request: ElicitationRequest = serde_json::from_str(
            r#"{"message":"?","requestedSchema":{"type":"object","properties":{
                "name":{"type":"string","default":"Ada"},"age":{"type":"integer"},"on":{"type":"boolean","default":false}}}}"#,
        )
        .unwrap();
        assert_eq!(
            Value::Object(request.defaults()),
            serde_json::json!({"name": "Ada", "on": false})
        );
    }

    #[test]
    fn message_content_may_be_one_or_many() {
        for content in [
            r#"{"type":"text","text":"a"}"#,
            r#"[{"type":"text","text":"a"}]"#,
        ] {
            let message: SamplingMessage =
                serde_json::from_str(&format!(r#"{{"role":"user","content":{content}}}"#)).unwrap();
            assert_eq!(message.content[0].as_text(), Some("a"));
        }
    }
}
