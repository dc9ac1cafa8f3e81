//! Lookup of programs that commands run: where the gateway would find them, never in the repository that is
//! the current directory.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use switchboard_config::{Environment, Started};

/// The environment of a gateway that is started here. Its `PATH` includes neither the current directory nor
/// the repository around it.
pub(super) fn environment() -> Environment {
    let directory = env::current_dir().ok();
    Environment::current(directory.as_deref().map(Started::ByUser))
}

/// Resolves a command to a file: an absolute path, or a name in the absolute directories of a search path.
pub(super) fn find(command: &Path, path: &OsStr) -> Option<PathBuf> {
    switchboard_contain::find_program(command, Some(path))
}
