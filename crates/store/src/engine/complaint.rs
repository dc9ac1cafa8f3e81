//! A trouble with the file, in words for a person.

use std::path::Path;
use std::sync::Arc;

use crate::engine::sqlite::Trouble;
use crate::types::error::StoreError;

#[derive(Debug, Clone)]
pub(crate) struct Complaint {
    pub(crate) message: Arc<str>,
    pub(crate) action: Arc<str>,
}

impl Complaint {
    pub(crate) fn about(path: &Path, trouble: &Trouble) -> Self {
        let path = path.display();
        let action = match trouble {
            Trouble::Locked => "close the program that uses it, or wait".to_owned(),
            Trouble::Damaged(_) => "check the disk; several new files were damaged too".to_owned(),
            Trouble::Newer { .. } => {
                format!("use that newer Switchboard, or move {path} away to begin anew")
            }
            Trouble::Foreign => format!("choose another home, or move {path} away"),
            Trouble::Full => "make room on its disk".to_owned(),
            Trouble::ReadOnly | Trouble::Make(_) => {
                "check the permissions of the file and its folder".to_owned()
            }
            Trouble::Read(_) => "check that it is there and that you may read it".to_owned(),
            Trouble::Unreadable(_) => {
                "ask for something else, or move the file away to begin anew".to_owned()
            }
            Trouble::Other(_) => "check that the disk works and is not full".to_owned(),
        };
        let cause = std::error::Error::source(trouble);
        let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self {
            message: format!("{path} cannot be used: {trouble}{cause}").into(),
            action: action.into(),
        }
    }

    /// The same for somebody who only looks at the file: other things are to be done about it.
    pub(crate) fn of_a_reader(path: &Path, trouble: &Trouble) -> Self {
        let complaint = Self::about(path, trouble);
        match trouble {
            Trouble::Damaged(_) => complaint.with_action("keep a copy of it, and check the disk"),
            Trouble::Newer { .. } => complaint.with_action("use that newer Switchboard"),
            Trouble::Foreign => complaint.with_action("name the file of a Switchboard"),
            Trouble::ReadOnly | Trouble::Make(_) | Trouble::Other(_) => {
                complaint.with_action("check that it is there and that you may read it")
            }
            Trouble::Locked | Trouble::Full | Trouble::Read(_) | Trouble::Unreadable(_) => {
                complaint
            }
        }
    }

    pub(crate) fn with_action(self, action: &str) -> Self {
        Self {
            action: action.into(),
            ..self
        }
    }

    pub(crate) fn error(self) -> StoreError {
        StoreError::Unavailable {
            message: self.message,
            action: self.action,
        }
    }
}
