//! The calls that went through the gateway, and the audit log.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{Time, words::Outcome};

/// Filters for the list of calls.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ActivityQuery {
    /// Only calls to this server.
    pub server: Option<String>,
    /// Only calls of this tool, prompt or resource.
    pub name: Option<String>,
    /// Only calls with one of these outcomes, separated by commas.
    #[cfg_attr(test, schemars(with = "Option<Vec<Outcome>>"))]
    pub outcome: Option<String>,
    /// Only calls with a greater ID.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub since: Option<String>,
    /// Only calls with a smaller ID.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub before: Option<String>,
    /// Only calls with this text in the server, method, name, client or error.
    pub text: Option<String>,
    /// The maximum number of calls.
    #[cfg_attr(test, schemars(with = "Option<u64>", extend("maximum" = 1000, "default" = 100)))]
    pub limit: Option<String>,
}

/// Calls, newest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Activity {
    /// The calls.
    pub activity: Vec<Call>,
}

/// A call that went through the gateway.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Call {
    /// The number of the call, which increases over time.
    pub id: u64,
    /// The time at which the call began.
    pub at: Time,
    /// The server that was called.
    pub server: String,
    /// The MCP method, such as `tools/call`.
    pub method: String,
    /// The tool, prompt or resource.
    pub name: String,
    /// The name that the client reported; `console`, `command line` or `REST API` for calls over REST.
    pub client: String,
    /// The authenticated party: `owner`, `token` with its name, or `anyone` where no token is required. Empty for
    /// calls of an earlier version.
    pub principal: String,
    /// The door that it came in by: `pipe`, `tcp`, `socket` or `console`.
    pub door: String,
    /// The time from the request to the answer, including waits.
    pub duration_ms: f64,
    /// The part of `durationMs` that the call spent waiting for an approval, or for the answer to a question
    /// of the server.
    pub waited_ms: f64,
    /// The outcome.
    pub outcome: Outcome,
    /// The JSON-RPC code of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The error, or the text of a result in which the tool reports a failure: without secrets, up to 500
    /// characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The length of the request in bytes.
    pub request_bytes: u64,
    /// The length of the response in bytes.
    pub response_bytes: u64,
}

/// Filters for the audit log.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only entries after the one with this number.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub since: Option<String>,
    /// The maximum number of entries.
    #[cfg_attr(test, schemars(with = "Option<u64>", range(min = 1), extend("default" = 100)))]
    pub limit: Option<String>,
}

/// Entries of the audit log, oldest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Audit {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Entry {
    /// The number of the entry.
    pub seq: u64,
    /// The time of the event.
    pub at: Time,
    /// The kind of the event.
    pub what: String,
    /// The subject of the event, such as a server.
    pub subject: String,
    /// The details of the event.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub body: Raw,
    /// The SHA-256 hash of the entry and the previous hash.
    pub hash: String,
}
