//! A stored request to a person: the question, the asker, the deadline, and the result.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

/// The ID of a request.
pub type Id = Arc<str>;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A server requests a completion from a model.
    Sampling,
    /// A server asks the user a question.
    Elicitation,
    /// A client calls a tool, and the call needs approval.
    ToolCall,
    /// A client reads a resource, and the read needs approval.
    Resource,
    /// A client gets a prompt, and this needs approval.
    Prompt,
    /// The tools of a server are new, or have changed.
    Trust,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Sampling,
        Self::Elicitation,
        Self::ToolCall,
        Self::Resource,
        Self::Prompt,
        Self::Trust,
    ];

    /// Its name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::ToolCall => "tool_call",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Trust => "trust",
        }
    }
}

/// The status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for a person, and the asker waits for the answer.
    Pending,
    /// Waits for a person. The asker was lost with an earlier run of the gateway; an answer is kept.
    Orphaned,
    /// The approver agreed, and the model is generating a response.
    Generating,
    /// The model has responded, and a person reviews the response.
    Reviewing,
    /// The approver agreed, or gave the answer.
    Approved,
    /// The approver refused.
    Rejected,
    /// The user filled in the form.
    Accepted,
    /// The user declined to answer.
    Declined,
    /// The user dismissed the question.
    Cancelled,
    /// No person answered in time.
    TimedOut,
    /// The asker cancelled it.
    Withdrawn,
    /// The approver agreed, but the model failed.
    Failed,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 12] = [
        Self::Pending,
        Self::Orphaned,
        Self::Generating,
        Self::Reviewing,
        Self::Approved,
        Self::Rejected,
        Self::Accepted,
        Self::Declined,
        Self::Cancelled,
        Self::TimedOut,
        Self::Withdrawn,
        Self::Failed,
    ];

    /// Its name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Orphaned => "orphaned",
            Self::Generating => "generating",
            Self::Reviewing => "reviewing",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Accepted => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
        }
    }

    /// Returns `true` if the status can still change.
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Orphaned | Self::Generating | Self::Reviewing
        )
    }

    /// Returns `true` if it waits for a person.
    pub const fn waits(self) -> bool {
        self.is_open() && !matches!(self, Self::Generating)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The action of an approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Approves the request, perhaps with changes.
    Approve,
    /// Rejects the request.
    Reject,
    /// Accepts the question: the form is filled in, or the address was opened.
    Accept,
    /// Declines to answer.
    Decline,
    /// Dismisses the question.
    Cancel,
    /// Answers in the model's place.
    Respond,
}

impl Action {
    /// Its name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Respond => "respond",
        }
    }
}

/// The scope and duration for which a decision is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Remember {
    /// The clients to which it applies.
    pub scope: Scope,
    /// The arguments to which it applies.
    #[serde(default)]
    pub arguments: Arguments,
    /// Time until it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// The clients to which a decision applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This client, until it disconnects or the gateway stops.
    Session,
    /// Clients that work in the same directory.
    Project,
    /// Every client.
    Always,
}

/// The arguments to which a decision applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// All arguments.
    #[default]
    Any,
    /// Exactly the arguments of this request.
    Exact,
}

/// The source of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `socket`, `tcp` or `console`.
    pub door: Arc<str>,
    /// The process at the other end, where the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
}

/// The process that sent a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its process ID.
    pub pid: u32,
    /// Path of its program, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
}

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The action.
    pub action: Action,
    /// The approver, as identified by the gateway.
    pub by: Arc<str>,
    /// The entrance through which it came, and the process that sent it.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Free text of the sender. It does not identify the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
    /// Time of the decision, in milliseconds since 1970.
    pub at: u64,
    /// The approver's explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The approver's changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Raw>,
    /// The scope and duration for which it is remembered, if it applies more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// The tokens, cost and time of a completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The model that responded.
    pub model: Arc<str>,
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Cost in the currency of the configured prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Elapsed time.
    pub seconds: f64,
}

/// A request to a person, as the asker makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Its kind.
    pub kind: Kind,
    /// The server that asks, or is called.
    pub server: Arc<str>,
    /// The tool or prompt, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The fingerprint of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// The client whose call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<str>>,
    /// The same client, as the gateway identified it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// The client's session; valid while the gateway runs.
    #[serde(default, skip_serializing_if = "Session::is_none")]
    pub session: Session,
    /// The client whose share of the capacity this uses; valid while the gateway runs.
    #[serde(skip)]
    pub holder: Holder,
    /// The directory that the client works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// One line for the approver.
    pub summary: Arc<str>,
    /// Warnings for the approver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The rule that requires approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// The rule that answers in the approver's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<Arc<str>>,
    /// The complete request.
    pub request: Raw,
    /// Identifies equal requests: a request that is made again gets the answer that was kept for it.
    pub key: Arc<str>,
    /// Time limits for a person; none if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Patience>,
}

/// A client, as the gateway identified it on arrival.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// `owner`, `token` with its name, or `anyone`.
    pub principal: Arc<str>,
    /// `pipe`, `tcp`, `socket` or `console`.
    pub door: Arc<str>,
}

/// A session of a client. A session of the owner never equals one of another principal, even with the same
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its number; 0 if there is no session.
    pub number: u64,
    /// The client belongs to the owner.
    pub is_owner: bool,
}

impl Session {
    /// Returns `true` if there is no session.
    pub const fn is_none(&self) -> bool {
        self.number == 0
    }
}

/// A client, to the extent that clients are distinguishable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its number; 0 if there is no client.
    pub client: u64,
    /// It came over HTTP, where one client can pose as many.
    pub is_web: bool,
    /// It has not presented a token.
    pub is_stranger: bool,
}

/// Time limits for a person, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// Time until the request escalates.
    pub short: u64,
    /// Time from the escalation until it times out.
    pub long: u64,
}

/// A request and its history. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its ID.
    pub id: Id,
    /// The request itself.
    pub ask: Ask,
    /// Current status.
    pub status: Status,
    /// Time of creation.
    pub created: u64,
    /// Time of the escalation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated: Option<u64>,
    /// Deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The last decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// The first decision, if a person has reviewed the model's response since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Decided>,
    /// The model's response, while a person reviews it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Raw>,
    /// The answer for the asker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Raw>,
    /// The reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The cost of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Time at which the answer was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Time until which an answer without an asker is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Increases with every change.
    pub version: u64,
}

impl Record {
    /// Creates a new request.
    pub fn new(id: Id, ask: Ask, now: u64) -> Self {
        let expires = ask.patience.map(|patience| {
            now.saturating_add(patience.short)
                .saturating_add(patience.long)
        });
        Self {
            id,
            ask,
            status: Status::Pending,
            created: now,
            escalated: None,
            expires,
            decided: None,
            agreed: None,
            draft: None,
            answer: None,
            error: None,
            usage: None,
            delivered: None,
            kept: None,
            version: 1,
        }
    }

    /// The time at which it escalates.
    pub fn escalates(&self) -> Option<u64> {
        let patience = self.ask.patience?;
        let since = match (self.status, self.expires) {
            // The review of the model's response has its own time limits.
            (Status::Reviewing, Some(expires)) => expires.saturating_sub(patience.long),
            _ => self.created,
        };
        Some(since.saturating_add(patience.short))
    }

    /// Tests if the deadline has passed.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Returns `true` if the broker still needs it: it is open, or its answer is kept.
    pub fn is_live(&self) -> bool {
        self.status.is_open() || self.kept.is_some()
    }

    /// The time at which it escalates, times out or is forgotten next.
    pub(crate) fn due(&self) -> Option<u64> {
        match self.status {
            Status::Pending | Status::Orphaned | Status::Reviewing => {
                let louder = self.escalates().filter(|_| self.escalated.is_none());
                louder.into_iter().chain(self.expires).min()
            }
            Status::Generating => None,
            _ => self.kept,
        }
    }

    /// The request with the approver's changes, and the model that the approver chose.
    pub fn effective_request(&self) -> (Raw, Option<String>) {
        let agreed = self.agreed.as_ref().or(self.decided.as_ref());
        let edits = agreed.and_then(|decided| decided.edits.as_ref());
        let mut request = self.ask.request.clone();
        let mut model = None;
        for (name, value) in edits.and_then(Raw::members).unwrap_or_default() {
            if name == "model" {
                model = value.to_text();
            } else if let Ok(changed) = request.without(&[&name]).with_member(&name, &value) {
                // Removed first: a request with a duplicate member must not keep the other one.
                request = changed;
            }
        }
        (request, model)
    }
}
