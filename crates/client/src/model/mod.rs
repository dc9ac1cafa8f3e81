//! The values of the protocol as types, each with the JSON it was read from.
//!
//! The types contain the members that programs commonly use. [`Lossless::raw`] has all others, as
//! they were spelled.

mod asking;
mod content;
mod offers;
mod results;

use std::{fmt, ops::Deref};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use switchboard_wire::Raw;

pub use asking::{
    ElicitationAction, ElicitationAnswer, ElicitationRequest, Root, SamplingMessage,
    SamplingRequest, SamplingResult, UrlElicitationRequest,
};
pub use content::{Content, Role};
pub use offers::{
    Listed, Prompt, PromptArgument, Resource, ResourceTemplate, Tool, ToolAnnotations,
};
pub use results::{
    CallToolResult, CompleteResult, Completion, CompletionRef, GetPromptResult, LogLevel,
    PromptMessage, ReadResourceResult, ResourceContents,
};

/// A typed value together with the JSON it was read from, byte for byte.
///
/// ```
/// use switchboard_client::{Lossless, Raw, model::Tool};
///
/// let raw = Raw::parse(r#"{"name":"add","inputSchema":{"type":"object"},"x-vendor":1.50}"#)?;
/// let tool = Lossless::<Tool>::read(raw)?;
/// assert_eq!(tool.name, "add");
/// assert_eq!(tool.raw().member("x-vendor").unwrap().as_str(), "1.50");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Lossless<T> {
    value: T,
    raw: Raw,
}

impl<T: DeserializeOwned> Lossless<T> {
    /// Reads a value from JSON and keeps the JSON.
    pub fn read(raw: Raw) -> Result<Self, serde_json::Error> {
        let value = raw.read_owned()?;
        Ok(Self { value, raw })
    }
}

impl<T> Lossless<T> {
    /// Returns the JSON, exactly as the server spelled it.
    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// Returns the typed value alone.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Lossless<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Lossless<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// A type that the result of a call can be read as.
pub trait FromAnswer: Sized {
    /// Reads the result of a call.
    fn from_answer(answer: Raw) -> Result<Self, serde_json::Error>;
}

impl FromAnswer for Raw {
    fn from_answer(answer: Raw) -> Result<Self, serde_json::Error> {
        Ok(answer)
    }
}

impl<T: DeserializeOwned> FromAnswer for Lossless<T> {
    fn from_answer(answer: Raw) -> Result<Self, serde_json::Error> {
        Self::read(answer)
    }
}

/// Reads `null` as the default: some servers send `null` for absent members.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
