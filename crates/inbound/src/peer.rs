//! The process at the other end of a connection, which must belong to the gateway's user and to
//! none of its servers.
//!
//! A server runs as the same user as the gateway, so it can open the socket and read the token. The
//! processes that it starts are recognised by their ancestors; see [`Containment::lineage`].

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use switchboard_base::audit::PeerProcess;
use switchboard_contain::{Containment, Lineage, Process, Ticks};

/// The process at the other end of a connection, or the reason to refuse it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The process may connect. It is known if the system identifies it.
    Welcome(Option<PeerProcess>),
    /// The process must not connect.
    Refused(Stranger),
}

/// A process that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It belongs to a server of this gateway.
    Server(PeerProcess),
    /// It runs as another user.
    User(u32),
    /// Its end of the connection is not on this machine, or is closed.
    Elsewhere,
    /// The system does not identify it, or it has ended.
    Unknown,
}

impl Stranger {
    /// The error for the refused process.
    pub(crate) const fn message(&self) -> &'static str {
        match self {
            Self::Server(_) => {
                "a server of this gateway, or a process that it started, may not use the gateway"
            }
            Self::User(_) => "the gateway's socket is only for the user that runs the gateway",
            Self::Elsewhere => {
                "the gateway refuses the connection, because its other end is not a process on this machine"
            }
            Self::Unknown => {
                "the gateway refuses the connection, because it cannot identify the process at its other end"
            }
        }
    }

    /// Advice for that process.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Server(_) => "run this from a program that no server started",
            Self::User(_) => "run this as that user",
            Self::Elsewhere => {
                "connect from the same machine (with WSL: from inside WSL), not through a forwarded port"
            }
            Self::Unknown => "try again",
        }
    }

    /// The reason, for the audit log.
    pub(crate) const fn why(&self) -> &'static str {
        match self {
            Self::Server(_) => "process of a server",
            Self::User(_) => "another user",
            Self::Elsewhere => "not a process on this machine",
            Self::Unknown => "unknown process",
        }
    }
}

/// The peer on the gateway's own socket, whose process existed when the connection was accepted.
/// Reads `/proc`, so it may block.
pub(crate) fn on_socket(
    containment: &Containment,
    uid: u32,
    pid: Option<i32>,
    accepted: Ticks,
) -> Peer {
    if uid != rustix::process::geteuid().as_raw() {
        return Peer::Refused(Stranger::User(uid));
    }
    // The system has no PID for a process outside of this PID namespace, where no server can be.
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        return Peer::Welcome(None);
    };
    if cfg!(not(target_os = "linux")) {
        let pid = pid.unsigned_abs();
        return Peer::Welcome(Some(PeerProcess { pid, program: None }));
    }
    judge(containment.lineage(pid.unsigned_abs(), accepted))
}

/// A connection over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The address of the peer.
    pub(crate) theirs: SocketAddr,
    /// The address of the gateway.
    pub(crate) ours: SocketAddr,
    /// The inode of the gateway's socket.
    pub(crate) inode: u64,
}

/// The peers on TCP, found by the sockets at their ends. Reads `/proc`, so it may block. Many
/// connections take little longer than one.
pub(crate) fn on_tcp(containment: &Containment, connections: &[Ends]) -> Vec<Peer> {
    if cfg!(not(target_os = "linux")) {
        return vec![Peer::Welcome(None); connections.len()];
    }
    let peers = SocketTables::read();
    // Read later: a connection that is still open then was open before, so the row found first is of its
    // other end. Once it has ended, another process may connect from the same address.
    let own = SocketTables::read();
    let found = connections.iter().map(
        |&Ends {
             theirs,
             ours,
             inode,
         }| {
            let is_open = |row: Row| row.inode == inode && row.is_open;
            match peers.row(theirs, ours) {
                // The other end is in another network namespace: that of Windows with WSL in mirrored
                // mode, for example. A server cannot connect to a loopback address from there, but a
                // server that resets its connection as soon as the request is sent leaves no row behind
                // either. The two look the same, so both are refused.
                None => Err(Peer::Refused(Stranger::Elsewhere)),
                // Closed by every process that had it.
                Some(Row { inode: 0, .. }) => Err(Peer::Refused(Stranger::Unknown)),
                Some(_) if !own.row(ours, theirs).is_some_and(is_open) => {
                    Err(Peer::Refused(Stranger::Unknown))
                }
                Some(row) if is_of_another_account(row.uid) => Err(Peer::Welcome(None)),
                Some(row) => Ok(row.inode),
            }
        },
    );
    let found: Vec<_> = found.collect();
    let inodes: Vec<_> = found.iter().flatten().copied().collect();
    let mut lineages = containment.lineages_of_sockets(&inodes).into_iter();
    let peer = |found| match found {
        Ok(_) => judge(lineages.next().unwrap_or(Lineage::Unknown)),
        Err(peer) => peer,
    };
    found.into_iter().map(peer).collect()
}

fn judge(lineage: Lineage) -> Peer {
    match lineage {
        Lineage::Outside(process) => Peer::Welcome(Some(shown(process))),
        Lineage::Server(process) => Peer::Refused(Stranger::Server(shown(process))),
        Lineage::Unknown => Peer::Refused(Stranger::Unknown),
    }
}

/// Tests if a socket was created by an account that no server of this gateway can use.
///
/// The system does not show the files of other accounts, so their processes are not found. A server
/// has the gateway's own account, unless it runs a setuid program. It also has the account's
/// subordinate UIDs, but those are not accounts. Root could take any account, and sees every file.
fn is_of_another_account(uid: u32) -> bool {
    let own = rustix::process::geteuid();
    if own.is_root() || uid == own.as_raw() {
        return false;
    }
    std::fs::read_to_string("/etc/passwd").is_ok_and(|accounts| is_account(&accounts, uid))
}

/// Tests if a table of accounts has this UID: `NAME:PASSWORD:UID:…`.
fn is_account(accounts: &str, uid: u32) -> bool {
    accounts
        .lines()
        .filter_map(|line| line.split(':').nth(2))
        .any(|number| number.parse() == Ok(uid))
}

fn shown(process: Process) -> PeerProcess {
    let program = process
        .program
        .map(|path| Arc::from(path.to_string_lossy()));
    PeerProcess {
        pid: process.pid,
        program,
    }
}

/// The kernel's tables of TCP sockets.
struct SocketTables([String; 2]);

impl SocketTables {
    fn read() -> Self {
        let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
        Self(tables.map(|table| std::fs::read_to_string(table).unwrap_or_default()))
    }

    /// The socket from `local` to `remote`.
    fn row(&self, local: SocketAddr, remote: SocketAddr) -> Option<Row> {
        self.0.iter().find_map(|table| row_of(table, local, remote))
    }
}

/// A socket in a kernel table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    /// Its connection has been established, and it may still send.
    is_open: bool,
    uid: u32,
    /// Zero if no process has the socket any more.
    inode: u64,
}

/// The socket from `local` to `remote` in a kernel table:
/// `SL LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE …`.
///
/// The table may have thousands of rows, so it is searched as text.
fn row_of(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<Row> {
    [Family::V4, Family::V6].into_iter().find_map(|family| {
        let row = format!(": {} {} ", family.write(local)?, family.write(remote)?);
        let rest = &table[table.find(&row)? + row.len()..];
        let mut fields = rest.lines().next()?.split_ascii_whitespace();
        let is_open = matches!(fields.next()?, ESTABLISHED | CLOSE_WAIT);
        let uid = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Row {
            is_open,
            uid,
            inode,
        })
    })
}

/// States in a kernel table: both ends may send, and only this one may.
const ESTABLISHED: &str = "01";
const CLOSE_WAIT: &str = "08";

/// The two forms in which the kernel writes addresses.
#[derive(Debug, Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// `0100007F:1E61`, or 32 digits for IPv6: 32-bit words in memory order, and the port.
    fn write(self, address: SocketAddr) -> Option<String> {
        let ip = match (self, address.ip().to_canonical()) {
            (Self::V4, IpAddr::V4(ip)) => word(ip.octets()),
            (Self::V4, IpAddr::V6(_)) => return None,
            (Self::V6, IpAddr::V4(ip)) => words(ip.to_ipv6_mapped()),
            (Self::V6, IpAddr::V6(ip)) => words(ip),
        };
        Some(format!("{ip}:{:04X}", address.port()))
    }
}

fn word(bytes: [u8; 4]) -> String {
    format!("{:08X}", u32::from_ne_bytes(bytes))
}

fn words(ip: Ipv6Addr) -> String {
    let bytes = ip.octets();
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|bytes| word(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1E61 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 0100007F:1E61 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 0 10 -1
   2: 0100007F:C001 0100007F:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 13 1 0 20 4 0 10 -1
   3: 0100007F:C002 0100007F:1E61 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0
";
    const V6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:C003 0000000000000000FFFF00000100007F:1E61 01 00000000:00000000 00:00000000 00000000  1001        0 14 1 0 20 4 0 10 -1
   1: 00000000000000000000000001000000:C004 00000000000000000000000001000000:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 15 1 0 20 4 0 10 -1
";

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_are_found_by_both_addresses() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let ours = at("127.0.0.1:7777");
        let row = |uid, inode| {
            Some(Row {
                is_open: inode != 0,
                uid,
                inode,
            })
        };
        assert_eq!(row_of(V4, at("127.0.0.1:49153"), ours), row(1000, 13));
        // The gateway's end, a socket without a process, and an unknown one.
        assert_eq!(row_of(V4, ours, at("127.0.0.1:49153")), row(1000, 12));
        assert_eq!(row_of(V4, at("127.0.0.1:49154"), ours), row(0, 0));
        assert_eq!(row_of(V4, at("127.0.0.1:49159"), ours), None);
        assert_eq!(row_of(V6, at("127.0.0.1:49155"), ours), row(1001, 14));
        let ours = at("[::1]:7777");
        assert_eq!(row_of(V6, at("[::1]:49156"), ours), row(1000, 15));
        for broken in ["", "x", "head\n 0: 1", "head\n 0: 0100007F:1E61 x"] {
            assert_eq!(row_of(broken, ours, ours), None);
        }
    }

    #[test]
    fn subordinate_uid_is_no_account() {
        let accounts = "root:x:0:0::/:/bin/sh\nada:x:1000:1000::/:/bin/sh\nx\n\n";
        assert!(is_account(accounts, 0) && is_account(accounts, 1000));
        for uid in [1, 100, 100_000] {
            assert!(!is_account(accounts, uid), "{uid}");
        }
    }

    /// A client of this very process, and the connection as the gateway sees it.
    #[cfg(target_os = "linux")]
    struct Connected {
        containment: Containment,
        listener: std::net::TcpListener,
        _accepted: std::net::TcpStream,
        client: std::net::TcpStream,
        ends: Ends,
    }

    #[cfg(target_os = "linux")]
    impl Connected {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let containment = Containment::new(folder.path(), "test".parse().unwrap()).unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let ours = listener.local_addr().unwrap();
            let client = std::net::TcpStream::connect(ours).unwrap();
            let (accepted, theirs) = listener.accept().unwrap();
            let inode = rustix::fs::fstat(&accepted).unwrap().st_ino;
            Self {
                containment,
                listener,
                _accepted: accepted,
                client,
                ends: Ends {
                    theirs,
                    ours,
                    inode,
                },
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn one(containment: &Containment, ends: Ends) -> Peer {
        on_tcp(containment, &[ends]).remove(0)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn closed_and_absent_sockets_are_refused() {
        let Connected {
            containment,
            client,
            ends,
            _accepted,
            ..
        } = Connected::new();
        let Peer::Welcome(Some(found)) = one(&containment, ends) else {
            panic!("this very process is refused");
        };
        assert_eq!(found.pid, std::process::id());
        let absent = Ends {
            ours: "127.0.0.2:1".parse().unwrap(),
            ..ends
        };
        let together = on_tcp(&containment, &[absent, ends]);
        assert_eq!(together[0], Peer::Refused(Stranger::Elsewhere));
        assert_eq!(together[1], Peer::Welcome(Some(found)));
        drop(client);
        let refused = one(&containment, ends);
        assert_eq!(refused, Peer::Refused(Stranger::Unknown));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn later_connection_from_one_address_proves_nothing() {
        let Connected {
            containment,
            listener,
            client,
            ends,
            _accepted,
        } = Connected::new();
        // A reset frees the address at once.
        let socket = socket2::Socket::from(client);
        socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(socket);
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&ends.theirs.into()).unwrap();
        socket.connect(&ends.ours.into()).unwrap();
        let waiting = one(&containment, ends);
        let (accepted, theirs) = listener.accept().unwrap();
        assert_eq!(theirs, ends.theirs);
        let refused = Peer::Refused(Stranger::Unknown);
        assert_eq!(
            [waiting, one(&containment, ends)],
            [refused.clone(), refused]
        );
        let inode = rustix::fs::fstat(&accepted).unwrap().st_ino;
        let later = one(&containment, Ends { inode, ..ends });
        assert!(matches!(later, Peer::Welcome(Some(_))), "{later:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn inherited_socket_still_belongs_to_the_gateway() {
        let Connected {
            containment,
            client,
            ends,
            _accepted,
            ..
        } = Connected::new();
        // A child has every descriptor between fork and exec. One that is not closed on exec stays.
        rustix::io::fcntl_setfd(&client, rustix::io::FdFlags::empty()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let found = one(&containment, ends);
        drop(client);
        let left = one(&containment, ends);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            matches!(&found, Peer::Welcome(Some(found)) if found.pid == std::process::id()),
            "{found:?}"
        );
        assert!(
            matches!(&left, Peer::Refused(Stranger::Server(left)) if left.pid == child.id()),
            "{left:?}"
        );
    }

    #[test]
    fn another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let containment = Containment::new(folder.path(), "test".parse().unwrap()).unwrap();
        let me = rustix::process::geteuid().as_raw();
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let refused = on_socket(&containment, me + 1, Some(pid), Ticks::now());
        assert_eq!(refused, Peer::Refused(Stranger::User(me + 1)));
        let Peer::Welcome(Some(found)) = on_socket(&containment, me, Some(pid), Ticks::now())
        else {
            panic!("this very process is refused");
        };
        assert_eq!(found.pid, pid.unsigned_abs());
        assert!(found.program.is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_that_ended_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let containment = Containment::new(folder.path(), "test".parse().unwrap()).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let me = rustix::process::geteuid().as_raw();
        let refused = on_socket(&containment, me, Some(pid), Ticks::now());
        assert_eq!(refused, Peer::Refused(Stranger::Unknown));
    }
}
