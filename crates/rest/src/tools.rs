//! Tools: lists, search and calls.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

/// Filters for the list of tools.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolsQuery {
    /// Only the tools of this server. If they are not known yet because the server needs a project, and `project` is
    /// given, the gateway starts the server there and waits for up to 2 seconds.
    pub server: Option<String>,
    /// Only this tool, as `SERVER:TOOL`. If its server is not known yet, the gateway starts the server and
    /// waits for up to 2 seconds. An error that would prevent a call of the tool is returned here, too.
    pub name: Option<String>,
    /// The directory that the caller works in, an absolute path: a server may need one to start.
    pub project: Option<String>,
}

/// The known tools.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tools {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The servers whose tools are not known yet.
    #[serde(default)]
    pub starting: Vec<String>,
}

/// A tool.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// The name, as `SERVER:TOOL`, with the name that clients see.
    pub name: String,
    /// The server that has the tool.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The name of the tool in the direct view.
    pub exposed: String,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The definition that clients see: as the server sent it, unless an override changes it.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub definition: Raw,
    /// The effect of the override of the tool, if it has one.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Overridden>,
}

/// The effect of an override.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overridden {
    /// The definition as the server sent it.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub definition: Raw,
    /// The arguments that every call has, without secrets.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub fixed: Raw,
    /// The arguments that no call has.
    pub hidden: Vec<String>,
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// The name, as `SERVER:TOOL`, or as `SERVER__TOOL`, the name that clients see.
    pub name: String,
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub arguments: Option<Raw>,
    /// The directory that the caller works in, an absolute path. Servers with `share`: `project`, or with
    /// `${project}` in their entry, have a process for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Marks a read of the memory by a page of the console. Such a call is neither counted nor recorded. Has
    /// no effect on other calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page: bool,
    /// Stream the progress of the call: `progress` events with the parameters of `notifications/progress`,
    /// and at the end one `result` event with the result or one `problem` event. The call ends if the client
    /// disconnects.
    #[serde(default)]
    pub progress: bool,
}

/// A search for tools.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SearchQuery {
    /// The task, in plain words.
    pub q: String,
    /// The maximum number of tools.
    #[serde(default = "usual")]
    #[cfg_attr(test, schemars(range(min = 1, max = 200)))]
    pub limit: usize,
    /// Only the tools of this server.
    pub server: Option<String>,
    /// Only tools that declare themselves read-only.
    #[serde(default)]
    pub read_only: bool,
    /// Only tools without suspicious findings.
    #[serde(default)]
    pub trusted: bool,
    /// Explain why each tool was found.
    #[serde(default)]
    pub explain: bool,
}

const fn usual() -> usize {
    10
}

/// The tools that a search found, best first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// The tools.
    pub tools: Vec<FoundTool>,
    /// True if the search compared meaning, false if it compared only words.
    pub by_meaning: bool,
    /// The number of matches between words and tools that were learned from earlier searches.
    pub learnt: u64,
}

/// A tool that a search found.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundTool {
    /// The name, as `SERVER:TOOL`.
    pub name: String,
    /// The server that has the tool.
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The beginning of its description.
    pub summary: String,
    /// The score.
    pub score: f32,
    /// The parts of the score; only with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// The parts of a score.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Why {
    /// The score for matching words.
    pub words: f32,
    /// The score for meaning, if the search compared it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f32>,
    /// The score from earlier searches.
    pub learnt: f32,
    /// The words of the query that matched.
    pub matches: Vec<Match>,
}

/// A word of the query that matched.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Match {
    /// The word of the query.
    pub word: String,
    /// The stem of the word that matched.
    pub found: String,
    /// The fields that contain it.
    pub fields: Vec<String>,
    /// The score of the word.
    pub score: f32,
}
