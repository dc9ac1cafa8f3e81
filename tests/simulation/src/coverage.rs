//! How often each thing happened in each state: the table of the design, filled in.

use std::fmt;

use crate::words::words;

words! {
    /// A state of the connection, without its data.
    pub enum Phase {
        /// The transport is being opened.
        Starting = "starting",
        /// The handshake is under way.
        Initializing = "initializing",
        /// Calls go through.
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
        /// Anything from a transport that was given up.
        Stale = "stale epoch",
        /// A frame over the limit.
        Oversize = "frame over the limit",
        /// A frame that is not JSON-RPC.
        Garbage = "frame not JSON-RPC",
        /// The answer that the handshake waits for.
        Handshake = "handshake answered",
        /// The answer that a call waits for.
        Answer = "response, in flight",
        /// An answer that nobody waits for any more.
        Late = "response, tombstoned",
        /// An answer that nobody waited for.
        Unknown = "response, unknown",
        /// A ping of the server.
        Ping = "server ping",
        /// Any other request of the server.
        Request = "server request",
        /// A notification.
        Notification = "notification",
        /// Progress of a call.
        Progress = "progress",
        /// The server withdraws a request.
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
        /// The owner answers the server.
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

/// How often each pair was hit.
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

    /// How often a pair was hit.
    pub fn hits(&self, phase: Phase, happening: Happening) -> u64 {
        self.0[happening as usize][phase as usize]
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        for (row, others) in self.0.iter_mut().zip(&other.0) {
            for (hits, more) in row.iter_mut().zip(others) {
                *hits += more;
            }
        }
    }

    /// The pairs that can be reached and were not.
    pub fn missing(&self) -> Vec<(Phase, Happening)> {
        pairs()
            .filter(|(phase, happening)| {
                reachable(*phase, *happening) && self.hits(*phase, *happening) == 0
            })
            .collect()
    }

    /// The pairs that cannot be reached and were: the table of what can be is wrong.
    pub fn impossible(&self) -> Vec<(Phase, Happening)> {
        pairs()
            .filter(|(phase, happening)| {
                !reachable(*phase, *happening) && self.hits(*phase, *happening) > 0
            })
            .collect()
    }

    /// How many pairs were hit, and how many can be.
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

/// Whether this can happen in that state at all.
///
/// What a transport sends before it is up, or after it was given up, is against the contract or
/// stale: that is not out of reach, it is what the simulation is for. Out of reach is only what
/// somebody must have waited for in a state in which nobody can.
pub fn reachable(phase: Phase, happening: Happening) -> bool {
    match happening {
        // Only there is one waited for.
        Happening::Handshake => phase == Phase::Initializing,
        Happening::Answer => phase == Phase::Ready,
        // A call that failed or stopped has been replied to, so it has no deadline.
        Happening::Deadline => !matches!(phase, Phase::Failed | Phase::Closing),
        // Frames are only on their way while there is a transport to take them.
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
