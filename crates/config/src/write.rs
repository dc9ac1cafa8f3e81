//! Writing a file so that a reader sees the old or the new text and never a part.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How many links are followed to the file, as many as Linux does.
const LINKS_MAX: usize = 40;

/// How many names are tried for the new file.
const NAMES_MAX: usize = 100;

/// Replaces the text of a file in one step. The file keeps its mode; a new one is for its owner
/// only (0600). If the path is a link, the file that it leads to is replaced, and the link stays.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let target = follow(path)?;
    let (mut file, new) = create_beside(&target)?;
    let written = fill(&mut file, &target, text).and_then(|()| fs::rename(&new, &target));
    if written.is_err() {
        // The first error is the one to tell; a file that is left over does no harm.
        let _ = fs::remove_file(&new);
    }
    written?;
    sync_folder(&target)
}

/// The file behind any links, whether it exists or not.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&target) {
            Ok(next) => target = folder(&target).join(next),
            // It is no link, or nothing at all.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::NotFound
                ) =>
            {
                return Ok(target);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links"))
}

/// A new file in the same folder, as renaming works inside one file system only.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);

    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut tried = 0;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut new = std::ffi::OsString::from(".");
        new.push(name);
        new.push(format!(".{}.{count}.new", std::process::id()));
        let new = folder(target).join(new);
        match options.open(&new) {
            Ok(file) => return Ok((file, new)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < NAMES_MAX => {
                tried += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

fn fill(file: &mut File, target: &Path, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    match fs::metadata(target) {
        Ok(old) => file.set_permissions(old.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.sync_all()
}

/// Makes the new name last through a loss of power.
fn sync_folder(target: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder(target))?.sync_all()?;
    }
    Ok(())
}

/// The folder of a file; that of a bare name is the working folder.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
