//! The event stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{Time, approvals::Approval, servers::Health};

/// Filters for the event stream.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// Only events of these kinds, separated by commas. A kind with a dot at its end matches all kinds with
    /// this prefix.
    #[cfg_attr(test, schemars(example = "approval.,config."))]
    pub kind: Option<String>,
    /// The ID of the last event that the client has seen. Later events are sent first. The header
    /// `Last-Event-ID` takes precedence.
    #[cfg_attr(test, schemars(with = "Option<u64>"))]
    pub since: Option<String>,
}

/// An event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Event"))]
pub struct Event<Data = Raw> {
    /// The position in the order of this gateway's events.
    #[serde(default)]
    pub id: u64,
    /// The kind: `server.state`, `server.instance`, `calls`, `config.applied`, `config.refused`, `trust.changed`,
    /// `trust.decided`, `question.refused`, `gateway.stopping`, or that of a request for approval, such as
    /// `approval.created`.
    pub kind: String,
    /// The time of the event.
    #[serde(default)]
    pub at: Time,
    /// The data, which depends on the kind: `ServerEvent`, `InstanceEvent`, `CallsEvent`, `ConfigEvent`, `TrustEvent`,
    /// `QuestionEvent`, `ApprovalEvent`, or an empty object.
    pub data: Data,
}

/// The data of `approval.` events.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApprovalEvent {
    /// The request as in lists.
    pub approval: Approval,
}

/// The data of a `server.state` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerEvent {
    /// The health of the server.
    pub health: Health,
    /// The name of the server.
    pub name: String,
}

/// The data of a `server.instance` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceEvent {
    /// The health of the instance.
    pub health: Health,
    /// The name of the server.
    pub name: String,
    /// The number of the instance.
    pub number: u64,
}

/// The data of a `calls` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallsEvent {
    /// The ID of the last recorded call; null if the store did not report it.
    pub last: Option<u64>,
    /// The servers that were called, by name.
    pub servers: BTreeMap<String, Counts>,
}

/// The calls of a server since the start of the gateway.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counts {
    /// The number of calls.
    pub calls: u64,
    /// The number of these calls that failed.
    pub errors: u64,
}

/// The data of a `config.refused` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigEvent {
    /// The error in the configuration file.
    pub problem: String,
}

/// The data of a `question.refused` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionEvent {
    /// The key of the limit in the configuration.
    pub limit: String,
    /// The number of questions refused since the last event without an event of their own.
    pub missed: u64,
    /// The value of the limit.
    pub most: f64,
    /// The beginning of the question.
    pub question: String,
    /// The server that asked.
    pub server: String,
}

/// The data of `trust.` events.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrustEvent {
    /// The decision, in `trust.decided` events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The server.
    pub server: String,
}

/// The data of a `lagged` event.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaggedEvent {
    /// The number of missed events; null if it is unknown.
    pub missed: Option<u64>,
}
