//! switchboard.json, changed by hand of a command while no gateway runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use switchboard_config::{Config, ConfigError, EditError, Home, parse, write_atomically};

use crate::failure::Failure;

/// The largest file that is read; no configuration is as large.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The configuration file and its text.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// Its text; `None` if there is no such file.
    pub(super) text: Option<String>,
}

impl ConfigFile {
    pub(super) fn read(home: &Home) -> Result<Self, Failure> {
        let path = home.config_file().to_owned();
        let text = read_text(&path)?;
        Ok(Self { path, text })
    }

    /// The text, which is empty for a file that is not there.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// What it says.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        self.check(self.text())
    }

    /// Changes the text; whether there was anything to change.
    pub(super) fn edit(
        &self,
        change: impl FnOnce(&str) -> Result<String, EditError>,
    ) -> Result<bool, Failure> {
        let after = change(self.text()).map_err(|error| match error {
            // The editor does not know what the file is called.
            EditError::Text { mut problems } => {
                for problem in &mut problems {
                    problem.file = self.path.display().to_string();
                }
                Failure::from(ConfigError::Invalid { problems })
            }
            other => Failure::from(other),
        })?;
        if after == self.text() {
            return Ok(false);
        }
        self.write(&after)?;
        Ok(true)
    }

    /// Puts another text in its place, if that can be read and nobody else has changed the file.
    pub(super) fn write(&self, after: &str) -> Result<(), Failure> {
        self.check(after)?;
        if read_text(&self.path)? != self.text {
            return Err(Failure::new(format!(
                "{} has changed in the meantime; nothing was written",
                self.path.display()
            ))
            .hint("try again"));
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder)
            .and_then(|()| write_atomically(&self.path, after))
            .map_err(|error| cannot("write", &self.path, &error))
    }

    fn check(&self, text: &str) -> Result<Config, Failure> {
        parse(text, &self.path.display().to_string())
            .map_err(|problems| ConfigError::Invalid { problems }.into())
    }
}

/// The text of a file; `None` if there is none.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", path, &error)),
    };
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() || metadata.len() > FILE_BYTES {
        return Err(
            Failure::new(format!("{} is not a configuration file", path.display()))
                .hint("choose another with --config"),
        );
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

/// Makes a folder, for the owner's eyes only.
pub(super) fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
        .hint("check who owns it and what may be done with it")
}
