//! switchboard.json, as commands change it themselves while no gateway runs.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use switchboard_config::{
    Config, ConfigError, ConfigLock, EditError, Home, LockError, Written, open_trusted, parse,
};
use switchboard_files::{Links, create_dir};
use switchboard_terminal::{error::Error, print};

/// The largest file that is read, in bytes; no configuration is as large.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The configuration file and its text.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// Its text; `None` if the file does not exist.
    pub(super) text: Option<String>,
}

impl ConfigFile {
    pub(super) fn read(home: &Home) -> Result<Self, Error> {
        let path = home.config_file().to_owned();
        let file = open_trusted(&path, |path| switchboard_files::open(path, Links::Follow))?;
        let text = file.map(|file| text_of(&path, &file)).transpose()?;
        Ok(Self { path, text })
    }

    /// The text, or an empty string if the file does not exist.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Parses the text.
    pub(super) fn config(&self) -> Result<Config, Error> {
        self.check(self.text())
    }

    /// Changes the file under its lock. Returns `false` if there was nothing to change.
    pub(super) fn edit(
        home: &Home,
        change: impl FnOnce(&str) -> Result<String, EditError>,
    ) -> Result<bool, Error> {
        let lock = lock(home.config_file())?;
        let file = Self::read(home)?;
        let after = change(file.text()).map_err(|error| match error {
            // The editor does not know the name of the file.
            EditError::Text { mut problems } => {
                for problem in &mut problems {
                    problem.file = file.path.display().to_string();
                }
                Error::from(ConfigError::Invalid { problems })
            }
            other => Error::from(other),
        })?;
        if after == file.text() {
            return Ok(false);
        }
        file.write_under(&lock, &after)?;
        Ok(true)
    }

    /// Replaces the text, if the new one can be parsed and no other process has changed the file.
    pub(super) fn write(&self, after: &str) -> Result<(), Error> {
        self.write_under(&lock(&self.path)?, after)
    }

    /// Removes the file, if no other process has changed it. Follows a symbolic link to the file behind it.
    pub(super) fn remove(&self) -> Result<(), Error> {
        let lock = lock(&self.path)?;
        self.is_unchanged()?;
        lock.remove()
            .map_err(|error| cannot("remove", &self.path, &error))
    }

    fn is_unchanged(&self) -> Result<(), Error> {
        if read_text(&self.path)? != self.text {
            return Err(Error::new(format!(
                "{} has changed in the meantime; nothing was written",
                self.path.display()
            ))
            .hint("try again"));
        }
        Ok(())
    }

    fn write_under(&self, lock: &ConfigLock, after: &str) -> Result<(), Error> {
        self.check(after)?;
        self.is_unchanged()?;
        let written = lock
            .write(after)
            .map_err(|error| cannot("write", &self.path, &error))?;
        if written == Written::Narrowed {
            print::say(&format!(
                "{} contains secrets in plain text; now only you can read it (mode 600)",
                self.path.display()
            ));
        }
        Ok(())
    }

    fn check(&self, text: &str) -> Result<Config, Error> {
        parse(text, &self.path.display().to_string())
            .map_err(|problems| ConfigError::Invalid { problems }.into())
    }
}

/// Locks the file against changes by other processes.
fn lock(path: &Path) -> Result<ConfigLock, Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_dir(folder).map_err(|error| cannot("create", folder, &error))?;
    ConfigLock::take(path).map_err(|error| {
        let hint = match &error {
            LockError::Held { .. } => "another command is changing it; try again",
            LockError::File { .. } => "check its owner and permissions",
        };
        Error::from_error(&error, None).hint(hint)
    })
}

/// The text of a file; `None` if the file does not exist.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, Error> {
    match switchboard_files::open(path, Links::Follow) {
        Ok(file) => text_of(path, &file).map(Some),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            io::ErrorKind::InvalidInput => Err(unfit(path)),
            _ => Err(cannot("read", path, &error)),
        },
    }
}

fn text_of(path: &Path, file: &File) -> Result<String, Error> {
    match switchboard_files::read_open(file, FILE_BYTES) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| {
            Error::new(format!("{} is not UTF-8 text", path.display())).hint("save it as UTF-8")
        }),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(unfit(path)),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

fn unfit(path: &Path) -> Error {
    Error::new(format!("{} is not a configuration file", path.display()))
        .hint("choose another with --config")
}

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Error {
    if what == "read" && error.kind() == io::ErrorKind::NotFound {
        return Error::new(format!(
            "cannot {what} {}: the file does not exist",
            path.display()
        ))
        .hint("check the spelling");
    }
    Error::new(format!("cannot {what} {}: {error}", path.display()))
        .hint("check its owner and permissions")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changed_file_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchboard.json");
        fs::write(&path, "{}").unwrap();
        let file = ConfigFile {
            path: path.clone(),
            text: Some("{}".to_owned()),
        };
        fs::write(&path, "{ }").unwrap();
        let failure = file.remove().unwrap_err();
        assert!(failure.message().contains("has changed"), "{failure}");
        fs::write(&path, "{}").unwrap();
        file.remove().unwrap();
        assert!(!path.exists());
    }
}
