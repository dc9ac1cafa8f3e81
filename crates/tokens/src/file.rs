//! The file of tokens.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::de::Error as _;
use switchboard_files::{Links, write_private};

use crate::Tokens;

/// The longest file, in bytes.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The error of [`read`] and [`write()`].
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// The file is damaged. It is not replaced.
    #[error("cannot parse {}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Advice for the user, apart from the message.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Parse { .. } => {
                "restore the file from a backup, or remove it and create the tokens again"
            }
            Self::Read { .. } => "check the permissions of the file",
            Self::Write { .. } => "check the free space and the permissions of the directory",
        }
    }
}

/// Reads the tokens in a file; none if it does not exist.
pub fn read(path: &Path) -> Result<Tokens, FileError> {
    let bytes = match switchboard_files::read(path, FILE_BYTES, Links::Refuse) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tokens::default()),
        Err(source) => {
            let path = path.to_owned();
            return Err(FileError::Read { path, source });
        }
    };
    let parsed = serde_json::from_slice(&bytes).and_then(|tokens: Tokens| {
        tokens.validate().map_err(serde_json::Error::custom)?;
        Ok(tokens)
    });
    parsed.map_err(|source| FileError::Parse {
        path: path.to_owned(),
        source,
    })
}

/// Replaces the file. Only its owner can read it.
pub fn write(path: &Path, tokens: &Tokens) -> Result<(), FileError> {
    let written = serde_json::to_vec_pretty(tokens)
        .map_err(io::Error::from)
        .and_then(|mut json| {
            json.push(b'\n');
            if json.len() as u64 > FILE_BYTES {
                return Err(io::Error::other(
                    "the file would be too long to be read again",
                ));
            }
            write_private(path, &json)
        });
    written.map_err(|source| FileError::Write {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, time::SystemTime};

    use super::*;
    use crate::New;

    #[test]
    fn tokens_are_kept_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        assert_eq!(read(&path).unwrap(), Tokens::default());
        let mut tokens = Tokens::default();
        tokens.create(New::named("ci"), SystemTime::now()).unwrap();
        write(&path, &tokens).unwrap();
        assert_eq!(read(&path).unwrap(), tokens);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn damaged_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let mut tokens = Tokens::default();
        tokens.create(New::named("ci"), SystemTime::now()).unwrap();
        let whole = serde_json::to_value(&tokens).unwrap();
        let mut double = whole.clone();
        let entry = whole["tokens"][0].clone();
        double["tokens"].as_array_mut().unwrap().push(entry);
        let mut limited = whole.clone();
        limited["tokens"][0]["rights"] = serde_json::json!(["admin"]);
        limited["tokens"][0]["servers"] = serde_json::json!(["files"]);
        let mut mute = whole;
        mute["tokens"][0]["rights"] = serde_json::json!([]);
        for damaged in [double, limited, mute, serde_json::json!({ "tokens": [{}] })] {
            fs::write(&path, damaged.to_string()).unwrap();
            let error = read(&path).unwrap_err();
            assert!(
                matches!(error, FileError::Parse { .. }),
                "{damaged}: {error}"
            );
        }
    }
}
