//! What must hold whatever happens, and the report that it did not.

use std::fmt;

use crate::words::words;

words! {
    /// Something that must hold whatever happens.
    pub enum Invariant {
        /// Every call is replied to exactly once, and none that was not made.
        OneReply = "one-reply",
        /// Who is gone gets no reply.
        NoReplyToGone = "no-reply-to-gone",
        /// The answer delivered is the one that the server gave to this very request.
        RightAnswer = "right-answer",
        /// How a call ended is how it went.
        RightEnd = "right-end",
        /// No call outlives its deadline, and none ends before it.
        Deadline = "deadline",
        /// A frame is offered min(busy + 1, 3) times.
        SendCount = "send-count",
        /// Between two offers are 5 to 15 ms.
        RetryDelay = "retry-delay",
        /// Frames of one caller never overtake each other, and held calls go out in order.
        LaneOrder = "lane-order",
        /// A caller's frame waits for no other caller's.
        LaneFreedom = "lane-freedom",
        /// A frame says what was to be said.
        RightFrame = "right-frame",
        /// Nothing is sent but over a transport that is up, while connecting or connected.
        SendPlace = "send-place",
        /// A request is withdrawn once, and only if the server has it and nobody waits.
        CancelOnce = "cancel-once",
        /// The caller of stop is answered ahead of everything else, and told the truth.
        StopFirst = "stop-first",
        /// After a stop comes the exit and nothing else.
        StopQuiet = "stop-quiet",
        /// The exit comes within 100 ms of the stop, once.
        StopExit = "stop-exit",
        /// What has ended waits for nothing.
        Idle = "idle",
        /// A transport that was given up causes nothing.
        StaleActs = "stale-acts",
        /// Tombstones are bounded, kept as long as they should be, and gone in the end.
        Tombstones = "tombstones",
        /// Late, unknown, malformed and stale are counted as what they are.
        Counted = "counted",
        /// The calls in flight are the ones not replied to, and are bounded.
        InFlight = "in-flight",
        /// A transport is armed once for each frame, while connecting or connected, never after a close.
        Arm = "arm",
        /// The first request of the handshake goes ahead of the first arm.
        HandshakeFirst = "handshake-first",
        /// One handshake at a time, and it goes where the answers of the server lead.
        Handshake = "handshake",
        /// Transports are opened one at a time, under growing numbers, and closed once.
        Epochs = "epochs",
        /// Connecting again without a pause happens once, and only to a server that left when probed.
        HotLoop = "hot-loop",
        /// Whatever waits has a timer, and a timer has somebody who waits.
        Timers = "timers",
        /// A delay is base n ±20 %, and n starts over when ready.
        Backoff = "backoff",
        /// States follow each other as in the table.
        Transition = "transition",
        /// What the server says is handed on once and in order.
        Delivery = "delivery",
        /// A request of the server is answered at most once, and a ping at once.
        ServerAnswer = "server-answer",
        /// One event leads to a bounded number of actions.
        Endless = "endless",
        /// The same schedule leads to the same actions.
        Determinism = "determinism",
        /// Nothing panics.
        Panic = "panic",
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which one.
    pub invariant: Invariant,
    /// At which step; the number of steps if it was in the end.
    pub step_index: usize,
    /// What happened.
    pub detail: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` broken at step {}: {}",
            self.invariant, self.step_index, self.detail
        )
    }
}

impl std::error::Error for Broken {}

/// [`Broken`] before the step is known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) invariant: Invariant,
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn at(self, step_index: usize) -> Broken {
        Broken {
            invariant: self.invariant,
            step_index,
            detail: self.detail,
        }
    }
}

/// Boxed, because it is carried through every check and hardly ever there.
pub(crate) type Checked = Result<(), Box<Fault>>;

/// Returns a [`Fault`] unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $invariant:ident, $($detail:tt)+) => {
        if !$holds {
            return Err(Box::new($crate::invariant::Fault {
                invariant: $crate::invariant::Invariant::$invariant,
                detail: format!($($detail)+),
            }));
        }
    };
}

pub(crate) use ensure;
