//! The invariants, and reports of their violation.

use std::fmt;

use crate::words::words;

words! {
    /// A property that must always hold.
    pub enum Invariant {
        /// Every call gets exactly one reply, and there are no replies without a call.
        OneReply = "one-reply",
        /// A caller that is gone gets no reply.
        NoReplyToGone = "no-reply-to-gone",
        /// The response delivered is the server's response to this very request.
        RightAnswer = "right-answer",
        /// A call ends with the error that matches the events.
        RightEnd = "right-end",
        /// No call outlives its deadline, and none times out before it.
        Deadline = "deadline",
        /// A frame is offered min(busy + 1, 3) times.
        SendCount = "send-count",
        /// Between two offers are 5 to 15 ms.
        RetryDelay = "retry-delay",
        /// Frames of one caller never overtake each other, and held calls are sent in order.
        LaneOrder = "lane-order",
        /// A caller's frame never waits for that of another caller.
        LaneFreedom = "lane-freedom",
        /// A frame has the right contents.
        RightFrame = "right-frame",
        /// Frames are sent only over a transport that is up, while connecting or connected.
        SendPlace = "send-place",
        /// A request is cancelled once, and only if the server has it and no caller waits for it.
        CancelOnce = "cancel-once",
        /// The caller of stop is answered before everything else, and correctly.
        StopFirst = "stop-first",
        /// After a stop comes the exit and nothing else.
        StopQuiet = "stop-quiet",
        /// The exit comes once, within 100 ms of the stop.
        StopExit = "stop-exit",
        /// A machine that has ended waits for nothing.
        Idle = "idle",
        /// An abandoned transport has no effect.
        StaleActs = "stale-acts",
        /// Tombstones are bounded, are kept for their full time, and are gone in the end.
        Tombstones = "tombstones",
        /// Late, unknown, malformed and stale messages are counted as such.
        Counted = "counted",
        /// The calls in flight are those without a reply, and are bounded.
        InFlight = "in-flight",
        /// A transport is armed once for each frame, while connecting or connected, never after a close.
        Arm = "arm",
        /// The first request of the handshake is sent before the first arm.
        HandshakeFirst = "handshake-first",
        /// There is one handshake at a time, and it follows the server's responses.
        Handshake = "handshake",
        /// Transports are opened one at a time, with increasing numbers, and closed once.
        Epochs = "epochs",
        /// Reconnecting without a delay happens once, and only to a server that exited on the probe.
        HotLoop = "hot-loop",
        /// Everything that waits has a timer, and every timer has a purpose.
        Timers = "timers",
        /// A delay is base n ±20 %, and n is reset when ready.
        Backoff = "backoff",
        /// Transitions between states follow the table.
        Transition = "transition",
        /// Messages of the server are delivered once and in order.
        Delivery = "delivery",
        /// A request of the server is answered at most once, and a ping immediately.
        ServerAnswer = "server-answer",
        /// One event causes a bounded number of actions.
        Endless = "endless",
        /// The same schedule causes the same actions.
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

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The invariant.
    pub invariant: Invariant,
    /// Index of the step; the number of steps if it happened at the end.
    pub step_index: usize,
    /// A description of the violation.
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

/// Boxed, because every check returns it and it is almost never present.
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
