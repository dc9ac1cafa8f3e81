//! The secrets of a home: one file each in `secrets/`, readable by the owner only.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use switchboard_config::{Home, is_secret_name};
use switchboard_files::{Draft, Links, access, private_dir, read, write_private};
use switchboard_terminal::error::Error;

use super::super::config_file::cannot;

/// The largest secret, in bytes; a certificate chain fits.
pub(super) const SECRET_BYTES: u64 = 64 * 1024;
/// The most names that are tried for a moved secret.
const NAMES_MAX: u32 = 1_000;
/// The length to which the name of a moved secret is cut, in bytes, with room for a number.
const NAME_BYTES: usize = 100;
/// The most secrets that are listed.
const LISTED_MAX: usize = 10_000;

/// The secrets of one home.
#[derive(Debug, Clone)]
pub(in super::super) struct Store {
    folder: PathBuf,
}

/// A secret as `list` shows it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) mode: u32,
}

impl Store {
    pub(in super::super) fn new(home: &Home) -> Self {
        Self {
            folder: home.secrets(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Stores a secret under this name, and replaces an existing one.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), Error> {
        check_name(name)?;
        check_value(value)?;
        self.open()?;
        let path = self.path(name);
        write_private(&path, value.as_bytes()).map_err(|error| cannot("write", &path, &error))
    }

    /// Stores a value under a name derived from this one that is free or already has this value. Returns the
    /// name, and `true` if a file was created.
    pub(super) fn put(&self, wanted: &str, value: &str) -> Result<(String, bool), Error> {
        check_value(value)?;
        self.open()?;
        let base = allowed(wanted);
        for number in 1..=NAMES_MAX {
            let name = match number {
                1 => base.clone(),
                number => format!("{base}-{number}"),
            };
            let path = self.path(&name);
            let placed = Draft::beside(&path).and_then(|mut draft| {
                draft.write_all(value.as_bytes())?;
                draft.place_new()
            });
            match placed {
                Ok(()) => return Ok((name, true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot("write", &path, &error)),
            }
            let is_same = read(&path, SECRET_BYTES, Links::Follow)
                .is_ok_and(|there| there.trim_ascii() == value.as_bytes());
            if is_same {
                return Ok((name, false));
            }
        }
        Err(
            Error::new(format!("too many secrets have names like `{base}`"))
                .hint("remove unused ones with `switchboard secret rm`"),
        )
    }

    /// Returns `true` if there is a secret with this name.
    pub(in super::super) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// A stamp that changes with every write of a secret, without its value; `None` if the secret does not
    /// exist.
    pub(in super::super) fn stamp(&self, name: &str) -> Option<String> {
        let file = self.path(name).symlink_metadata().ok()?;
        Some(format!(
            "{}-{}.{:09}",
            file.ino(),
            file.mtime(),
            file.mtime_nsec()
        ))
    }

    /// Removes a secret. Returns `false` if it does not exist.
    pub(in super::super) fn remove(&self, name: &str) -> Result<bool, Error> {
        check_name(name)?;
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(cannot("remove", &path, &error)),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Stored>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("read", &self.folder, &error)),
        };
        let names = entries.flatten().take(LISTED_MAX).filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let found = access(&entry.path()).ok()?;
            is_secret_name(&name).then_some(Stored {
                name,
                mode: found.mode,
            })
        });
        let mut all: Vec<_> = names.collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn open(&self) -> Result<(), Error> {
        private_dir(&self.folder).map_err(|error| cannot("use", &self.folder, &error))
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    if is_secret_name(name) {
        return Ok(());
    }
    Err(
        Error::usage(format!("`{name}` cannot be the name of a secret"))
            .hint("use up to 128 letters, digits, _, - and dots, with no dot at the start"),
    )
}

/// Rejects a value that would be read back differently.
fn check_value(value: &str) -> Result<(), Error> {
    let why = match value {
        "" => "is empty",
        value if value.trim() != value => "begins or ends with whitespace",
        value if value.contains('\0') => "contains a NUL byte",
        value if value.len() as u64 > SECRET_BYTES => "is longer than 64 KiB",
        _ => return Ok(()),
    };
    Err(Error::new(format!("the secret {why}")).hint("nothing was stored"))
}

/// A name made of allowed characters.
fn allowed(wanted: &str) -> String {
    let letters = wanted.chars().map(|c| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '_' | '-') => c,
        _ => '-',
    });
    let name: String = letters.take(NAME_BYTES).collect();
    if name.is_empty() {
        "secret".to_owned()
    } else {
        name
    }
}
