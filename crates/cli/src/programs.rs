//! Programs that commands run: found where the gateway would find them, never in the repository that a command happens
//! to be called in.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use switchboard_config::{Environment, Started};

/// The environment of a gateway that is started here. Its `PATH` leads neither into the current directory nor into the
/// repository around it.
pub(super) fn environment() -> Environment {
    let directory = env::current_dir().ok();
    Environment::current(directory.as_deref().map(Started::ByUser))
}

/// The file that a command leads to: an absolute path, or a name to look up in the absolute directories of a search
/// path.
pub(super) fn find(command: &Path, path: &OsStr) -> Option<PathBuf> {
    switchboard_contain::find_program(command, Some(path))
}
