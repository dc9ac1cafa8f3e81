//! The broker: every request that waits for a person, as a state machine without I/O.
//!
//! The driver passes in inputs and carries out the effects. Each change of a request is stored before anyone
//! is notified:
//!
//! ```text
//! event ──▶ transition ──▶ Effect::Write ──▶ Input::Written ──▶ tell, deliver, generate, reply
//! ```
//!
//! While a change of a request is being stored, further events for it are queued in order. So if two
//! approvers decide at the same time, or an approver and the clock, one wins, and the other is notified of
//! the result.
//!
//! ```text
//!            ┌──────────────── restart ───────────────┐
//!            ▼                                        │
//! pending ◀──▶ orphaned        generating ──▶ reviewing
//!    │            │              ▲    │           │
//!    ├────────────┴── approve ───┘    │           │       (sampling with a model)
//!    ▼                                ▼           ▼
//! approved, rejected, accepted, declined, cancelled, timed_out, withdrawn, failed
//! ```
//!
//! A write that is reported as failed may have succeeded. The next one then conflicts with it, and the driver
//! passes in the record on disk, which is authoritative.
//!
//! A decision is delivered once: the record says so before it happens. An answer without a waiting asker is
//! kept for a while, and is delivered to the next asker with an equal request.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use switchboard_wire::Raw;

use crate::{
    capacity::Capacity,
    decision::{Decision, DecisionError},
    record::{Ask, Id, Record, Session, Status, Usage},
    step::{Event, Model, Step, became, by_rule, outcome, step},
};

/// A caller that waits for an answer.
pub type Asker = u64;
/// An approver that waits for the result of a decision.
pub type Decider = u64;

/// The most requests.
pub const OPEN_MAX: usize = 10_000;
/// The most requests of one server.
pub const OPEN_EACH: usize = 2_000;
/// The most bytes of requests.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The number of clients that together can use up these limits. A client gets less than a server, so that
/// others can still call the server.
pub const SHARES: usize = 8;
/// The longest request of a client, and the longest form, in bytes.
pub const REQUEST_BYTES: usize = 1024 * 1024;
/// The longest request for a completion, in bytes; it may contain images.
pub const SAMPLING_BYTES: usize = 4 * REQUEST_BYTES;
/// Time for which an answer without an asker is kept, in milliseconds.
pub const KEEP: u64 = 10 * 60 * 1000;
/// The most decisions queued while a change of a request is being stored.
const QUEUED_MAX: usize = 32;
/// Time until a failed write that no caller waits for is retried, in milliseconds.
const WRITE_AGAIN: u64 = 1_000;

const STOPPING: &str = "the gateway is stopping";
const LOST: &str = "the request is no longer in the store; send it again";

/// An input of the broker.
#[derive(Clone, Debug)]
pub enum Input {
    /// The requests that an earlier run left. All other inputs wait for this one.
    Loaded(Vec<Record>),
    /// A caller makes a request.
    Raise {
        /// The caller that waits for the answer.
        asker: Asker,
        /// ID for the request, if it is a new one.
        id: Id,
        /// The request.
        ask: Ask,
    },
    /// The asker has disconnected, or cancelled its request.
    Leave(Asker),
    /// The subject of a request of an earlier run no longer exists. A request with a waiting asker stays.
    Withdraw(Id),
    /// An approver decides.
    Decide {
        /// The caller that waits for the result.
        decider: Decider,
        /// ID of the request.
        id: Id,
        /// The decision.
        decision: Decision,
    },
    /// A write has finished, or failed.
    Written {
        /// ID of the request.
        id: Id,
        /// The error, if it failed.
        failed: Option<WriteError>,
    },
    /// A write that was reported as failed has reached the disk after all.
    Found(Arc<Record>),
    /// The model has responded, or failed.
    Generated {
        /// ID of the request.
        id: Id,
        /// The response and its cost, or the error.
        result: Result<(Raw, Usage), Arc<str>>,
    },
    /// Time has passed.
    Tick,
    /// The gateway stops. Askers are notified, but nothing is withdrawn: later decisions are kept.
    Stop,
}

/// The reason why a write failed.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// The write failed, as far as is known.
    Failed(Arc<str>),
    /// The disk has a different record than the one to be replaced, or none at all. Either an earlier write
    /// that was reported as failed has succeeded, or the disk has lost its record.
    Conflict(Option<Box<Record>>),
}

/// An effect that the driver carries out.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Store this, and report it with [`Input::Written`].
    Write {
        /// The new state of the request.
        record: Arc<Record>,
        /// The change.
        why: Change,
    },
    /// Notify watchers.
    Tell {
        /// The change.
        why: Change,
        /// The current state of the request.
        record: Arc<Record>,
    },
    /// Deliver an outcome to its asker.
    Deliver {
        /// The asker.
        asker: Asker,
        /// ID of its request.
        id: Id,
        /// The outcome.
        outcome: Outcome,
    },
    /// Have the model respond, and report it with [`Input::Generated`].
    Generate(Arc<Record>),
    /// Report the result of a decision to its sender.
    Reply {
        /// The sender of the decision.
        decider: Decider,
        /// The current state of the request, or the error.
        result: Result<Arc<Record>, DecisionError>,
    },
}

/// A change of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It was created.
    Created,
    /// It was made again, and has a waiting asker.
    Resumed,
    /// It escalated.
    Escalated,
    /// An approver or a rule decided.
    Decided,
    /// The model responded, or failed.
    Generated,
    /// No person answered in time.
    Expired,
    /// The asker cancelled it.
    Withdrawn,
    /// The asker was lost with an earlier run of the gateway.
    Orphaned,
    /// A kept answer was delivered.
    Delivered,
    /// A kept answer has expired.
    Forgotten,
}

/// The outcome of a request for its asker.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The approver agreed, or answered. The content depends on the kind: the result of sampling, the answer
    /// to a question, changed arguments.
    Answer(Option<Raw>),
    /// The approver refused.
    Rejected(Option<Arc<str>>),
    /// No person answered within this number of milliseconds.
    TimedOut(u64),
    /// The model failed.
    Failed(Arc<str>),
    /// The request could not be made: there is no capacity, or it cannot be stored.
    Unavailable(Arc<str>),
}

/// The broker of all requests that wait for a person.
#[derive(Debug, Default)]
pub struct Broker {
    /// `None` until the requests of an earlier run are loaded.
    loaded: Option<()>,
    early: VecDeque<Input>,
    entries: BTreeMap<Id, Entry>,
    /// Requests by key, so that a later asker can take over an equal one.
    keys: BTreeSet<(Arc<str>, Id)>,
    askers: HashMap<Asker, Id>,
    timers: BTreeSet<(u64, Id)>,
    room: Capacity,
    /// The number of stored requests that wait for a person.
    waiting: usize,
    model: Model,
    /// The gateway stops: there are no more askers.
    stopped: bool,
    effects: Vec<Effect>,
}

#[derive(Debug)]
struct Entry {
    record: Arc<Record>,
    asker: Option<Asker>,
    writing: Option<Writing>,
    queued: VecDeque<Event>,
    /// The time of its entry in the timers.
    timer: Option<u64>,
    /// Nothing of it has been stored yet.
    is_new: bool,
}

impl Entry {
    /// Returns `true` if it is stored and waits for a person.
    fn waits(&self) -> bool {
        !self.is_new && self.record.status.waits()
    }
}

#[derive(Debug)]
struct Writing {
    next: Arc<Record>,
    why: Change,
    event: Event,
}

impl Broker {
    /// Creates a broker, which waits for the requests of an earlier run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a model is configured, and whether a person reviews its responses.
    pub fn set_generation(&mut self, can_generate: bool, review: bool) {
        self.model = Model {
            can_generate,
            review,
        };
    }

    /// The time of the next [`Input::Tick`], in milliseconds since 1970.
    pub fn wake(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The number of requests that wait for a person.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The requests that are open, or whose answers are kept.
    pub fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        let written = self.entries.values().filter(|entry| !entry.is_new);
        written.map(|entry| &entry.record)
    }

    /// Handles an input. Returns the effects in the order in which to carry them out.
    pub fn handle(&mut self, now: u64, input: Input) -> Vec<Effect> {
        match (self.loaded, input) {
            (None, Input::Loaded(records)) => self.load(now, records),
            (None, Input::Leave(asker)) => {
                // No request was made yet.
                let is_it =
                    |early: &Input| matches!(early, Input::Raise { asker: of, .. } if *of == asker);
                self.early.retain(|early| !is_it(early));
            }
            (None, Input::Stop) => self.stop(),
            (None, input) => self.early.push_back(input),
            (Some(()), input) => {
                self.due(now);
                self.take(now, input);
            }
        }
        std::mem::take(&mut self.effects)
    }

    fn load(&mut self, now: u64, records: Vec<Record>) {
        self.loaded = Some(());
        for mut record in records.into_iter().filter(Record::is_live) {
            // Sessions belong to the earlier run of the gateway.
            record.ask.session = Session::default();
            let id = Arc::clone(&record.id);
            let orphaned = record.status.is_open() && record.status != Status::Orphaned;
            self.insert(record, None, false);
            if orphaned {
                self.happen(now, &id, Event::Orphan);
            }
        }
        self.due(now);
        for input in std::mem::take(&mut self.early) {
            self.take(now, input);
        }
    }

    fn take(&mut self, now: u64, input: Input) {
        match input {
            Input::Loaded(_) | Input::Tick => {}
            Input::Raise { asker, id, ask } => self.raise(now, asker, &id, ask),
            Input::Leave(asker) => self.leave(now, asker),
            Input::Withdraw(id) => self.happen(now, &id, Event::Withdraw),
            Input::Decide {
                decider,
                id,
                decision,
            } => match self.entries.get(&id) {
                // The approver may have read a request that is still being stored.
                Some(entry) => {
                    let decides = |event: &&Event| matches!(event, Event::Decide(..));
                    if entry.queued.iter().filter(decides).count() >= QUEUED_MAX {
                        self.reply(Some(decider), Err(DecisionError::Busy));
                    } else {
                        self.happen(now, &id, Event::Decide(Some(decider), Box::new(decision)));
                    }
                }
                None => self.reply(Some(decider), Err(DecisionError::Unknown)),
            },
            Input::Written { id, failed } => self.written(now, &id, failed),
            Input::Found(record) => self.found(now, &record),
            Input::Generated { id, result } => self.happen(now, &id, Event::Generated(result)),
            Input::Stop => self.stop(),
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        let early = std::mem::take(&mut self.early);
        for input in early {
            match input {
                Input::Raise { asker, id, .. } => self.turn_away(asker, &id, STOPPING),
                Input::Decide { decider, .. } => {
                    self.reply(
                        Some(decider),
                        Err(DecisionError::Unavailable(STOPPING.into())),
                    );
                }
                _ => {}
            }
        }
        // Outcomes whose delivery is being stored are still delivered.
        let left = self.entries.iter().filter_map(|(id, entry)| {
            let delivers = |writing: &Writing| writing.next.delivered.is_some();
            let is_left = !entry.writing.as_ref().is_some_and(delivers);
            is_left.then(|| Arc::clone(id))
        });
        for id in left.collect::<Vec<_>>() {
            self.deliver(&id, Outcome::Unavailable(STOPPING.into()));
        }
    }

    fn leave(&mut self, now: u64, asker: Asker) {
        let id = self.askers.remove(&asker);
        let entry = id.as_ref().and_then(|id| self.entries.get_mut(id));
        if let (Some(id), Some(entry)) = (&id, entry) {
            entry.asker = None;
            self.happen(now, id, Event::Leave);
        }
    }

    fn raise(&mut self, now: u64, asker: Asker, id: &Id, ask: Ask) {
        if self.stopped {
            return self.turn_away(asker, id, STOPPING);
        }
        if let Some(known) = self.same(now, &ask) {
            self.askers.insert(asker, Arc::clone(&known));
            if let Some(entry) = self.entries.get_mut(&known) {
                entry.asker = Some(asker);
            }
            return self.happen(now, &known, Event::Attach(Box::new(ask)));
        }
        let taken = self.entries.contains_key(id);
        let taken = taken.then_some("the ID of the request is already in use");
        if let Some(why) = self.room.refuses(&ask).or(taken) {
            return self.turn_away(asker, id, why);
        }
        self.askers.insert(asker, Arc::clone(id));
        self.insert(Record::new(Arc::clone(id), ask, now), Some(asker), true);
        self.happen(now, id, Event::Create);
    }

    /// An equal request without an asker.
    fn same(&self, now: u64, ask: &Ask) -> Option<Id> {
        let from = (Arc::clone(&ask.key), Id::from(""));
        let same = self
            .keys
            .range(from..)
            .take_while(|(key, _)| *key == ask.key);
        let free = same.filter_map(|(_, id)| {
            let entry = self.entries.get(id)?;
            // Right after a start, the loss of its asker may still be on its way to the disk.
            let writing = entry.writing.as_ref().map(|writing| writing.why);
            let settled = matches!(writing, None | Some(Change::Orphaned | Change::Escalated));
            let free = entry.asker.is_none() && settled && entry.queued.is_empty();
            // A request past its deadline may have been given up while the disk failed.
            let in_time = !entry.record.is_late(now);
            let kept = entry.record.kept.is_some_and(|until| until > now);
            let lost = (entry.record.status.waits() && in_time) || kept;
            (free && lost && entry.record.ask.kind == ask.kind).then_some(entry)
        });
        // A request with an answer takes precedence over one that waits for it.
        let found = free.min_by_key(|entry| entry.record.kept.is_none())?;
        Some(Arc::clone(&found.record.id))
    }

    fn insert(&mut self, record: Record, asker: Option<Asker>, is_new: bool) {
        let id = Arc::clone(&record.id);
        self.room.take(&record.ask);
        self.keys
            .insert((Arc::clone(&record.ask.key), Arc::clone(&id)));
        let entry = Entry {
            record: Arc::new(record),
            asker,
            writing: None,
            queued: VecDeque::new(),
            timer: None,
            is_new,
        };
        self.waiting += usize::from(entry.waits());
        self.entries.insert(Arc::clone(&id), entry);
        self.set_timer(&id, None);
    }

    fn remove(&mut self, id: &Id) {
        let Some(mut entry) = self.entries.remove(id) else {
            return;
        };
        for event in std::mem::take(&mut entry.queued) {
            if let Event::Decide(decider, _) = event {
                self.reply(decider, Err(DecisionError::Unknown));
            }
        }
        self.room.give_back(&entry.record.ask);
        self.waiting -= usize::from(entry.waits());
        self.keys
            .remove(&(Arc::clone(&entry.record.ask.key), Arc::clone(id)));
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, Arc::clone(id)));
        }
        if let Some(asker) = entry.asker {
            self.askers.remove(&asker);
        }
        // A request that could not be stored never existed.
        for event in entry.queued {
            if let Event::Decide(decider, _) = event {
                self.reply(decider, Err(DecisionError::Unknown));
            }
        }
    }

    /// Sets the timer of a request to its due time, or to `not_before` if that is later.
    fn set_timer(&mut self, id: &Id, not_before: Option<u64>) {
        let due = self.entries.get(id).and_then(|entry| entry.record.due());
        self.arm(id, due.map(|at| at.max(not_before.unwrap_or(0))));
    }

    fn arm(&mut self, id: &Id, at: Option<u64>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut entry.timer, at);
        if let Some(before) = before {
            self.timers.remove(&(before, Arc::clone(id)));
        }
        if let Some(at) = at {
            self.timers.insert((at, Arc::clone(id)));
        }
    }

    /// Handles the timers that are due.
    fn due(&mut self, now: u64) {
        while let Some((at, id)) = self.timers.first().cloned() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.timer = None;
            }
            self.happen(now, &id, Event::Time);
        }
    }

    /// Passes an event to a request, now or after the write in progress.
    fn happen(&mut self, now: u64, id: &Id, event: Event) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        // One queued event for the passing of time is enough.
        let is_time = |event: &Event| matches!(event, Event::Time);
        if !is_time(&event) || !entry.queued.iter().any(is_time) {
            entry.queued.push_back(event);
        }
        self.go_on(now, id);
    }

    /// Handles the queued events of a request, up to the next write.
    fn go_on(&mut self, now: u64, id: &Id) {
        loop {
            let Some(entry) = self.entries.get_mut(id) else {
                return;
            };
            if entry.writing.is_some() {
                return;
            }
            let Some(event) = entry.queued.pop_front() else {
                break;
            };
            let waits = entry.asker.is_some();
            match step(&entry.record, waits, &event, now, self.model) {
                Step::Nothing => {}
                Step::Refuse(decider, refusal) => self.reply(decider, Err(*refusal)),
                Step::Write(mut next, why) => {
                    next.version = if entry.is_new {
                        1
                    } else {
                        entry.record.version + 1
                    };
                    let next = Arc::from(next);
                    self.effects.push(Effect::Write {
                        record: Arc::clone(&next),
                        why,
                    });
                    entry.writing = Some(Writing { next, why, event });
                }
            }
        }
        self.set_timer(id, None);
    }

    fn written(&mut self, now: u64, id: &Id, failed: Option<WriteError>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let Some(Writing { next, why, event }) = entry.writing.take() else {
            return;
        };
        match failed {
            None => {}
            Some(WriteError::Failed(reason)) => {
                return self.unwritten(now, id, &next, event, &reason);
            }
            Some(WriteError::Conflict(found)) => return self.conflict(now, id, event, found),
        }
        self.turn(id, &next, why);
        if let Event::Decide(decider, _) = event {
            self.reply(decider, Ok(Arc::clone(&next)));
        }
        if next.status == Status::Generating && why == Change::Decided {
            self.effects.push(Effect::Generate(Arc::clone(&next)));
        }
        if let Some(outcome) = outcome(&next) {
            self.deliver(id, outcome);
        }
        self.settle(now, id);
    }

    /// Replaces a request with its stored new state.
    fn turn(&mut self, id: &Id, next: &Arc<Record>, why: Change) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        self.waiting -= usize::from(entry.waits());
        entry.record = Arc::clone(next);
        entry.is_new = false;
        self.waiting += usize::from(entry.waits());
        if let Some(decision) = by_rule(next, why).filter(|_| !self.stopped) {
            let decision = Event::Decide(None, Box::new(decision));
            entry.queued.push_back(decision);
        }
        if why != Change::Forgotten {
            let record = Arc::clone(next);
            self.effects.push(Effect::Tell { why, record });
        }
    }

    /// Handles the queued events of a request, and removes it if it is closed.
    fn settle(&mut self, now: u64, id: &Id) {
        self.go_on(now, id);
        let over = |entry: &Entry| {
            !entry.record.is_live() && entry.writing.is_none() && entry.queued.is_empty()
        };
        if self.entries.get(id).is_some_and(over) {
            // An asker of a request that is closed without an outcome would wait for ever.
            self.deliver(id, Outcome::Unavailable(LOST.into()));
            self.remove(id);
        }
    }

    /// Handles a change that could not be stored: it has not happened.
    fn unwritten(&mut self, now: u64, id: &Id, next: &Record, event: Event, reason: &Arc<str>) {
        if self.stopped {
            self.deliver(id, Outcome::Unavailable(STOPPING.into()));
        }
        match event {
            Event::Create => {
                self.deliver(id, Outcome::Unavailable(Arc::clone(reason)));
                return self.remove(id);
            }
            Event::Attach(_) => {
                self.deliver(id, Outcome::Unavailable(Arc::clone(reason)));
            }
            Event::Decide(decider @ Some(_), _) => {
                self.reply(decider, Err(DecisionError::Unavailable(Arc::clone(reason))));
            }
            Event::Time if next.status == Status::TimedOut => {
                // The asker need not wait for the disk to receive the timeout.
                if let Some(outcome) = outcome(next) {
                    self.deliver(id, outcome);
                }
            }
            Event::Time => {}
            Event::Leave
            | Event::Withdraw
            | Event::Generated(_)
            | Event::Orphan
            | Event::Decide(None, _) => {
                let Some(entry) = self.entries.get_mut(id) else {
                    return;
                };
                entry.queued.push_front(event);
                if entry.record.is_late(now) {
                    // As above. The model's response is kept once it can be stored.
                    self.deliver(id, Outcome::Unavailable(Arc::clone(reason)));
                }
                return self.arm(id, Some(now + WRITE_AGAIN));
            }
        }
        self.go_on(now, id);
        if self
            .entries
            .get(id)
            .is_some_and(|entry| entry.writing.is_none())
        {
            self.set_timer(id, Some(now + WRITE_AGAIN));
        }
    }

    /// Handles a conflict: the record on disk differs from the broker's.
    fn conflict(&mut self, now: u64, id: &Id, event: Event, found: Option<Box<Record>>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let is_newer = |found: &Record| !entry.is_new && found.version > entry.record.version;
        match found.filter(|found| is_newer(found)) {
            Some(found) => {
                // The event now applies to that record.
                entry.queued.push_front(event);
                if self.stopped && found.delivered.is_none() {
                    // The delivery in progress fails, and there will be no other.
                    self.deliver(id, Outcome::Unavailable(STOPPING.into()));
                }
                self.adopt(now, id, &Arc::from(found));
            }
            None => self.give_up(id, event),
        }
    }

    /// Handles a write that has succeeded after it was given up.
    fn found(&mut self, now: u64, record: &Arc<Record>) {
        let id = &record.id;
        match self.entries.get(id) {
            // The write in progress will conflict with it.
            Some(entry) if entry.writing.is_some() => {}
            Some(entry) if record.version > entry.record.version => self.adopt(now, id, record),
            Some(_) => {}
            None if record.is_live() => {
                // The asker has been notified that the request could not be made.
                self.insert(Record::clone(record), None, false);
                self.happen(now, id, Event::Leave);
            }
            None => {}
        }
    }

    /// Adopts the record on disk: a write that was reported as failed had succeeded. Its effects have not
    /// been carried out yet.
    fn adopt(&mut self, now: u64, id: &Id, found: &Arc<Record>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let why = became(&entry.record, found);
        let agreed = found.status == Status::Generating;
        // The asker may have been notified of a timeout in the meantime.
        let wanted = entry.asker.is_some() || entry.record.status == Status::Orphaned;
        if agreed && !wanted && !self.stopped {
            entry.queued.push_front(Event::Leave);
        }
        self.turn(id, found, why);
        if agreed && wanted {
            self.effects.push(Effect::Generate(Arc::clone(found)));
        }
        if let Some(outcome) = outcome(found) {
            self.deliver(id, outcome);
        }
        self.settle(now, id);
    }

    /// Gives up a request that the disk no longer has.
    fn give_up(&mut self, id: &Id, event: Event) {
        self.deliver(id, Outcome::Unavailable(LOST.into()));
        let entry = self.entries.get_mut(id);
        let queued = entry.map(|entry| std::mem::take(&mut entry.queued));
        for event in std::iter::once(event).chain(queued.into_iter().flatten()) {
            if let Event::Decide(decider, _) = event {
                self.reply(decider, Err(DecisionError::Unavailable(LOST.into())));
            }
        }
        self.remove(id);
    }

    /// Delivers the outcome of a request to its asker, if there is one.
    fn deliver(&mut self, id: &Id, outcome: Outcome) {
        let entry = self.entries.get_mut(id);
        let Some(asker) = entry.and_then(|entry| entry.asker.take()) else {
            return;
        };
        self.askers.remove(&asker);
        let id = Arc::clone(id);
        self.effects.push(Effect::Deliver { asker, id, outcome });
    }

    fn turn_away(&mut self, asker: Asker, id: &Id, why: &str) {
        let outcome = Outcome::Unavailable(why.into());
        let id = Arc::clone(id);
        self.effects.push(Effect::Deliver { asker, id, outcome });
    }

    fn reply(&mut self, decider: Option<Decider>, result: Result<Arc<Record>, DecisionError>) {
        if let Some(decider) = decider {
            self.effects.push(Effect::Reply { decider, result });
        }
    }
}
