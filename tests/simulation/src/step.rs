//! What can happen next, as small values that are also lines of text.
//!
//! A step names what it is about by a number that is taken modulo what is there, so a schedule
//! stays meaningful whichever of its steps are taken away. That is what makes shrinking work.

use std::{fmt, str::FromStr};

use switchboard_machine::DownKind;

use crate::words::words;

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many milliseconds pass, and every timer rings when it is due.
    Wait(u32),
    /// So many milliseconds pass while nobody looks, then there is one tick for all that was due.
    Doze(u32),
    /// Time passes to the next timer.
    Ring,
    /// The transport is up.
    Up,
    /// The transport is down.
    Down(DownKind),
    /// The next so many frames meet a busy transport.
    Busy(u8),
    /// The next so many frames meet a transport that is gone, and has not said so yet.
    Shut(u8),
    /// A frame over the limit arrives.
    Oversize,
    /// The next event of the transport comes from one opened so much earlier; 0 is one to come.
    Stale(u8),
    /// The next so many messages of the server come in one frame.
    Batch(u8),
    /// The next frame comes on the stream of a request: a call, or for high numbers the handshake.
    Via(u8),
    /// The transport cannot carry a request, with this HTTP status or none (0).
    Fail(u8, u16),
    /// A server that behaves answers what is open of the handshake.
    Greet(Server),
    /// Any answer to any request of a handshake, the latest first.
    Welcome(u8, Welcome),
    /// The server answers a request.
    Answer(u8),
    /// The server answers a request with an error.
    Error(u8),
    /// The server repeats an answer.
    Again(u8),
    /// The server answers a request that it may not have seen: ids are easy to guess.
    Guess(u8),
    /// The server answers what nobody asked.
    Stray(Stray),
    /// The server sends what is no message.
    Garbage(Garbage),
    /// The server pings, under one of a few ids.
    Ping(u8),
    /// The server asks something, under one of a few ids.
    Ask(u8),
    /// The server tells something.
    News,
    /// The server logs something.
    Log,
    /// The server tells how far a request has come, for high numbers one that it may not have seen.
    Progress(u8),
    /// The server withdraws a request of its own.
    WithdrawOwn(u8),
    /// The server withdraws a request of ours.
    WithdrawCall(u8),
    /// Somebody calls.
    Call(Shape),
    /// A caller goes away.
    Gone(u8),
    /// A caller cancels.
    Cancel(u8),
    /// The owner answers a request of the server.
    Reply(u8),
    /// The owner refuses a request of the server.
    Refuse(u8),
    /// The owner wants it to connect now.
    Restart,
    /// The owner wants it to end.
    Stop,
}

/// What somebody calls, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a call has that many independent properties"
)]
pub struct Shape {
    /// Who calls.
    pub lane: u8,
    /// How long it may take, in milliseconds; 0 is for ever.
    pub timeout: u32,
    /// Progress moves the deadline by the first, up to the second after the call; 0 is not at all.
    pub extend: (u32, u32),
    /// It is a notification.
    pub notify: bool,
    /// It asks for progress.
    pub progress: bool,
    /// It takes the log messages that belong to it.
    pub logs: bool,
    /// It does not wait for the connection.
    pub fast: bool,
    /// Its parameters are an array, which cannot be stamped.
    pub array: bool,
}

impl Shape {
    /// The plainest call there is.
    pub const PLAIN: Self = Self {
        lane: 0,
        timeout: 30_000,
        extend: (0, 0),
        notify: false,
        progress: false,
        logs: false,
        fast: false,
        array: false,
    };
}

words! {
    /// A server that behaves.
    pub enum Server {
        /// One of 2026-07-28.
        Modern = "modern",
        /// One of 2025-11-25.
        Old = "old",
        /// One of 2024-11-05.
        Older = "older",
    }
}

words! {
    /// What a server can answer to `server/discover` or `initialize`.
    pub enum Welcome {
        /// The answer of a modern server to `server/discover`.
        Modern = "modern",
        /// It settles on this revision.
        V2024_11_05 = "2024-11-05",
        /// It settles on this revision.
        V2025_03_26 = "2025-03-26",
        /// It settles on this revision.
        V2025_06_18 = "2025-06-18",
        /// It settles on this revision.
        V2025_11_25 = "2025-11-25",
        /// It settles on this revision, which has no `initialize`.
        V2026_07_28 = "2026-07-28",
        /// It settles on a revision that nobody knows.
        Strange = "1999-01-01",
        /// An empty success.
        Empty = "empty",
        /// No such method.
        NotFound = "not-found",
        /// An error that names the modern revision.
        NamesModern = "names-modern",
        /// An error that names two older revisions.
        NamesOld = "names-old",
        /// An error that names revisions nobody knows.
        NamesStrange = "names-strange",
        /// An answer to `server/discover` without the modern revision.
        ListsOld = "lists-old",
        /// An error that only modern servers give.
        ModernError = "modern-error",
    }
}

words! {
    /// Ids that nobody asked under.
    pub enum Stray {
        /// A number far ahead.
        Future = "future",
        /// Zero, the number before the first.
        Zero = "zero",
        /// A number as a string.
        Text = "text",
        /// A number that fits nowhere.
        Huge = "huge",
        /// No id at all.
        Null = "null",
    }
}

words! {
    /// What is no message.
    pub enum Garbage {
        /// Text for a person.
        Text = "text",
        /// A character cut in half.
        Utf8 = "utf8",
        /// JSON that is no message.
        Json = "json",
        /// Nested without end.
        Deep = "deep",
        /// A batch of nothing.
        EmptyBatch = "empty-batch",
        /// Another protocol.
        Version = "version",
    }
}

impl Step {
    /// Whether this is a message of the server, which may be part of a batch.
    pub(crate) fn is_message(self) -> bool {
        matches!(
            self,
            Self::Greet(_)
                | Self::Welcome(..)
                | Self::Answer(_)
                | Self::Error(_)
                | Self::Again(_)
                | Self::Guess(_)
                | Self::Stray(_)
                | Self::Garbage(_)
                | Self::Ping(_)
                | Self::Ask(_)
                | Self::News
                | Self::Log
                | Self::Progress(_)
                | Self::WithdrawOwn(_)
                | Self::WithdrawCall(_)
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(ms) => write!(f, "wait {ms}"),
            Self::Doze(ms) => write!(f, "doze {ms}"),
            Self::Ring => f.write_str("ring"),
            Self::Up => f.write_str("up"),
            Self::Down(kind) => write!(f, "down {}", down_word(*kind)),
            Self::Busy(count) => write!(f, "busy {count}"),
            Self::Shut(count) => write!(f, "shut {count}"),
            Self::Oversize => f.write_str("oversize"),
            Self::Stale(back) => write!(f, "stale {back}"),
            Self::Batch(count) => write!(f, "batch {count}"),
            Self::Via(which) => write!(f, "via {which}"),
            Self::Fail(which, status) => write!(f, "fail {which} {status}"),
            Self::Greet(server) => write!(f, "greet {}", server.word()),
            Self::Welcome(which, how) => write!(f, "welcome {which} {}", how.word()),
            Self::Answer(which) => write!(f, "answer {which}"),
            Self::Error(which) => write!(f, "error {which}"),
            Self::Again(which) => write!(f, "again {which}"),
            Self::Guess(which) => write!(f, "guess {which}"),
            Self::Stray(kind) => write!(f, "stray {}", kind.word()),
            Self::Garbage(kind) => write!(f, "garbage {}", kind.word()),
            Self::Ping(id) => write!(f, "ping {id}"),
            Self::Ask(id) => write!(f, "ask {id}"),
            Self::News => f.write_str("news"),
            Self::Log => f.write_str("log"),
            Self::Progress(which) => write!(f, "progress {which}"),
            Self::WithdrawOwn(id) => write!(f, "withdraw-own {id}"),
            Self::WithdrawCall(which) => write!(f, "withdraw-call {which}"),
            Self::Call(shape) => write!(f, "call {shape}"),
            Self::Gone(which) => write!(f, "gone {which}"),
            Self::Cancel(which) => write!(f, "cancel {which}"),
            Self::Reply(which) => write!(f, "reply {which}"),
            Self::Refuse(which) => write!(f, "refuse {which}"),
            Self::Restart => f.write_str("restart"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lane={} timeout={}", self.lane, self.timeout)?;
        if self.extend != (0, 0) {
            write!(f, " extend={}/{}", self.extend.0, self.extend.1)?;
        }
        for (set, word) in [
            (self.notify, " notify"),
            (self.progress, " progress"),
            (self.logs, " logs"),
            (self.fast, " fast"),
            (self.array, " array"),
        ] {
            if set {
                f.write_str(word)?;
            }
        }
        Ok(())
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let step = match (name, rest.as_slice()) {
            ("ring", []) => Some(Self::Ring),
            ("up", []) => Some(Self::Up),
            ("oversize", []) => Some(Self::Oversize),
            ("news", []) => Some(Self::News),
            ("log", []) => Some(Self::Log),
            ("restart", []) => Some(Self::Restart),
            ("stop", []) => Some(Self::Stop),
            ("down", [word]) => down_kind(word).map(Self::Down),
            ("greet", [word]) => Server::parse(word).map(Self::Greet),
            ("stray", [word]) => Stray::parse(word).map(Self::Stray),
            ("garbage", [word]) => Garbage::parse(word).map(Self::Garbage),
            ("welcome", [which, word]) => which
                .parse()
                .ok()
                .zip(Welcome::parse(word))
                .map(|(which, how)| Self::Welcome(which, how)),
            ("fail", [which, status]) => which
                .parse()
                .ok()
                .zip(status.parse().ok())
                .map(|(which, status)| Self::Fail(which, status)),
            ("wait", [ms]) => ms.parse().ok().map(Self::Wait),
            ("doze", [ms]) => ms.parse().ok().map(Self::Doze),
            ("call", words) => read_shape(words).map(Self::Call),
            (name, [number]) => number
                .parse()
                .ok()
                .and_then(|number| numbered(name, number)),
            _ => None,
        };
        step.ok_or_else(|| format!("not a step: {line}"))
    }
}

fn numbered(name: &str, number: u8) -> Option<Step> {
    Some(match name {
        "busy" => Step::Busy(number),
        "shut" => Step::Shut(number),
        "stale" => Step::Stale(number),
        "batch" => Step::Batch(number),
        "via" => Step::Via(number),
        "answer" => Step::Answer(number),
        "error" => Step::Error(number),
        "again" => Step::Again(number),
        "guess" => Step::Guess(number),
        "ping" => Step::Ping(number),
        "ask" => Step::Ask(number),
        "progress" => Step::Progress(number),
        "withdraw-own" => Step::WithdrawOwn(number),
        "withdraw-call" => Step::WithdrawCall(number),
        "gone" => Step::Gone(number),
        "cancel" => Step::Cancel(number),
        "reply" => Step::Reply(number),
        "refuse" => Step::Refuse(number),
        _ => return None,
    })
}

fn read_shape(words: &[&str]) -> Option<Shape> {
    let mut shape = Shape::PLAIN;
    for word in words {
        match word.split_once('=') {
            Some(("lane", lane)) => shape.lane = lane.parse().ok()?,
            Some(("timeout", timeout)) => shape.timeout = timeout.parse().ok()?,
            Some(("extend", extend)) => {
                let (by, cap) = extend.split_once('/')?;
                shape.extend = (by.parse().ok()?, cap.parse().ok()?);
            }
            Some(_) => return None,
            None => match *word {
                "notify" => shape.notify = true,
                "progress" => shape.progress = true,
                "logs" => shape.logs = true,
                "fast" => shape.fast = true,
                "array" => shape.array = true,
                _ => return None,
            },
        }
    }
    Some(shape)
}

fn down_word(kind: DownKind) -> &'static str {
    match kind {
        DownKind::Closed => "closed",
        DownKind::Unreachable => "unreachable",
        DownKind::Permanent => "permanent",
    }
}

fn down_kind(word: &str) -> Option<DownKind> {
    [DownKind::Closed, DownKind::Unreachable, DownKind::Permanent]
        .into_iter()
        .find(|kind| down_word(*kind) == word)
}
