//! The rules that decide which calls need approval.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_wire::Raw;

use crate::{
    Time,
    words::{RuleAction, RuleKind, RuleSource},
};

/// The rules of the configuration and of servers, and the remembered decisions.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rules {
    /// The rules of the configuration, then remembered decisions, then the settings of servers and the
    /// default. A matching `deny` wins; between `ask` and `allow`, the more specific rule wins.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The ID.
    pub id: String,
    /// The rule as an object of the configuration.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub rule: Raw,
    /// The rule as one line.
    pub text: String,
    /// The origin.
    pub source: RuleSource,
    /// True if the rule applies only to the arguments of the original decision.
    #[serde(default)]
    pub exactly: bool,
    /// True if the rule has no effect, because it was approved for another server of the same name.
    #[serde(default)]
    pub inert: bool,
    /// The scope of a remembered decision: `always`, or an object that names the session or the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Value>"))]
    pub scope: Option<Raw>,
    /// The time at which the rule expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The time of a remembered decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
    /// The approver of a remembered decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A rule to test.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TestRule {
    /// The rule as text, such as `ask files:delete_*`, or as an object.
    #[cfg_attr(test, schemars(extend("type" = ["string", "object"])))]
    pub rule: Value,
}

/// The effect of a rule.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TestedRule {
    /// The rule as one line.
    pub text: String,
    /// Up to 200 tools, prompts and resources that it matches.
    pub tools: Vec<MatchedTool>,
    /// The recent calls that it matches.
    pub calls: PastCalls,
    /// The recent requests for approval that it matches.
    pub approvals: PastCalls,
}

/// A tool, prompt or resource that a rule matches.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MatchedTool {
    /// The name, as `SERVER:TOOL`.
    pub name: String,
    /// The kind.
    pub kind: RuleKind,
    /// The current action for a call.
    pub now: RuleAction,
    /// The action for a call if the rule is added.
    pub then: RuleAction,
}

/// The past calls that a rule matches.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PastCalls {
    /// The number of calls that were examined.
    pub looked: u64,
    /// The number of calls that match.
    pub matched: u64,
    /// The number of calls whose records are insufficient to tell.
    pub unsure: u64,
    /// Up to 20 calls that match or may match.
    pub examples: Vec<PastCall>,
}

/// A past call.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PastCall {
    /// The time of the call.
    pub at: Time,
    /// The server that was called.
    pub server: String,
    /// The tool, prompt or resource.
    pub tool: String,
    /// The client that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The arguments without secrets, if they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub arguments: Option<Raw>,
}
