//! Tells the processes of servers from all others, for the doors of the gateway.
//!
//! A process belongs to a server if it descends from this process, which starts nothing but guards and adopts
//! what a dead guard leaves behind, or if it or an ancestor was started with this instance's marker.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Containment,
    instance::{Instance, MARKER},
    process::{self, Stat},
};

/// A process at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its program, if it can be read.
    pub program: Option<PathBuf>,
}

/// The relation of a process to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lineage {
    /// It belongs to none of them.
    Outside(Process),
    /// It belongs to one of them.
    Server(Process),
    /// It has ended, or changed too fast to be sure.
    Unknown,
}

/// The longest chain of ancestors that is followed.
const ANCESTORS_MAX: usize = 256;
/// A chain that changes while it is read is read again, this often at most.
const TRIES: usize = 8;
/// The most passes over the processes of servers for one socket.
const PASSES: usize = 3;

impl Containment {
    /// Tells whether a process belongs to one of the servers. Reads `/proc`, so it may block.
    pub fn lineage(&self, pid: u32) -> Lineage {
        let Ok(number) = i32::try_from(pid) else {
            return Lineage::Unknown;
        };
        let own = own_pid();
        for _ in 0..TRIES {
            let chain = match chain(number, Stat::read) {
                Chain::Whole(chain) => chain,
                Chain::Changed => continue,
                Chain::Gone => return Lineage::Unknown,
            };
            let program = program_of(number);
            let marked = || {
                let mut pids = chain.iter().map(|stat| stat.pid);
                pids.any(|pid| pid != own && is_marked(pid, self.instance()))
            };
            let descends = chain.iter().skip(1).any(|stat| stat.pid == own);
            let belongs = descends || (number != own && marked());
            // Only a chain that is the same after all this was one chain at one time.
            if !holds(&chain, Stat::read) {
                continue;
            }
            let process = Process { pid, program };
            return if belongs {
                Lineage::Server(process)
            } else {
                Lineage::Outside(process)
            };
        }
        Lineage::Unknown
    }

    /// Finds the relation of the processes that have the socket with this inode open to the servers. Reads
    /// `/proc`, so it may block.
    ///
    /// Processes of servers are looked at first, since they are few. Should more of them come up while that is
    /// done, the socket may have moved from one to the next; then its holder is looked for everywhere.
    pub fn lineage_of_socket(&self, inode: u64) -> SocketLineage {
        let wanted = PathBuf::from(format!("socket:[{inode}]"));
        let own = own_pid();
        let mut seen = HashSet::new();
        for _ in 0..PASSES {
            let table = process::all();
            let new: Vec<_> = process::descendants(&table, own)
                .into_iter()
                .filter(|stat| seen.insert((stat.pid, stat.started)))
                .collect();
            if new.is_empty() {
                return SocketLineage::Outside;
            }
            if let Some(holder) = new.iter().find(|stat| has_open(stat.pid, &wanted)) {
                return SocketLineage::Server(Process {
                    pid: holder.pid.unsigned_abs(),
                    program: program_of(holder.pid),
                });
            }
        }
        let holder = process::all()
            .into_iter()
            .find(|stat| has_open(stat.pid, &wanted));
        match holder.map(|holder| self.lineage(holder.pid.unsigned_abs())) {
            Some(Lineage::Outside(_)) => SocketLineage::Outside,
            Some(Lineage::Server(process)) => SocketLineage::Server(process),
            Some(Lineage::Unknown) | None => SocketLineage::Unknown,
        }
    }
}

/// The relation of the holder of a socket to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketLineage {
    /// No server has it.
    Outside,
    /// This process of a server has it.
    Server(Process),
    /// Its holder could not be found.
    Unknown,
}

enum Chain {
    /// The process first, then its ancestors.
    Whole(Vec<Stat>),
    Changed,
    Gone,
}

fn chain(pid: i32, read: impl Fn(i32) -> Option<Stat>) -> Chain {
    let Some(first) = read(pid).filter(|stat| !stat.zombie) else {
        return Chain::Gone;
    };
    let mut chain = vec![first];
    let mut child = first;
    while child.parent > 0 {
        // A parent that is younger than its child got the number of the real one.
        let Some(parent) = read(child.parent).filter(|parent| parent.started <= child.started)
        else {
            return Chain::Changed;
        };
        if chain.len() == ANCESTORS_MAX {
            return Chain::Changed;
        }
        chain.push(parent);
        child = parent;
    }
    Chain::Whole(chain)
}

/// Whether each process still is what it was, and still has the same parent.
fn holds(chain: &[Stat], read: impl Fn(i32) -> Option<Stat>) -> bool {
    chain.iter().all(|was| {
        read(was.pid).is_some_and(|now| {
            now.identity() == was.identity() && now.parent == was.parent && !now.zombie
        })
    })
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether a process was started with the marker of this instance.
fn is_marked(pid: i32, instance: &Instance) -> bool {
    let entry = format!("{MARKER}={instance}:");
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        let mut entries = environ.split(|&byte| byte == 0);
        entries.any(|found| found.starts_with(entry.as_bytes()))
    })
}

fn program_of(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn has_open(pid: i32, wanted: &Path) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    entries
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == wanted))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::HashMap};

    use super::*;

    fn stat(pid: i32, parent: i32, started: u64) -> Stat {
        Stat {
            pid,
            parent,
            group: pid,
            session: pid,
            started,
            zombie: false,
        }
    }

    #[test]
    fn chain_leads_to_the_first_process() {
        let table = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 1, 20)), (1, stat(1, 0, 0))]);
        let Chain::Whole(found) = chain(9, |pid| table.get(&pid).copied()) else {
            panic!("no chain");
        };
        let pids: Vec<_> = found.iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [9, 4, 1]);
        assert!(holds(&found, |pid| table.get(&pid).copied()));
    }

    #[test]
    fn recycled_parent_is_not_followed() {
        // 4 ended, and its number went to a process that started later than its child.
        let table = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 1, 31)), (1, stat(1, 0, 0))]);
        let found = chain(9, |pid| table.get(&pid).copied());
        assert!(matches!(found, Chain::Changed));
        let circle = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 9, 30))]);
        let found = chain(9, |pid| circle.get(&pid).copied());
        assert!(matches!(found, Chain::Changed));
    }

    #[test]
    fn ended_process_has_no_chain() {
        assert!(matches!(chain(9, |_| None), Chain::Gone));
        let zombie = Stat {
            zombie: true,
            ..stat(9, 1, 5)
        };
        assert!(matches!(chain(9, |_| Some(zombie)), Chain::Gone));
    }

    #[test]
    fn chain_that_changed_meanwhile_does_not_hold() {
        let chain = [stat(9, 4, 30), stat(4, 1, 20), stat(1, 0, 0)];
        let changed = |other: Stat| {
            let table = RefCell::new(HashMap::from(chain.map(|stat| (stat.pid, stat))));
            table.borrow_mut().insert(other.pid, other);
            holds(&chain, |pid| table.borrow().get(&pid).copied())
        };
        assert!(changed(chain[0]));
        // Another process under the number, another parent, an end.
        assert!(!changed(stat(4, 1, 21)));
        assert!(!changed(stat(9, 7, 30)));
        let ended = Stat {
            zombie: true,
            ..chain[0]
        };
        assert!(!changed(ended));
    }
}
