//! The broker: every question that waits for a person, as a machine without I/O.
//!
//! Whoever drives it hands in what happens and carries out what it wants done. Each change of a
//! request is written down before anybody hears of it:
//!
//! ```text
//! event ──▶ what comes of it ──▶ Effect::Write ──▶ Input::Written ──▶ tell, deliver, generate, reply
//! ```
//!
//! While a change of a request is being written, what else happens to it waits in order. So of two
//! people who press at once, or a person and the clock, one wins, and the other is told what became
//! of it.
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
//! A write that is taken for failed may have been made. The next one then conflicts with it, and whoever
//! drives the broker hands in what is on the disk: that is what happened.
//!
//! What is decided is handed over once: the record says so before it happens. An answer for which
//! nobody waits any more is kept for a while, and goes to whoever asks the same again.

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

/// Somebody who waits for an answer.
pub type Asker = u64;
/// Somebody who has decided and wants to know whether that holds.
pub type Decider = u64;

/// The most requests at a time.
pub const OPEN_MAX: usize = 10_000;
/// The most requests of one server at a time.
pub const OPEN_EACH: usize = 2_000;
/// The most bytes of requests at a time.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;
/// The number of clients that can take all of that together. A client gets less than a server, so that others can
/// still call it.
pub const SHARES: usize = 8;
/// The most bytes of one request of a client, and of a form.
pub const REQUEST_BYTES: usize = 1024 * 1024;
/// The most bytes of one request for a model's answer, which may have pictures.
pub const SAMPLING_BYTES: usize = 4 * REQUEST_BYTES;
/// How long an answer is kept that nobody waits for, in milliseconds.
pub const KEEP: u64 = 10 * 60 * 1000;
/// The most decisions that wait while a change of a request is being written.
const QUEUED_MAX: usize = 32;
/// After so long it is tried again to write down what happens by itself, in milliseconds.
const WRITE_AGAIN: u64 = 1_000;

const STOPPING: &str = "the gateway is stopping";
const LOST: &str = "what was written of it is lost; ask again";

/// What happens.
#[derive(Clone, Debug)]
pub enum Input {
    /// What an earlier run left behind. Everything else waits for it.
    Loaded(Vec<Record>),
    /// Somebody asks.
    Raise {
        /// Who waits for the answer.
        asker: Asker,
        /// The name of the request, if it is a new one.
        id: Id,
        /// What is asked.
        ask: Ask,
    },
    /// Whoever asked does not want to know any more.
    Leave(Asker),
    /// A request that an earlier run left behind is about nothing any more. One that somebody waits for stays.
    Withdraw(Id),
    /// A person decides.
    Decide {
        /// Who wants to know whether it holds.
        decider: Decider,
        /// Which request.
        id: Id,
        /// What is decided.
        decision: Decision,
    },
    /// What was to be written is, or could not be.
    Written {
        /// Which request.
        id: Id,
        /// What went wrong.
        failed: Option<WriteError>,
    },
    /// What was given up as not written is on the disk after all.
    Found(Arc<Record>),
    /// The model has answered, or could not.
    Generated {
        /// Which request.
        id: Id,
        /// The answer and its cost, or what went wrong.
        result: Result<(Raw, Usage), Arc<str>>,
    },
    /// Time has passed.
    Tick,
    /// The gateway stops. Whoever waits is told so, and nothing is withdrawn: what is decided from now on is
    /// kept.
    Stop,
}

/// Why something is not written.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// It could not be, as far as can be told.
    Failed(Arc<str>),
    /// The disk has something else than what was to be replaced: this, or nothing at all. An earlier write
    /// that was taken for failed may have been made, or the disk has lost what it had.
    Conflict(Option<Box<Record>>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write this down, and say so with [`Input::Written`].
    Write {
        /// The request as it is from now on.
        record: Arc<Record>,
        /// What happened.
        why: Change,
    },
    /// Tell whoever watches.
    Tell {
        /// What happened.
        why: Change,
        /// The request as it is now.
        record: Arc<Record>,
    },
    /// Give an asker what it waits for.
    Deliver {
        /// Who.
        asker: Asker,
        /// What it had asked.
        id: Id,
        /// What.
        outcome: Outcome,
    },
    /// Have the model answer, and say so with [`Input::Generated`].
    Generate(Arc<Record>),
    /// Tell somebody who decided what became of it.
    Reply {
        /// Who.
        decider: Decider,
        /// The request as it is now.
        result: Result<Arc<Record>, DecisionError>,
    },
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is asked.
    Created,
    /// It is asked again, by somebody who waits.
    Resumed,
    /// It became louder.
    Escalated,
    /// A person decided.
    Decided,
    /// The model answered, or could not.
    Generated,
    /// Nobody answered in time.
    Expired,
    /// Whoever asked does not want to know any more.
    Withdrawn,
    /// Whoever asked went with an earlier run of the gateway.
    Orphaned,
    /// A kept answer was handed over.
    Delivered,
    /// A kept answer was not asked for.
    Forgotten,
}

/// What becomes of a question for whoever asked it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A person agreed, or answered. What with, depends on the kind: the result of sampling, the answer
    /// to a question, changed arguments.
    Answer(Option<Raw>),
    /// A person refused.
    Rejected(Option<Arc<str>>),
    /// Nobody answered within so many milliseconds.
    TimedOut(u64),
    /// The model could not answer.
    Failed(Arc<str>),
    /// It could not be asked: there is no room, or nothing can be written down.
    Unavailable(Arc<str>),
}

/// Every question that waits for a person.
#[derive(Debug, Default)]
pub struct Broker {
    /// `None` until it is known what an earlier run left behind.
    loaded: Option<()>,
    early: VecDeque<Input>,
    entries: BTreeMap<Id, Entry>,
    /// Requests by their key: those which somebody who asks the same again can take over.
    keys: BTreeSet<(Arc<str>, Id)>,
    askers: HashMap<Asker, Id>,
    timers: BTreeSet<(u64, Id)>,
    room: Capacity,
    /// How many wait for a person, as it is written.
    waiting: usize,
    model: Model,
    /// The gateway stops: nobody waits any more.
    stopped: bool,
    effects: Vec<Effect>,
}

#[derive(Debug)]
struct Entry {
    record: Arc<Record>,
    asker: Option<Asker>,
    writing: Option<Writing>,
    queued: VecDeque<Event>,
    /// When it is next to be looked at, as it stands in the timers.
    timer: Option<u64>,
    /// Nothing of it has been written yet.
    is_new: bool,
}

impl Entry {
    /// Whether it is written that it waits for a person.
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
    /// A broker that does not know yet what an earlier run left behind.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is a model that can answer, and whether a person looks at what it says.
    pub fn set_generation(&mut self, can_generate: bool, review: bool) {
        self.model = Model {
            can_generate,
            review,
        };
    }

    /// When time has to be told next, in milliseconds since 1970.
    pub fn wake(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// How many requests wait for a person.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The requests that are open, or whose answers are kept.
    pub fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        let written = self.entries.values().filter(|entry| !entry.is_new);
        written.map(|entry| &entry.record)
    }

    /// Takes in what happens. What is to be done comes back in the order in which to do it.
    pub fn handle(&mut self, now: u64, input: Input) -> Vec<Effect> {
        match (self.loaded, input) {
            (None, Input::Loaded(records)) => self.load(now, records),
            (None, Input::Leave(asker)) => {
                // Nobody was asked yet.
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
            // Sessions are those of the gateway that ran before.
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
                // One that is being written may be read already by whoever decides.
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
        // What is being handed over is: that is on its way to the disk.
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
        let taken = taken.then_some("the name of the request is taken");
        if let Some(why) = self.room.refuses(&ask).or(taken) {
            return self.turn_away(asker, id, why);
        }
        self.askers.insert(asker, Arc::clone(id));
        self.insert(Record::new(Arc::clone(id), ask, now), Some(asker), true);
        self.happen(now, id, Event::Create);
    }

    /// A request for the same that nobody waits for.
    fn same(&self, now: u64, ask: &Ask) -> Option<Id> {
        let from = (Arc::clone(&ask.key), Id::from(""));
        let same = self
            .keys
            .range(from..)
            .take_while(|(key, _)| *key == ask.key);
        let free = same.filter_map(|(_, id)| {
            let entry = self.entries.get(id)?;
            // Right after a start it is being written down that nobody waits any more.
            let writing = entry.writing.as_ref().map(|writing| writing.why);
            let settled = matches!(writing, None | Some(Change::Orphaned | Change::Escalated));
            let free = entry.asker.is_none() && settled && entry.queued.is_empty();
            // One that is too late may have been given up while the disk did not work.
            let in_time = !entry.record.is_late(now);
            let kept = entry.record.kept.is_some_and(|until| until > now);
            let lost = (entry.record.status.waits() && in_time) || kept;
            (free && lost && entry.record.ask.kind == ask.kind).then_some(entry)
        });
        // One that has its answer goes before one that waits for it.
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
        // What could not be written never was.
        for event in entry.queued {
            if let Event::Decide(decider, _) = event {
                self.reply(decider, Err(DecisionError::Unknown));
            }
        }
    }

    /// Sets the timer of a request to when it is due, or later if so asked.
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

    /// Lets time do what it does.
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

    /// Something happens to a request, now or after what is being written.
    fn happen(&mut self, now: u64, id: &Id, event: Event) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        // Time that waits to be looked at need not be told twice.
        let is_time = |event: &Event| matches!(event, Event::Time);
        if !is_time(&event) || !entry.queued.iter().any(is_time) {
            entry.queued.push_back(event);
        }
        self.go_on(now, id);
    }

    /// Deals with what has happened to a request, up to the next thing that is to be written.
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

    /// A request is this from now on, as it is written.
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

    /// Goes on with a request, and lets go of it if it is over.
    fn settle(&mut self, now: u64, id: &Id) {
        self.go_on(now, id);
        let over = |entry: &Entry| {
            !entry.record.is_live() && entry.writing.is_none() && entry.queued.is_empty()
        };
        if self.entries.get(id).is_some_and(over) {
            // Whoever waits for what is over without an answer for them waits for nothing.
            self.deliver(id, Outcome::Unavailable(LOST.into()));
            self.remove(id);
        }
    }

    /// A change could not be written down: it has not happened.
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
                // Nobody has to wait for the disk to hear that it is too late.
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
                    // As above. What the model said is kept when it can be written.
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

    /// The disk has something else than what is known here.
    fn conflict(&mut self, now: u64, id: &Id, event: Event, found: Option<Box<Record>>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let is_newer = |found: &Record| !entry.is_new && found.version > entry.record.version;
        match found.filter(|found| is_newer(found)) {
            Some(found) => {
                // What happens now happens to that.
                entry.queued.push_front(event);
                if self.stopped && found.delivered.is_none() {
                    // What was being handed over is not, and nothing else will be.
                    self.deliver(id, Outcome::Unavailable(STOPPING.into()));
                }
                self.adopt(now, id, &Arc::from(found));
            }
            None => self.give_up(id, event),
        }
    }

    /// A write that was given up has been made after all.
    fn found(&mut self, now: u64, record: &Arc<Record>) {
        let id = &record.id;
        match self.entries.get(id) {
            // What is being written meets it on the disk.
            Some(entry) if entry.writing.is_some() => {}
            Some(entry) if record.version > entry.record.version => self.adopt(now, id, record),
            Some(_) => {}
            None if record.is_live() => {
                // Whoever asked was told that it cannot be asked.
                self.insert(Record::clone(record), None, false);
                self.happen(now, id, Event::Leave);
            }
            None => {}
        }
    }

    /// Takes over what is on the disk: a write that was taken for failed had been made. Nothing of what comes
    /// of it has been done yet.
    fn adopt(&mut self, now: u64, id: &Id, found: &Arc<Record>) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let why = became(&entry.record, found);
        let agreed = found.status == Status::Generating;
        // Whoever waited may have been told meanwhile that it is too late.
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

    /// The disk does not know a request any more: nothing can become of it.
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

    /// Gives whoever waits for a request, if anybody does, what comes of it.
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
