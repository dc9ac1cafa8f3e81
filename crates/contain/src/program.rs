//! The file of a program, as the operating system looks it up.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// The search path of a process that has none.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that a command leads to: an absolute path, or a name to look up in the absolute directories of a search
/// path.
pub fn find_program(command: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.is_absolute() {
        return Some(command.to_owned()).filter(is_program);
    }
    env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(command))
        .find(is_program)
}
