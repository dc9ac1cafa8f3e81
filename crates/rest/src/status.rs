//! The gateway itself: its status, clients and configuration.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Time,
    servers::Server,
    words::{GatewayState, PartState, ToolView, Transport},
};

/// The status of the gateway, its parts and its servers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The process ID.
    pub pid: u32,
    /// The state.
    pub state: GatewayState,
    /// The time at which the gateway started.
    pub started_at: Time,
    /// The address that the gateway listens on; null if it serves only its socket.
    pub listen: Option<String>,
    /// The number of open sessions and pipes.
    pub clients: u64,
    /// The number of tools that can be called.
    pub tools: u64,
    /// The number of tools that are held until the user approves them.
    pub held: u64,
    /// The number of requests that wait for the user.
    pub approvals: u64,
    /// The parts of the gateway that need time to start.
    pub parts: Vec<Part>,
    /// The servers, sorted by name.
    pub servers: Vec<Server>,
    /// The error in the configuration file, if a change to it could not be applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_problem: Option<String>,
}

/// A part of the gateway that needs time to start.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Part {
    /// The name; `server:NAME` for a server.
    pub name: String,
    /// The state.
    pub state: PartState,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A hint for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The readiness of the gateway.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Readiness {
    /// True if the gateway accepts calls.
    pub ready: bool,
    /// The parts of the gateway, without messages. Only sent to the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
}

/// The answer to a request to stop.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shutdown {
    /// The state, always `stopping`.
    pub state: GatewayState,
}

/// The connected clients.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Clients {
    /// Up to 1,000 clients that have sent their names, oldest connection first. Clients of 2026-07-28 over HTTP have no
    /// connection of their own, and are listed for 2 minutes after a request.
    pub clients: Vec<Client>,
    /// The number of all other clients: clients beyond the first 1,000, and clients that have not sent a request yet.
    pub others: u64,
    /// The number of HTTP clients without a request or a stream for 2 minutes. They may be gone, and are not
    /// counted elsewhere.
    #[serde(default)]
    pub silent: u64,
}

/// A connected client.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The name that the client sent.
    pub name: String,
    /// The authenticated party: `owner`, `token` with its name, or `anyone` where no token is required.
    #[serde(default)]
    pub principal: String,
    /// The part of its URL path after `/mcp/`; empty for the configured view.
    pub view: String,
    /// The tools that the client is shown: every one (`direct`), or a menu to find them (`search`). `nothing` if
    /// its profile was removed.
    #[serde(default)]
    pub shows: ToolView,
    /// The reason for that, as a clause about the client.
    #[serde(default)]
    pub why: String,
    /// The MCP revision.
    pub revision: String,
    /// The transport.
    pub transport: Transport,
    /// The time at which the client connected, or sent its first request.
    pub connected_at: Time,
    /// The working directory of the client, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The number of its requests in flight.
    pub in_flight: u64,
}

/// The active configuration.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Config {
    /// The path of the configuration file.
    pub file: String,
    /// The error that prevents the current file from being applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The configuration, with the keys of the file. A value that may be a secret is `(hidden)`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "crate::openapi::Object"))]
    pub config: Value,
}

/// A request to repair the memory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepairMemory {
    /// Start with an empty memory. The damaged file is kept.
    #[serde(default)]
    pub discard: bool,
}

/// The recovered part of a damaged memory.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepairedMemory {
    /// The number of recovered versions of memories.
    pub versions: u64,
    /// The number of recovered entities.
    pub entities: u64,
    /// The number of recovered relations.
    pub relations: u64,
    /// The parts that could not be read.
    pub problems: Vec<String>,
}
