//! The world of one connection: virtual time, an adverse transport and server, callers and an owner. It plays
//! a schedule while the checker watches.

use std::{
    fmt::Write,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use switchboard_machine::{
    Action, Call, CallKind, Counters, Down, DownKind, Event, Extend, Headers, Ids, Moment,
    OutgoingKind, RequestFailure, SendOutcome,
};
use switchboard_wire::{ErrorObject, Id, Raw, code, method};

use crate::{
    check::{Cause, Checker, Phase, STOP_MAX},
    coverage::Coverage,
    invariant::{Broken, Checked},
    schedule::{Schedule, Setup},
    server::{Asked, Note, Peer, SERVER_IDS, pick, server_id},
    step::{Shape, Step},
    subject::Subject,
};

/// The method of calls.
pub(crate) const CALL_METHOD: &str = method::TOOLS_CALL;
/// The method of notifications.
pub(crate) const NOTIFY_METHOD: &str = method::ROOTS_CHANGED;

/// The outcome of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Number of steps.
    pub steps: u64,
    /// Number of events.
    pub events: u64,
    /// Number of actions.
    pub actions: u64,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that the server answered, or the transport accepted.
    pub answered: u64,
    /// Number of times that the connection became ready.
    pub ready: u64,
}

/// Plays a schedule against a subject.
pub fn run<S: Subject>(schedule: &Schedule, coverage: &mut Coverage) -> Result<Summary, Broken> {
    World::<S>::begin(schedule, coverage, None).run(schedule)
}

/// Plays a schedule and returns a log of everything that happened.
pub fn trace<S: Subject>(schedule: &Schedule) -> (Result<Summary, Broken>, Vec<String>) {
    let mut coverage = Coverage::default();
    let mut world = World::<S>::begin(schedule, &mut coverage, Some(Vec::new()));
    let result = world.run(schedule);
    (result, world.log.take().unwrap_or_default())
}

struct World<'a, S> {
    subject: S,
    check: Checker<'a>,
    setup: Setup,
    ids: Ids,
    counters: Arc<Counters>,
    peer: Peer,
    /// Number of frames for which the transport is busy, or gone.
    busy: u8,
    shut: u8,
    stale: Option<u8>,
    via: Option<u8>,
    batch: Batch,
    late_results: Vec<(u64, SendOutcome)>,
    headers: Headers,
    message: Arc<str>,
    events: u64,
    log: Option<Vec<String>>,
}

/// Messages of the server that will arrive in one frame.
#[derive(Default)]
struct Batch {
    left: u8,
    text: Vec<u8>,
    notes: Vec<Note>,
}

impl<'a, S: Subject> World<'a, S> {
    fn begin(schedule: &Schedule, coverage: &'a mut Coverage, log: Option<Vec<String>>) -> Self {
        let setup = schedule.setup;
        let settings = setup.settings();
        let (ids, counters) = (Ids::new(), Arc::new(Counters::default()));
        let subject = S::begin(
            settings.clone(),
            ids.clone(),
            Arc::clone(&counters),
            schedule.seed,
            Moment::START,
        );
        Self {
            subject,
            check: Checker::new(settings, coverage),
            setup,
            ids,
            counters,
            peer: Peer::default(),
            busy: 0,
            shut: 0,
            stale: None,
            via: None,
            batch: Batch::default(),
            late_results: Vec::new(),
            headers: Arc::from([]),
            message: Arc::from("the script wants it"),
            events: 0,
            log,
        }
    }

    fn run(&mut self, schedule: &Schedule) -> Result<Summary, Broken> {
        let mut at = 0;
        let played = self.play(schedule, &mut at);
        let counted = self.counters.values();
        let summary = Summary {
            steps: schedule.steps.len() as u64,
            events: self.events,
            actions: self.check.all_actions,
            calls: counted.calls,
            answered: counted.answered,
            ready: counted.ready,
        };
        played.map(|()| summary).map_err(|fault| fault.at(at))
    }

    fn play(&mut self, schedule: &Schedule, at: &mut usize) -> Checked {
        self.check.before(Cause::Begin, None, &self.counters);
        self.carry_out(None)?;
        for step in &schedule.steps {
            if let Some(log) = &mut self.log {
                log.push(format!("{:?} {step}", self.check.now.since_start()));
            }
            self.step(*step)?;
            *at += 1;
        }
        self.end()
    }

    fn step(&mut self, step: Step) -> Checked {
        if step.is_message() {
            return self.message(step);
        }
        // It may also come in the middle of a batch, and does not end it.
        if let Step::Via(which) = step {
            self.via = Some(which);
            return Ok(());
        }
        self.flush()?;
        match step {
            Step::Wait(ms) => self.wait(millis(ms)),
            Step::Doze(ms) => {
                self.check.now = self.check.now + millis(ms);
                self.check.dozed = true;
                let ticked = self.event(Cause::Tick, None, Event::Tick);
                self.check.dozed = false;
                ticked
            }
            Step::Ring => match self.subject.next_timeout() {
                Some(next) => self.tick_at(next),
                None => Ok(()),
            },
            Step::Up => {
                let epoch = self.epoch();
                self.event(Cause::Up, Some(epoch), Event::TransportUp { epoch })
            }
            Step::Down(kind) => self.down(kind),
            Step::Busy(count) => {
                self.busy = count;
                Ok(())
            }
            Step::Shut(count) => {
                self.shut = count;
                Ok(())
            }
            Step::Oversize => {
                let epoch = self.epoch();
                let limit = switchboard_wire::limits::FRAME_BYTES;
                self.event(
                    Cause::Oversize,
                    Some(epoch),
                    Event::FrameTooLarge { epoch, limit },
                )
            }
            Step::Stale(back) => {
                self.stale = Some(back);
                Ok(())
            }
            Step::Batch(count) => {
                self.batch.left = count;
                Ok(())
            }
            Step::Fail(which, status) => self.fail(which, status),
            Step::Call(shape) => self.call(shape),
            Step::Gone(which) => match self.caller(which) {
                Some(id) => self.event(Cause::Gone(id), None, Event::CallerGone { id }),
                None => Ok(()),
            },
            Step::Cancel(which) => match self.caller(which) {
                Some(id) => self.event(Cause::Cancel(id), None, Event::Cancel { id, reason: None }),
                None => Ok(()),
            },
            Step::Reply(which) => self.reply(which, Ok(Raw::empty_object())),
            Step::Refuse(which) => {
                self.reply(which, Err(ErrorObject::new(code::METHOD_NOT_FOUND, "no")))
            }
            Step::Restart => self.event(Cause::Restart, None, Event::Restart),
            Step::Stop => self.event(Cause::Stop, None, Event::Stop),
            // The messages of the server, which were handled above.
            _ => Ok(()),
        }
    }

    /// Ends a schedule: stops everything, or lets it settle. Either way nothing may remain.
    fn end(&mut self) -> Checked {
        self.flush()?;
        self.stale = None;
        if self.check.life.stopped_at.is_none() {
            if self.setup.settle {
                if self.check.phase == Phase::Backoff {
                    self.event(Cause::Restart, None, Event::Restart)?;
                }
                if self.check.phase != Phase::Failed {
                    self.down(DownKind::Permanent)?;
                }
                let settings = &self.check.settings;
                let long = settings.tombstone_ttl() + settings.sweep_interval;
                self.wait(long)?;
            } else {
                self.event(Cause::Stop, None, Event::Stop)?;
            }
        }
        self.wait(STOP_MAX)?;
        self.check.finish(&self.subject, &self.counters)
    }

    fn wait(&mut self, long: Duration) -> Checked {
        let until = self.check.now + long;
        while let Some(next) = self.subject.next_timeout().filter(|next| *next <= until) {
            self.tick_at(next)?;
        }
        self.check.now = until;
        Ok(())
    }

    fn tick_at(&mut self, at: Moment) -> Checked {
        // A timer that is overdue fires now: time does not run backwards.
        self.check.now = self.check.now.max(at);
        self.event(Cause::Tick, None, Event::Tick)
    }

    fn down(&mut self, kind: DownKind) -> Checked {
        let epoch = self.epoch();
        let message = Arc::clone(&self.message);
        let down = Down {
            kind,
            message,
            said: None,
        };
        self.event(
            Cause::Down(kind),
            Some(epoch),
            Event::TransportDown { epoch, down },
        )
    }

    fn fail(&mut self, which: u8, status: u16) -> Checked {
        let epoch = self.epoch();
        let id = self.peer.request(which).unwrap_or(1);
        let status = (status > 0).then_some(status);
        let failure = RequestFailure {
            status,
            message: Arc::clone(&self.message),
            said: None,
            sent: true,
            challenged: false,
        };
        self.event(
            Cause::Failed { id, status },
            Some(epoch),
            Event::RequestFailed { epoch, id, failure },
        )
    }

    fn call(&mut self, shape: Shape) -> Checked {
        let id = self.ids.draw();
        let extend = Extend {
            by: millis(shape.extend.0),
            cap: millis(shape.extend.1),
        };
        let (kind, method) = if shape.notify {
            (CallKind::Notification, NOTIFY_METHOD)
        } else {
            (CallKind::Request, CALL_METHOD)
        };
        let call = Call {
            kind,
            method: method.into(),
            params: Some(params(self.check.calls.records.len(), shape.array)),
            lane: u64::from(shape.lane),
            timeout: (shape.timeout > 0).then(|| millis(shape.timeout)),
            extend: (shape.extend != (0, 0)).then_some(extend),
            progress: shape.progress,
            logs: shape.logs,
            fail_fast: shape.fast,
            log_level: None,
            trace: None,
            headers: Arc::clone(&self.headers),
        };
        self.peer.overhears(id);
        self.check.made(id, shape);
        self.event(Cause::Call(id), None, Event::Call { id, call })
    }

    /// The call that a step refers to: one that waits, or for high numbers any call so far.
    fn caller(&self, which: u8) -> Option<u64> {
        let calls = &self.check.calls;
        let open = calls.open();
        if open == 0 || which >= 128 {
            let at = usize::from(which) % calls.records.len().max(1);
            return calls.records.get(at).map(|call| call.id);
        }
        let mut waiting = calls.records.iter().filter(|call| call.waits());
        waiting.nth(usize::from(which) % open).map(|call| call.id)
    }

    fn reply(&mut self, which: u8, answer: Result<Raw, ErrorObject>) -> Checked {
        let own = pick(&self.check.inbox.outstanding, which).unwrap_or_else(|| server_id(which));
        let text = SERVER_IDS[usize::from(own)];
        let id = Raw::parse(text)
            .ok()
            .and_then(Id::from_raw)
            .unwrap_or_else(|| Id::from(text));
        let epoch = self.epoch();
        self.event(
            Cause::Reply(own),
            Some(epoch),
            Event::Answer { epoch, id, answer },
        )
    }

    /// The transport of the next event.
    fn epoch(&mut self) -> u64 {
        let current = self.check.life.epoch;
        match self.stale.take() {
            None => current,
            Some(0) => current + 1,
            Some(back) => current.saturating_sub(u64::from(back)),
        }
    }

    fn message(&mut self, step: Step) -> Checked {
        if self.batch.left == 0 {
            let mut text = Vec::with_capacity(128);
            return match self.peer.write(step, false, &mut text) {
                Some(note) => self.frame(text.into(), &[note]),
                None => Ok(()),
            };
        }
        self.batch.left -= 1;
        let start = self.batch.text.len();
        self.batch.text.push(if start == 0 { b'[' } else { b',' });
        match self.peer.write(step, true, &mut self.batch.text) {
            Some(note) => self.batch.notes.push(note),
            None => self.batch.text.truncate(start),
        }
        if self.batch.left == 0 {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Sends the batch, if there is one.
    fn flush(&mut self) -> Checked {
        if self.batch.text.is_empty() {
            return Ok(());
        }
        let Batch {
            mut text, notes, ..
        } = std::mem::take(&mut self.batch);
        text.push(b']');
        self.frame(text.into(), &notes)
    }

    fn frame(&mut self, frame: Bytes, notes: &[Note]) -> Checked {
        let epoch = self.epoch();
        let via = self.via.take().and_then(|which| self.peer.request(which));
        if let Some(log) = &mut self.log {
            let on = via.map(|id| format!("on {id} ")).unwrap_or_default();
            log.push(format!("  <- {on}{}", String::from_utf8_lossy(&frame)));
        }
        let before = self.subject.next_timeout();
        self.events += 1;
        self.check.before(Cause::Frame, Some(epoch), &self.counters);
        for note in notes {
            self.check.note(*note, via);
        }
        if self.check.life.listens_to(epoch) {
            self.check.disarm();
        }
        self.subject
            .handle(self.check.now, Event::Frame { epoch, frame, via });
        self.carry_out(before)
    }

    fn event(&mut self, cause: Cause, epoch: Option<u64>, event: Event) -> Checked {
        let before = self.subject.next_timeout();
        self.events += 1;
        self.check.before(cause, epoch, &self.counters);
        self.subject.handle(self.check.now, event);
        self.carry_out(before)
    }

    fn carry_out(&mut self, timeout_before: Option<Moment>) -> Checked {
        loop {
            while let Some(action) = self.subject.poll_action() {
                if let Some(log) = &mut self.log {
                    let mut line = String::new();
                    let _ = write!(line, "  -> {action:?}");
                    log.push(line);
                }
                self.check.action(&action)?;
                if let Action::Send { ticket, outgoing } = action {
                    let outcome = self.offer(&outgoing.kind);
                    if self.setup.late_results {
                        self.late_results.push((ticket, outcome));
                    } else {
                        self.result(ticket, outcome);
                    }
                }
            }
            if self.late_results.is_empty() {
                break;
            }
            for (ticket, outcome) in std::mem::take(&mut self.late_results) {
                self.result(ticket, outcome);
            }
        }
        self.check
            .after(&self.subject, timeout_before, &self.counters)
    }

    fn result(&mut self, ticket: u64, outcome: SendOutcome) {
        if let Some(log) = &mut self.log {
            log.push(format!("  {ticket} is {outcome:?}"));
        }
        self.events += 1;
        self.check.sent(ticket, outcome);
        self.subject
            .handle(self.check.now, Event::SendResult { ticket, outcome });
    }

    fn offer(&mut self, kind: &OutgoingKind) -> SendOutcome {
        if self.shut > 0 || !self.check.life.carries() {
            self.shut = self.shut.saturating_sub(1);
            return SendOutcome::Closed;
        }
        if self.busy > 0 {
            self.busy -= 1;
            return SendOutcome::Busy;
        }
        if let OutgoingKind::Request { id, method } = kind {
            match method.as_ref() {
                method::DISCOVER => self.peer.greeted(*id, Asked::Discover),
                method::INITIALIZE => self.peer.greeted(*id, Asked::Initialize),
                _ => self.peer.called(*id),
            }
        }
        SendOutcome::Accepted
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

/// The parameters of a call, which identify it in a frame.
fn params(index: usize, array: bool) -> Raw {
    /// Enough for every generated schedule.
    const KEPT: usize = 64;
    static POOL: OnceLock<Vec<[Raw; 2]>> = OnceLock::new();
    let spell = |index: usize| [format!(r#"{{"n":{index}}}"#), format!("[{index}]")];
    // These texts are valid JSON.
    let read = |text: Bytes| Raw::parse(text).unwrap_or_else(|_| Raw::empty_object());
    let pool = POOL.get_or_init(|| {
        // Leaked once for the whole run: threads share static data at no cost.
        let keep = |text: String| read(Bytes::from_static(text.leak().as_bytes()));
        (0..KEPT).map(|index| spell(index).map(keep)).collect()
    });
    match pool.get(index) {
        Some(pair) => pair[usize::from(array)].clone(),
        None => read(Bytes::from(spell(index)[usize::from(array)].clone())),
    }
}
