//! What a server offers: tools, prompts, resources.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use switchboard_wire::{Raw, method};

/// What comes in lists, and can be asked for as [`Pages`](crate::Pages). The protocol has four
/// such kinds, and so has this trait.
pub trait Listed: DeserializeOwned + Unpin + sealed::Sealed {
    /// The method that lists them.
    const METHOD: &'static str;
    /// The member of its result that holds them.
    const MEMBER: &'static str;

    /// The name and the schema of an item that takes arguments.
    #[doc(hidden)]
    fn schema(&self) -> Option<(&str, &Raw)> {
        None
    }
}

/// Something the server can do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// What to call it by.
    pub name: String,
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// What to tell a model.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments. A tool without one takes any object.
    #[serde(default = "any_object")]
    pub input_schema: Raw,
    /// The JSON Schema of its structured result.
    #[serde(default, deserialize_with = "readable")]
    pub output_schema: Option<Raw>,
    /// What the server says of its effects.
    #[serde(default, deserialize_with = "readable")]
    pub annotations: Option<ToolAnnotations>,
}

/// What a server says of the effects of a tool. Not to be trusted more than the server is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, deserialize_with = "readable")]
    pub read_only_hint: Option<bool>,
    /// It may destroy.
    #[serde(default, deserialize_with = "readable")]
    pub destructive_hint: Option<bool>,
    /// Doing it twice is the same as doing it once.
    #[serde(default, deserialize_with = "readable")]
    pub idempotent_hint: Option<bool>,
    /// It deals with the world outside.
    #[serde(default, deserialize_with = "readable")]
    pub open_world_hint: Option<bool>,
}

/// A text with gaps that the server offers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prompt {
    /// What to call it by.
    pub name: String,
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The gaps.
    #[serde(default, deserialize_with = "readable_elements")]
    pub arguments: Vec<PromptArgument>,
}

/// A gap in a prompt.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// What to call it by.
    pub name: String,
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// What belongs there.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// Whether it must be filled.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub required: bool,
}

/// Something the server can show.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its name; empty if it has none.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub name: String,
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// Its type.
    #[serde(default, deserialize_with = "readable")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, deserialize_with = "readable")]
    pub size: Option<u64>,
}

/// A family of resources whose address has gaps.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The address with its gaps (RFC 6570).
    pub uri_template: String,
    /// Its name; empty if it has none.
    #[serde(default, deserialize_with = "readable_or_default")]
    pub name: String,
    /// What to show a person.
    #[serde(default, deserialize_with = "readable")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, deserialize_with = "readable")]
    pub description: Option<String>,
    /// The type, if all have the same.
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

/// A member that is not as the protocol wants it counts as not given: it is no reason to lose the rest.
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
    /// Keeps [`Listed`](super::Listed) to the kinds of the protocol.
    #[expect(unnameable_types, reason = "that is what seals it")]
    pub trait Sealed {}
    impl Sealed for super::Tool {}
    impl Sealed for super::Prompt {}
    impl Sealed for super::Resource {}
    impl Sealed for super::ResourceTemplate {}
}
