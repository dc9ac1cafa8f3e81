//! What is told about a server: each step of its life, and how it ended.

use std::{fmt, process::ExitStatus, time::Duration};

/// What it took to end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// It left by itself, and nothing stayed behind.
    Own,
    /// It left when its standard input was closed.
    Close,
    /// It, or something it had started, had to be asked with SIGTERM.
    Term,
    /// It, or something it had started, was ended with SIGKILL.
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
    /// It was started, as this process.
    Started(u32),
    /// It was told to stop: its standard input is closed, or about to be.
    Stopping,
    /// Its first process has ended. Others of it may live.
    Exited(ExitStatus),
    /// SIGTERM was sent to this many processes.
    SentTerm(usize),
    /// SIGKILL was sent to this many processes.
    SentKill(usize),
    /// The engine was told to stop the container.
    StoppingContainer,
    /// The engine was told to kill the container.
    KillingContainer,
    /// Its record could not be written: should its guard be killed, less is known to find the rest.
    Unrecorded(String),
    /// Its guard was killed; this program ends what is left itself.
    GuardLost,
    /// Nothing of it is left.
    Gone(Ended),
}

/// How it came to its end, and nothing was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What it took.
    pub rung: Rung,
    /// How long it took, from the order to stop, or from its own exit, until nothing was left.
    pub took: Duration,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started as process {pid}"),
            Self::Stopping => f.write_str("closed stdin, waiting for it to leave"),
            Self::Exited(status) => write!(f, "exited ({status})"),
            Self::SentTerm(count) => write!(f, "sent SIGTERM to {count} {}", processes(*count)),
            Self::SentKill(count) => write!(f, "sent SIGKILL to {count} {}", processes(*count)),
            Self::StoppingContainer => f.write_str("told the engine to stop the container"),
            Self::KillingContainer => f.write_str("told the engine to kill the container"),
            Self::Unrecorded(why) => write!(f, "could not write its record: {why}"),
            Self::GuardLost => f.write_str("its guard was killed, ending what is left"),
            Self::Gone(ended) => {
                let how = match ended.rung {
                    Rung::Own => "left by itself",
                    Rung::Close => "left when stdin was closed",
                    Rung::Term => "left after SIGTERM",
                    Rung::Kill => "ended with SIGKILL",
                };
                write!(f, "gone: {how}, after {} ms", ended.took.as_millis())
            }
        }
    }
}

fn processes(count: usize) -> &'static str {
    if count == 1 { "process" } else { "processes" }
}
