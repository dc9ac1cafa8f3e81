//! Bounded reads and atomic replacement of files.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

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

/// Replaces a file atomically: a reader sees the old text or the new one, never a part. A new file is
/// private to its owner; an existing one keeps its mode.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
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
