//! Tools: their list, the search for them, and calls.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

/// The tools that are wanted.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolsQuery {
    /// Only the tools of this server.
    pub server: Option<String>,
    /// Only this tool, as `SERVER:TOOL`. If its server is unknown so far, the gateway starts the server and waits for up
    /// to 2 seconds. An error that would prevent a call of the tool is the error here, too.
    pub name: Option<String>,
}

/// The tools that are known.
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
    /// The name, as `SERVER:TOOL`.
    pub name: String,
    /// The server that offers it.
    pub server: String,
    /// The server's own name for it.
    pub tool: String,
    /// The name that clients of the direct view use.
    pub exposed: String,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The definition as the server sent it.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub definition: Raw,
}

/// A call of a tool.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallTool {
    /// The name, as `SERVER:TOOL`, or as `SERVER__TOOL` as clients see it.
    pub name: String,
    /// The arguments of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub arguments: Option<Raw>,
    /// A page of the console reads the memory. Such a call is neither counted nor recorded; in all other calls this has
    /// no effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page: bool,
    /// Stream the progress of the call: `progress` events with the parameters of `notifications/progress`, and at the end
    /// one `result` event with the result or one `problem` event. The call ends if the client disconnects.
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
    /// Only tools that claim to change nothing.
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

/// The tools that a search found, the best first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// The tools.
    pub tools: Vec<FoundTool>,
    /// True if the meaning of the query was compared, false if only its words were.
    pub by_meaning: bool,
    /// The number of earlier searches that the ranking has learnt from.
    pub learnt: u64,
}

/// A tool that a search found.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundTool {
    /// The name, as `SERVER:TOOL`.
    pub name: String,
    /// The server that offers it.
    pub server: String,
    /// The server's own name for it.
    pub tool: String,
    /// The beginning of its description.
    pub summary: String,
    /// The score.
    pub score: f32,
    /// The parts of the score, with `explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// The parts of a score.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Why {
    /// The score of the matching words.
    pub words: f32,
    /// The score of the meaning, if it was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<f32>,
    /// The score from earlier searches.
    pub learnt: f32,
    /// The words of the query that were found.
    pub matches: Vec<Match>,
}

/// A word of the query that was found.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Match {
    /// The word of the query.
    pub word: String,
    /// The stem of the word that was found.
    pub found: String,
    /// The fields in which it was found.
    pub fields: Vec<String>,
    /// The score of the word.
    pub score: f32,
}
