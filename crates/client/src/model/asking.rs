//! What a server asks of a client, and the answers.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use switchboard_wire::Raw;

use super::{Content, Role, null_as_default};

/// The server wants a model to go on with a conversation.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The conversation.
    #[serde(default, deserialize_with = "null_as_default")]
    pub messages: Vec<SamplingMessage>,
    /// What the model is to know beforehand.
    pub system_prompt: Option<String>,
    /// How much it may say.
    pub max_tokens: u64,
    /// How free it is to be.
    pub temperature: Option<f64>,
    /// Where it is to stop.
    #[serde(default, deserialize_with = "null_as_default")]
    pub stop_sequences: Vec<String>,
    /// Which model the server would like.
    pub model_preferences: Option<Raw>,
}

/// A message of a conversation.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Whose words it is.
    pub role: Role,
    /// What it says.
    #[serde(deserialize_with = "one_or_many")]
    pub content: Vec<Content>,
}

/// What the model said.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingResult {
    /// Whose words it is.
    pub role: Role,
    /// What it says.
    pub content: Content,
    /// Which model said it.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, or the model's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

impl SamplingResult {
    /// The plain case: a model said this.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: Content::text(text),
            model: model.into(),
            stop_reason: Some("endTurn".to_owned()),
        }
    }
}

/// The server wants a person to fill in a form.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// What to tell the person.
    pub message: String,
    /// The form to fill in: a flat JSON Schema.
    pub requested_schema: Option<Raw>,
}

/// The server wants a person to open an address.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct UrlElicitationRequest {
    /// What to tell the person.
    pub message: String,
    /// The address, for the person to see and agree to first. It must not be opened before.
    pub url: String,
}

impl ElicitationRequest {
    /// The values that the form starts out with: the defaults of its schema.
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

/// What the person said.
#[derive(Debug, Clone, Serialize)]
pub struct ElicitationAnswer {
    /// Whether the person answered.
    pub action: ElicitationAction,
    /// The filled-in form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// Whether a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    /// Yes.
    Accept,
    /// No, and on purpose.
    Decline,
    /// No: the question was dismissed.
    Cancel,
}

impl ElicitationAnswer {
    /// The person filled in the form.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self {
            action: ElicitationAction::Accept,
            content: Some(content),
        }
    }

    /// The person agreed to open the address.
    pub fn consent() -> Self {
        Self {
            action: ElicitationAction::Accept,
            content: None,
        }
    }

    /// The person said no.
    pub fn decline() -> Self {
        Self {
            action: ElicitationAction::Decline,
            content: None,
        }
    }

    /// The person said nothing.
    pub fn cancel() -> Self {
        Self {
            action: ElicitationAction::Cancel,
            content: None,
        }
    }
}

/// A place that the client works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// Its address, a `file://` one.
    pub uri: String,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// A root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
        }
    }
}

/// 2025-11-25 lets a message have several pieces of content; before, it had one.
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
    fn a_form_starts_out_with_its_defaults() {
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
    fn a_message_has_one_piece_of_content_or_many() {
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
