//! What is said of tools: policies, verdicts, and what is held and pinned.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{Diff, Finding, Fingerprint, ItemKind, LeftOut, Offer, Others, diff, scan};

/// When tools of a server are approved without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A definition is approved on first sight, unless the scan finds something dangerous or hidden
    /// in it; later changes are held.
    First,
    /// Everything new and every change is held until a person approves it.
    Ask,
    /// Nothing is held: a developer's own server. The pins are kept up to date.
    Always,
}

/// Why a tool is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Its definition is not the one that was approved.
    Changed,
    /// Nobody has approved it so far.
    New,
    /// It is new and holds text that nobody can see, so nobody can have agreed to it.
    Hidden,
    /// It is new, and the scan finds something in it that no honest definition says.
    Dangerous,
    /// A person said no to exactly this definition.
    Rejected,
}

/// Who approved a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// [`Policy::First`], on first sight.
    First,
    /// [`Policy::Always`].
    Always,
    /// A person.
    Person,
}

/// A definition that is held back.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The kind.
    pub kind: ItemKind,
    /// The key of its record: the name of a tool, `(prompt) NAME` and so on.
    pub tool: Arc<str>,
    /// Why it is held.
    pub why: Why,
    /// The definition as it is now. None if it is too large to be kept.
    pub definition: Option<Raw>,
    /// The definition as it was approved. None if it never was, or was too large to be kept.
    pub approved: Option<Raw>,
    /// Of the definition as it is now.
    pub fingerprint: Fingerprint,
    /// Since when it is held as it is now, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Held {
    /// Whether a person is asked about it: not if the answer was no.
    pub fn is_pending(&self) -> bool {
        self.why != Why::Rejected
    }

    /// What is suspicious about the definition as it is now.
    pub fn findings(&self, others: &Others) -> Vec<Finding> {
        let kind = self.kind;
        let definition = self.definition.as_ref();
        definition.map_or_else(Vec::new, |definition| {
            scan(Offer { kind, definition }, others)
        })
    }

    /// What changed since it was approved. None if either text is not kept.
    pub fn diff(&self) -> Option<Diff> {
        let kind = self.kind;
        let (approved, now) = (self.approved.as_ref()?, self.definition.as_ref()?);
        let offer = |definition| Offer { kind, definition };
        Some(diff(offer(approved), offer(now)))
    }
}

/// A definition that somebody agreed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The kind.
    pub kind: ItemKind,
    /// The key of its record: the name of a tool, `(prompt) NAME` and so on.
    pub tool: Arc<str>,
    /// Of the approved definition.
    pub fingerprint: Fingerprint,
    /// The approved definition. None if it is too large to be kept.
    pub definition: Option<Raw>,
    /// Who approved it.
    pub by: By,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Since when the server does not offer the tool, if it does not.
    pub vanished_ms: Option<u64>,
}

/// What was said of one tool of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be shown and called.
    Approved,
    /// It is held back.
    Held(Why),
    /// It cannot be judged, and so is neither shown nor asked about.
    LeftOut(LeftOut),
}

/// What was said of each tool of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// One for each definition, in the order of the list.
    pub items: Vec<Verdict>,
    /// Whether the pins are others than before, and so have to be written.
    pub changed: bool,
}

impl Verdicts {
    /// Those tools of the judged list that may be shown.
    pub fn approved<'a>(&self, tools: &'a [Raw]) -> impl Iterator<Item = &'a Raw> {
        let verdicts = self.items.iter();
        let each = tools.iter().zip(verdicts);
        each.filter(|(_, verdict)| **verdict == Verdict::Approved)
            .map(|(tool, _)| tool)
    }

    /// Whether every tool may be shown.
    pub fn all_approved(&self) -> bool {
        let mut verdicts = self.items.iter();
        verdicts.all(|verdict| *verdict == Verdict::Approved)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Hidden => "hidden",
            Self::Dangerous => "dangerous",
            Self::Rejected => "rejected",
        })
    }
}
