//! Reads the end of a log, and follows it. Everything here blocks.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use switchboard_outbound::logs::LINE_BYTES;

/// The most bytes of the logs of a server that are read at a time.
pub(super) const READ_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes that a follower reads at a time.
const CHUNK_BYTES: u64 = 256 * 1024;
/// The length at which an unfinished line is returned; the gateway writes no longer ones.
const LINE_BYTES_MAX: usize = 4 * LINE_BYTES;

/// The last lines of a log, oldest first and at most `wanted`, and a follower that continues after them.
pub(super) fn last(path: &Path, wanted: usize) -> io::Result<(Vec<String>, Follower)> {
    let mut follower = Follower {
        path: path.to_owned(),
        file: open(path)?,
        offset: 0,
        partial: Vec::new(),
    };
    let mut lines = Vec::new();
    let mut budget = READ_BYTES;
    if let Some(file) = &mut follower.file {
        let end = file.metadata()?.len();
        let (text, start) = ending(file, end, budget)?;
        // The text after the last line break is still being written; the follower returns it.
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |at| at + 1);
        follower.offset = start + whole as u64;
        budget = budget.saturating_sub(end - start);
        lines = last_lines(&text[..whole], start, wanted);
    }
    if lines.len() < wanted
        && budget > 0
        && let Some(mut file) = open(&put_aside(path))?
    {
        let end = file.metadata()?.len();
        let (text, start) = ending(&mut file, end, budget)?;
        let mut older = last_lines(&text, start, wanted - lines.len());
        older.append(&mut lines);
        lines = older;
    }
    Ok((lines, follower))
}

/// The end of a file, at most `budget` bytes long, and its offset.
fn ending(file: &mut File, end: u64, budget: u64) -> io::Result<(Vec<u8>, u64)> {
    let start = end.saturating_sub(budget);
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.take(end - start).read_to_end(&mut text)?;
    Ok((text, start))
}

/// The last lines of a text. Unless the text starts at the beginning of the file, its first line may be
/// incomplete, and is left out.
fn last_lines(text: &[u8], start: u64, wanted: usize) -> Vec<String> {
    let skip = if start == 0 {
        0
    } else {
        let first_end = text.iter().position(|byte| *byte == b'\n');
        first_end.map_or(text.len(), |at| at + 1)
    };
    let text = text[skip..].strip_suffix(b"\n").unwrap_or(&text[skip..]);
    if text.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<_> = text
        .rsplit(|byte| *byte == b'\n')
        .take(wanted)
        .map(readable)
        .collect();
    lines.reverse();
    lines
}

fn readable(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}

/// Reads lines that are appended to a log, across its rotation.
#[derive(Debug)]
pub(super) struct Follower {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    /// The beginning of a line whose end has not been written yet.
    partial: Vec<u8>,
}

impl Follower {
    /// Lines appended since the last call, up to a limit; empty if there are none.
    pub(super) fn more(&mut self) -> io::Result<Vec<String>> {
        loop {
            if self.file.is_none() {
                self.file = open(&self.path)?;
                self.offset = 0;
            }
            let Some(file) = &mut self.file else {
                return Ok(Vec::new());
            };
            let now = file.metadata()?;
            if now.len() < self.offset {
                // The file was truncated.
                self.offset = 0;
            }
            if now.len() > self.offset {
                file.seek(SeekFrom::Start(self.offset))?;
                let read = file.take(CHUNK_BYTES).read_to_end(&mut self.partial)?;
                self.offset += read as u64;
                let lines = self.whole_lines();
                if lines.is_empty() {
                    continue;
                }
                return Ok(lines);
            }
            let same = fs::metadata(&self.path)
                .is_ok_and(|there| (there.dev(), there.ino()) == (now.dev(), now.ino()));
            if same {
                return Ok(Vec::new());
            }
            // The file was rotated, and has been read to its end.
            self.file = None;
        }
    }

    fn whole_lines(&mut self) -> Vec<String> {
        let whole = match self.partial.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            None if self.partial.len() > LINE_BYTES_MAX => self.partial.len(),
            None => return Vec::new(),
        };
        let rest = self.partial.split_off(whole);
        let text = std::mem::replace(&mut self.partial, rest);
        last_lines(&text, 0, usize::MAX)
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The path of the previous log.
fn put_aside(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.1", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn last_lines_continue_into_the_previous_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        assert!(last(&path, 9).unwrap().0.is_empty());
        append(&dir.path().join("a.log.1"), "1\n2\n");
        assert_eq!(last(&path, 9).unwrap().0, ["1", "2"]);
        append(&path, "3\r\n4\nhalf");
        assert_eq!(last(&path, 9).unwrap().0, ["1", "2", "3", "4"]);
        assert_eq!(last(&path, 3).unwrap().0, ["2", "3", "4"]);
        assert_eq!(last(&path, 1).unwrap().0, ["4"]);
        assert!(last(&path, 0).unwrap().0.is_empty());
    }

    #[test]
    fn reading_is_bounded_and_lines_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let line = format!("{}\n", "x".repeat(1023));
        append(&path, &line.repeat(5 * 1024));
        let (lines, _) = last(&path, usize::MAX).unwrap();
        // The line at the start of the read range is incomplete.
        assert_eq!(lines.len() as u64, READ_BYTES / 1024 - 1);
        assert!(lines.iter().all(|line| line.len() == 1023));
    }

    #[test]
    fn follower_reads_on_after_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        append(&path, "1\nha");
        let (lines, mut follower) = last(&path, 9).unwrap();
        assert_eq!(lines, ["1"]);
        assert!(follower.more().unwrap().is_empty());
        append(&path, "lf\n2\n");
        assert_eq!(follower.more().unwrap(), ["half", "2"]);
        append(&path, "3\n");
        fs::rename(&path, dir.path().join("a.log.1")).unwrap();
        assert_eq!(follower.more().unwrap(), ["3"]);
        assert!(follower.more().unwrap().is_empty());
        append(&path, "4\n");
        assert_eq!(follower.more().unwrap(), ["4"]);
        File::create(&path).unwrap();
        assert!(follower.more().unwrap().is_empty());
        append(&path, "5\n");
        assert_eq!(follower.more().unwrap(), ["5"]);
    }

    #[test]
    fn endless_line_is_returned_at_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let (_, mut follower) = last(&path, 9).unwrap();
        append(&path, &"x".repeat(LINE_BYTES_MAX + 1));
        assert_eq!(follower.more().unwrap()[0].len(), LINE_BYTES_MAX + 1);
    }
}
