//! The items that a server offers: tools, prompts, resources.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use switchboard_wire::{Raw, method};

/// An item of a list that can be requested as [`Pages`](crate::Pages). The protocol has four kinds of such
/// items, and only these implement the trait.
pub trait Listed: DeserializeOwned + Unpin + sealed::Sealed {
    /// The method that lists the items.
    const METHOD: &'static str;
    /// The member of the result that contains the items.
    const MEMBER: &'static str;

    /// Returns the name and the schema of an item that takes arguments.
    #[doc(hidden)]
    fn schema(&self) -> Option<(&str, &Raw)> {
        None
    }
}

/// A tool of the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name to call it by.
    pub name: String,
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments. A tool without one accepts any object.
    #[serde(default = "any_object")]
    pub input_schema: Raw,
    /// The JSON Schema of its structured result.
    #[serde(default, deserialize_with = "readable")]
    pub output_schema: Option<Raw>,
    /// The effects of the tool, as described by the server.
    #[serde(default, deserialize_with = "readable")]
    pub annotations: Option<ToolAnnotations>,
}

/// The effects of a tool, as described by the server. Do not trust them more than the server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The tool changes nothing.
    #[serde(default, deserialize_with = "readable")]
    pub read_only_hint: Option<bool>,
    /// The tool may delete or overwrite data.
    #[serde(default, deserialize_with = "readable")]
    pub destructive_hint: Option<bool>,
    /// Repeating a call has no further effect.
    #[serde(default, deserialize_with = "readable")]
    pub idempotent_hint: Option<bool>,
    /// The tool interacts with external systems.
    #[serde(default, deserialize_with = "readable")]
    pub open_world_hint: Option<bool>,
}

/// A prompt template of the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// The name to request it by.
    pub name: String,
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The purpose of the prompt.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The arguments of the template.
    #[serde(default, deserialize_with = "readable_elements")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name of the argument.
    pub name: String,
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The description of the argument.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The argument must be provided.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub required: bool,
}

/// A resource of the server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI of the resource.
    pub uri: String,
    /// The name of the resource; empty if it has none.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub name: String,
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The description of the resource.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The MIME type of the resource.
    #[serde(default, deserialize_with = "readable")]
    pub mime_type: Option<String>,
    /// The size of the resource, in bytes.
    #[serde(default, deserialize_with = "readable")]
    pub size: Option<u64>,
}

/// A template for the URIs of a group of resources.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// The name of the template; empty if it has none.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub name: String,
    /// The title to show to the user.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// The description of the resources.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The MIME type, if all resources have the same.
    #[serde(default, deserialize_with = "readable")]
    pub mime_type: Option<String>,
}

impl Listed for Tool {
    const METHOD: &'static str = method::TOOLS_LIST;
    const MEMBER: &'static str = "tools";

    fn schema(&self) -> Option<(&str, &Raw)> {
        Some((&self.name, &self.input_schema))
    }
}

impl Listed for Prompt {
    const METHOD: &'static str = method::PROMPTS_LIST;
    const MEMBER: &'static str = "prompts";
}

impl Listed for Resource {
    const METHOD: &'static str = method::RESOURCES_LIST;
    const MEMBER: &'static str = "resources";
}

impl Listed for ResourceTemplate {
    const METHOD: &'static str = method::RESOURCE_TEMPLATES_LIST;
    const MEMBER: &'static str = "resourceTemplates";
}

/// Reads an invalid member as absent, so that one fault does not discard the whole item.
fn readable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(Raw::deserialize(deserializer)?.read_owned().ok())
}

fn readable_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(readable(deserializer)?.unwrap_or_default())
}

fn readable_elements<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let elements = Raw::deserialize(deserializer)?.elements();
    let elements = elements.unwrap_or_default().into_iter();
    Ok(elements.filter_map(|it| it.read_owned().ok()).collect())
}

fn any_object() -> Raw {
    Raw::object([("type", Raw::string("object"))])
}

mod sealed {
    /// Restricts [`Listed`](super::Listed) to the kinds of the protocol.
    #[expect(unnameable_types, reason = "that is what seals it")]
    pub trait Sealed {}
    impl Sealed for super::Tool {}
    impl Sealed for super::Prompt {}
    impl Sealed for super::Resource {}
    impl Sealed for super::ResourceTemplate {}
}
