//! This program, run again for work of its own.

use std::{ffi::CStr, io, path::PathBuf};

use rustix::process::{chdir, setsid};

use crate::guard::close_inherited;

/// The file of this program. On Linux, it is the one that is running even if another one has taken its place.
#[cfg(target_os = "linux")]
pub fn own_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}

/// The file of this program. If an upgrade has replaced it, it is another version.
#[cfg(not(target_os = "linux"))]
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Separates this process from the one that started it: from its terminal and its process group, from its directory, and
/// from the files that it left open, except for the standard streams. Call it first.
///
/// `name` is shown in process lists on Linux; without it, that would be `exe`.
pub fn detach(name: &CStr) -> io::Result<()> {
    close_inherited();
    // Fails only for the leader of a process group, which a process started by a gateway is not.
    let _ = setsid();
    // The process must not keep a file system busy, nor find files in the directory of a client.
    chdir("/")?;
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
    Ok(())
}
