//! Assertions that other programs keep up to date in files.

use std::{fs::File, io::Read as _, path::PathBuf};

use switchboard_auth::{Error, Event};
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

/// The largest file.
const LIMIT: u64 = 64 * 1024;

/// Reads the assertion in a file.
pub(super) async fn read(file: Option<PathBuf>) -> Event<'static> {
    let Some(file) = file else {
        return unable("no file is configured".to_owned());
    };
    let name = file.display().to_string();
    match spawn_blocking(move || text(&file)).await {
        Ok(Ok(text)) => Event::Assertion(text.trim().into()),
        Ok(Err(reason)) => unable(format!("cannot read `{name}`: {reason}")),
        Err(error) => unable(error.to_string()),
    }
}

fn text(file: &PathBuf) -> Result<Zeroizing<String>, String> {
    // A pipe would be waited for.
    let metadata = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = Zeroizing::default();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let read = opened.take(LIMIT).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

fn unable(reason: String) -> Event<'static> {
    Event::Unable(Error::NoAssertion { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_is_read_anew_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        for text in ["a.b.c\n", "  d.e.f"] {
            std::fs::write(&file, text).unwrap();
            match read(Some(file.clone())).await {
                Event::Assertion(read) => assert_eq!(read.expose(), text.trim()),
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("binary");
        std::fs::write(&binary, [0xFF]).unwrap();
        for (file, expected) in [
            (None, "no file"),
            (
                Some(folder.path().join("missing")),
                "missing`: No such file",
            ),
            (Some(folder.path().to_owned()), "not a file"),
            (Some(binary), "UTF-8"),
        ] {
            match read(file).await {
                Event::Unable(Error::NoAssertion { reason }) => {
                    assert!(reason.contains(expected), "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
