//! Durable changes.

use std::sync::Arc;

use crate::types::approval::{Approval, Rule};
use crate::types::audit::Entry;
use crate::types::limits::CHANGE_BYTES;

/// One part of a [`write`](crate::Store::write).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Creates or updates an approval.
    Approval {
        /// New state of the approval.
        row: Approval,
        /// Version that it replaces; 0 if it is new.
        was: u64,
    },
    /// Remembers a rule, replacing one with the same ID.
    Remember(Rule),
    /// Forgets a rule. An unknown ID is not an error.
    Forget(Arc<str>),
    /// Appends an entry to the audit log.
    Audit(Entry),
}

impl Change {
    /// Approximate size of the queued change, in bytes.
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
