//! Reads whole files of a model, up to a size limit.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
};

use crate::ModelError;

/// Reads a whole file, unless it is too large. The size is not queried first, because the file may grow
/// in between.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(ModelError::read(path))?;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(ModelError::read(path))?;
    if bytes.len() as u64 > most {
        return Err(ModelError::TooLarge {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            most,
        });
    }
    Ok(bytes)
}

/// Like [`read`], but returns `None` if the file does not exist.
pub(crate) fn read_if_there(path: &Path, most: u64) -> Result<Option<Vec<u8>>, ModelError> {
    match read(path, most) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ModelError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl ModelError {
    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(super) fn json(path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Json { path, source }
    }
}
