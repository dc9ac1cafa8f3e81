//! Messages and advice for users about problems with the file.

use std::path::Path;
use std::sync::Arc;

use crate::engine::sqlite::SqliteError;
use crate::types::error::StoreError;

#[derive(Debug, Clone)]
pub(crate) struct Advice {
    pub(crate) message: Arc<str>,
    pub(crate) action: Arc<str>,
}

impl Advice {
    pub(crate) fn about(path: &Path, trouble: &SqliteError) -> Self {
        let path = path.display();
        let action = match trouble {
            SqliteError::Locked => "close the program that has locked it, or wait".to_owned(),
            SqliteError::Damaged(_) => "check the disk; new files were damaged as well".to_owned(),
            SqliteError::Newer { .. } => {
                format!(
                    "use the newer version of Switchboard, or move {path} away to start with an empty file"
                )
            }
            SqliteError::Foreign => format!("choose another home directory, or move {path} away"),
            SqliteError::Full => "free some space on its disk".to_owned(),
            SqliteError::ReadOnly | SqliteError::Make(_) => {
                "check the permissions of the file and its directory".to_owned()
            }
            SqliteError::Read(_) => {
                "check that the file exists and that you can read it".to_owned()
            }
            SqliteError::Unreadable(_) => {
                "request other data, or move the file away to start with an empty one".to_owned()
            }
            SqliteError::Other(_) => "check that the disk works and is not full".to_owned(),
        };
        let cause = std::error::Error::source(trouble);
        let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self {
            message: format!("cannot use {path}: {trouble}{cause}").into(),
            action: action.into(),
        }
    }

    /// The same for a program that only reads the file, which calls for other advice.
    pub(crate) fn of_a_reader(path: &Path, trouble: &SqliteError) -> Self {
        let complaint = Self::about(path, trouble);
        match trouble {
            SqliteError::Damaged(_) => {
                complaint.with_action("keep a copy of the file, and check the disk")
            }
            SqliteError::Newer { .. } => {
                complaint.with_action("use the newer version of Switchboard")
            }
            SqliteError::Foreign => {
                complaint.with_action("use the path of a file that Switchboard wrote")
            }
            SqliteError::ReadOnly | SqliteError::Make(_) | SqliteError::Other(_) => {
                complaint.with_action("check that the file exists and that you can read it")
            }
            SqliteError::Locked
            | SqliteError::Full
            | SqliteError::Read(_)
            | SqliteError::Unreadable(_) => complaint,
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
