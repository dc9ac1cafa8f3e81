//! Processes that may be signalled: held by a pidfd where available, identified by their start time, found
//! through `/proc`.
//!
//! A PID alone is never trusted. Between reading and using it, the process may have exited and the PID may
//! have been reused.

use std::{fs, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    process::{Pid, Signal},
};
use serde::{Deserialize, Serialize};

/// A unique process: no other process of this boot has the same PID and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// Start time, in ticks since the boot.
    pub(crate) started: u64,
}

impl Identity {
    /// The process that has this PID now.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        Some(Stat::read(pid.as_raw_nonzero().get())?.identity())
    }
}

/// A time since the boot, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks(pub(crate) u64);

impl Ticks {
    /// The current time. Every running process started at or before it.
    #[cfg(target_os = "linux")]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, rest) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        // Usually 100; `max` guards against zero.
        let rate = rustix::param::clock_ticks_per_second().max(1);
        Self(seconds * rate + rest / (1_000_000_000 / rate))
    }

    /// Zero, because start times are not known on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Self {
        Self(0)
    }
}

/// The kernel's information about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) started: u64,
    /// It has exited but has not been reaped.
    pub(crate) zombie: bool,
}

impl Stat {
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            pid: self.pid,
            started: self.started,
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Without `/proc`, a process cannot be distinguished from a later one with the same PID, so none is
    /// returned.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read(_pid: i32) -> Option<Self> {
        None
    }

    /// Parses `PID (NAME) STATE PPID PGRP SESSION …`, where the name may contain any text, even `) `.
    #[cfg(any(target_os = "linux", test))]
    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        Some(Self {
            pid,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            // Field 22 of the line; fields 3 to 6 are already read.
            started: fields.nth(15)?.parse().ok()?,
            zombie: matches!(state, "Z" | "X"),
        })
    }
}

/// All visible processes.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Stat::read(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The processes in `table` that descend from `root`, without `root` itself.
pub(crate) fn descendants(table: &[Stat], root: i32) -> Vec<Stat> {
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for stat in table.iter().filter(|stat| stat.parent == parent) {
            // The table is not an atomic snapshot, so it may even contain a cycle.
            if stat.pid != root && !found.iter().any(|seen| seen.pid == stat.pid) {
                found.push(*stat);
                parents.push(stat.pid);
            }
        }
    }
    found
}

/// Tests if a process was started with `entry`, such as `NAME=value`, in its environment.
pub(crate) fn has_environment(pid: i32, entry: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|found| found == entry))
}

/// Tests if a process is podman's monitor of the container of this name. The monitor discards its
/// environment and is not in the server's group.
pub(crate) fn is_monitor(pid: i32, container: &str) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|&byte| byte == 0);
    words
        .next()
        .is_some_and(|program| program.ends_with(b"conmon"))
        && words.any(|word| word == container.as_bytes())
}

/// A process that can be signalled and waited for without confusing it with another one.
#[derive(Debug)]
pub(crate) struct Held {
    identity: Identity,
    /// `None` if the kernel has no pidfds: then the start time is checked each time.
    pidfd: Option<OwnedFd>,
}

impl Held {
    /// Takes hold of a process, if the PID still belongs to it.
    pub(crate) fn take(identity: Identity) -> Option<Self> {
        let held = Self {
            identity,
            pidfd: open(Pid::from_raw(identity.pid)?),
        };
        // Read after the pidfd was opened. If the process has not exited even now, the PID was its own all
        // the while, and the information is about it.
        let stat = Stat::read(identity.pid)?;
        (stat.started == identity.started && !held.has_ended()).then_some(held)
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Tests if it has exited, reaped or not.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&NO_TIME)) != Ok(0),
            None => Stat::read(self.identity.pid)
                .is_none_or(|stat| stat.started != self.identity.started || stat.zombie),
        }
    }

    /// Sends a signal. Delivery is not reported, because the process may exit at any time anyway.
    pub(crate) fn signal(&self, signal: Signal) {
        match &self.pidfd {
            Some(pidfd) => send(pidfd, signal),
            None if self.has_ended() => {}
            None => {
                if let Some(pid) = Pid::from_raw(self.identity.pid) {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            }
        }
    }

    /// Waits until it has exited, for at most `wait`. Returns `true` if it has.
    pub(crate) fn wait(&self, wait: Duration) -> bool {
        if let Some(pidfd) = &self.pidfd {
            let _ = poll(
                &mut [PollFd::new(pidfd, PollFlags::IN)],
                Some(&timespec(wait)),
            );
        } else if !self.has_ended() {
            std::thread::sleep(wait.min(LOOK_AGAIN));
        }
        self.has_ended()
    }
}

const NO_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Polling interval where no event is available.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Returns `None` where pidfds are not available: an old kernel, a seccomp filter without the call, too many
/// open files.
#[cfg(target_os = "linux")]
fn open(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(target_os = "linux")]
fn send(pidfd: &OwnedFd, signal: Signal) {
    let _ = rustix::process::pidfd_send_signal(pidfd, signal);
}

#[cfg(not(target_os = "linux"))]
fn open(_pid: Pid) -> Option<OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
fn send(_pidfd: &OwnedFd, _signal: Signal) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_contain_any_text() {
        let line = b"17 (a) S 1 (b) R 4 5 6 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = Stat::parse(17, line).unwrap();
        assert_eq!(
            (stat.parent, stat.group, stat.session, stat.started),
            (4, 5, 6, 4711)
        );
        assert!(!stat.zombie);
        for broken in [&b""[..], b"17 (a", b"17 (a) S 1 2", b"17 (a) S x 5 6"] {
            assert_eq!(Stat::parse(17, broken), None);
        }
    }

    #[test]
    fn descendants_are_found_despite_a_cycle() {
        let stat = |pid, parent| Stat {
            pid,
            parent,
            group: pid,
            session: pid,
            started: 0,
            zombie: false,
        };
        let table = [
            stat(5, 4),
            stat(3, 2),
            stat(4, 3),
            stat(9, 1),
            stat(2, 5),
            stat(3, 3),
        ];
        let mut pids: Vec<_> = descendants(&table, 2).iter().map(|stat| stat.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4, 5]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_is_held_with_or_without_pidfd() {
        for with in [true, false] {
            let mut child = std::process::Command::new("sleep")
                .arg("1000")
                .spawn()
                .unwrap();
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let mut held = Held::take(Identity::of(pid).unwrap()).unwrap();
            assert!(held.pidfd.is_some());
            held.pidfd = held.pidfd.filter(|_| with);
            assert!(!held.has_ended());
            assert!(!held.wait(Duration::from_millis(1)));
            // Another process with the same PID must not be signalled.
            let other = Held {
                identity: Identity {
                    started: held.identity.started + 1,
                    ..held.identity
                },
                pidfd: None,
            };
            assert!(other.has_ended());
            other.signal(Signal::KILL);
            assert!(!held.wait(Duration::from_millis(50)));
            held.signal(Signal::KILL);
            while !held.wait(Duration::from_secs(1)) {}
            child.wait().unwrap();
            assert!(held.has_ended());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn running_process_started_no_later_than_now() {
        let before = Ticks::now().0;
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let started = Stat::read(pid).unwrap().started;
        assert!((before..=Ticks::now().0).contains(&started));
        child.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_start_time_is_another_process() {
        let me = Identity::of(rustix::process::getpid()).unwrap();
        assert!(Held::take(me).is_some());
        let earlier = Identity {
            started: me.started - 1,
            ..me
        };
        assert!(Held::take(earlier).is_none());
    }
}
