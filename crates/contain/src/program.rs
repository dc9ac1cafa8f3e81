//! Looks up the file of a program as the operating system does.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// The search path of a process that has none.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Resolves a command to a file: an absolute path, or a name to look up in the absolute directories of a
/// search path. This is the file that a [`Launch`](crate::Launch) starts.
pub fn find_program(command: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.is_absolute() {
        return Some(command.to_owned()).filter(is_program);
    }
    candidates(command, path).find(is_program)
}

/// The file to start for a command in a working directory. It need not be executable: the system then reports
/// the reason.
pub(crate) fn file_to_start(command: &Path, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    if has_slash(command) {
        return Some(cwd.join(command));
    }
    let there = || candidates(command, path).find(|file| file.is_file());
    find_program(command, path).or_else(there)
}

/// The candidate files for a name.
fn candidates<'a>(name: &'a Path, path: Option<&'a OsStr>) -> impl Iterator<Item = PathBuf> + 'a {
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    env::split_paths(path)
        .filter(move |dir| dir.is_absolute() && !has_slash(name))
        .map(move |dir| dir.join(name))
}

fn has_slash(command: &Path) -> bool {
    command.as_os_str().as_bytes().contains(&b'/')
}

/// The interpreter that the first line of a script names, for display: non-printable characters are escaped.
pub(crate) fn interpreter(script: &Path) -> Option<String> {
    let mut first = Vec::new();
    let file = File::open(script).ok()?;
    file.take(FIRST_LINE_BYTES).read_to_end(&mut first).ok()?;
    let line = first
        .strip_prefix(b"#!")?
        .split(|&byte| byte == b'\n')
        .next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let word = words.find(|word| !word.is_empty())?;
    Some(String::from_utf8_lossy(word).escape_debug().to_string())
}

/// The length of a first line that the system reads, in bytes.
const FIRST_LINE_BYTES: u64 = 256;
