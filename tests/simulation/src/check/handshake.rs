//! The handshake: the next request, and the consequence of each response. Written from the protocol, not from
//! the machine.

use switchboard_machine::{Moment, Session};
use switchboard_wire::{Era, Revision, method};

use super::{Checker, Phase, calls::Due, inbound::Delivery};
use crate::{
    invariant::{Checked, ensure},
    server::{Asked, Note},
    step::Welcome,
};

/// The side whose turn it is, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    /// The client's, with its first message.
    #[default]
    Opening,
    /// The client's, with this request.
    Ask(Asked, Option<Revision>),
    /// The server's, to answer the request with this id.
    Answer(Asked, u64),
    /// The client's, to confirm.
    Confirm(Revision),
}

/// A probe that the server has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Probe {
    #[default]
    None,
    /// Queued to be sent.
    Queued,
    /// Sent under this id.
    Sent(u64),
}

#[derive(Debug, Default)]
pub(super) struct Handshake {
    turn: Turn,
    since: Moment,
    /// The request after the pending one, if the pending one waited in the queue past the time in which its
    /// response is awaited.
    then: Option<(Asked, Option<Revision>)>,
    /// The first request.
    pub(super) opening: Option<Asked>,
    probe: Probe,
    /// A request in the newest revision has been sent.
    probed: bool,
    rounds: u8,
    negotiated: Option<Revision>,
    /// Messages that the server sent too early.
    pub(super) held: Vec<(Note, Option<u64>)>,
}

/// The consequence of a response.
#[derive(Debug, Clone, Copy)]
enum Next {
    Ready,
    Confirm(Revision),
    Ask(Asked, Option<Revision>),
    Backoff,
    Failed,
}

/// The most requests of a handshake.
const ROUNDS_MAX: u8 = 4;

impl Handshake {
    /// The time since which the response to a probe is awaited.
    pub(super) fn probing_since(&self) -> Option<Moment> {
        matches!(
            self.turn,
            Turn::Ask(Asked::Discover, _) | Turn::Answer(Asked::Discover, _)
        )
        .then_some(self.since)
        .filter(|_| self.then.is_none())
    }

    /// Tests if the first request may be the reason that a server exits now.
    pub(super) fn left_when_probed(&self) -> bool {
        self.probe != Probe::None && self.opening == Some(Asked::Discover)
    }
}

impl Checker<'_> {
    pub(super) fn begin_handshake(&mut self) {
        let held = std::mem::take(&mut self.handshake.held);
        self.handshake = Handshake {
            since: self.now,
            held,
            ..Handshake::default()
        };
        self.handshake.held.clear();
    }

    /// Checks a request of the handshake when it is first offered.
    pub(super) fn on_greeting(&mut self, id: u64, method: &str, frame: &[u8]) -> Checked {
        let phase = self.phase.word();
        ensure!(
            self.phase == Phase::Initializing,
            Handshake,
            "{method} is sent while {phase}"
        );
        ensure!(
            self.calls.is_fresh(id),
            Handshake,
            "{method} bears {id}, which was used before"
        );
        self.life.greeted = true;
        let asked = match method {
            method::DISCOVER => Asked::Discover,
            _ => Asked::Initialize,
        };
        let modern = self.settings.newest.era() == Era::Modern;
        let handshake = &mut self.handshake;
        let offer = match handshake.turn {
            Turn::Opening => {
                ensure!(
                    modern || asked == Asked::Initialize,
                    Handshake,
                    "a probe, and 2026-07-28 is not to be offered"
                );
                handshake.opening = Some(asked);
                handshake.rounds = 1;
                Some(self.settings.newest.min(Revision::LATEST_LEGACY))
            }
            Turn::Ask(expected, offer) => {
                ensure!(
                    asked == expected,
                    Handshake,
                    "{asked:?} is asked, and {expected:?} is next"
                );
                offer
            }
            Turn::Answer(..) | Turn::Confirm(_) => {
                ensure!(
                    false,
                    Handshake,
                    "{asked:?} is asked, and it is {:?}",
                    handshake.turn
                );
                None
            }
        };
        if let (Asked::Initialize, Some(offer)) = (asked, offer) {
            let version = format!(r#""protocolVersion":"{offer}""#);
            let found = frame
                .windows(version.len())
                .any(|window| window == version.as_bytes());
            ensure!(found, Handshake, "{offer} is to be offered, and is not");
        }
        handshake.turn = match handshake.then.take() {
            Some((asked, offer)) => Turn::Ask(asked, offer),
            None => Turn::Answer(asked, id),
        };
        if asked == Asked::Discover {
            handshake.probe = Probe::Sent(id);
            handshake.probed = true;
        }
        Ok(())
    }

    /// Checks the notification that ends the handshake of an older revision when it is first offered.
    pub(super) fn on_confirm(&self) -> Checked {
        let turn = self.handshake.turn;
        ensure!(
            matches!(turn, Turn::Confirm(_)),
            Handshake,
            "we agree, and it is {turn:?}"
        );
        Ok(())
    }

    pub(super) fn on_confirmed(&mut self) {
        if let Turn::Confirm(_) = self.handshake.turn {
            self.due_phase = Phase::Ready;
        }
    }

    /// Handles a frame of the handshake that could not be sent.
    pub(super) fn on_handshake_given_up(&mut self) {
        self.due_phase = Phase::Backoff;
    }

    pub(super) fn on_negotiated(&mut self, epoch: u64, session: &Session) -> Checked {
        let expected = match (self.due_phase, self.handshake.turn) {
            (Phase::Ready, _) => Some(Revision::LATEST),
            (_, Turn::Confirm(revision)) => Some(revision),
            _ => None,
        };
        let (revision, before) = (session.revision, self.handshake.negotiated);
        ensure!(
            self.life.listens_to(epoch) && expected == Some(revision) && before.is_none(),
            Handshake,
            "{revision} is agreed on with {epoch}, and the server said {expected:?}, before {before:?}"
        );
        self.handshake.negotiated = Some(revision);
        Ok(())
    }

    pub(super) fn on_ready(&mut self, revision: Revision) -> Checked {
        let agreed = self.handshake.negotiated;
        ensure!(
            self.due_phase == Phase::Ready && agreed == Some(revision),
            Handshake,
            "ready with {revision}, agreed on {agreed:?}"
        );
        self.sends.forget_handshake();
        self.release_held();
        for index in 0..self.calls.records.len() {
            let call = &self.calls.records[index];
            if !call.ended && self.cannot_be_stamped(call.shape) {
                self.calls.due.push((call.id, Due::InvalidParams));
            }
        }
        self.line_up();
        Ok(())
    }

    pub(super) fn expect_probe_timeout(&mut self) {
        if self.phase == Phase::Initializing
            && let Some(since) = self.handshake.probing_since()
            && since + self.settings.probe_timeout <= self.now
        {
            self.follow(Next::Ask(Asked::Initialize, Some(Revision::LATEST_LEGACY)));
        }
    }

    pub(super) fn expect_failure(&mut self, id: u64, status: Option<u16>) {
        if self.phase == Phase::Initializing {
            if self.handshake.probe == Probe::Sent(id) {
                self.handshake.probe = Probe::None;
            }
            if let Turn::Answer(asked, expected) = self.handshake.turn
                && expected == id
            {
                let next = match (status, asked) {
                    (Some(401 | 403), _) => Next::Failed,
                    // These statuses come from an intermediary, and say nothing about the server.
                    (Some(429 | 503), _) => Next::Backoff,
                    (_, Asked::Discover) => {
                        Next::Ask(Asked::Initialize, Some(Revision::LATEST_LEGACY))
                    }
                    (Some(_), Asked::Initialize) if self.may_be_probed() => {
                        Next::Ask(Asked::Discover, None)
                    }
                    (_, Asked::Initialize) => Next::Backoff,
                };
                self.follow(next);
                self.expect_loss();
            }
        }
        if self.calls.awaits_answer(id) {
            self.calls.due.push((id, Due::RequestFailed));
        }
    }

    /// Tests if a server that refuses `initialize` is probed in the newest revision.
    fn may_be_probed(&self) -> bool {
        self.settings.newest.era() == Era::Modern && !self.handshake.probed
    }

    /// Tests if the handshake waits for the response to this request.
    pub(super) fn decides(&self, id: u64) -> bool {
        matches!(self.handshake.turn, Turn::Answer(_, expected) if expected == id)
            && self.due_phase == Phase::Initializing
    }

    /// Handles the server's response to a request of a handshake.
    pub(super) fn expect_welcome(&mut self, id: u64, how: Welcome) {
        let late_probe = self.handshake.probe == Probe::Sent(id);
        if late_probe {
            self.handshake.probe = Probe::None;
        }
        match self.handshake.turn {
            Turn::Answer(asked, expected) if expected == id => {
                let next = judge(asked, how, self.settings.newest, self.may_be_probed());
                self.follow(next);
                self.expect_loss();
            }
            // The server was merely slow, and is a modern one after all.
            Turn::Answer(Asked::Initialize, _) | Turn::Ask(Asked::Initialize, _) if late_probe => {
                if how == Welcome::Modern {
                    self.follow(Next::Ready);
                }
            }
            _ if late_probe => {}
            _ => self.inbox.late_or_unknown(),
        }
    }

    fn follow(&mut self, next: Next) {
        match next {
            Next::Ready => {
                self.due_phase = Phase::Ready;
                self.life.modern = true;
                self.release_held();
            }
            Next::Confirm(revision) => self.handshake.turn = Turn::Confirm(revision),
            Next::Ask(..) if self.handshake.rounds >= ROUNDS_MAX => self.due_phase = Phase::Backoff,
            Next::Ask(asked, offer) => {
                self.handshake.rounds += 1;
                if let Turn::Ask(..) = self.handshake.turn {
                    self.handshake.then = Some((asked, offer));
                } else {
                    self.handshake.turn = Turn::Ask(asked, offer);
                }
                self.handshake.since = self.now;
                if asked == Asked::Discover {
                    self.handshake.probe = Probe::Queued;
                    self.handshake.probed = true;
                }
            }
            Next::Backoff => self.due_phase = Phase::Backoff,
            Next::Failed => self.due_phase = Phase::Failed,
        }
    }

    /// Handles the held messages as if they had just arrived.
    fn release_held(&mut self) {
        for (note, via) in std::mem::take(&mut self.handshake.held) {
            self.expect_news(note, via);
        }
    }

    /// Holds a message, if there is room; otherwise a request is refused.
    pub(super) fn hold(&mut self, note: Note, via: Option<u64>) {
        if self.handshake.held.len() < self.settings.held_max {
            self.handshake.held.push((note, via));
        } else if let Note::Ask(own) = note {
            self.inbox.answers[usize::from(own)] += 1;
        }
    }

    pub(super) fn expect_delivery(&mut self, delivery: Delivery) {
        self.inbox.due.push_back(delivery);
    }
}

/// The consequence of a response, according to the protocol and to the behaviour of real servers.
fn judge(asked: Asked, how: Welcome, newest: Revision, may_be_probed: bool) -> Next {
    let initialize = |offer| Next::Ask(Asked::Initialize, Some(offer));
    match (asked, how) {
        (Asked::Discover, Welcome::Modern) => Next::Ready,
        (Asked::Discover, Welcome::ListsOld) => initialize(Revision::V2025_06_18),
        (Asked::Discover, Welcome::NamesOld) => initialize(Revision::V2025_11_25),
        // It names the revision that was just used, so it is asked once more.
        (Asked::Discover, Welcome::NamesModern) => Next::Ask(Asked::Discover, None),
        (Asked::Discover, Welcome::NamesStrange) => Next::Failed,
        (Asked::Discover, Welcome::ModernError) => Next::Backoff,
        (Asked::Discover, _) => initialize(Revision::LATEST_LEGACY),
        // It may support only the newest revision.
        (Asked::Initialize, Welcome::V2026_07_28 | Welcome::NotFound | Welcome::ModernError)
            if may_be_probed =>
        {
            Next::Ask(Asked::Discover, None)
        }
        (Asked::Initialize, Welcome::NamesModern) if newest == Revision::LATEST => {
            Next::Ask(Asked::Discover, None)
        }
        (Asked::Initialize, Welcome::NamesOld) if newest >= Revision::V2025_11_25 => {
            initialize(Revision::V2025_11_25)
        }
        (Asked::Initialize, Welcome::NamesOld) => initialize(Revision::V2024_11_05),
        (Asked::Initialize, Welcome::NamesModern | Welcome::NamesStrange | Welcome::Strange) => {
            Next::Failed
        }
        (Asked::Initialize, _) => match Revision::parse(how.word()) {
            Some(revision) if revision.era() == Era::Legacy && revision <= newest => {
                Next::Confirm(revision)
            }
            Some(_) => Next::Failed,
            None => Next::Backoff,
        },
    }
}
