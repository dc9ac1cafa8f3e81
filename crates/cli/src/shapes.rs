//! What the gateway says, as far as it is shown in tables. `--json` hands on all of it.

use serde::Deserialize;
use switchboard_terminal::print::Colour;

use super::times::local;

/// One server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) action: Option<String>,
    #[serde(default)]
    pub(super) next_try: Option<String>,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) target: String,
    #[serde(default)]
    pub(super) tools: Option<u64>,
    #[serde(default)]
    pub(super) in_flight: u64,
    #[serde(default)]
    pub(super) calls: u64,
    #[serde(default)]
    pub(super) errors: u64,
    #[serde(default)]
    pub(super) problems: Vec<String>,
    #[serde(default)]
    pub(super) failed_lists: Vec<FailedList>,
    #[serde(default)]
    pub(super) mended: u64,
}

/// A list that a server did not give.
#[derive(Debug, Deserialize)]
pub(super) struct FailedList {
    pub(super) list: String,
    pub(super) reason: String,
}

impl FailedList {
    pub(super) fn words(&self) -> String {
        format!("{} failed: {}", self.list, self.reason)
    }
}

impl Server {
    /// Why it is as it is, and what to do about it, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<_> = self.reason.iter().cloned().collect();
        notes.extend(self.failed_lists.iter().map(FailedList::words));
        notes.extend(self.problems.first().cloned());
        notes.extend(match (&self.action, &self.next_try) {
            (Some(action), Some(next)) => Some(format!("{action} (next try at {})", local(next))),
            (Some(action), None) => Some(action.clone()),
            (None, next) => next
                .as_deref()
                .map(|next| format!("next try at {}", local(next))),
        });
        notes
    }

    /// The same in one line.
    pub(super) fn note(&self) -> String {
        self.notes().join("; ")
    }

    /// Whether it does not work, and a person may have to do something about it.
    pub(super) fn needs_somebody(&self) -> bool {
        let is_down = matches!(self.state.as_str(), "parked" | "retrying");
        is_down
            || !self.failed_lists.is_empty()
            || (self.state == "starting" && self.reason.is_some())
    }

    /// The colour of its state.
    pub(super) fn colour(&self) -> Option<Colour> {
        match self.state.as_str() {
            "ready" => Some(Colour::Green),
            "parked" => Some(Colour::Red),
            "retrying" => Some(Colour::Yellow),
            "starting" | "stopping" => Some(Colour::Cyan),
            "disabled" => Some(Colour::Dim),
            _ => None,
        }
    }
}

/// The whole gateway.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) version: String,
    pub(super) pid: i32,
    pub(super) state: String,
    pub(super) started_at: String,
    #[serde(default)]
    pub(super) listen: Option<String>,
    #[serde(default)]
    pub(super) clients: u64,
    #[serde(default)]
    pub(super) tools: u64,
    /// How many tools wait for somebody to approve them, or were rejected.
    #[serde(default)]
    pub(super) held: u64,
    /// How many requests wait for a person.
    #[serde(default)]
    pub(super) approvals: u64,
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    #[serde(default)]
    pub(super) servers: Vec<Server>,
    #[serde(default)]
    pub(super) config_problem: Option<String>,
}

/// Something that may be slow to come up.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) note: Option<String>,
}

/// So many of something.
pub(super) fn count(many: u64, one: &str, more: &str) -> String {
    let what = if many == 1 { one } else { more };
    format!("{many} {what}")
}
