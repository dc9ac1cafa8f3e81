//! The machine in a test rig: virtual time, a transport that does as the test says, and a record of
//! everything.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use switchboard_machine::{
    Action, Call, CallError, CallKind, Counters, Down, DownKind, Event, Ids, Machine, Moment,
    Outgoing, OutgoingKind, Reply, SendOutcome, Settings,
};
use switchboard_wire::Raw;

pub(crate) const MODERN: &str =
    r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
pub(crate) const LEGACY: &str = r#""result":{"protocolVersion":"2025-11-25","capabilities":{}}"#;

pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) now: Moment,
    pub(crate) ids: Ids,
    pub(crate) counters: Arc<Counters>,
    /// The outcomes of the next frames; accepted if empty.
    pub(crate) outcomes: VecDeque<SendOutcome>,
    pub(crate) actions: Vec<Action>,
    pub(crate) sent: Vec<Offer>,
    pub(crate) epoch: u64,
}

/// A frame that was offered.
pub(crate) struct Offer {
    pub(crate) at: Moment,
    pub(crate) outgoing: Outgoing,
}

impl Offer {
    pub(crate) fn method(&self) -> &str {
        match &self.outgoing.kind {
            OutgoingKind::Request { method, .. } | OutgoingKind::Notification { method } => method,
            OutgoingKind::Cancel { .. } => "cancel",
            OutgoingKind::Answer => "answer",
        }
    }

    pub(crate) fn id(&self) -> u64 {
        match self.outgoing.kind {
            OutgoingKind::Request { id, .. } | OutgoingKind::Cancel { id } => id,
            OutgoingKind::Notification { .. } | OutgoingKind::Answer => 0,
        }
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::new(Raw::empty_object()))
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let (ids, counters) = (Ids::new(), Arc::new(Counters::default()));
        let machine = Machine::new(
            settings,
            ids.clone(),
            Arc::clone(&counters),
            7,
            Moment::START,
        );
        let mut rig = Self {
            machine,
            now: Moment::START,
            ids,
            counters,
            outcomes: VecDeque::new(),
            actions: Vec::new(),
            sent: Vec::new(),
            epoch: 0,
        };
        rig.carry_out();
        rig
    }

    /// A machine that has agreed on 2026-07-28.
    pub(crate) fn modern() -> Self {
        let mut rig = Self::new();
        rig.connect_modern();
        rig
    }

    /// A machine that has agreed on 2025-11-25.
    pub(crate) fn legacy() -> Self {
        let mut rig = Self::new();
        rig.up();
        rig.answer_last(r#""error":{"code":-32601,"message":"what?"}"#);
        rig.answer_last(LEGACY);
        assert_eq!(rig.state(), "ready");
        rig
    }

    pub(crate) fn connect_modern(&mut self) {
        self.up();
        self.answer_last(MODERN);
        assert_eq!(self.state(), "ready");
    }

    /// Hands in an event. Returns the actions it caused, without telemetry.
    pub(crate) fn event(&mut self, event: Event) -> Vec<Action> {
        let before = self.actions.len();
        self.machine.handle(self.now, event);
        self.carry_out();
        self.actions[before..].to_vec()
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match &action {
                Action::Emit(_) => continue,
                Action::Open { epoch } => self.epoch = *epoch,
                Action::Send { ticket, outgoing } => {
                    let outcome = self.outcomes.pop_front().unwrap_or(SendOutcome::Accepted);
                    self.sent.push(Offer {
                        at: self.now,
                        outgoing: outgoing.clone(),
                    });
                    let ticket = *ticket;
                    self.machine
                        .handle(self.now, Event::SendResult { ticket, outcome });
                }
                _ => {}
            }
            self.actions.push(action);
        }
    }

    pub(crate) fn up(&mut self) -> Vec<Action> {
        let epoch = self.epoch;
        self.event(Event::TransportUp { epoch })
    }

    pub(crate) fn down(&mut self, kind: DownKind) -> Vec<Action> {
        let epoch = self.epoch;
        let message = Arc::from("gone");
        self.event(Event::TransportDown {
            epoch,
            down: Down {
                kind,
                message,
                said: None,
            },
        })
    }

    pub(crate) fn frame(&mut self, text: impl Into<Bytes>) -> Vec<Action> {
        self.frame_via(None, text)
    }

    /// Hands in a frame on the stream of this request.
    pub(crate) fn frame_via(&mut self, via: Option<u64>, text: impl Into<Bytes>) -> Vec<Action> {
        let epoch = self.epoch;
        let frame = text.into();
        self.event(Event::Frame { epoch, frame, via })
    }

    /// Hands in the server's response to a request.
    pub(crate) fn answer(&mut self, id: u64, body: &str) -> Vec<Action> {
        self.frame(format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#))
    }

    /// Hands in the server's response to the last request.
    pub(crate) fn answer_last(&mut self, body: &str) -> Vec<Action> {
        let id = self.last_sent().id();
        self.answer(id, body)
    }

    pub(crate) fn last_sent(&self) -> &Offer {
        self.sent.last().expect("nothing was sent")
    }

    pub(crate) fn busy(&mut self, times: usize) {
        self.outcomes
            .extend(std::iter::repeat_n(SendOutcome::Busy, times));
    }

    /// Makes a call with the usual deadline, as the caller with this number.
    pub(crate) fn call(&mut self, lane: u64) -> u64 {
        self.call_with(lane, |_| {})
    }

    pub(crate) fn call_with(&mut self, lane: u64, change: impl FnOnce(&mut Call)) -> u64 {
        let id = self.ids.draw();
        let mut call = Call {
            kind: CallKind::Request,
            method: "tools/call".into(),
            params: Some(Raw::object([("n", Raw::number(id))])),
            lane,
            timeout: Some(Duration::from_secs(30)),
            extend: None,
            progress: false,
            logs: false,
            fail_fast: false,
            log_level: None,
            trace: None,
            headers: Arc::from([]),
        };
        change(&mut call);
        self.event(Event::Call { id, call });
        id
    }

    /// Lets time pass. Every timer fires when it is due.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self.machine.next_timeout().filter(|next| *next <= until) {
            self.now = next;
            self.event(Event::Tick);
            let after = self.machine.next_timeout();
            assert!(
                after.is_none_or(|after| after > self.now),
                "a timer is left in the past"
            );
        }
        self.now = until;
    }

    /// Lets all but the last millisecond of that time pass.
    pub(crate) fn pass_almost(&mut self, time: Duration) {
        self.pass(time.saturating_sub(ms(1)));
    }

    /// All replies to a call.
    pub(crate) fn replies(&self, call: u64) -> Vec<&Result<Reply, CallError>> {
        let replies = self.actions.iter().filter_map(|action| match action {
            Action::Reply { id, outcome } if *id == call => Some(outcome),
            _ => None,
        });
        replies.collect()
    }

    /// The only reply to a call, which has to be an error.
    pub(crate) fn error(&self, call: u64) -> CallError {
        match self.replies(call).as_slice() {
            [Err(error)] => error.clone(),
            other => panic!("{call} was replied {other:?}"),
        }
    }

    pub(crate) fn offers_of(&self, call: u64) -> Vec<Moment> {
        let offers = self
            .sent
            .iter()
            .filter(|offer| offer.method() == "tools/call");
        offers
            .filter(|offer| offer.id() == call)
            .map(|offer| offer.at)
            .collect()
    }

    pub(crate) fn state(&self) -> &'static str {
        let states = self.actions.iter().rev().find_map(|action| match action {
            Action::State(state) => Some(state.name()),
            _ => None,
        });
        states.unwrap_or("starting")
    }

    pub(crate) fn methods(&self) -> Vec<&str> {
        self.sent.iter().map(Offer::method).collect()
    }
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
