//! The guard: one small process per server, its parent and the one that its orphans fall to.
//!
//! It stands outside the data path, for the server has the gateway's pipes themselves. It waits for three
//! things: an order from the gateway, the end of a child, and time to pass. The server's tree is gone when
//! the guard has no children left: whoever loses its parent becomes a child of the guard, however
//! it was started, so that no descendant is ever out of reach.
//!
//! There is no runtime here and no thread.

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
    process::{Held, Stat, all, descendants, timespec},
    records::{self, Record},
};

use self::{
    rungs::{Action, Event, Rungs},
    signals::Children,
};

/// The first argument of a process that is to be a guard.
///
/// A program that uses this crate calls [`guard_main`] if its first argument is this one, before it does
/// anything else: no runtime, no thread, no file.
pub const GUARD_ARGUMENT: &str = "__guard";

/// Is a guard until nothing of its server is left. `args` are those of the program, with the program's name.
pub fn guard_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // The name of the server is there for people who look at the list of processes.
    drop(args);
    signals::close_inherited();
    let guard = match start::prepare() {
        Ok(guard) => guard,
        Err(start::NotStarted::ByHand) => {
            let _ = writeln!(
                io::stderr(),
                "error: `{GUARD_ARGUMENT}` is for this program's own use"
            );
            return ExitCode::from(2);
        }
        // The gateway sees the end of the socket, and why if there was anything to tell.
        Err(start::NotStarted::Failed) => return ExitCode::FAILURE,
    };
    guard.run();
    ExitCode::SUCCESS
}

/// How often to look again for those that do not die at once, and when nothing tells of an end.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// And for those that do not die for a while: a process may hang in the kernel.
const LOOK_AGAIN_LATE: Duration = Duration::from_secs(1);
/// When that begins.
const LATE: Duration = Duration::from_secs(2);

struct Guard {
    /// None when the gateway has died.
    control: Option<UnixStream>,
    lines: Lines,
    children: Children,
    rungs: Rungs,
    leader: Pid,
    leader_left: bool,
    /// The record on disk, and where.
    records: PathBuf,
    record: Option<Record>,
    container: Option<Named>,
    /// A command of the engine at work.
    helper: Option<Helper>,
    /// The container was removed, as far as that can be done.
    removed: bool,
    /// Since when all are being killed.
    insisting_since: Option<Instant>,
    killed: usize,
}

struct Helper {
    pid: Pid,
    until: Instant,
}

/// Whether there is still a child.
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

    /// Takes note of all that has happened, and does what is to be done. Whether that was all.
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
        // What the engine's last command leaves behind has no reason to stay.
        if (self.rungs.is_insisting() || self.removed) && self.helper.is_none() {
            self.insisting_since.get_or_insert(now);
            self.kill_all();
        }
        false
    }

    /// The tree is gone. What is left is the container, if there is one.
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
        // The last command is at work. It has its own bound, and nothing may cut in.
        if self.removed {
            return;
        }
        match self.rungs.handle(Instant::now(), event) {
            None => {}
            Some(Action::Ask(time)) => self.ask(time),
            Some(Action::Insist) => self.insist(),
        }
    }

    /// SIGTERM to all; a container is asked through its engine.
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
            // Nobody is asked twice: to many, the second time means to drop everything.
            if Some(stat.group) != group
                && let Some(held) = Held::take(stat.identity())
            {
                held.signal(Signal::TERM);
            }
        }
        self.report(&Report::SentTerm(count_living(&family)));
    }

    /// Signals the server's group in one go, so that none of it who is just being started is missed, and
    /// gives its number. There is none when the leader has been looked after: from then on its number may
    /// be another's.
    fn signal_group(&self, signal: Signal) -> Option<i32> {
        let pinned = !self.leader_left || cfg!(not(target_os = "linux"));
        pinned.then(|| {
            let _ = rustix::process::kill_process_group(self.leader, signal);
            self.leader.as_raw_nonzero().get()
        })
    }

    /// SIGKILL to all, now and until none is left. A container is killed through its engine first.
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
        // One that forks and leaves, over and over, is caught only in one go with its group. A child of this guard,
        // even a dead one, keeps its group's number until it is looked after, which is not now.
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

    /// Looks after every child that has ended.
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

    /// Where orphans do not fall to the guard only the group is known. The leader is looked after last, that is
    /// never: until this guard ends, no other group can have its number.
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

    /// Tells the gateway. If it is too busy to listen, or gone, then so be it.
    fn report(&mut self, report: &Report) {
        if let Some(control) = &mut self.control {
            let _ = control.write_all(report.line().as_bytes());
        }
    }

    /// Starts a command of the engine. Whether it started.
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

    /// Ends the command at work. It is a child that was not looked after, so that its pid is its own.
    fn end_helper(&mut self) {
        if let Some(helper) = self.helper.take() {
            let _ = rustix::process::kill_process(helper.pid, Signal::KILL);
        }
    }

    /// Sleeps until there is news, or until it is time for something.
    fn sleep(&self) {
        let now = Instant::now();
        let look_again = self.insisting_since.map(|since| {
            now + if now.saturating_duration_since(since) < LATE {
                LOOK_AGAIN
            } else {
                LOOK_AGAIN_LATE
            }
        });
        // Elsewhere an orphan's end wakes nobody up.
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
        // A signal ends it too. Whatever it was, the next step looks at everything.
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

/// All that descend from this guard, which are the server's. No pid of theirs can have become another's while they
/// are read: the system would have to go through all its numbers in a few milliseconds.
fn family() -> Vec<Stat> {
    descendants(&all(), getpid().as_raw_nonzero().get())
}

fn count_living(family: &[Stat]) -> usize {
    family.iter().filter(|stat| !stat.zombie).count()
}
