//! The guard: one small process per server, which is the parent of the server and of its orphans.
//!
//! It is outside the data path, because the server holds the gateway's pipes itself. It waits for three
//! things: an order from the gateway, the exit of a child, and a timeout. The server's tree is gone when the
//! guard has no children left: a process that loses its parent becomes a child of the guard, however it was
//! started, so no descendant is ever out of reach.
//!
//! There is no runtime here and no second thread.

mod rungs;
mod signals;
mod start;

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, WaitOptions, getpid},
};

use crate::{
    container::{ENGINE_TIME, Named},
    control::{Lines, Order, Report},
    own::detach,
    process::{Held, Stat, all, descendants, timespec},
    records::{self, Record},
};

pub(crate) use self::signals::close_inherited;
use self::{
    rungs::{Action, Event, Rungs},
    signals::Children,
};

/// The first argument of a guard process.
///
/// A program that uses this crate calls [`guard_main`] if its first argument is this one, before it does
/// anything else: no runtime, no thread, no file.
pub const GUARD_ARGUMENT: &str = "__guard";

/// Runs as a guard until nothing of its server is left. `args` are those of the program, including its name.
pub fn guard_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // The name of the server is only there to be seen in the process list.
    drop(args);
    let detached = detach(c"switchboard-grd").map_err(start::NotStarted::from);
    let guard = match detached.and_then(|()| start::prepare()) {
        Ok(guard) => guard,
        Err(start::NotStarted::ByHand) => {
            let _ = writeln!(
                io::stderr(),
                "error: `{GUARD_ARGUMENT}` is for internal use only"
            );
            return ExitCode::from(2);
        }
        // The gateway sees the socket close, after a report of the reason if there was one.
        Err(start::NotStarted::Failed) => return ExitCode::FAILURE,
    };
    guard.run();
    ExitCode::SUCCESS
}

/// Interval of checks for processes that do not die at once, or whose exit is not signalled.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Interval of checks for processes that stay for longer: a process may hang in the kernel.
const LOOK_AGAIN_LATE: Duration = Duration::from_secs(1);
/// Time after which the longer interval is used.
const LATE: Duration = Duration::from_secs(2);

struct Guard {
    /// `None` if the gateway has died.
    control: Option<UnixStream>,
    lines: Lines,
    children: Children,
    rungs: Rungs,
    leader: Pid,
    leader_left: bool,
    /// The directory of records, and the record of this server.
    records: PathBuf,
    record: Option<Record>,
    container: Option<Named>,
    /// A running command of the engine.
    helper: Option<Helper>,
    /// The removal of the container was attempted.
    removed: bool,
    /// Time since which all processes are being killed.
    insisting_since: Option<Instant>,
    killed: usize,
}

struct Helper {
    pid: Pid,
    until: Instant,
}

/// The presence of children.
#[derive(PartialEq, Eq)]
enum Family {
    Some,
    None,
}

impl Guard {
    fn run(mut self) {
        while !self.step() {
            self.sleep();
        }
        if let Some(record) = &self.record {
            records::remove(&self.records, &record.marker.token);
        }
        let (rung, took) = self.rungs.so_far(Instant::now());
        self.report(&Report::Gone { rung, took });
    }

    /// Processes all pending events, and acts on them. Returns `true` when nothing is left to do.
    fn step(&mut self) -> bool {
        let family = self.reap();
        self.read_orders();
        if family == Family::None && self.helper.is_none() {
            return self.nobody_left();
        }
        let now = Instant::now();
        if self
            .helper
            .as_ref()
            .is_some_and(|helper| now >= helper.until)
        {
            self.end_helper();
        }
        self.handle(Event::Tick);
        // Processes that the engine's last command leaves behind have no reason to stay.
        if (self.rungs.is_insisting() || self.removed) && self.helper.is_none() {
            self.insisting_since.get_or_insert(now);
            self.kill_all();
        }
        false
    }

    /// The process tree is gone. Removes the container, if there is one. Returns `true` when nothing is left
    /// to do.
    fn nobody_left(&mut self) -> bool {
        if let Some(container) = self.container.clone()
            && !self.removed
        {
            self.removed = true;
            return !self.engine(container.remove(), ENGINE_TIME);
        }
        true
    }

    fn handle(&mut self, event: Event) {
        // The removal is running. It has its own time limit and must not be interrupted.
        if self.removed {
            return;
        }
        match self.rungs.handle(Instant::now(), event) {
            None => {}
            Some(Action::Ask(time)) => self.ask(time),
            Some(Action::Insist) => self.insist(),
        }
    }

    /// Sends SIGTERM to all processes; a container is stopped through its engine.
    fn ask(&mut self, time: Duration) {
        if let Some(container) = self.container.clone()
            && self.engine(container.stop(time), time)
        {
            self.report(&Report::StoppingContainer);
            return;
        }
        let family = family();
        let group = self.signal_group(Signal::TERM);
        for stat in &family {
            // No process receives SIGTERM twice: many programs take the second one as a demand to quit at
            // once.
            if Some(stat.group) != group
                && let Some(held) = Held::take(stat.identity())
            {
                held.signal(Signal::TERM);
            }
        }
        self.report(&Report::SentTerm(count_living(&family)));
    }

    /// Signals the server's process group as a whole, so that no process that is just being forked is missed,
    /// and returns the group's ID. `None` after the leader has been reaped: from then on the ID may belong to
    /// another group.
    fn signal_group(&self, signal: Signal) -> Option<i32> {
        let pinned = !self.leader_left || cfg!(not(target_os = "linux"));
        pinned.then(|| {
            let _ = rustix::process::kill_process_group(self.leader, signal);
            self.leader.as_raw_nonzero().get()
        })
    }

    /// Sends SIGKILL to all processes until none is left. A container is killed through its engine first.
    fn insist(&mut self) {
        self.end_helper();
        if let Some(container) = self.container.clone()
            && self.engine(container.kill(), ENGINE_TIME)
        {
            self.report(&Report::KillingContainer);
        }
    }

    fn kill_all(&mut self) {
        let family = family();
        let me = getpid();
        let mut groups: Vec<i32> = family
            .iter()
            .filter(|stat| stat.parent == me.as_raw_nonzero().get())
            .map(|stat| stat.group)
            .chain(self.signal_group(Signal::KILL))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        // A process that keeps forking and exiting is caught only by signalling its group as a whole. A child
        // of this guard, even a zombie, reserves the ID of its group until it is reaped, which does not
        // happen here.
        for group in groups.into_iter().filter_map(Pid::from_raw) {
            if Ok(group) != rustix::process::getpgid(None) {
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
            }
        }
        for stat in &family {
            if let Some(held) = Held::take(stat.identity()) {
                held.signal(Signal::KILL);
            }
        }
        let living = count_living(&family);
        if living > self.killed {
            self.killed = living;
            self.report(&Report::SentKill(living));
        }
    }

    /// Reaps every child that has exited.
    #[cfg(target_os = "linux")]
    fn reap(&mut self) -> Family {
        use rustix::{io::Errno, process::wait};
        self.children.clear();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.helper.as_ref().is_some_and(|helper| helper.pid == pid) {
                        self.helper = None;
                    } else if pid == self.leader && !self.leader_left {
                        self.leader_ended(status.as_raw());
                    }
                }
                Ok(None) => return Family::Some,
                Err(Errno::INTR) => {}
                Err(_) => return Family::None,
            }
        }
    }

    /// Where orphans do not become children of the guard, only the group is known. The leader is never
    /// reaped, so that no other group can get its ID before this guard exits.
    #[cfg(not(target_os = "linux"))]
    fn reap(&mut self) -> Family {
        use rustix::process::{WaitId, WaitIdOptions, test_kill_process_group, waitid, waitpid};
        self.children.clear();
        if let Some(helper) = &self.helper
            && !matches!(waitpid(Some(helper.pid), WaitOptions::NOHANG), Ok(None))
        {
            self.helper = None;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !self.leader_left
            && let Ok(Some(status)) = waitid(WaitId::Pid(self.leader), options)
        {
            let signal = status.terminating_signal().unwrap_or(0);
            self.leader_ended(status.exit_status().map_or(signal, |code| code << 8));
        }
        if self.leader_left && test_kill_process_group(self.leader).is_err() {
            Family::None
        } else {
            Family::Some
        }
    }

    fn leader_ended(&mut self, status: i32) {
        self.leader_left = true;
        self.report(&Report::Exited(status));
        self.handle(Event::LeaderLeft);
    }

    fn read_orders(&mut self) {
        let mut buffer = [0; 1024];
        loop {
            while let Some(line) = self.lines.next_line() {
                match Order::parse(&line) {
                    Some(Order::Stop(ladder)) => self.handle(Event::Stop(ladder)),
                    Some(Order::Kill) => self.handle(Event::Kill),
                    None => {}
                }
            }
            let Some(control) = &mut self.control else {
                return;
            };
            match control.read(&mut buffer) {
                Ok(0) => self.gateway_lost(),
                Ok(read) => self.lines.push(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.gateway_lost(),
            }
        }
    }

    fn gateway_lost(&mut self) {
        self.control = None;
        self.handle(Event::GatewayLost);
    }

    /// Reports to the gateway. A report is lost if the gateway is too busy to read it, or gone.
    fn report(&mut self, report: &Report) {
        if let Some(control) = &mut self.control {
            let _ = control.write_all(report.line().as_bytes());
        }
    }

    /// Starts a command of the engine. Returns `true` if it started.
    fn engine(&mut self, command: Option<Command>, time: Duration) -> bool {
        self.end_helper();
        let Some(mut command) = command else {
            return false;
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        signals::start_clean(&mut command);
        let Ok(child) = command.spawn() else {
            return false;
        };
        self.helper = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .map(|pid| Helper {
                pid,
                until: Instant::now() + time,
            });
        true
    }

    /// Kills the running command. It is a child that has not been reaped, so its PID is still its own.
    fn end_helper(&mut self) {
        if let Some(helper) = self.helper.take() {
            let _ = rustix::process::kill_process(helper.pid, Signal::KILL);
        }
    }

    /// Sleeps until an event arrives or a deadline passes.
    fn sleep(&self) {
        let now = Instant::now();
        let look_again = self.insisting_since.map(|since| {
            now + if now.saturating_duration_since(since) < LATE {
                LOOK_AGAIN
            } else {
                LOOK_AGAIN_LATE
            }
        });
        // On other systems the exit of an orphan does not wake this process.
        let unseen = (!cfg!(target_os = "linux") && self.leader_left).then(|| now + LOOK_AGAIN);
        let helper = self.helper.as_ref().map(|helper| helper.until);
        let until = [self.rungs.deadline(), look_again, unseen, helper]
            .into_iter()
            .flatten()
            .min();
        let timeout = until.map(|until| timespec(until.saturating_duration_since(now)));
        let mut fds = vec![PollFd::new(self.children.fd(), PollFlags::IN)];
        fds.extend(
            self.control
                .as_ref()
                .map(|control| PollFd::new(control, PollFlags::IN)),
        );
        // A signal also ends the wait. The next step checks everything anyway.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

/// All descendants of this guard, which are the server's processes. No PID of theirs can be reused while they
/// are read: the system would have to go through all PIDs within a few milliseconds.
fn family() -> Vec<Stat> {
    descendants(&all(), getpid().as_raw_nonzero().get())
}

fn count_living(family: &[Stat]) -> usize {
    family.iter().filter(|stat| !stat.zombie).count()
}
