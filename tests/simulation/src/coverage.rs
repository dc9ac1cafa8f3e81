//! Counts each event in each state: the transition table of the design, filled in.

use std::fmt;

use crate::words::words;

words! {
    /// A state of the connection, without its data.
    pub enum Phase {
        /// The transport is being opened.
        Starting = "starting",
        /// The handshake is in progress.
        Initializing = "initializing",
        /// Calls are sent.
        Ready = "ready",
        /// Waiting before the next attempt.
        Backoff = "backoff",
        /// Given up.
        Failed = "failed",
        /// Stopping or stopped.
        Closing = "closing",
    }
}

words! {
    /// A row of the table.
    pub enum Happening {
        /// The transport is up.
        Up = "transport up",
        /// The transport is down.
        Down = "transport down",
        /// Any event of an abandoned transport.
        Stale = "stale epoch",
        /// A frame over the limit.
        Oversize = "frame over the limit",
        /// A frame that is not JSON-RPC.
        Garbage = "frame not JSON-RPC",
        /// The response that the handshake waits for.
        Handshake = "handshake answered",
        /// The response that a call waits for.
        Answer = "response, in flight",
        /// A response that is no longer awaited.
        Late = "response, tombstoned",
        /// A response that was never awaited.
        Unknown = "response, unknown",
        /// A ping of the server.
        Ping = "server ping",
        /// Any other request of the server.
        Request = "server request",
        /// A notification.
        Notification = "notification",
        /// Progress of a call.
        Progress = "progress",
        /// The server cancels a request.
        Withdrawal = "withdrawal",
        /// The transport could not carry a request.
        RequestFailed = "request failed",
        /// A call.
        Call = "call",
        /// The deadline of a call.
        Deadline = "request deadline",
        /// A caller is gone.
        CallerGone = "caller gone",
        /// A caller cancels.
        Cancel = "cancel",
        /// The owner responds to the server.
        OwnerAnswers = "owner answers",
        /// A frame is offered again.
        Retry = "retry timer",
        /// A restart.
        Restart = "restart",
        /// A stop.
        Stop = "stop",
    }
}

const PHASES: usize = Phase::ALL.len();
const HAPPENINGS: usize = Happening::ALL.len();

/// The number of hits of each pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage([[u64; PHASES]; HAPPENINGS]);

impl Default for Coverage {
    fn default() -> Self {
        Self([[0; PHASES]; HAPPENINGS])
    }
}

impl Coverage {
    /// Counts a pair.
    pub(crate) fn hit(&mut self, phase: Phase, happening: Happening) {
        self.0[happening as usize][phase as usize] += 1;
    }

    /// The number of hits of a pair.
    pub fn hits(&self, phase: Phase, happening: Happening) -> u64 {
        self.0[happening as usize][phase as usize]
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        for (row, others) in self.0.iter_mut().zip(&other.0) {
            for (hits, more) in row.iter_mut().zip(others) {
                *hits += more;
            }
        }
    }

    /// The pairs that are reachable and were not hit.
    pub fn missing(&self) -> Vec<(Phase, Happening)> {
        pairs()
            .filter(|(phase, happening)| {
                reachable(*phase, *happening) && self.hits(*phase, *happening) == 0
            })
            .collect()
    }

    /// The pairs that are unreachable and were hit: [`reachable`] is wrong.
    pub fn impossible(&self) -> Vec<(Phase, Happening)> {
        pairs()
            .filter(|(phase, happening)| {
                !reachable(*phase, *happening) && self.hits(*phase, *happening) > 0
            })
            .collect()
    }

    /// The numbers of pairs that were hit, and that are reachable.
    pub fn totals(&self) -> (usize, usize) {
        let hit = pairs()
            .filter(|(phase, happening)| self.hits(*phase, *happening) > 0)
            .count();
        let all = pairs()
            .filter(|(phase, happening)| reachable(*phase, *happening))
            .count();
        (hit, all)
    }
}

fn pairs() -> impl Iterator<Item = (Phase, Happening)> {
    let row = |happening: &Happening| {
        Phase::ALL.iter().map({
            let happening = *happening;
            move |phase| (*phase, happening)
        })
    };
    Happening::ALL.iter().flat_map(row)
}

/// Tests if an event can happen in a state.
///
/// Events of a transport before it is up violate the contract, and those after it was abandoned are stale,
/// but both are reachable: the simulation exists for them. Unreachable are only events that require a waiter,
/// in states that have none.
pub fn reachable(phase: Phase, happening: Happening) -> bool {
    match happening {
        // Awaited in this state only.
        Happening::Handshake => phase == Phase::Initializing,
        Happening::Answer => phase == Phase::Ready,
        // A call that failed or stopped has been replied to, so it has no deadline.
        Happening::Deadline => !matches!(phase, Phase::Failed | Phase::Closing),
        // Frames are retried only while there is a transport to accept them.
        Happening::Retry => matches!(phase, Phase::Initializing | Phase::Ready),
        _ => true,
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22}", "")?;
        for phase in Phase::ALL {
            write!(f, "{:>14}", phase.word())?;
        }
        writeln!(f)?;
        for happening in Happening::ALL {
            write!(f, "{:<22}", happening.word())?;
            for phase in Phase::ALL {
                match (reachable(*phase, *happening), self.hits(*phase, *happening)) {
                    (false, 0) => write!(f, "{:>14}", "–")?,
                    (_, hits) => write!(f, "{hits:>14}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
