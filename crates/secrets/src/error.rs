//! The errors of a vault.

use std::{
    io,
    path::{Path, PathBuf},
};

use switchboard_files::LockError;

use crate::{KEY_VARIABLE, KeySource};

/// The reason why a secret cannot be read or stored. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be used.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// The operation that failed.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// The key file is gone.
    #[error("the key file {} is missing, so stored secrets cannot be read", path.display())]
    NoKey {
        /// The key file.
        path: PathBuf,
    },
    /// Others can read the key.
    #[error("the key file {} belongs to another user, or other users may read it", path.display())]
    OpenKey {
        /// The key file.
        path: PathBuf,
    },
    /// The key cannot be read.
    #[error("the key in {key} is not 32 bytes in Base64")]
    BadKey {
        /// The place of the key.
        key: KeySource,
    },
    /// A secret was encrypted with another key.
    #[error("{} was encrypted with another key than the one in {key}", path.display())]
    OtherKey {
        /// The file.
        path: PathBuf,
        /// The place of the key.
        key: KeySource,
    },
    /// The file of a secret was changed.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file of a secret was written by a newer version.
    #[error("{} was written by a newer version of Switchboard", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The secret or its name is too long.
    #[error("the secret, or its name, is too long")]
    TooLong,
    /// Another process holds the lock, or the lock file cannot be used.
    #[error(transparent)]
    Lock(LockError),
    /// There are no random numbers.
    #[error("the operating system has no random numbers")]
    Random,
}

impl Error {
    pub(crate) fn file(verb: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            verb,
            path: path.to_owned(),
            source,
        }
    }

    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> String {
        match self {
            Self::File { .. } => "check its permissions and the free space".to_owned(),
            Self::NoKey { path } => format!(
                "restore {} from a backup; without it, remove the directory of the secrets, then store them and sign in again",
                path.display()
            ),
            Self::OpenKey { path } => format!("run `chmod 600 {0}` as its owner", path.display()),
            Self::BadKey { .. } => {
                "restore it from a backup; `openssl rand -base64 32` creates a new one".to_owned()
            }
            Self::OtherKey { path, .. } => format!(
                "restore the key that it was encrypted with, or set {KEY_VARIABLE} to it; without it, remove {}",
                path.display()
            ),
            Self::Damaged { path } => {
                format!("restore it from a backup, or remove {}", path.display())
            }
            Self::Newer { .. } => "update Switchboard".to_owned(),
            Self::TooLong => "store a shorter one".to_owned(),
            Self::Lock(_) => "end the process that holds it, or try again".to_owned(),
            Self::Random => "restart the machine".to_owned(),
        }
    }
}
