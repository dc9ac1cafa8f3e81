//! Distinguishing the processes and sockets of servers from those of others.
//!
//! The gateway under test is a process of its own, so that this process counts as one of the
//! others.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::fd::OwnedFd,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use switchboard_contain::MARKER;

use super::support::{Place, fixture, started};

/// A gateway with one server, which has a socket.
struct Judge {
    place: Place,
    gateway: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The socket of the server.
    inode: u64,
}

impl Judge {
    fn with_server(way: &str) -> Self {
        let place = Place::new();
        let mut gateway = Command::new(fixture())
            .args(["judge", &place.tag])
            .arg(place.ledger())
            .arg(way)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut judge = Self {
            questions: gateway.stdin.take().unwrap(),
            answers: BufReader::new(gateway.stdout.take().unwrap()),
            place,
            gateway,
            inode: 0,
        };
        assert_eq!(judge.answer(), "ready");
        judge.inode = judge.answer().parse().unwrap();
        judge
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.questions, "{question}").unwrap();
        self.answer()
    }

    fn of_socket(&mut self, inode: u64) -> String {
        self.ask(&format!("socket {inode}"))
    }

    fn of_process(&mut self, pid: u32) -> String {
        self.ask(&format!("process {pid}"))
    }

    /// The process that has the server's socket. The server reports the inode.
    fn of_server(&mut self) -> String {
        let inode = self.inode;
        self.of_socket(inode)
    }

    /// The PID in `server PID`.
    fn server(&mut self) -> u32 {
        let said = self.of_server();
        said.strip_prefix("server ").expect(&said).parse().unwrap()
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
        if !std::thread::panicking() {
            self.place.until_empty("a judge that ended");
        }
    }
}

/// A process that the test started, and that ends with it.
struct Ours(Child);

impl Ours {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).spawn().unwrap())
    }

    fn sleeping() -> Self {
        Self::start(Command::new("sleep").arg("1000"))
    }

    fn started(&self) -> u64 {
        started(i32::try_from(self.0.id()).unwrap())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn own_socket() -> (OwnedFd, u64) {
    let socket = OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let inode = rustix::fs::fstat(&socket).unwrap().st_ino;
    (socket, inode)
}

#[test]
fn socket_of_another_process_is_outside() {
    let mut judge = Judge::with_server("open");
    let (socket, inode) = own_socket();
    let own = std::process::id();
    assert_eq!(judge.of_socket(inode), format!("outside {own}"));
    drop(socket);
    assert_eq!(judge.of_socket(inode), "unknown");
}

#[test]
fn open_socket_of_server_is_found() {
    for way in ["open", "own-table", "leaderless"] {
        let mut judge = Judge::with_server(way);
        let said = judge.of_server();
        assert!(said.starts_with("server "), "{way}: {said}");
    }
}

#[test]
fn hidden_socket_of_server_is_not_outside() {
    for way in ["in-flight", "bounced", "undumpable"] {
        let mut judge = Judge::with_server(way);
        for _ in 0..20 {
            let said = judge.of_server();
            assert!(!said.starts_with("outside"), "{way}: {said}");
        }
    }
}

#[test]
fn socket_shared_with_server_belongs_to_server() {
    let mut judge = Judge::with_server("open");
    let server = judge.server();
    let pid = Pid::from_raw(i32::try_from(server).unwrap()).unwrap();
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    // The first descriptor that the server opened.
    let shared = pidfd_getfd(&pidfd, 3, PidfdGetfdFlags::empty()).unwrap();
    assert_eq!(rustix::fs::fstat(&shared).unwrap().st_ino, judge.inode);
    assert_eq!(judge.of_server(), format!("server {server}"));
}

#[test]
fn marked_process_belongs_to_server() {
    let mut judge = Judge::with_server("open");
    let mut command = Command::new(fixture());
    command.args(["socket", &judge.place.tag, "open"]);
    command.env(MARKER, format!("{}:0", judge.place.tag));
    let mut marked = Ours::start(&mut command);
    let mut lines = BufReader::new(marked.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let inode = lines.next().unwrap().unwrap().parse().unwrap();
    judge.ask("now");
    let wanted = format!("server {}", marked.0.id());
    assert_eq!(judge.of_socket(inode), wanted);
    assert_eq!(judge.of_process(marked.0.id()), wanted);
}

#[test]
fn process_is_classified_by_its_ancestors() {
    let mut judge = Judge::with_server("open");
    let server = judge.server();
    judge.ask("now");
    assert_eq!(judge.of_process(server), format!("server {server}"));
    let own = std::process::id();
    assert_eq!(judge.of_process(own), format!("outside {own}"));
    let sibling = Ours::sleeping();
    let pid = sibling.0.id();
    judge.ask("now");
    assert_eq!(judge.of_process(pid), format!("outside {pid}"));
    drop(sibling);
    assert_eq!(judge.of_process(pid), "unknown");
}

#[test]
fn process_with_a_reused_pid_is_unknown() {
    let mut judge = Judge::with_server("open");
    judge.ask("now");
    let first = Ours::sleeping();
    // The kernel's clock is coarse.
    let later = (0..10_000)
        .map(|_| Ours::sleeping())
        .find(|one| one.started() > first.started())
        .unwrap();
    let pid = later.0.id();
    assert_eq!(judge.of_process(pid), "unknown");
    judge.ask("now");
    assert_eq!(judge.of_process(pid), format!("outside {pid}"));
}
