//! The steps of a schedule, as small values with a text form.
//!
//! A step refers to its object by a number that is used modulo the number of candidates, so a schedule stays
//! meaningful when any of its steps are removed. Shrinking depends on this.

use std::{fmt, str::FromStr};

use switchboard_machine::DownKind;

use crate::words::words;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Time passes, in milliseconds, and every timer fires when it is due.
    Wait(u32),
    /// Time passes, in milliseconds, without timers, followed by one tick for all that were due.
    Doze(u32),
    /// Time passes until the next timer.
    Ring,
    /// The transport is up.
    Up,
    /// The transport is down.
    Down(DownKind),
    /// The transport is busy for this number of frames.
    Busy(u8),
    /// The transport is gone for this number of frames, but has not reported it yet.
    Shut(u8),
    /// A frame over the limit arrives.
    Oversize,
    /// The next event of the transport comes from one that was opened this number of transports ago; 0 is a
    /// future one.
    Stale(u8),
    /// This number of messages of the server arrive in one frame.
    Batch(u8),
    /// The next frame arrives on the stream of a request: a call, or for high numbers the handshake.
    Via(u8),
    /// The transport cannot carry a request, with this HTTP status or none (0).
    Fail(u8, u16),
    /// A well-behaved server answers the open request of the handshake.
    Greet(Server),
    /// Any response to any request of a handshake, the latest first.
    Welcome(u8, Welcome),
    /// The server answers a request.
    Answer(u8),
    /// The server answers a request with an error.
    Error(u8),
    /// The server repeats a response.
    Again(u8),
    /// The server answers a request that it may not have received: ids are easy to guess.
    Guess(u8),
    /// The server sends a response without a request.
    Stray(Stray),
    /// The server sends something other than a message.
    Garbage(Garbage),
    /// The server pings, under one of a few ids.
    Ping(u8),
    /// The server sends a request, under one of a few ids.
    Ask(u8),
    /// The server sends a notification.
    News,
    /// The server sends a log message.
    Log,
    /// The server reports progress of a request, for high numbers of one that it may not have received.
    Progress(u8),
    /// The server cancels one of its own requests.
    WithdrawOwn(u8),
    /// The server cancels a request of the client.
    WithdrawCall(u8),
    /// A call is made.
    Call(Shape),
    /// A caller goes away.
    Gone(u8),
    /// A caller cancels.
    Cancel(u8),
    /// The owner answers a request of the server.
    Reply(u8),
    /// The owner refuses a request of the server.
    Refuse(u8),
    /// The owner requests a connection attempt now.
    Restart,
    /// The owner stops the connection.
    Stop,
}

/// The properties of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a call has that many independent properties"
)]
pub struct Shape {
    /// The caller.
    pub lane: u8,
    /// The timeout in milliseconds; 0 for none.
    pub timeout: u32,
    /// Progress extends the deadline by the first number, up to the second after the call; 0 for no
    /// extension.
    pub extend: (u32, u32),
    /// It is a notification.
    pub notify: bool,
    /// It requests progress.
    pub progress: bool,
    /// It accepts the log messages that belong to it.
    pub logs: bool,
    /// It does not wait for the connection.
    pub fast: bool,
    /// Its parameters are an array, to which no metadata can be added.
    pub array: bool,
}

impl Shape {
    /// The plainest call.
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
    /// A well-behaved server.
    pub enum Server {
        /// A server of 2026-07-28.
        Modern = "modern",
        /// A server of 2025-11-25.
        Old = "old",
        /// A server of 2024-11-05.
        Older = "older",
    }
}

words! {
    /// A server's response to `server/discover` or `initialize`.
    pub enum Welcome {
        /// The response of a modern server to `server/discover`.
        Modern = "modern",
        /// Agrees on this revision.
        V2024_11_05 = "2024-11-05",
        /// Agrees on this revision.
        V2025_03_26 = "2025-03-26",
        /// Agrees on this revision.
        V2025_06_18 = "2025-06-18",
        /// Agrees on this revision.
        V2025_11_25 = "2025-11-25",
        /// Agrees on this revision, which has no `initialize`.
        V2026_07_28 = "2026-07-28",
        /// Agrees on an unknown revision.
        Strange = "1999-01-01",
        /// An empty success.
        Empty = "empty",
        /// Method not found.
        NotFound = "not-found",
        /// An error that names the modern revision.
        NamesModern = "names-modern",
        /// An error that names two older revisions.
        NamesOld = "names-old",
        /// An error that names unknown revisions.
        NamesStrange = "names-strange",
        /// A response to `server/discover` without the modern revision.
        ListsOld = "lists-old",
        /// An error that only modern servers send.
        ModernError = "modern-error",
    }
}

words! {
    /// Ids without a request.
    pub enum Stray {
        /// A number far ahead.
        Future = "future",
        /// Zero, the number before the first.
        Zero = "zero",
        /// A number as a string.
        Text = "text",
        /// A number that fits no integer type.
        Huge = "huge",
        /// No id.
        Null = "null",
    }
}

words! {
    /// Something other than a message.
    pub enum Garbage {
        /// Plain text.
        Text = "text",
        /// An incomplete UTF-8 sequence.
        Utf8 = "utf8",
        /// JSON that is not a message.
        Json = "json",
        /// Endless nesting.
        Deep = "deep",
        /// An empty batch.
        EmptyBatch = "empty-batch",
        /// Another protocol version.
        Version = "version",
    }
}

impl Step {
    /// Tests if this is a message of the server, which may be part of a batch.
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
