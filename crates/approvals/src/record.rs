//! A question to a person, as it is kept: what is asked, by whom, until when, and what came of it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

/// The name of a request.
pub type Id = Arc<str>;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A server wants a model's answer.
    Sampling,
    /// A server asks the person a question.
    Elicitation,
    /// A client calls a tool that is asked about.
    ToolCall,
    /// A client reads a resource that is asked about.
    Resource,
    /// A client gets a prompt that is asked about.
    Prompt,
    /// A server's tools are new, or have changed.
    Trust,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Sampling,
        Self::Elicitation,
        Self::ToolCall,
        Self::Resource,
        Self::Prompt,
        Self::Trust,
    ];

    /// As it is written.
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

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A person is asked, and somebody waits for the answer.
    Pending,
    /// A person is asked. Whoever waited went with an earlier run of the gateway; an answer is kept.
    Orphaned,
    /// A person has agreed, and the model works.
    Generating,
    /// The model has answered, and a person looks at it.
    Reviewing,
    /// A person agreed, or gave the answer.
    Approved,
    /// A person refused.
    Rejected,
    /// A person filled in the form.
    Accepted,
    /// A person did not want to answer.
    Declined,
    /// A person put the question away.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// Whoever asked does not want to know any more.
    Withdrawn,
    /// A person agreed, and the model could not answer.
    Failed,
}

impl Status {
    /// Every status.
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

    /// As it is written.
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

    /// Whether something can still become of it.
    pub const fn is_open(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Orphaned | Self::Generating | Self::Reviewing
        )
    }

    /// Whether a person is wanted.
    pub const fn waits(self) -> bool {
        self.is_open() && !matches!(self, Self::Generating)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a person does about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It may go on, perhaps with changes.
    Approve,
    /// It may not.
    Reject,
    /// The form is filled in, or the address was opened.
    Accept,
    /// The person does not want to answer.
    Decline,
    /// The person puts the question away.
    Cancel,
    /// The person answers in the model's place.
    Respond,
}

impl Action {
    /// As it is written.
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

/// For how long, and for what, a decision holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Remember {
    /// For whom.
    pub scope: Scope,
    /// For which arguments.
    #[serde(default)]
    pub arguments: Arguments,
    /// For how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// For whom a decision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this client until it leaves, or the gateway stops.
    Session,
    /// For clients that work in the same folder.
    Project,
    /// For every client.
    Always,
}

/// For which arguments a decision holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// For all.
    #[default]
    Any,
    /// For exactly these.
    Exact,
}

/// The way that a decision came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `socket`, `tcp` or `console`.
    pub door: Arc<str>,
    /// The process at the other end, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
}

/// The process that sent a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its number.
    pub pid: u32,
    /// The path of its program, if it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
}

/// Who decided, what, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// What was done.
    pub action: Action,
    /// Who did it, as the gateway established it.
    pub by: Arc<str>,
    /// The door that it came through, and the process that sent it.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub from: Option<Source>,
    /// Free text of the sender. It says nothing about who that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Why, in the person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// What the person changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<Raw>,
    /// For how long it holds, if for more than this once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// What a model was asked and what that cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The model that answered.
    pub model: Arc<str>,
    /// What it read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// What it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// In the currency of the configured prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long it took.
    pub seconds: f64,
}

/// A question for a person, as whoever asks puts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// What is asked.
    pub kind: Kind,
    /// Which server asks, or is called.
    pub server: Arc<str>,
    /// The tool or prompt, or the URI of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The fingerprint of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// Which client's call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<str>>,
    /// Which of the client's sessions that is; good for as long as the gateway runs.
    #[serde(default, skip_serializing_if = "Session::is_none")]
    pub session: Session,
    /// The client whose share of the room this takes; good for as long as the gateway runs.
    #[serde(skip)]
    pub holder: Holder,
    /// The folder that the client works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// One line for a person.
    pub summary: Arc<str>,
    /// What a person should beware of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The rule because of which it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// The rule that answers in a person's place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<Arc<str>>,
    /// Everything that is asked.
    pub request: Raw,
    /// Two questions with the same key are the same question: one that is asked again gets the answer
    /// that was kept for it.
    pub key: Arc<str>,
    /// How long a person may take; for ever, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Patience>,
}

/// A session of a client. One of the owner is none of anyone else, whatever their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its number; 0 if there is none.
    pub number: u64,
    /// Its client is the owner's.
    pub is_owner: bool,
}

impl Session {
    /// Tests if there is none.
    pub const fn is_none(&self) -> bool {
        self.number == 0
    }
}

/// A client, as far as clients can be told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its number; 0 if it is none.
    pub client: u64,
    /// It came over HTTP, where one client can pass for many.
    pub is_web: bool,
    /// It has shown no token.
    pub is_stranger: bool,
}

/// How long a person may take, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// Until the request becomes louder.
    pub short: u64,
    /// Until it times out, from then on.
    pub long: u64,
}

/// A request and all that came of it. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its name.
    pub id: Id,
    /// What is asked.
    pub ask: Ask,
    /// Where it stands.
    pub status: Status,
    /// Since when it is asked.
    pub created: u64,
    /// When it became louder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalated: Option<u64>,
    /// Until when there is time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// What a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
    /// What a person did first, where one has looked at the model's answer since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Decided>,
    /// The model's answer, while a person looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Raw>,
    /// What whoever asked is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Raw>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// What the model cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When the answer was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Until when an answer that nobody waits for is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Grows with every change.
    pub version: u64,
}

impl Record {
    /// A new request.
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

    /// When it becomes louder.
    pub fn escalates(&self) -> Option<u64> {
        let patience = self.ask.patience?;
        let since = match (self.status, self.expires) {
            // To look at the model's answer takes time of its own.
            (Status::Reviewing, Some(expires)) => expires.saturating_sub(patience.long),
            _ => self.created,
        };
        Some(since.saturating_add(patience.short))
    }

    /// Whether the time for an answer is over.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Whether the broker has something to do with it: it is open, or its answer is kept.
    pub fn is_live(&self) -> bool {
        self.status.is_open() || self.kept.is_some()
    }

    /// When something happens to it by itself.
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

    /// The request with what the person changed, and the model that the person chose.
    pub fn effective_request(&self) -> (Raw, Option<String>) {
        let agreed = self.agreed.as_ref().or(self.decided.as_ref());
        let edits = agreed.and_then(|decided| decided.edits.as_ref());
        let mut request = self.ask.request.clone();
        let mut model = None;
        for (name, value) in edits.and_then(Raw::members).unwrap_or_default() {
            if name == "model" {
                model = value.to_text();
            } else if let Ok(changed) = request.without(&[&name]).with_member(&name, &value) {
                // Without it first: a request that has it twice must not keep the other.
                request = changed;
            }
        }
        (request, model)
    }
}
