//! A broker with a disk, a model and people around it, in virtual time.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use switchboard_approvals::{
    Action, Ask, Broker, Decision, DecisionError, Effect, Holder, Input, Kind, Outcome, Patience,
    Record, Session, WriteError, broker::Change,
};
use switchboard_wire::Raw;

/// A session of a client of the owner.
pub(crate) const fn owners(number: u64) -> Session {
    Session {
        number,
        is_owner: true,
    }
}

pub(crate) fn ask(kind: Kind, key: &str) -> Ask {
    let request = match kind {
        Kind::Sampling => {
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":9}"#
        }
        Kind::Elicitation => {
            r#"{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#
        }
        Kind::Resource => r#"{"method":"resources/read","uri":"note://a"}"#,
        Kind::Prompt => r#"{"method":"prompts/get","name":"p"}"#,
        Kind::ToolCall => r#"{"name":"delete","arguments":{"path":"/a"}}"#,
        Kind::Trust => r#"{"tools":[]}"#,
    };
    Ask {
        kind,
        server: "s".into(),
        tool: None,
        identity: None,
        client: Some("c".into()),
        asker: None,
        session: owners(1),
        holder: Holder::default(),
        project: None,
        allowed_by: None,
        summary: "asks".into(),
        warnings: Vec::new(),
        rule: None,
        request: Raw::parse(request).unwrap(),
        key: key.into(),
        patience: Some(Patience {
            short: 30_000,
            long: 270_000,
        }),
    }
}

/// An observable effect of the broker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    Told(Change, &'static str),
    Delivered(u64, Outcome),
    Replied(u64, Result<&'static str, DecisionError>),
    Generated,
}

/// A simulated environment. Its disk writes immediately, unless it is slow.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) broker: Broker,
    pub(crate) now: u64,
    pub(crate) disk: BTreeMap<Arc<str>, Record>,
    pub(crate) seen: Vec<(u64, Seen)>,
    /// Records that were sent to the disk and are not written yet.
    pub(crate) writing: Vec<Arc<Record>>,
    pub(crate) slow_disk: bool,
    /// The disk may have changed without a report to the broker.
    pub(crate) may_conflict: bool,
    /// Records that were given up, and may be written later.
    pub(crate) late: Vec<Arc<Record>>,
    pub(crate) generating: Vec<Arc<str>>,
    /// The number of deliveries of each request.
    pub(crate) delivered: BTreeMap<Arc<str>, u32>,
    next: u64,
    inputs: VecDeque<Input>,
    busy: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self::default();
        world.broker.set_generation(true, false);
        world.input(Input::Loaded(Vec::new()));
        world
    }

    /// Passes in an input. Inputs that its effects cause follow after all of its effects were carried out.
    pub(crate) fn input(&mut self, input: Input) {
        self.inputs.push_back(input);
        if self.busy {
            return;
        }
        self.busy = true;
        while let Some(input) = self.inputs.pop_front() {
            for effect in self.broker.handle(self.now, input) {
                self.carry_out(effect);
            }
        }
        self.busy = false;
    }

    fn carry_out(&mut self, effect: Effect) {
        let seen = match effect {
            Effect::Write { record, .. } => {
                if self.slow_disk {
                    self.writing.push(record);
                } else {
                    self.write(&record, true);
                }
                return;
            }
            Effect::Tell { why, record } => {
                // Everything that watchers are notified of is on the disk.
                assert_eq!(self.disk.get(&record.id), Some(&*record));
                Seen::Told(why, record.status.as_str())
            }
            Effect::Deliver { asker, id, outcome } => {
                if !matches!(outcome, Outcome::Unavailable(_)) {
                    *self.delivered.entry(id).or_default() += 1;
                }
                Seen::Delivered(asker, outcome)
            }
            Effect::Generate(record) => {
                self.generating.push(Arc::clone(&record.id));
                Seen::Generated
            }
            Effect::Reply { decider, result } => {
                Seen::Replied(decider, result.map(|record| record.status.as_str()))
            }
        };
        self.seen.push((self.now, seen));
    }

    /// Puts a record on the disk. Returns `true` if its version follows.
    pub(crate) fn put(&mut self, record: &Record) -> bool {
        let was = self.disk.get(&record.id).map_or(0, |was| was.version);
        let fits = record.version == was + 1;
        if fits {
            self.disk.insert(Arc::clone(&record.id), record.clone());
        }
        fits
    }

    /// Reports to the broker that the disk has written this, or has failed.
    pub(crate) fn write(&mut self, record: &Record, works: bool) {
        let failed = if !works {
            Some(WriteError::Failed("the disk is full".into()))
        } else if self.put(record) {
            None
        } else {
            assert!(self.may_conflict, "a version was skipped or written twice");
            let found = self.disk.get(&record.id).cloned();
            Some(WriteError::Conflict(found.map(Box::new)))
        };
        let id = Arc::clone(&record.id);
        self.input(Input::Written { id, failed });
    }

    pub(crate) fn raise(&mut self, asker: u64, ask: Ask) -> Arc<str> {
        self.next += 1;
        let id: Arc<str> = format!("r{}", self.next).into();
        let input = Input::Raise {
            asker,
            id: Arc::clone(&id),
            ask,
        };
        self.input(input);
        id
    }

    pub(crate) fn decide(&mut self, decider: u64, id: &Arc<str>, action: Action) {
        let mut decision = Decision::new(action, format!("p{decider}"));
        if action == Action::Respond {
            decision.text = Some("mine".to_owned());
        }
        let id = Arc::clone(id);
        self.input(Input::Decide {
            decider,
            id,
            decision,
        });
    }

    /// Lets time pass, with a tick whenever the broker asks for one.
    pub(crate) fn pass(&mut self, until: u64) {
        while let Some(at) = self.broker.wake().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.input(Input::Tick);
        }
        self.now = until;
    }

    /// Kills the gateway and starts it again: a write in progress is lost, or not.
    pub(crate) fn crash(&mut self) {
        self.writing.clear();
        self.late.clear();
        self.generating.clear();
        self.broker = Broker::new();
        self.broker.set_generation(true, false);
        let left = self.disk.values().filter(|record| record.is_live());
        self.input(Input::Loaded(left.cloned().collect()));
    }
}
