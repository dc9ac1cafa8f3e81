//! Writing a file so that a reader sees the old or the new text and never a part.

use std::io;
use std::path::Path;

use switchboard_files::{Mode, follow, replace};

/// Replaces the text of a file in one step. The file keeps its mode; a new one is for its owner
/// only (0600). If the path is a link, the file that it leads to is replaced, and the link stays.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    replace(&follow(path)?, text.as_bytes(), Mode::Keep)
}
