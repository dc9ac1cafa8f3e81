//! Requests for approval, and decisions about them.

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{
    Time,
    words::{ApprovalKind, ApprovalStatus, Arguments, DecisionAction, Door, Scope},
};

/// Filters for the list of requests.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalsQuery {
    /// A status, or a group of statuses: `pending` is every request that waits for the user (pending,
    /// orphaned, reviewing), `open` adds the requests that a model is answering, and `closed` is the rest.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::StatusFilter>"))]
    pub status: Option<String>,
    /// Only requests of this kind.
    #[cfg_attr(test, schemars(with = "Option<ApprovalKind>"))]
    pub kind: Option<String>,
    /// Only requests of this server.
    pub server: Option<String>,
    /// Only requests that follow the one with this ID in the list.
    pub before: Option<String>,
    /// The maximum number of requests.
    #[cfg_attr(test, schemars(with = "Option<u64>", range(min = 1), extend("default" = 100)))]
    pub limit: Option<String>,
}

/// Requests, newest first. A list shorter than the limit is not necessarily the last; an empty one is.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Approvals {
    /// The requests.
    pub approvals: Vec<Approval>,
}

/// A request for approval.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Approval {
    /// The ID.
    pub id: String,
    /// The kind.
    pub kind: ApprovalKind,
    /// The status.
    pub status: ApprovalStatus,
    /// The server that asks, or that is called.
    pub server: String,
    /// The tool or prompt that is called, the URI that is read, or the tool during whose call the server
    /// asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The name of the client that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// One line of up to 200 characters.
    pub summary: String,
    /// Risks that the user should know about.
    pub warnings: Vec<String>,
    /// The time at which the request was created.
    pub created_at: Time,
    /// The time at which the request escalates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalates_at: Option<Time>,
    /// The time at which the request escalated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalated_at: Option<Time>,
    /// The time at which the request times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The rule that requires the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The parameters of `sampling/createMessage` or `elicitation/create`; the name, arguments and
    /// annotations of a tool call; or the definitions that are held, each with its fingerprint and the
    /// first 4 KiB of its changes (`truncated` if there is more). `/api/v1/trust` has the definitions
    /// themselves: read them before you decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub request: Option<Raw>,
    /// The arguments of a call exactly as the client wrote them. A program that parses numbers as floating
    /// point would show different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// True if parts are omitted: in lists those longer than 16 KiB, and in webhook messages the definitions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The answer of a model, which waits for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub draft: Option<Raw>,
    /// The decision, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The answer that is sent to the party that asked: the server or the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub result: Option<Raw>,
    /// The error that made the request fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The tokens and the cost of the model's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The time at which the answer was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Time>,
    /// The scopes for which a decision can be remembered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rememberable: Vec<Scope>,
    /// The number of this version of the request, from 1.
    pub version: u64,
}

impl Approval {
    /// Tests if the request waits for the user.
    pub fn waits(&self) -> bool {
        matches!(&*self.status, "pending" | "orphaned" | "reviewing")
    }

    /// Tests if the request is open.
    pub fn is_open(&self) -> bool {
        self.waits() || self.status == "generating"
    }

    /// Tests if the user has to review the answer of a model.
    pub fn is_review(&self) -> bool {
        self.status == "reviewing"
    }
}

/// A decision about a request.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Decision {
    /// The action.
    pub action: DecisionAction,
    /// The approver, as identified by the gateway.
    #[cfg_attr(test, schemars(example = "owner via socket (switchboard, pid 123)"))]
    pub by: String,
    /// The interface through which the decision arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub door: Option<Door>,
    /// The process that sent it, if the system can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// A note from the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The time of the decision.
    pub at: Time,
    /// The reason for a rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The changes to the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub edits: Option<Raw>,
    /// The scope of the decision, if it applies to more than this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// The process that sent a decision.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Peer {
    /// The process ID.
    pub pid: u32,
    /// The path of its program, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// The scope of a decision that applies to more than one request. For tool calls and sampling.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Remember {
    /// The clients that it applies to.
    pub scope: Scope,
    /// The arguments that it applies to.
    pub arguments: Arguments,
    /// The time after which it expires; never, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub expires_in_seconds: Option<u64>,
}

/// The tokens and the cost of a model's answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Usage {
    /// The model that answered.
    pub model: String,
    /// The number of input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The number of output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The cost in the currency of the configured prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The duration in seconds.
    pub seconds: f64,
}

/// An approval, optionally with changes.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The changes: `messages`, `systemPrompt`, `model`, `maxTokens`, `temperature` and `stopSequences` of a
    /// sampling request; `arguments` of a tool call; `text` of a draft.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub edits: Option<Raw>,
    /// The scope of the decision, if it applies to more than this request.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::NewRemember>"))]
    pub remember: Option<switchboard_approvals::Remember>,
    /// A note that is shown with the decision. It does not identify the approver; the gateway does that. `by`
    /// is accepted as an alias.
    #[serde(alias = "by")]
    #[cfg_attr(test, schemars(length(max = 100)))]
    pub note: Option<String>,
    /// The status that the user saw. If the request is waiting for something else by now, nothing is decided.
    #[cfg_attr(test, schemars(with = "Option<ApprovalStatus>"))]
    pub seen: Option<switchboard_approvals::Status>,
}

/// A rejection.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reject {
    /// The reason, which is sent to the party that asked: the server or the client.
    #[cfg_attr(test, schemars(length(max = 2000)))]
    pub reason: Option<String>,
    /// The scope of the decision, if it applies to more than this request.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::NewRemember>"))]
    pub remember: Option<switchboard_approvals::Remember>,
    /// A note that is shown with the decision. It does not identify the approver; the gateway does that. `by`
    /// is accepted as an alias.
    #[serde(alias = "by")]
    #[cfg_attr(test, schemars(length(max = 100)))]
    pub note: Option<String>,
    /// The status that the user saw. If the request is waiting for something else by now, nothing is decided.
    #[cfg_attr(test, schemars(with = "Option<ApprovalStatus>"))]
    pub seen: Option<switchboard_approvals::Status>,
}

/// An answer to a question, or an answer in place of a model. It has either `action` or `text`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// The action for a question.
    #[cfg_attr(test, schemars(extend("enum" = ["accept", "decline", "cancel"])))]
    pub action: Option<String>,
    /// The values of the form, for the action `accept`.
    #[cfg_attr(test, schemars(with = "Option<crate::openapi::Object>"))]
    pub content: Option<Raw>,
    /// The answer to a sampling request.
    pub text: Option<String>,
    /// A note that is shown with the decision. It does not identify the approver; the gateway does that. `by`
    /// is accepted as an alias.
    #[serde(alias = "by")]
    #[cfg_attr(test, schemars(length(max = 100)))]
    pub note: Option<String>,
    /// The status that the user saw. If the request is waiting for something else by now, nothing is decided.
    #[cfg_attr(test, schemars(with = "Option<ApprovalStatus>"))]
    pub seen: Option<switchboard_approvals::Status>,
}
