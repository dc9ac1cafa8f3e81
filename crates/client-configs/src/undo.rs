//! Reverts changes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apply::{Fingerprint, Manifest, copy, free_id};
use crate::client::Client;
use crate::error::Error;
use crate::files;
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
}

/// The way in which a change was reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The file has its previous content, byte for byte.
    Restored,
    /// The file was deleted, since it was created for the gateway.
    Deleted,
    /// The file has other changes since, so only the gateway's entry was removed.
    EntryRemoved {
        /// A copy of the file before the removal.
        copy: PathBuf,
    },
    /// The gateway's entry was already gone; nothing was changed.
    AlreadyGone,
}

impl How {
    /// A description for the user.
    pub fn message(&self, file: &Path) -> String {
        let file = file.display();
        match self {
            Self::Restored => format!("restored {file}"),
            Self::Deleted => format!("deleted {file}, which was created for the gateway"),
            Self::EntryRemoved { .. } => {
                format!("removed only the gateway's entry from {file}, which has other changes")
            }
            Self::AlreadyGone => {
                format!("{file} no longer has the gateway's entry; nothing was changed")
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
    })
}

fn take_back(manifest: &Manifest, client: Client, backups: &Path) -> Result<How, Error> {
    let file = &manifest.file;
    let Some(text) = files::read(file)? else {
        return Ok(How::AlreadyGone);
    };
    if Fingerprint::of(&text) == manifest.after {
        let Some(backup) = &manifest.backup else {
            fs::remove_file(file).map_err(Error::io("delete", file))?;
            return Ok(How::Deleted);
        };
        let backup = beside(backups, backup)?;
        let missing = || Error::io("read", &backup)(std::io::ErrorKind::NotFound.into());
        let before = files::read(&backup)?.ok_or_else(missing)?;
        files::replace(file, &before)?;
        return Ok(How::Restored);
    }
    if manifest.action == Action::Disconnect {
        return Err(Error::CannotUndo {
            file: file.clone(),
            backup: beside(backups, manifest.backup.as_deref().unwrap_or_default())?,
        });
    }
    let gateway = GatewayEntry::new(manifest.name.as_str(), &manifest.program);
    let Some(after) = without_gateway(client, file, &text, &gateway)? else {
        return Ok(How::AlreadyGone);
    };
    let id = free_id(backups, client.name())?;
    let copy = backups.join(copy(&text, file, backups, &id)?);
    files::replace(file, &after)?;
    Ok(How::EntryRemoved { copy })
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
