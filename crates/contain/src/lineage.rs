//! Distinguishes the processes of servers from all others, so that the gateway can check its peers.
//!
//! A process belongs to a server if it descends from this process, which starts nothing but guards and
//! helpers that have no reason to connect to it, and adopts the orphans of a dead guard, or if it or an ancestor was
//! started with this instance's marker.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use rustix::{io::Errno, process::Pid};

use crate::{
    Containment,
    instance::{Instance, MARKER},
    process::{self, Stat, Ticks},
};

/// A process at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Its executable, if that can be read.
    pub program: Option<PathBuf>,
}

/// The relation of a process to the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lineage {
    /// It belongs to no server.
    Outside(Process),
    /// It belongs to a server.
    Server(Process),
    /// It has exited, is hidden, or changed too fast to be sure.
    Unknown,
}

impl Lineage {
    const fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// The longest chain of ancestors that is followed.
const ANCESTORS_MAX: usize = 256;
/// The most attempts to read a chain that changes meanwhile.
const TRIES: usize = 8;
/// The most passes over all processes for the same sockets.
const PASSES: usize = 2;

impl Containment {
    /// Determines if the process that had this PID at that time belongs to a server. Reads `/proc`, so it may
    /// block.
    ///
    /// If a process with this PID started later, the PID was reused, and the original process has exited.
    pub fn lineage(&self, pid: u32, at: Ticks) -> Lineage {
        let Ok(number) = i32::try_from(pid) else {
            return Lineage::Unknown;
        };
        self.lineage_of(number, |stat| stat.started <= at.0)
    }

    fn lineage_of(&self, number: i32, is_meant: impl Fn(&Stat) -> bool) -> Lineage {
        let own = own_pid();
        for _ in 0..TRIES {
            let chain = match chain(number, Stat::read, is_foreign) {
                Chain::Whole(chain) if is_meant(&chain[0]) => chain,
                Chain::Whole(_) | Chain::Gone => return Lineage::Unknown,
                Chain::Changed => continue,
            };
            let program = program_of(number);
            let marked = || {
                let mut pids = chain.iter().map(|stat| stat.pid);
                pids.any(|pid| pid != own && is_marked(pid, self.instance()))
            };
            let descends = chain.iter().skip(1).any(|stat| stat.pid == own);
            let belongs = descends || (number != own && marked());
            // Only a chain that is unchanged after all these reads existed as a whole at one time.
            if !holds(&chain, Stat::read) {
                continue;
            }
            let process = Process {
                pid: number.unsigned_abs(),
                program,
            };
            return if belongs {
                Lineage::Server(process)
            } else {
                Lineage::Outside(process)
            };
        }
        Lineage::Unknown
    }

    /// Finds, for each socket with one of these inodes, a process that has it open, and the relation of that
    /// process to the servers. Reads `/proc`, so it may block. Many sockets take little longer than one.
    ///
    /// A socket may belong to a server even if no server process is seen to have it: a descriptor in transit
    /// through another socket is in no table, and neither is one that moves on while the tables are read. So
    /// only a process outside the servers that is seen to have the socket gives a definite answer. The tables
    /// of servers are read first; a table that cannot be read proves no more than a descriptor in transit,
    /// and is skipped. A child of this process shares its descriptors until it executes its own program, so a
    /// socket that this process has too is not attributed to a server.
    pub fn lineages_of_sockets(&self, inodes: &[u64]) -> Vec<Lineage> {
        let mut found = vec![Lineage::Unknown; inodes.len()];
        for _ in 0..PASSES {
            let mut wanted = Wanted::default();
            for (index, inode) in inodes.iter().enumerate() {
                if found[index] == Lineage::Unknown {
                    wanted.0.entry(*inode).or_default().push(index);
                }
            }
            if wanted.0.is_empty() {
                break;
            }
            self.search(wanted, &mut found);
        }
        found
    }

    /// Passes over all processes once.
    fn search(&self, mut wanted: Wanted, found: &mut [Lineage]) {
        let table = process::all();
        let servers = process::descendants(&table, own_pid());
        for server in &servers {
            let mut held = wanted.open_in_process(server.pid);
            held.extend(wanted.open_in_threads(server.pid));
            for index in held {
                found[index] = Lineage::Server(Process {
                    pid: server.pid.unsigned_abs(),
                    program: program_of(server.pid),
                });
            }
        }
        if found.iter().any(Lineage::is_server) {
            for index in wanted.open_in_process(own_pid()) {
                if found[index].is_server() {
                    found[index] = self.lineage_of(own_pid(), |_| true);
                }
            }
        }
        wanted.retain(|index| found[index] == Lineage::Unknown);
        let others = || table.iter().filter(|stat| !servers.contains(stat));
        // A thread with its own table is rare, so all processes are checked before all threads.
        for open_in in [Wanted::open_in_process, Wanted::open_in_threads] {
            for holder in others() {
                if wanted.0.is_empty() {
                    return;
                }
                let held = open_in(&wanted, holder.pid);
                if held.is_empty() {
                    continue;
                }
                let lineage =
                    self.lineage_of(holder.pid, |stat| stat.identity() == holder.identity());
                for index in &held {
                    found[*index] = lineage.clone();
                }
                wanted.retain(|index| !held.contains(&index));
            }
        }
    }
}

/// Inodes of sockets, each with its places in a list.
#[derive(Default)]
struct Wanted(HashMap<u64, Vec<usize>>);

impl Wanted {
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.0.retain(|_, places| {
            places.retain(|&index| keep(index));
            !places.is_empty()
        });
    }

    /// The places of the sockets that a process has open.
    fn open_in_process(&self, pid: i32) -> Vec<usize> {
        self.open_in(&format!("/proc/{pid}/fd"))
    }

    /// The places of the sockets that a thread of a process has open, in its own table or after the first
    /// thread has exited.
    fn open_in_threads(&self, pid: i32) -> Vec<usize> {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return Vec::new();
        };
        let own = pid.to_string();
        threads
            .flatten()
            .filter(|thread| thread.file_name() != *own)
            .flat_map(|thread| self.open_in(&format!("{}/fd", thread.path().display())))
            .collect()
    }

    /// The places of the sockets in a table of open files, such as `/proc/7/fd`; none if it is unreadable.
    fn open_in(&self, table: &str) -> Vec<usize> {
        let Ok(entries) = fs::read_dir(table) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| inode_of(&fs::read_link(entry.path()).ok()?))
            .filter_map(|inode| self.0.get(&inode))
            .flatten()
            .copied()
            .collect()
    }
}

/// The inode in the name of an open socket, `socket:[INODE]`.
fn inode_of(name: &Path) -> Option<u64> {
    let inode = name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

enum Chain {
    /// The process first, then its ancestors.
    Whole(Vec<Stat>),
    Changed,
    Gone,
}

/// Follows a process to its first ancestor, or to the first one of another user that cannot be read: where
/// `/proc` hides the processes of other users, chains end there. A hidden process of this user is not
/// skipped, since it may belong to a server.
fn chain(pid: i32, read: impl Fn(i32) -> Option<Stat>, is_foreign: impl Fn(i32) -> bool) -> Chain {
    let Some(first) = read(pid).filter(|stat| !stat.zombie) else {
        return Chain::Gone;
    };
    let mut chain = vec![first];
    let mut child = first;
    while child.parent > 0 {
        if chain.len() == ANCESTORS_MAX {
            return Chain::Changed;
        }
        match read(child.parent) {
            // A parent that is younger than its child has a reused PID.
            Some(parent) if parent.started <= child.started => {
                chain.push(parent);
                child = parent;
            }
            None if is_foreign(child.parent) => break,
            _ => return Chain::Changed,
        }
    }
    Chain::Whole(chain)
}

/// Tests if each process is still the same and still has the same parent.
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

/// Tests if a process exists and belongs to another user. A process of this user can be signalled even while
/// it is hidden.
fn is_foreign(pid: i32) -> bool {
    Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::PERM))
}

/// Tests if a process was started with the marker of this instance.
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

    /// No process belongs to another user.
    const fn nobody(_: i32) -> bool {
        false
    }

    #[test]
    fn chain_leads_to_the_first_process() {
        let table = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 1, 20)), (1, stat(1, 0, 0))]);
        let Chain::Whole(found) = chain(9, |pid| table.get(&pid).copied(), nobody) else {
            panic!("no chain");
        };
        let pids: Vec<_> = found.iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [9, 4, 1]);
        assert!(holds(&found, |pid| table.get(&pid).copied()));
    }

    #[test]
    fn recycled_parent_is_not_followed() {
        // Process 4 exited, and its PID was reused by a process that started later than its child.
        let table = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 1, 31)), (1, stat(1, 0, 0))]);
        let found = chain(9, |pid| table.get(&pid).copied(), nobody);
        assert!(matches!(found, Chain::Changed));
        let circle = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 9, 30))]);
        let found = chain(9, |pid| circle.get(&pid).copied(), nobody);
        assert!(matches!(found, Chain::Changed));
    }

    #[test]
    fn hidden_process_of_another_user_ends_chain() {
        let table = HashMap::from([(9, stat(9, 4, 30)), (4, stat(4, 2, 20))]);
        let read = |pid| table.get(&pid).copied();
        let Chain::Whole(found) = chain(9, read, |pid| pid == 2) else {
            panic!("no chain");
        };
        assert_eq!(found, [stat(9, 4, 30), stat(4, 2, 20)]);
        assert!(holds(&found, read));
        // The hidden parent exited, and its child got another one.
        assert!(!holds(&found, |pid| {
            read(pid).map(|found| Stat {
                parent: if found.parent == 2 { 1 } else { found.parent },
                ..found
            })
        }));
    }

    #[test]
    fn hidden_process_of_this_user_is_inconclusive() {
        let table = HashMap::from([(9, stat(9, 4, 30)), (1, stat(1, 0, 0))]);
        let found = chain(9, |pid| table.get(&pid).copied(), |pid| pid == 1);
        assert!(matches!(found, Chain::Changed));
    }

    #[test]
    fn ended_process_has_no_chain() {
        assert!(matches!(chain(9, |_| None, nobody), Chain::Gone));
        let zombie = Stat {
            zombie: true,
            ..stat(9, 1, 5)
        };
        assert!(matches!(chain(9, |_| Some(zombie), nobody), Chain::Gone));
    }

    #[test]
    fn changed_chain_does_not_hold() {
        let chain = [stat(9, 4, 30), stat(4, 1, 20), stat(1, 0, 0)];
        let changed = |other: Stat| {
            let table = RefCell::new(HashMap::from(chain.map(|stat| (stat.pid, stat))));
            table.borrow_mut().insert(other.pid, other);
            holds(&chain, |pid| table.borrow().get(&pid).copied())
        };
        assert!(changed(chain[0]));
        // A reused PID, another parent, an exit.
        assert!(!changed(stat(4, 1, 21)));
        assert!(!changed(stat(9, 7, 30)));
        let ended = Stat {
            zombie: true,
            ..chain[0]
        };
        assert!(!changed(ended));
    }
}
