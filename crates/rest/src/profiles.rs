//! Profiles, as their clients see them.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::words::ToolView;

/// The profiles, by name.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Profiles {
    /// The profiles.
    pub profiles: Vec<ProfileSummary>,
}

/// A profile in a list.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileSummary {
    /// The name.
    pub name: String,
    /// The servers that it includes.
    #[serde(default)]
    pub servers: Vec<String>,
    /// The number of tools that its clients may call.
    #[serde(default)]
    pub tools: u64,
    /// The tools that a client is shown at first if it does not search tools itself and has no view of its own.
    #[serde(default)]
    pub shows: ToolView,
    /// The reason for that, as a clause about a client.
    #[serde(default)]
    pub why: String,
}

/// Everything that the clients of a profile may see and call, under the names that they see.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProfileView {
    /// The profile.
    #[serde(flatten)]
    pub profile: ProfileSummary,
    /// The definitions of the menu, if its clients are shown one. They find the other tools by search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<crate::openapi::Object>"))]
    pub menu: Vec<Raw>,
    /// The definitions of its tools.
    #[cfg_attr(test, schemars(with = "Vec<crate::openapi::Object>"))]
    pub tool_definitions: Vec<Raw>,
    /// The definitions of its prompts.
    #[cfg_attr(test, schemars(with = "Vec<crate::openapi::Object>"))]
    pub prompts: Vec<Raw>,
    /// The definitions of its resources.
    #[cfg_attr(test, schemars(with = "Vec<crate::openapi::Object>"))]
    pub resources: Vec<Raw>,
    /// The definitions of its resource templates.
    #[cfg_attr(test, schemars(with = "Vec<crate::openapi::Object>"))]
    pub resource_templates: Vec<Raw>,
}
