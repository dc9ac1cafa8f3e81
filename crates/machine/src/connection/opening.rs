//! The handshake: from a transport that is up to a connection that is ready.

use std::sync::Arc;

use switchboard_wire::{Era, Outcome, encode, method};

use super::{Machine, Phase};
use crate::{
    error::RequestFailure,
    event::{Action, CallKind, Outgoing, OutgoingKind, State},
    handshake::{self, Asked, Handshake, ROUNDS_MAX, Session, Verdict},
    outbox::{Lane, Purpose},
    time::Moment,
    timers::Timer,
};

impl Machine {
    pub(super) fn begin_handshake(&mut self, now: Moment) {
        let first = handshake::opening(&self.settings, self.era);
        self.enter(State::Initializing, "transport up");
        self.phase = Phase::Initializing {
            handshake: Handshake {
                asked: Asked::Discover(0),
                open_probe: None,
                is_probed: self.settings.newest.era() == Era::Legacy,
                rounds: 0,
            },
            held: Vec::new(),
        };
        self.follow(now, first);
        self.arm();
    }

    /// Handles a response during the handshake. Returns `true` if it was part of the handshake.
    pub(super) fn handshake_answered(&mut self, now: Moment, id: u64, outcome: &Outcome) -> bool {
        let Phase::Initializing { handshake, .. } = &mut self.phase else {
            return false;
        };
        let late_probe = handshake.open_probe == Some(id);
        if late_probe {
            handshake.open_probe = None;
        }
        match handshake.asked {
            Asked::Discover(asked) if asked == id => {
                let verdict = handshake::judge_discover(outcome);
                self.follow(now, verdict);
                true
            }
            Asked::Initialize(asked) if asked == id => {
                let is_probed = handshake.is_probed;
                let verdict = handshake::judge_initialize(&self.settings, outcome, is_probed);
                self.follow(now, verdict);
                true
            }
            // The server was only slow to start. A modern response decides; any other merely
            // confirms the assumption.
            Asked::Initialize(_) if late_probe => {
                if let agreed @ Verdict::Agreed(_) = handshake::judge_discover(outcome) {
                    self.follow(now, agreed);
                }
                true
            }
            Asked::Discover(_) | Asked::Initialize(_) | Asked::Confirming(_) => late_probe,
        }
    }

    /// Handles the failure of a request. Returns `true` if the request was part of the handshake.
    pub(super) fn handshake_failed(
        &mut self,
        now: Moment,
        id: u64,
        failure: &RequestFailure,
    ) -> bool {
        let Phase::Initializing { handshake, .. } = &mut self.phase else {
            return false;
        };
        if handshake.open_probe == Some(id) {
            handshake.open_probe = None;
        }
        let probe = match handshake.asked {
            Asked::Discover(asked) if asked == id => true,
            Asked::Initialize(asked) if asked == id => false,
            Asked::Discover(_) | Asked::Initialize(_) | Asked::Confirming(_) => return false,
        };
        let verdict = handshake::judge_failure(probe, handshake.is_probed, failure);
        self.follow(now, verdict);
        true
    }

    /// Handles a probe without a response: the server is an older one that ignores unknown
    /// requests.
    pub(super) fn probe_unanswered(&mut self, now: Moment) {
        if let Phase::Initializing { handshake, .. } = &self.phase
            && let Asked::Discover(_) = handshake.asked
        {
            self.follow(
                now,
                Verdict::Initialize(switchboard_wire::Revision::LATEST_LEGACY),
            );
        }
    }

    /// Handles the acceptance of the notification that ends the handshake.
    pub(super) fn confirmed(&mut self, now: Moment) {
        let Phase::Initializing { handshake, .. } = &self.phase else {
            return;
        };
        let Asked::Confirming(session) = &handshake.asked else {
            return;
        };
        let session = Arc::new((**session).clone());
        self.become_ready(now, session);
    }

    fn follow(&mut self, now: Moment, verdict: Verdict) {
        let Phase::Initializing { handshake, .. } = &mut self.phase else {
            return;
        };
        handshake.rounds += 1;
        let in_circles = handshake.rounds > ROUNDS_MAX;
        self.timers.stop(Timer::Probe);
        match verdict {
            Verdict::Discover | Verdict::Initialize(_) if in_circles => {
                self.era = None;
                self.give_up(
                    now,
                    false,
                    "the handshake with the server does not end",
                    None,
                );
            }
            Verdict::Discover => {
                let id = self.ids.draw();
                handshake.asked = Asked::Discover(id);
                handshake.open_probe = Some(id);
                handshake.is_probed = true;
                let frame = handshake::discover_frame(&self.settings, id);
                self.ask(id, method::DISCOVER, frame);
                self.timers
                    .set(Timer::Probe, now + self.settings.probe_timeout);
            }
            Verdict::Initialize(offer) => {
                let id = self.ids.draw();
                handshake.asked = Asked::Initialize(id);
                let frame = handshake::initialize_frame(&self.settings, id, offer);
                self.ask(id, method::INITIALIZE, frame);
            }
            Verdict::Agreed(session) => self.agreed(now, session),
            Verdict::Refused {
                permanent,
                reason,
                said,
            } => {
                self.era = None;
                self.give_up(now, permanent, &reason, said);
            }
        }
    }

    fn agreed(&mut self, now: Moment, session: Box<Session>) {
        let shared = Arc::new((*session).clone());
        self.actions.push_back(Action::Negotiated {
            epoch: self.epoch,
            session: Arc::clone(&shared),
        });
        if shared.revision.era() == Era::Modern {
            self.become_ready(now, shared);
            return;
        }
        if let Phase::Initializing { handshake, .. } = &mut self.phase {
            handshake.asked = Asked::Confirming(session);
        }
        let method = method::INITIALIZED.into();
        let outgoing = Outgoing {
            frame: encode::notification(method::INITIALIZED, None),
            kind: OutgoingKind::Notification { method },
            headers: Arc::from([]),
        };
        self.post(Lane::Own, Purpose::Confirm, outgoing);
    }

    fn ask(&mut self, id: u64, method: &'static str, frame: bytes::Bytes) {
        let method = method.into();
        let outgoing = Outgoing {
            frame,
            kind: OutgoingKind::Request { id, method },
            headers: Arc::from([]),
        };
        self.post(Lane::Own, Purpose::Handshake(id), outgoing);
    }

    fn become_ready(&mut self, now: Moment, session: Arc<Session>) {
        self.timers.stop(Timer::Handshake);
        self.timers.stop(Timer::Probe);
        // A late response to the probe may complete the handshake while the next request is still
        // in the outbox.
        while let Some(ticket) = self.outbox.question() {
            self.leave_outbox(ticket);
        }
        self.backoff.reset();
        self.last_failure = None;
        self.counters.ready.add();
        self.era = Some(session.revision.era());
        self.enter(State::Ready(Arc::clone(&session)), "handshake done");
        let phase = std::mem::replace(&mut self.phase, Phase::Ready(session));
        if let Phase::Initializing { held, .. } = phase {
            for (message, via, bytes) in held {
                self.dispatch(now, message, via, bytes);
            }
        }
        for id in std::mem::take(&mut self.waiting) {
            self.send_call(now, id);
        }
    }
}

impl CallKind {
    pub(super) fn outgoing(self, id: u64, method: std::borrow::Cow<'static, str>) -> OutgoingKind {
        match self {
            Self::Request => OutgoingKind::Request { id, method },
            Self::Notification => OutgoingKind::Notification { method },
        }
    }
}
