//! The servers and their logs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_wire::Raw;

use crate::{
    Time,
    words::{ListRequest, ServerKind, ServerState, Sharing, StartTime},
};

/// All servers, sorted by name.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Servers {
    /// The servers.
    pub servers: Vec<Server>,
}

/// A server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Server {
    /// The name.
    pub name: String,
    /// The health.
    #[serde(flatten)]
    pub health: Health,
    /// True if the configuration enables the server.
    pub enabled: bool,
    /// The kind.
    pub kind: ServerKind,
    /// The program, the address or the image, without secrets.
    pub target: String,
    /// The time at which it is started.
    pub start: StartTime,
    /// The callers that share an instance: a process, or a connection to a remote server.
    pub sharing: Sharing,
    /// The reason for that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sharing_reason: String,
    /// The instances that run, or have failed, if callers do not share one. Not in the status for agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instance>,
    /// The number of its known tools.
    pub tools: u64,
    /// The number of its prompts.
    pub prompts: u64,
    /// The number of its resources and templates.
    pub resources: u64,
    /// The MCP revision of the last connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The number of calls in flight.
    pub in_flight: u64,
    /// The number of calls in its queue.
    pub queued: u64,
    /// The number of calls since the start of the gateway.
    pub calls: u64,
    /// The number of these calls that failed.
    pub errors: u64,
    /// The definitions that are omitted, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The lists that the server failed to send when the gateway last requested them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_lists: Vec<FailedList>,
    /// The number of definitions that are repaired in combined views, since clients would reject them.
    #[serde(skip_serializing_if = "is_zero")]
    pub mended: u64,
}

/// An instance of a server for some of its callers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Instance {
    /// Its number. No later instance of the server has the same.
    pub number: u64,
    /// The health.
    #[serde(flatten)]
    pub health: Health,
    /// The directory that its callers work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The name of its client, if it has one client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The number of calls in flight.
    pub in_flight: u64,
    /// The number of calls in its queue.
    pub queued: u64,
}

/// The instance to restart.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RestartQuery {
    /// The number of the instance; all instances, if omitted.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub instance: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The health of a server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Health {
    /// The state.
    pub state: ServerState,
    /// The time of the last change of the state.
    pub since: Time,
    /// The reason for the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A hint for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The time of the next attempt to start the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Time>,
}

/// A list that a server failed to send.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedList {
    /// The request that failed.
    pub list: ListRequest,
    /// The reason for the failure.
    pub reason: String,
}

/// A server, with its self-description.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerDetail {
    /// The server.
    #[serde(flatten)]
    pub server: Server,
    /// The self-description, once the server has been connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers: Option<Introduction>,
}

/// The self-description of a server.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Introduction {
    /// Its name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub server_info: Option<Raw>,
    /// Its instructions for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub capabilities: Option<Raw>,
}

/// A server to add.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    /// The name, of 1 to 64 characters.
    pub name: String,
    /// The entry in `mcpServers`. Over TCP, the gateway sets `trust` to `ask` and `hold` to true, and removes
    /// `approve` and `approvedFile`.
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub server: Value,
}

/// The requested part of a log.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogsQuery {
    /// The number of lines from the end of the log.
    #[cfg_attr(test, schemars(with = "Option<u64>", extend("maximum" = 5000, "default" = 200)))]
    pub lines: Option<String>,
    /// Only lines about the instance with this number.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub instance: Option<String>,
    /// Stream new lines as they are written.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub follow: Option<bool>,
}

/// The last lines of a log, oldest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Logs {
    /// The lines.
    pub lines: Vec<String>,
}
