//! Reports about a server: each step of its life, and its end.

use std::{fmt, process::ExitStatus, time::Duration};

/// The last step that was needed to end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// It exited by itself, and left nothing behind.
    Own,
    /// It exited when its standard input was closed.
    Close,
    /// It, or a descendant, had to be sent SIGTERM.
    Term,
    /// It, or a descendant, was killed with SIGKILL.
    Kill,
}

impl Rung {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Close => "close",
            Self::Term => "term",
            Self::Kill => "kill",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Own, Self::Close, Self::Term, Self::Kill]
            .into_iter()
            .find(|rung| rung.word() == word)
    }
}

/// A step in the life of a server, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// It was started with this PID.
    Started(u32),
    /// It is being stopped: its standard input is closed, or about to be.
    Stopping,
    /// Its first process has exited. Others of it may be running.
    Exited(ExitStatus),
    /// SIGTERM was sent to this many processes.
    SentTerm(usize),
    /// SIGKILL was sent to this many processes.
    SentKill(usize),
    /// The engine was asked to stop the container.
    StoppingContainer,
    /// The engine was asked to kill the container.
    KillingContainer,
    /// Its record could not be written: if its guard is killed, its processes are harder to find.
    Unrecorded(String),
    /// Its guard was killed; the gateway ends the remaining processes itself.
    GuardLost,
    /// Nothing of it is left.
    Gone(Ended),
}

/// The end of a server of which nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The last step that was needed.
    pub rung: Rung,
    /// Time from the order to stop, or from its own exit, until nothing was left.
    pub took: Duration,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started as process {pid}"),
            Self::Stopping => f.write_str("closed stdin, waiting for it to exit"),
            Self::Exited(status) => write!(f, "exited ({status})"),
            Self::SentTerm(count) => write!(f, "sent SIGTERM to {count} {}", processes(*count)),
            Self::SentKill(count) => write!(f, "sent SIGKILL to {count} {}", processes(*count)),
            Self::StoppingContainer => f.write_str("asked the engine to stop the container"),
            Self::KillingContainer => f.write_str("asked the engine to kill the container"),
            Self::Unrecorded(why) => write!(f, "cannot write its process record: {why}"),
            Self::GuardLost => f.write_str("its guard was killed; ending its remaining processes"),
            Self::Gone(ended) => {
                let how = match ended.rung {
                    Rung::Own => "exited by itself",
                    Rung::Close => "exited when stdin was closed",
                    Rung::Term => "exited after SIGTERM",
                    Rung::Kill => "killed with SIGKILL",
                };
                write!(f, "ended: {how}, after {} ms", ended.took.as_millis())
            }
        }
    }
}

fn processes(count: usize) -> &'static str {
    if count == 1 { "process" } else { "processes" }
}
