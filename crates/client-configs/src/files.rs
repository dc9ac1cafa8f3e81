//! Bounded reads and atomic replacement of files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use switchboard_files::{Draft, Links, Mode};

use crate::error::Error;

/// The largest configuration file to read, in bytes. The limit is generous because Claude Code keeps its
/// state in the same file.
pub(crate) const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    let unfit = |why, fix| Error::Unfit {
        file: path.to_owned(),
        why,
        fix,
    };
    let bytes = match switchboard_files::read(path, FILE_BYTES, Links::Follow) {
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(unfit("is not a file", None));
        }
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(unfit(
                "is larger than 8 MiB, the limit for a configuration",
                None,
            ));
        }
        bytes => bytes.map_err(Error::io("read", path))?,
    };
    let not_text = |_| unfit("is not UTF-8 text", Some("save it as UTF-8"));
    String::from_utf8(bytes).map(Some).map_err(not_text)
}

/// A file of a client, which may write it at any time. It is changed only if it still has the text that was read.
pub(crate) struct Target<'a> {
    /// The path as the user knows it.
    given: &'a Path,
    /// With links resolved.
    pub(crate) file: PathBuf,
    /// `None` if the file did not exist.
    before: Option<&'a str>,
}

impl<'a> Target<'a> {
    pub(crate) fn new(given: &'a Path, before: Option<&'a str>) -> Result<Self, Error> {
        let file = switchboard_files::follow(given).map_err(Error::io("write", given))?;
        Ok(Self {
            given,
            file,
            before,
        })
    }

    /// Fails if the file has changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if read(&self.file)?.as_deref() == self.before {
            return Ok(());
        }
        Err(Error::Changed {
            file: self.given.to_owned(),
        })
    }

    pub(crate) fn replace(&self, text: &str) -> Result<(), Error> {
        self.check()?;
        replace(&self.file, text)
    }

    pub(crate) fn delete(&self) -> Result<(), Error> {
        self.check()?;
        fs::remove_file(&self.file).map_err(Error::io("delete", &self.file))
    }
}

/// Replaces a file atomically: a reader sees the old text or the new one, never a part. A new file is
/// private to its owner; an existing one keeps its mode.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    switchboard_files::replace(path, text.as_bytes(), Mode::Keep).map_err(Error::io("write", path))
}

/// Writes a file that must not exist yet, readable by its owner only.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.write_all(text.as_bytes())?;
    draft.place_new()
}

/// Tests if the error means that there is no such file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_is_neither_replaced_nor_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        let target = Target::new(&file, Some("before")).unwrap();
        fs::write(&file, "meanwhile").unwrap();
        for changed in [target.replace("after"), target.delete()] {
            assert!(matches!(changed, Err(Error::Changed { .. })), "{changed:?}");
        }
        fs::write(&file, "before").unwrap();
        target.replace("after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    }
}
