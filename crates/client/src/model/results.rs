//! The results of a server.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use super::{Content, Role, null_as_default};

/// The result of a tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The output for the model.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<Content>,
    /// The output for programs, in the format of the tool's output schema.
    pub structured_content: Option<Raw>,
    /// The tool ran and failed; the content describes the error.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_error: bool,
    /// Additional metadata from the server.
    #[serde(rename = "_meta")]
    pub meta: Option<Raw>,
}

impl CallToolResult {
    /// Returns all text in the content, one piece per line.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// A rendered prompt.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// The messages of the prompt.
    #[serde(default, deserialize_with = "null_as_default")]
    pub messages: Vec<PromptMessage>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The author of the message.
    pub role: Role,
    /// The content of the message.
    pub content: Content,
}

/// The contents of a resource.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The resource, or its parts.
    #[serde(default, deserialize_with = "null_as_default")]
    pub contents: Vec<ResourceContents>,
}

/// A resource, or a part of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceContents {
    /// The URI.
    pub uri: String,
    /// The MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The content, if it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content in base64, if it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// The result of a completion request.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The completions.
    pub completion: Completion,
}

/// The completions of an argument.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The best completions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub values: Vec<String>,
    /// The total number of completions.
    pub total: Option<u64>,
    /// There are more completions.
    #[serde(default, deserialize_with = "null_as_default")]
    pub has_more: bool,
}

/// The prompt or resource template that an argument belongs to.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type")]
pub enum CompletionRef {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name of the prompt.
        name: String,
    },
    /// A resource template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The URI template.
        uri: String,
    },
}

/// The severity of a log message. The least severe is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // The names are from RFC 5424.
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
    /// Returns the name of the level on the wire.
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
