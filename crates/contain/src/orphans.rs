//! What is left of a server whose guard is dead: finding it and ending it.
//!
//! A process is taken for the server's if it is the leader that started when the record says; if it is in the
//! leader's group and the guard's session, and neither of those numbers has been given to another
//! process since; if it carries the server's marker; if it watches over the server's container; or if it
//! descends from such a process. While a
//! group or a session has members the kernel gives its number to nobody else.

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

/// What became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// How many were ended.
    pub(crate) ended: usize,
    /// How many did not die in time.
    pub(crate) left: usize,
}

impl Orphans {
    /// Kills all, the container first, and waits until they are gone, for at most `within`.
    pub(crate) fn end(&self, container: Option<&Named>, within: Duration) -> Outcome {
        let mut ended: Vec<Identity> = Vec::new();
        if let Some(container) = container {
            let found = self.find(&all());
            engine::end_container(container);
            // The engine's own processes leave by themselves then.
            for held in found.iter().filter(|held| held.wait(PATIENCE)) {
                ended.push(held.identity());
                reap(held.identity());
            }
        }
        let until = Instant::now() + within;
        loop {
            let found = self.find(&all());
            if found.is_empty() {
                // Only now: some may have ended between the two looks, and not by our hand.
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
            // If it has not ended when that was read, then it was about this process.
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

    /// Whether it is in the leader's group, within the guard's session.
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

    /// Looks after those that have fallen to this process and ended by themselves.
    fn reap(&self, table: &[Stat]) {
        for stat in table.iter().filter(|stat| stat.zombie) {
            if Some(stat.identity()) == self.leader || self.is_member(table, stat) {
                reap(stat.identity());
            }
        }
    }
}

/// How long to wait for one before looking at all of them again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Looks after a process that has ended, if it fell to this one. No other child is touched: others may be
/// waiting for those.
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
