//! Approvals and remembered rules as they are stored, and queries for them.

use std::sync::Arc;
use std::time::SystemTime;

/// A request for a person's decision. The store knows only the fields that lists filter and sort by;
/// everything else is in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// ID chosen by the caller, which the store does not validate.
    pub id: Arc<str>,
    /// Kind of the request.
    pub kind: Arc<str>,
    /// Status of the request.
    pub status: Arc<str>,
    /// `true` while the request is pending. Open approvals are never removed.
    pub open: bool,
    /// Server that the request concerns.
    pub server: Arc<str>,
    /// Time of creation, stored to the microsecond.
    pub created: SystemTime,
    /// Time of the last change, stored to the microsecond. Closed approvals are kept for some time
    /// after it.
    pub changed: SystemTime,
    /// Version of the approval; at least 1, and greater than that of the state before.
    pub version: u64,
    /// JSON that the store does not interpret.
    pub body: Arc<str>,
}

/// A filter for approvals. Fields that are not set match everything; the default selects the newest
/// hundred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Which {
    /// Only approvals with one of these statuses; any status if empty. At most
    /// [`STATUSES_PER_QUESTION`](crate::STATUSES_PER_QUESTION).
    pub statuses: Vec<Arc<str>>,
    /// Only open approvals, or only closed ones.
    pub open: Option<bool>,
    /// Only approvals of this kind.
    pub kind: Option<Arc<str>>,
    /// Only approvals that concern this server.
    pub server: Option<Arc<str>>,
    /// Only approvals that follow the one with this ID in the list. If that approval no longer
    /// exists, the list is empty.
    pub before: Option<Arc<str>>,
    /// The most approvals to return, capped at [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
    pub limit: usize,
}

impl Default for Which {
    fn default() -> Self {
        Self {
            statuses: Vec::new(),
            open: None,
            kind: None,
            server: None,
            before: None,
            limit: 100,
        }
    }
}

/// A rule that a person asked to remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// ID chosen by the caller, which the store does not validate.
    pub id: Arc<str>,
    /// Time of creation, stored to the microsecond.
    pub created: SystemTime,
    /// Expiry time, if any, stored to the microsecond. The store removes expired rules when it is
    /// next opened; until then, readers have to skip them.
    pub expires: Option<SystemTime>,
    /// JSON that the store does not interpret.
    pub body: Arc<str>,
}
