//! Policies, verdicts, and held and pinned definitions.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use switchboard_wire::Raw;

use crate::{Diff, Finding, Fingerprint, ItemKind, LeftOut, Offer, Others, diff, scan};

/// The conditions under which definitions of a server are approved without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A definition is approved on first sight, unless the scan finds dangerous or hidden text in it;
    /// later changes are held.
    First,
    /// Everything new and every change is held until the user approves it.
    Ask,
    /// Nothing is held, as for a developer's own server. The pins are kept up to date.
    Always,
}

/// The reason why a tool is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Its definition differs from the approved one.
    Changed,
    /// It has not been approved so far.
    New,
    /// It is new and contains invisible text, which no approver can have read.
    Hidden,
    /// It is new, and the scan found something that no honest definition says.
    Dangerous,
    /// The user rejected exactly this definition.
    Rejected,
}

/// The party that approved a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// [`Policy::First`], on first sight.
    First,
    /// [`Policy::Always`].
    Always,
    /// The user.
    Person,
}

/// A definition that is held.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The kind.
    pub kind: ItemKind,
    /// The key of its record: the name of a tool, `(prompt) NAME` and so on.
    pub tool: Arc<str>,
    /// The reason.
    pub why: Why,
    /// The current definition; `None` if it is too large to keep.
    pub definition: Option<Raw>,
    /// The approved definition; `None` if there is none, or if it was too large to keep.
    pub approved: Option<Raw>,
    /// Fingerprint of the current definition.
    pub fingerprint: Fingerprint,
    /// The time from which it has been held in this form, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Held {
    /// Tests if it waits for a decision, which is not the case after a rejection.
    pub fn is_pending(&self) -> bool {
        self.why != Why::Rejected
    }

    /// The suspicious parts of the current definition.
    pub fn findings(&self, others: &Others) -> Vec<Finding> {
        let kind = self.kind;
        let definition = self.definition.as_ref();
        definition.map_or_else(Vec::new, |definition| {
            scan(Offer { kind, definition }, others)
        })
    }

    /// The changes since the approval; `None` if either text was not kept.
    pub fn diff(&self) -> Option<Diff> {
        let kind = self.kind;
        let (approved, now) = (self.approved.as_ref()?, self.definition.as_ref()?);
        let offer = |definition| Offer { kind, definition };
        Some(diff(offer(approved), offer(now)))
    }
}

/// An approved definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The kind.
    pub kind: ItemKind,
    /// The key of its record: the name of a tool, `(prompt) NAME` and so on.
    pub tool: Arc<str>,
    /// Fingerprint of the approved definition.
    pub fingerprint: Fingerprint,
    /// The approved definition; `None` if it is too large to keep.
    pub definition: Option<Raw>,
    /// The party that approved it.
    pub by: By,
    /// The time of the approval, in milliseconds since 1970.
    pub at_ms: u64,
    /// The time at which the server stopped offering the tool, in milliseconds since 1970; `None` if
    /// it offers it.
    pub vanished_ms: Option<u64>,
}

/// The verdict on one definition of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be shown and called.
    Approved,
    /// It is held.
    Held(Why),
    /// It cannot be judged, so it is neither shown nor put to the approver.
    LeftOut(LeftOut),
}

/// The verdicts on all definitions of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// One verdict per definition, in the order of the list.
    pub items: Vec<Verdict>,
    /// `true` if the pins have changed and must be written.
    pub changed: bool,
}

impl Verdicts {
    /// The tools of the judged list that may be shown.
    pub fn approved<'a>(&self, tools: &'a [Raw]) -> impl Iterator<Item = &'a Raw> {
        let verdicts = self.items.iter();
        let each = tools.iter().zip(verdicts);
        each.filter(|(_, verdict)| **verdict == Verdict::Approved)
            .map(|(tool, _)| tool)
    }

    /// Tests if every tool may be shown.
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
