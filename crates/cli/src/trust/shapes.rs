//! What the gateway says of trust, as far as it is shown. `--json` hands on all of it.

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_terminal::print::{self, shell_word};
use switchboard_wire::Raw;

use super::start::Start;
use crate::times::local_millis;

/// The name under which the gateway holds back what a server tells models of itself.
const INSTRUCTIONS: &str = "(instructions)";

#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) servers: Vec<ServerTrust>,
}

/// How far one server is trusted.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerTrust {
    pub(crate) name: String,
    /// What its configuration says: `first`, `ask` or `always`.
    pub(super) trust: String,
    pub(super) approved: u64,
    /// What would be started, if a person has to agree first.
    #[serde(default)]
    pub(super) start: Option<Start>,
    pub(crate) held: Vec<Held>,
    pub(crate) flagged: Vec<Flagged>,
    /// What a person should know of the server's record as a whole.
    #[serde(default)]
    pub(super) note: Option<String>,
}

impl ServerTrust {
    /// Whether a person has to agree to its start first.
    pub(crate) fn is_held(&self) -> bool {
        self.start.is_some()
    }

    /// How many definitions say something suspicious, shown or held back.
    pub(super) fn suspicious(&self) -> usize {
        let is_worse = |finding: &Finding| finding.severity != "note";
        let held = self.held.iter();
        let held = held.filter(|held| held.findings.iter().any(is_worse));
        self.flagged.len() + held.count()
    }

    /// What somebody has to decide about.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|held| held.is_pending())
    }
}

/// A tool that is held back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Held {
    pub(crate) name: String,
    pub(crate) tool: String,
    pub(crate) why: String,
    pub(crate) fingerprint: String,
    since_ms: u64,
    #[serde(default)]
    pub(super) diff: Option<String>,
    #[serde(default)]
    pub(super) changes: Vec<Change>,
    #[serde(default)]
    pub(super) findings: Vec<Finding>,
    /// As it is now. It is kept as it was spelled: a member that is there twice is shown twice.
    #[serde(default)]
    pub(super) definition: Option<Raw>,
    /// What it says is left out of the list.
    #[serde(default)]
    pub(super) omitted: bool,
}

impl Held {
    /// Whether somebody has to decide about it.
    pub(super) fn is_pending(&self) -> bool {
        self.why != "rejected"
    }

    /// Which definition a decision is about.
    pub(super) fn seen(&self) -> Value {
        json!({ "tool": self.tool, "fingerprint": self.fingerprint })
    }

    /// Why it is held, for a person.
    pub(crate) fn reason(&self) -> &str {
        match self.why.as_str() {
            "changed" => "changed since approved",
            "hidden" => "hidden characters",
            "dangerous" => "dangerous text",
            other => other,
        }
    }

    pub(super) fn since(&self) -> String {
        local_millis(self.since_ms)
    }

    /// Its name in a command.
    pub(super) fn word(&self) -> String {
        shell_word(&self.name)
    }

    /// Its name, and what it is if it is no tool.
    pub(super) fn title(&self) -> String {
        let name = print::one_line(&self.name);
        if self.tool == INSTRUCTIONS {
            format!("{name}, what the server tells models of itself,")
        } else {
            name
        }
    }
}

/// A field that changed.
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    field: String,
    before: Option<String>,
    after: Option<String>,
}

impl Change {
    /// Whether the gateway does not tell all of it. A definition that says the same is only shown whole.
    pub(super) fn is_cut(&self) -> bool {
        let values = [&self.before, &self.after].into_iter().flatten();
        let mut values = values.map(String::as_str);
        self.field == "and more" || values.any(|value| value.ends_with(" more characters)"))
    }
}

/// A tool that is shown and says something suspicious.
#[derive(Debug, Deserialize)]
pub(crate) struct Flagged {
    pub(crate) name: String,
    pub(crate) findings: Vec<Finding>,
}

/// Something suspicious. The worst come first.
#[derive(Debug, Deserialize)]
pub(crate) struct Finding {
    pub(super) severity: String,
    field: String,
    pub(super) excerpt: String,
    says: String,
}

impl Finding {
    /// Where it is and what it means.
    pub(crate) fn sentence(&self) -> String {
        print::one_line(&format!("{}: {}", self.field, self.says))
    }
}

/// One tool, as it is approved and as it is held back.
#[derive(Debug, Deserialize)]
pub(super) struct Shown {
    pub(super) held: Option<Held>,
    pub(super) approved: Option<Approved>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Approved {
    pub(super) name: String,
    pub(super) fingerprint: String,
    at_ms: u64,
    pub(super) definition: Option<Raw>,
    pub(super) findings: Vec<Finding>,
}

impl Approved {
    pub(super) fn since(&self) -> String {
        local_millis(self.at_ms)
    }
}
