//! Files that are nobody else's business.

use std::{fs, io, io::Write, path::Path};

/// Writes a file that only its owner can read, in place of the one before. It waits for the disk.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let new = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(bytes)?;
    fs::rename(&new, path)
}

/// Reads a file, if it is one and has no more bytes than this.
pub(crate) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= most).then(|| fs::read(path).ok())?
}
