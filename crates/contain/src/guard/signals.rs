//! Signals of a guard: the exit of a child wakes it, and signals from a terminal do not end it.
//!
//! The signals are handled rather than ignored or blocked, because the server would inherit ignored and
//! blocked signals, but not handlers.

#![expect(unsafe_code, reason = "there is no other way to handle a signal")]

use std::{
    io::{self, Read},
    os::{
        fd::{AsRawFd, RawFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::Command,
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

/// The file descriptor that the handler writes to.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// A stream that is readable when a child has exited.
#[derive(Debug)]
pub(crate) struct Children {
    readable: UnixStream,
    _writable: UnixStream,
}

impl Children {
    /// Starts to watch for exits of children. From now on nothing but SIGKILL ends this process from
    /// outside.
    pub(crate) fn watch() -> io::Result<Self> {
        let (readable, writable) = UnixStream::pair()?;
        readable.set_nonblocking(true)?;
        writable.set_nonblocking(true)?;
        WAKE.store(writable.as_raw_fd(), Ordering::Relaxed);
        handle(libc::SIGCHLD, on_child)?;
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGTTIN,
            libc::SIGTTOU,
            libc::SIGTSTP,
        ] {
            handle(signal, on_other)?;
        }
        Ok(Self {
            readable,
            _writable: writable,
        })
    }

    /// The stream to poll.
    pub(crate) fn fd(&self) -> &UnixStream {
        &self.readable
    }

    /// Discards pending wake-ups.
    pub(crate) fn clear(&self) {
        let mut buffer = [0; 64];
        while (&self.readable)
            .read(&mut buffer)
            .is_ok_and(|read| read > 0)
        {}
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: all zeros is a valid sigaction, and the handlers below only make async-signal-safe calls.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

extern "C" fn on_child(_signal: libc::c_int) {
    let fd = WAKE.load(Ordering::Relaxed);
    // SAFETY: write(2) may be called in a handler. The socket stays open until the process exits, and if
    // it is full, a wake-up is already pending.
    unsafe {
        libc::write(fd, ptr::from_ref(&1_u8).cast(), 1);
    }
}

extern "C" fn on_other(_signal: libc::c_int) {}

/// Makes `command` start with default signal dispositions, regardless of the ones that this process
/// inherited, and die together with this process.
pub(crate) fn start_clean(command: &mut Command) {
    #[cfg(target_os = "linux")]
    let guard = rustix::process::getpid();
    let clean = move || {
        // SAFETY: signal(2) and sigprocmask(2) may be called between fork and exec.
        unsafe {
            for signal in 1..32 {
                libc::signal(signal, libc::SIG_DFL);
            }
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, getppid, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The guard may have died before the death signal was set.
            if getppid() != Some(guard) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and makes only calls that are allowed between
    // fork and exec.
    unsafe {
        command.pre_exec(clean);
    }
}

/// Closes the descriptors that this process inherited beyond its standard streams: they have no owner
/// here, and must not be passed on.
pub(crate) fn close_inherited() {
    let listing = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    let Ok(entries) = std::fs::read_dir(listing) else {
        return;
    };
    let open: Vec<RawFd> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|&fd| fd > 2) {
        // SAFETY: called first, when this process has opened nothing itself. The listing's own descriptor
        // is in the list too, and was closed when the listing was done.
        unsafe {
            libc::close(fd);
        }
    }
}
