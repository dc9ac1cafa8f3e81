//! What can be written durably.

use std::sync::Arc;

use crate::types::approval::{Approval, Rule};
use crate::types::audit::Entry;
use crate::types::limits::CHANGE_BYTES;

/// One part of a [`write`](crate::Store::write).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An approval is new, or stands differently.
    Approval {
        /// How it stands now.
        row: Approval,
        /// The version that it replaces; 0 if it is new.
        was: u64,
    },
    /// A rule is to be remembered, in place of one with the same id.
    Remember(Rule),
    /// A rule is to be forgotten. It is no error if there is none with this id.
    Forget(Arc<str>),
    /// Something is to be noted in the audit log.
    Audit(Entry),
}

impl Change {
    /// About how much room it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let texts: &[&Arc<str>] = match self {
            Self::Approval { row, .. } => {
                &[&row.id, &row.kind, &row.status, &row.server, &row.body]
            }
            Self::Remember(rule) => &[&rule.id, &rule.body],
            Self::Forget(id) => &[id],
            Self::Audit(entry) => &[&entry.what, &entry.subject, &entry.body],
        };
        let texts: usize = texts.iter().map(|text| text.len()).sum();
        CHANGE_BYTES.saturating_add(texts)
    }
}
