//! What the gateway says of requests, as far as it is shown. `--json` hands on all of it.

use jiff::Timestamp;
use serde::Deserialize;
use switchboard_terminal::visible::visible_line;
use switchboard_wire::Raw;

use crate::times::{local, since, span};

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) approvals: Vec<Approval>,
}

/// Something that waits for a person, or did.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) status: String,
    /// For whom a decision can be remembered.
    #[serde(default)]
    pub(super) rememberable: Vec<String>,
    server: String,
    tool: Option<String>,
    client: Option<String>,
    summary: String,
    #[serde(default)]
    warnings: Vec<String>,
    pub(super) created_at: String,
    pub(super) escalated_at: Option<String>,
    pub(super) expires_at: Option<String>,
    pub(super) rule: Option<String>,
    /// As it was spelled. It is left out of lists if it is long.
    pub(super) request: Option<Raw>,
    /// The arguments of a call exactly as they were written.
    pub(super) arguments_text: Option<String>,
    pub(super) draft: Option<Raw>,
    pub(super) decision: Option<Decision>,
    pub(super) result: Option<Raw>,
    pub(super) error: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) delivered_at: Option<String>,
    #[serde(default)]
    pub(super) version: u64,
}

/// What a person did.
#[derive(Debug, Deserialize)]
pub(super) struct Decision {
    pub(super) action: String,
    pub(super) by: String,
    pub(super) note: Option<String>,
    pub(super) at: String,
    pub(super) reason: Option<String>,
    pub(super) edits: Option<Raw>,
    pub(super) remember: Option<Raw>,
}

/// What a model cost.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) model: String,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cost: Option<f64>,
    pub(super) seconds: f64,
}

impl Approval {
    /// Whether a person is wanted.
    pub(super) fn waits(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "orphaned" | "reviewing")
    }

    /// Whether something can still become of it.
    pub(super) fn is_open(&self) -> bool {
        self.waits() || self.status == "generating"
    }

    pub(super) fn is_review(&self) -> bool {
        self.status == "reviewing"
    }

    /// The kind, for a person.
    pub(super) fn kind_word(&self) -> String {
        match self.kind.as_str() {
            "tool_call" => "call".to_owned(),
            "resource" => "read".to_owned(),
            "elicitation" => "question".to_owned(),
            other => visible_line(other),
        }
    }

    /// The status, for a person.
    pub(super) fn status_words(&self) -> String {
        visible_line(&self.status).replace('_', " ")
    }

    /// Who asks, or what is called.
    pub(super) fn place(&self) -> String {
        let server = visible_line(&self.server);
        match &self.tool {
            Some(tool) => format!("{server}:{}", visible_line(tool)),
            None => server,
        }
    }

    /// The server's name as it is, for requests to the gateway.
    pub(super) fn server_name(&self) -> &str {
        &self.server
    }

    pub(super) fn server(&self) -> String {
        visible_line(&self.server)
    }

    pub(super) fn client(&self) -> String {
        self.client.as_deref().map(visible_line).unwrap_or_default()
    }

    pub(super) fn summary(&self) -> String {
        visible_line(&self.summary)
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(|warning| visible_line(warning))
    }

    pub(super) fn request(&self) -> Raw {
        self.request.clone().unwrap_or_else(Raw::empty_object)
    }

    /// The arguments of a call as they were written.
    pub(super) fn arguments(&self) -> Option<Raw> {
        let text = self.arguments_text.clone()?;
        Raw::parse(text).ok()
    }

    /// How long ago it was asked.
    pub(super) fn age(&self, now: Timestamp) -> String {
        since(&self.created_at, now).map_or_else(String::new, span)
    }

    /// How much time is left for an answer.
    pub(super) fn left(&self, now: Timestamp) -> String {
        if !self.is_open() {
            return String::new();
        }
        let Some(expires) = &self.expires_at else {
            return "no end".to_owned();
        };
        since(expires, now).map_or_else(String::new, |gone| span(-gone))
    }
}

impl Decision {
    /// Who did what, when and why, in one line.
    pub(super) fn sentence(&self) -> String {
        let done = match self.action.as_str() {
            "approve" => "approved",
            "reject" => "rejected",
            "accept" => "accepted",
            "decline" => "declined",
            "cancel" => "cancelled",
            "respond" => "answered",
            other => other,
        };
        let (done, by) = (visible_line(done), visible_line(&self.by));
        let mut said = format!("{done} by {by} at {}", local(&self.at));
        if let Some(reason) = &self.reason {
            said.push_str(": ");
            said.push_str(&visible_line(reason));
        }
        if let Some(note) = &self.note {
            said.push_str(" (note: ");
            said.push_str(&visible_line(note));
            said.push(')');
        }
        said
    }
}
