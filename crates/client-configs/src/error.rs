//! What can go wrong, as a value.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::client::Client;

/// Why something was not done. Nothing was written then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no client of this name.
    #[error("there is no client `{given}`")]
    UnknownClient {
        /// What was asked for.
        given: String,
        /// The client whose name is most like it.
        nearest: Option<Client>,
    },
    /// The home folder is not known.
    #[error("the home folder is not known")]
    NoHome,
    /// None of the client's files is there.
    #[error("{} has no configuration here", client.title())]
    NotConfigured {
        /// Which client.
        client: Client,
        /// Where its files would be.
        looked: Vec<PathBuf>,
    },
    /// A file cannot be read or written.
    #[error("cannot {doing} {}", file.display())]
    Io {
        /// What was being done, such as `read`.
        doing: &'static str,
        /// To which file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file is not one that a client would have written.
    #[error("{} {why}", file.display())]
    Unfit {
        /// Which file.
        file: PathBuf,
        /// In which way.
        why: &'static str,
        /// What to do about it.
        fix: Option<&'static str>,
    },
    /// A file is not what its format wants.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Syntax {
        /// Which file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The name for the gateway's entry is taken by something else.
    #[error("{} has another server called `{name}` ({holder})", file.display())]
    NameTaken {
        /// Which file.
        file: PathBuf,
        /// The name.
        name: String,
        /// What holds it.
        holder: String,
    },
    /// The gateway's entry cannot be written so.
    #[error("the gateway cannot be entered into a configuration: {why}")]
    Gateway {
        /// What is wrong with the name, the program or an argument.
        why: String,
    },
    /// The file is no longer what the plan was made from.
    #[error("{} has changed in the meantime", file.display())]
    Changed {
        /// Which file.
        file: PathBuf,
    },
    /// There is nothing to undo.
    #[error("there is nothing to undo{}", of(*client))]
    NothingToUndo {
        /// For which client; `None` is any.
        client: Option<Client>,
    },
    /// What was done cannot be undone any more.
    #[error("{} has changed since the gateway was taken out", file.display())]
    CannotUndo {
        /// Which file.
        file: PathBuf,
        /// Its backup.
        backup: PathBuf,
    },
    /// The note that belongs to a backup cannot be understood.
    #[error("{} is no note about a backup", file.display())]
    Manifest {
        /// The note.
        file: PathBuf,
        /// What the reader said.
        #[source]
        source: serde_json::Error,
    },
}

/// What kind of trouble an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for makes no sense.
    Usage,
    /// There is no such file, or nothing to undo.
    NotFound,
    /// A file is not as it should be; a person has to mend it.
    Malformed,
    /// Somebody else was there first.
    Conflict,
    /// The system refused.
    System,
}

impl Error {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::UnknownClient { nearest, .. } => suggestion(*nearest).into(),
            Self::NoHome => "set HOME".into(),
            Self::NotConfigured { looked, .. } => format!("looked at {}", Paths(looked)).into(),
            Self::Unfit { fix, .. } => (*fix)?.into(),
            Self::NameTaken { .. } => "choose another name for the gateway".into(),
            Self::Changed { .. } => "look at the new difference and try again".into(),
            Self::CannotUndo { backup, .. } => {
                format!("what it was before is in {}", backup.display()).into()
            }
            Self::Manifest { .. } => "move it away".into(),
            Self::Io { .. }
            | Self::Syntax { .. }
            | Self::Gateway { .. }
            | Self::NothingToUndo { .. } => return None,
        })
    }

    /// What kind of trouble this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownClient { .. } | Self::Gateway { .. } => ErrorKind::Usage,
            Self::NotConfigured { .. } | Self::NothingToUndo { .. } => ErrorKind::NotFound,
            Self::Unfit { .. } | Self::Syntax { .. } | Self::Manifest { .. } => {
                ErrorKind::Malformed
            }
            Self::NameTaken { .. } | Self::Changed { .. } | Self::CannotUndo { .. } => {
                ErrorKind::Conflict
            }
            Self::NoHome | Self::Io { .. } => ErrorKind::System,
        }
    }

    pub(crate) fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |source| Self::Io {
            doing,
            file,
            source,
        }
    }

    /// Something wrong at a place, given as an offset into the text.
    pub(crate) fn at(file: &Path, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Syntax {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

fn suggestion(nearest: Option<Client>) -> String {
    if let Some(client) = nearest {
        return format!("did you mean `{client}`?");
    }
    let names: Vec<_> = Client::ALL.iter().map(|client| client.name()).collect();
    format!("the clients are {}", names.join(", "))
}

fn of(client: Option<Client>) -> String {
    client.map_or_else(String::new, |client| format!(" for {}", client.title()))
}

struct Paths<'a>(&'a [PathBuf]);

impl fmt::Display for Paths<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{}", path.display())?;
        }
        Ok(())
    }
}
