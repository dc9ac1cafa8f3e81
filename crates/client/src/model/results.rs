//! What a server answers.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use super::{Content, Role, null_as_default};

/// What a tool gave.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// For a model to read.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<Content>,
    /// For a program to read, as the tool's output schema says.
    pub structured_content: Option<Raw>,
    /// The tool ran and failed; the content says how.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_error: bool,
    /// What the server says beside it, in names of its own.
    #[serde(rename = "_meta")]
    pub meta: Option<Raw>,
}

impl CallToolResult {
    /// All the text in it, one piece a line.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// A prompt with its gaps filled.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What it is for.
    pub description: Option<String>,
    /// The text, as a conversation.
    #[serde(default, deserialize_with = "null_as_default")]
    pub messages: Vec<PromptMessage>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Whose words it is.
    pub role: Role,
    /// What it says.
    pub content: Content,
}

/// What a resource holds.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The resource, or the parts of it.
    #[serde(default, deserialize_with = "null_as_default")]
    pub contents: Vec<ResourceContents>,
}

/// A resource, or a part of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceContents {
    /// Its address.
    pub uri: String,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// What it holds, if that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it holds, in base64, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// Ways to go on.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The ways.
    pub completion: Completion,
}

/// Ways to go on.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The best ones.
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Vec<String>,
    /// How many there are.
    pub total: Option<u64>,
    /// Whether there are more.
    #[serde(default, deserialize_with = "null_as_default")]
    pub has_more: bool,
}

/// What an argument to complete belongs to.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
    },
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The template.
        uri: String,
    },
}

/// How grave a log message is, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // The names of RFC 5424.
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
