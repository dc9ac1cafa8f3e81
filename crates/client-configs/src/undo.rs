//! Reverts changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::apply::{Fingerprint, Manifest, copy, free_id};
use crate::client::Client;
use crate::error::Error;
use crate::files::{self, Target};
use crate::plan::{Action, GatewayEntry, without_gateway};

/// The most entries of the backup folder to examine.
const NOTES: usize = 10_000;

/// The change to revert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The last of all changes.
    Last,
    /// The last change in this client's file.
    Client(Client),
}

/// The result of [`undo`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The client that the file belongs to.
    pub client: Client,
    /// The file.
    pub file: PathBuf,
    /// The outcome.
    pub how: How,
    /// The ID of the token that was created for the entry.
    pub token: Option<String>,
}

/// The way in which a change was reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The file has its previous content, byte for byte.
    Restored,
    /// The file was deleted, since it was created for the gateway.
    Deleted,
    /// The file has other changes since, so only the entries of the change were reverted.
    Edited {
        /// A copy of the file before that.
        copy: PathBuf,
        /// `true` if the gateway's entry was removed.
        is_removed: bool,
        /// The names of the servers that were put back.
        servers: Vec<String>,
    },
    /// The change was already reverted; nothing was changed.
    AlreadyGone,
}

impl How {
    /// A description for the user.
    pub fn message(&self, file: &Path) -> String {
        let file = file.display();
        match self {
            Self::Restored => format!("restored {file}"),
            Self::Deleted => format!("deleted {file}, which was created for the gateway"),
            Self::Edited {
                is_removed,
                servers,
                ..
            } => {
                let servers = servers.join("`, `");
                match (is_removed, servers.is_empty()) {
                    (true, true) => {
                        format!(
                            "removed only the gateway's entry from {file}, which has other changes"
                        )
                    }
                    (true, false) => format!(
                        "removed only the gateway's entry from {file}, which has other changes, and put back \
                         `{servers}`"
                    ),
                    (false, _) => {
                        format!("put back only `{servers}` in {file}, which has other changes")
                    }
                }
            }
            Self::AlreadyGone => {
                format!("{file} no longer has the change; nothing was changed")
            }
        }
    }
}

/// Reverts the last change that is not reverted yet.
pub fn undo(which: Which, backups: &Path) -> Result<Undone, Error> {
    let (note, manifest, client) = last(which, backups)?;
    let how = take_back(&manifest, client, backups)?;
    // A reverted manifest is kept for reference, under a name that is not found again.
    let done = note.with_extension("undone");
    fs::rename(&note, &done).map_err(Error::io("rename", &note))?;
    Ok(Undone {
        client,
        file: manifest.file,
        how,
        token: manifest.token,
    })
}

fn take_back(manifest: &Manifest, client: Client, backups: &Path) -> Result<How, Error> {
    let file = &manifest.file;
    let backup = manifest.backup.as_deref().unwrap_or_default();
    let cannot_undo = || {
        Ok::<_, Error>(Error::CannotUndo {
            file: file.clone(),
            backup: beside(backups, backup)?,
        })
    };
    let Some(text) = files::read(file)? else {
        if manifest.moved.is_empty() {
            return Ok(How::AlreadyGone);
        }
        // The backup alone has the servers.
        return Err(cannot_undo()?);
    };
    let target = Target::new(file, Some(&text))?;
    if Fingerprint::of(&text) == manifest.after {
        if manifest.backup.is_none() {
            target.delete()?;
            return Ok(How::Deleted);
        }
        target.replace(&read_backup(backups, backup)?)?;
        return Ok(How::Restored);
    }
    if manifest.action == Action::Disconnect {
        return Err(cannot_undo()?);
    }
    let mut after = text.clone();
    if manifest.action == Action::Connect {
        let gateway = GatewayEntry::new(manifest.name.as_str(), &manifest.program);
        after = without_gateway(client, file, &text, &gateway)?.unwrap_or(after);
    }
    let is_removed = after != text;
    let mut servers = Vec::new();
    if !manifest.moved.is_empty() {
        let earlier = read_backup(backups, backup)?;
        let known = client.entries(file, &after)?;
        let is_missing = |place: &&Vec<String>| known.iter().all(|(known, _)| known != *place);
        for place in manifest.moved.iter().filter(is_missing) {
            let Some(with) = client.put_back(file, &after, place, &earlier)? else {
                continue;
            };
            after = with;
            servers.extend(place.last().cloned());
        }
    }
    if after == text {
        return Ok(How::AlreadyGone);
    }
    let id = free_id(backups, client.name())?;
    let copy = backups.join(copy(&text, file, backups, &id)?);
    target.replace(&after)?;
    Ok(How::Edited {
        copy,
        is_removed,
        servers,
    })
}

/// The text of a backup.
fn read_backup(backups: &Path, name: &str) -> Result<String, Error> {
    let backup = beside(backups, name)?;
    let missing = || Error::io("read", &backup)(io::ErrorKind::NotFound.into());
    files::read(&backup)?.ok_or_else(missing)
}

fn last(which: Which, backups: &Path) -> Result<(PathBuf, Manifest, Client), Error> {
    let mut notes: Vec<PathBuf> = match fs::read_dir(backups) {
        Ok(entries) => entries
            .flatten()
            .take(NOTES)
            .map(|entry| entry.path())
            .collect(),
        Err(error) if files::is_missing(&error) => Vec::new(),
        Err(error) => return Err(Error::io("read", backups)(error)),
    };
    // The names begin with the time.
    notes.sort_unstable();
    for note in notes.into_iter().rev() {
        if !is_note(&note) {
            continue;
        }
        let Some(text) = files::read(&note)? else {
            continue;
        };
        let wrong = |source| Error::Manifest {
            file: note.clone(),
            source,
        };
        let manifest: Manifest = serde_json::from_str(&text).map_err(wrong)?;
        let client: Client = manifest.client.parse()?;
        if which == Which::Last || which == Which::Client(client) {
            return Ok((note, manifest, client));
        }
    }
    let client = match which {
        Which::Last => None,
        Which::Client(client) => Some(client),
    };
    Err(Error::NothingToUndo { client })
}

/// Tests if a file is a manifest: `TIME-CLIENT.json`. A backup has the name of its file after that.
fn is_note(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let client = stem.and_then(|stem| stem.split_once('-'));
    path.extension()
        .is_some_and(|extension| extension == "json")
        && client.is_some_and(|(_, client)| client.parse::<Client>().is_ok())
}

/// A file directly in the backup folder. A name in a manifest that leads elsewhere is an error.
fn beside(backups: &Path, name: &str) -> Result<PathBuf, Error> {
    let plain = Path::new(name).file_name() == Some(name.as_ref());
    if plain {
        return Ok(backups.join(name));
    }
    Err(Error::Unfit {
        file: backups.join(name),
        why: "is not a backup",
        fix: None,
    })
}
