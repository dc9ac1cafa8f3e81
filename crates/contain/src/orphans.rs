//! Finds and ends the remaining processes of a server whose guard is dead.
//!
//! A process belongs to the server if it is the leader with the start time of the record; if it is in the
//! leader's group and the guard's session, and neither ID has been reused since; if it carries the server's
//! marker; if it monitors the server's container; or if it descends from such a process. While a group or a
//! session has members, the kernel does not reuse its ID.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};

use crate::{
    container::Named,
    engine,
    instance::Marker,
    process::{Held, Identity, Stat, all, descendants, has_environment, is_monitor},
};

/// A server without a guard.
#[derive(Clone, Debug)]
pub(crate) struct Orphans {
    pub(crate) marker: Marker,
    pub(crate) guard: Identity,
    pub(crate) leader: Option<Identity>,
    /// The name of its container.
    pub(crate) container: Option<String>,
}

/// The result of ending orphans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The number of processes that were ended.
    pub(crate) ended: usize,
    /// The number of processes that did not die in time.
    pub(crate) left: usize,
}

impl Orphans {
    /// Kills all processes, the container first, and waits until they are gone, for at most `within`.
    pub(crate) fn end(&self, container: Option<&Named>, within: Duration) -> Outcome {
        let mut ended: Vec<Identity> = Vec::new();
        if let Some(container) = container {
            let found = self.find(&all());
            engine::end_container(container);
            // After that, the engine's own processes exit by themselves.
            for held in found.iter().filter(|held| held.wait(PATIENCE)) {
                ended.push(held.identity());
                reap(held.identity());
            }
        }
        let until = Instant::now() + within;
        loop {
            let found = self.find(&all());
            if found.is_empty() {
                // Reap only now: some may have exited by themselves between the two scans.
                self.reap(&all());
                return Outcome {
                    ended: ended.len(),
                    left: 0,
                };
            }
            for held in &found {
                held.signal(Signal::KILL);
            }
            for held in &found {
                let now = Instant::now();
                if !held.wait(until.saturating_duration_since(now).min(PATIENCE)) {
                    continue;
                }
                if !ended.contains(&held.identity()) {
                    ended.push(held.identity());
                }
                reap(held.identity());
            }
            if Instant::now() >= until {
                return Outcome {
                    ended: ended.len(),
                    left: found.iter().filter(|held| !held.has_ended()).count(),
                };
            }
        }
    }

    fn find(&self, table: &[Stat]) -> Vec<Held> {
        let me = getpid().as_raw_nonzero().get();
        let entry = self.marker.entry();
        let mut found: Vec<Held> = Vec::new();
        for stat in table {
            let certain = Some(stat.identity()) == self.leader || self.is_member(table, stat);
            if stat.pid == me || stat.identity() == self.guard {
                continue;
            }
            let Some(held) = Held::take(stat.identity()) else {
                continue;
            };
            let tells = || {
                has_environment(stat.pid, entry.as_bytes())
                    || self
                        .container
                        .as_ref()
                        .is_some_and(|container| is_monitor(stat.pid, container))
            };
            // If it still runs after these reads, they were about this process and not about one with a
            // reused PID.
            if certain || (tells() && !held.has_ended()) {
                found.push(held);
            }
        }
        let roots: Vec<i32> = found.iter().map(|held| held.identity().pid).collect();
        for stat in roots.iter().flat_map(|&root| descendants(table, root)) {
            let known = found.iter().any(|held| held.identity() == stat.identity());
            if !known && stat.pid != me {
                found.extend(Held::take(stat.identity()));
            }
        }
        found
    }

    /// Tests if a process is in the leader's group, within the guard's session.
    fn is_member(&self, table: &[Stat], stat: &Stat) -> bool {
        let Some(leader) = self.leader else {
            return false;
        };
        let recycled = |known: Identity| {
            table
                .iter()
                .any(|other| other.pid == known.pid && other.started != known.started)
        };
        stat.group == leader.pid
            && stat.session == self.guard.pid
            && stat.started >= leader.started
            && !recycled(leader)
            && !recycled(self.guard)
    }

    /// Reaps the processes that became children of this one and exited by themselves.
    fn reap(&self, table: &[Stat]) {
        for stat in table.iter().filter(|stat| stat.zombie) {
            if Some(stat.identity()) == self.leader || self.is_member(table, stat) {
                reap(stat.identity());
            }
        }
    }
}

/// Time to wait for one process before all are scanned again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Reaps a process that has exited, if it became a child of this one. Other children are left alone, because
/// other code may be waiting for them.
fn reap(identity: Identity) {
    let me = getpid().as_raw_nonzero().get();
    if let Some(stat) = Stat::read(identity.pid)
        && stat.identity() == identity
        && stat.zombie
        && stat.parent == me
        && let Some(pid) = Pid::from_raw(identity.pid)
    {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
