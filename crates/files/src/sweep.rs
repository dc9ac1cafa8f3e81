//! Removal of drafts whose writer is gone.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    io::Errno,
    process::{Pid, geteuid, test_kill_process},
};

use crate::draft::ENDING;

/// The age from which a draft can be stale. Its writer may run where this process cannot see it: in
/// another container, or on another machine.
const STALE_AFTER: Duration = Duration::from_mins(5);

/// The most entries of a directory to examine.
const ENTRIES_MAX: usize = 10_000;

/// Removes the drafts in a directory whose writers, processes of this user, are gone. Returns their
/// number. A directory that does not exist has none.
pub fn sweep(dir: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let now = SystemTime::now();
    let mut removed = 0;
    for entry in entries.take(ENTRIES_MAX) {
        let entry = entry?;
        let Some(writer) = writer(&entry.file_name()) else {
            continue;
        };
        // Another process may place or remove the draft at this moment.
        let Ok(found) = entry.path().symlink_metadata() else {
            continue;
        };
        let age = found.modified().map(|then| now.duration_since(then));
        let is_old = age.is_ok_and(|age| age.is_ok_and(|age| age > STALE_AFTER));
        let is_ours = found.is_file() && found.uid() == geteuid().as_raw();
        if is_old && is_ours && !is_alive(writer) && fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The process ID in a draft's name.
fn writer(name: &OsStr) -> Option<u32> {
    let name = name.to_str()?.strip_prefix('.')?;
    let mut parts = name.rsplitn(4, '.');
    let (ending, count) = (parts.next()?, parts.next()?);
    let (writer, target) = (parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = ending == ENDING && is_number(count) && is_number(writer) && !target.is_empty();
    fits.then(|| writer.parse().ok())?
}

/// Returns `true` if a process with this ID runs that is not this one. In a container each start may
/// have the ID of the previous one, so an old draft with this ID belongs to that start.
fn is_alive(writer: u32) -> bool {
    if writer == std::process::id() {
        return false;
    }
    let pid = i32::try_from(writer).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}
