//! Backups of files that a command changed, in the folder `backups`, and the undo of an import.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use switchboard_config::Home;
use switchboard_terminal::error::Error;

use super::config_file::{cannot, read_text};

/// The file ending of notes about imports, so that a note is not mistaken for a backup.
const NOTE: &str = "import.note";
/// The most files that are searched.
const FILES: usize = 10_000;

pub(super) fn folder(home: &Home) -> PathBuf {
    home.logs().with_file_name("backups")
}

/// The changes made by an import, for undoing it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImportNote {
    /// The file that was changed.
    pub(super) file: PathBuf,
    /// File name of its earlier text in the backup folder; `None` if the file did not exist.
    pub(super) backup: Option<String>,
    /// Its text after the import, to detect later changes.
    pub(super) after: String,
    pub(super) added: Vec<String>,
    /// The secrets that were stored for them, with the stamp of each file.
    #[serde(default)]
    pub(super) stored: BTreeMap<String, String>,
}

/// The files that are kept of an import.
pub(super) struct Kept {
    /// The earlier text of the file, if it existed.
    pub(super) backup: Option<PathBuf>,
    note: PathBuf,
}

impl Kept {
    /// Removes the files, because the import did not happen.
    pub(super) fn discard(&self) {
        for file in self.backup.iter().chain([&self.note]) {
            // The earlier failure is the one to report.
            let _ = fs::remove_file(file);
        }
    }
}

/// Stores the text of a file, and the note about the coming change.
pub(super) fn keep(home: &Home, before: Option<&str>, mut note: ImportNote) -> Result<Kept, Error> {
    let folder = folder(home);
    switchboard_files::create_dir(&folder).map_err(|error| cannot("create", &folder, &error))?;
    let stamp = jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%S.%6fZ")
        .to_string();
    if let Some(before) = before {
        let name = format!("{stamp}-import-switchboard.json");
        write_new(&folder.join(&name), before)?;
        note.backup = Some(name);
    }
    let text = serde_json::to_string_pretty(&note)
        .map_err(|error| Error::new(format!("cannot record the import: {error}")))?;
    let kept = Kept {
        backup: note.backup.map(|name| folder.join(name)),
        note: folder.join(format!("{stamp}-{NOTE}")),
    };
    write_new(&kept.note, &text).inspect_err(|_| kept.discard())?;
    Ok(kept)
}

/// The last import that was not undone, with the path of its note.
pub(super) fn last_import(home: &Home) -> Result<Option<(PathBuf, ImportNote)>, Error> {
    let folder = folder(home);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", &folder, &error)),
    };
    let paths = entries.flatten().take(FILES).map(|entry| entry.path());
    let is_note = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.ends_with(&format!("-{NOTE}")))
    };
    // The names begin with the time.
    let Some(path) = paths.filter(is_note).max() else {
        return Ok(None);
    };
    let text = read_text(&path)?.unwrap_or_default();
    let note = serde_json::from_str(&text).map_err(|error| {
        Error::new(format!("cannot parse {}: {error}", path.display())).hint("move the file away")
    })?;
    Ok(Some((path, note)))
}

/// The text of the file before an import; `None` if the file did not exist.
pub(super) fn text_before(home: &Home, note: &ImportNote) -> Result<Option<String>, Error> {
    let Some(name) = &note.backup else {
        return Ok(None);
    };
    let path = folder(home).join(Path::new(name).file_name().unwrap_or_default());
    match read_text(&path)? {
        Some(text) => Ok(Some(text)),
        None => Err(
            Error::new(format!("the backup {} is missing", path.display()))
                .hint("remove the servers with `switchboard remove`"),
        ),
    }
}

/// Marks an import as undone: its note is kept under another name.
pub(super) fn done(note: &Path) -> Result<(), Error> {
    fs::rename(note, note.with_extension("undone")).map_err(|error| cannot("rename", note, &error))
}

fn write_new(path: &Path, text: &str) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| cannot("write", path, &error))
}
