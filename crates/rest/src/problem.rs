//! Errors.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{approvals::Decision, words::ApprovalStatus};

/// An error, as defined by RFC 9457.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Problem {
    /// The type, always `about:blank`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the status.
    pub title: String,
    /// The HTTP status.
    #[cfg_attr(test, schemars(range(min = 400, max = 599)))]
    pub status: u16,
    /// The error and its cause.
    pub detail: String,
    /// A hint for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The ID of the request for approval that was already decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The code of a server's JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The data of a server's JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    pub data: Option<Raw>,
    /// The decision about that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The message of a server's JSON-RPC error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The problems of a configuration, each with `file`, `line`, `column`, `message` and `hint`; or the
    /// problems of a form's values, each with `path` and `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<crate::openapi::Object>>"))]
    pub problems: Option<Raw>,
    /// The status of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<ApprovalStatus>,
}
