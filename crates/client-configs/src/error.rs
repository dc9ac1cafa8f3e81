//! Errors of this crate.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::client::Client;

/// An error of this crate. No client's file was changed, unless [`undo`](crate::undo) failed to rename
/// its manifest at the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No client has this name.
    #[error("there is no client `{given}`")]
    UnknownClient {
        /// The name that was given.
        given: String,
        /// The client with the most similar name.
        nearest: Option<Client>,
    },
    /// The home folder is not known.
    #[error("your home directory is unknown")]
    NoHome,
    /// The client has no configuration file.
    #[error("{} has no configuration", client.title())]
    NotConfigured {
        /// The client.
        client: Client,
        /// The possible locations of its files.
        looked: Vec<PathBuf>,
    },
    /// The client cannot connect over HTTP with a token.
    #[error("{} has no servers over HTTP in its configuration", client.title())]
    NoHttp {
        /// The client.
        client: Client,
    },
    /// The client is connected in the other way.
    #[error(
        "{} is connected {} already",
        client.title(),
        if *over_http { "over HTTP" } else { "without HTTP" }
    )]
    OtherTransport {
        /// The client.
        client: Client,
        /// Its entry is one over HTTP.
        over_http: bool,
    },
    /// A file cannot be read or written.
    #[error("cannot {doing} {}", file.display())]
    Io {
        /// The operation, such as `read`.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// A file is not a configuration that a client would write.
    #[error("{} {why}", file.display())]
    Unfit {
        /// The file.
        file: PathBuf,
        /// The problem.
        why: &'static str,
        /// The fix, if one is known.
        fix: Option<&'static str>,
    },
    /// A syntax error in a file.
    #[error("cannot parse {}:{line}:{column}: {message}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The problem at this position.
        message: String,
    },
    /// Another entry has the name of the gateway's entry.
    #[error("{} already has another server named `{name}` ({holder})", file.display())]
    NameTaken {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// The server that has the name.
        holder: String,
    },
    /// The gateway's entry cannot be written.
    #[error("cannot add the gateway to a client: {why}")]
    Gateway {
        /// The problem with the name, the program or an argument.
        why: String,
    },
    /// The file has changed since the plan was made.
    #[error("{} has changed in the meantime", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// There is nothing to undo.
    #[error("there is nothing to undo{}", of(*client))]
    NothingToUndo {
        /// The client; `None` for all of them.
        client: Option<Client>,
    },
    /// The file has changed since, so its change cannot be undone.
    #[error("{} has changed since, so the change cannot be undone", file.display())]
    CannotUndo {
        /// The file.
        file: PathBuf,
        /// Its backup.
        backup: PathBuf,
    },
    /// The manifest of a backup is malformed.
    #[error("{} is not the manifest of a backup", file.display())]
    Manifest {
        /// The manifest.
        file: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
}

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong.
    Usage,
    /// There is no such file, or nothing to undo.
    NotFound,
    /// A file is malformed, and the user has to fix it.
    Malformed,
    /// Another program or user made a conflicting change.
    Conflict,
    /// The system reported an error.
    System,
}

impl Error {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::UnknownClient { nearest, .. } => suggestion(*nearest).into(),
            Self::NoHome => "set HOME".into(),
            Self::NotConfigured { looked, .. } => format!("looked for {}", Paths(looked)).into(),
            Self::Unfit { fix, .. } => (*fix)?.into(),
            Self::NoHttp { .. } => "connect it without --http".into(),
            Self::OtherTransport { client, .. } => {
                format!("run `switchboard connect {client} --undo` first").into()
            }
            Self::NameTaken { .. } => "choose another name for the gateway with --name".into(),
            Self::Changed { .. } => "run the command again".into(),
            Self::CannotUndo { backup, .. } => {
                format!("its previous content is in {}", backup.display()).into()
            }
            Self::Manifest { .. } => "move it away".into(),
            Self::Syntax { .. } => "fix the file, then run the command again".into(),
            Self::Io { .. } | Self::Gateway { .. } | Self::NothingToUndo { .. } => return None,
        })
    }

    /// The kind of this error.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownClient { .. } | Self::NoHttp { .. } | Self::Gateway { .. } => {
                ErrorKind::Usage
            }
            Self::NotConfigured { .. } | Self::NothingToUndo { .. } => ErrorKind::NotFound,
            Self::Unfit { .. } | Self::Syntax { .. } | Self::Manifest { .. } => {
                ErrorKind::Malformed
            }
            Self::NameTaken { .. }
            | Self::OtherTransport { .. }
            | Self::Changed { .. }
            | Self::CannotUndo { .. } => ErrorKind::Conflict,
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

    /// A syntax error at an offset into the text.
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
