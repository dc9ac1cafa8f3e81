//! Approvals and remembered rules as they are kept, and how to ask for them.

use std::sync::Arc;
use std::time::SystemTime;

/// Something a person is asked about. Only what lists are made by is known here; everything else
/// is in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its name, given by the caller and never checked.
    pub id: Arc<str>,
    /// What kind of thing is asked.
    pub kind: Arc<str>,
    /// Where it stands.
    pub status: Arc<str>,
    /// Whether it still waits for something. What is open is never removed.
    pub open: bool,
    /// Which server it concerns.
    pub server: Arc<str>,
    /// When it was asked; kept to the microsecond.
    pub created: SystemTime,
    /// When it was last changed; kept to the microsecond. What is closed is kept for some time after
    /// this.
    pub changed: SystemTime,
    /// Which version of it this is; at least 1 and greater than the one before.
    pub version: u64,
    /// JSON that the store does not read.
    pub body: Arc<str>,
}

/// Which approvals to show. What is not set does not matter; the default is the newest hundred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Which {
    /// Only approvals with one of these statuses; with any, if there are none here. At most
    /// [`STATUSES_PER_QUESTION`](crate::STATUSES_PER_QUESTION).
    pub statuses: Vec<Arc<str>>,
    /// Only approvals that are open, or that are not.
    pub open: Option<bool>,
    /// Only approvals of this kind.
    pub kind: Option<Arc<str>>,
    /// Only approvals that concern this server.
    pub server: Option<Arc<str>>,
    /// Only approvals that come after the one with this id in the list. After one that is not there
    /// any more comes nothing.
    pub before: Option<Arc<str>>,
    /// At most so many, and never more than [`ROWS_PER_ANSWER`](crate::ROWS_PER_ANSWER).
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

/// A rule that somebody asked to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, given by the caller and never checked.
    pub id: Arc<str>,
    /// When it was made; kept to the microsecond.
    pub created: SystemTime,
    /// When it ends, if ever; kept to the microsecond. A rule that has ended is removed when the
    /// store is next opened; until then it is for the reader to pass over.
    pub expires: Option<SystemTime>,
    /// JSON that the store does not read.
    pub body: Arc<str>,
}
