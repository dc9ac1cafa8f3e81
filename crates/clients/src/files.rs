//! Reading files within bounds, and replacing them in one step.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The largest configuration that is read. Claude Code keeps its state in one too, so it is generous.
pub(crate) const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// How many links are followed to a file.
const LINKS: usize = 16;

/// The text of a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    let unfit = |why| Error::Unfit {
        file: path.to_owned(),
        why,
    };
    let metadata = match fs::metadata(path) {
        Err(error) if is_missing(&error) => return Ok(None),
        other => other.map_err(Error::io("read", path))?,
    };
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(unfit("is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(Error::io("read", path))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(unfit("is larger than 8 MiB, which no configuration is"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unfit("is not UTF-8 text; save it as such"))?;
    Ok(Some(text))
}

/// The file that a path leads to, which need not be there.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(target) => {
                // A relative target is meant from where the link is.
                path = path.parent().unwrap_or(Path::new("")).join(target);
            }
            Err(_) => return Ok(path),
        }
    }
    Err(Error::Unfit {
        file: path,
        why: "is a link that leads nowhere",
    })
}

/// Replaces a file so that a reader sees the old or the new text and never a part. A new file can
/// be read by its owner only; an old one keeps its mode.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let permissions = match fs::metadata(path) {
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => None,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}.draft", std::process::id()));
    // Left over from a process of the same number that was killed.
    if let Err(error) = fs::remove_file(&draft)
        && !is_missing(&error)
    {
        return Err(Error::io("replace", &draft)(error));
    }
    let written = write_new(&draft, text, permissions)
        .and_then(|()| fs::rename(&draft, path))
        .and_then(|()| sync_folder(folder));
    written.map_err(|error| {
        // If it cannot be removed either, the first error says more.
        let _ = fs::remove_file(&draft);
        Error::io("write", path)(error)
    })
}

/// Writes a file that must not be there yet.
pub(crate) fn write_new(
    path: &Path,
    text: &str,
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

/// Makes a folder for the owner only.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(Error::io("make", path))
}

/// Whether this says that there is no such file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
