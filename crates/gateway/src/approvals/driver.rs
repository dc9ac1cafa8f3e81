//! The task that drives the broker: it carries out what the broker wants done, and tells it what came of
//! that.

use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_approvals::{
    Action, Ask, Broker, Decision, Effect, Id, Input, Outcome, Record, Refusal, Status,
    broker::{Asker, Change, Decider},
};
use switchboard_config::{Approvals as Settings, Notify};
use switchboard_store::{Store, StoreError, Which};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{Clock, audit, generate, policy::Policy, shown};
use crate::context::Context;

/// What is asked of the driver.
#[derive(Debug)]
pub(super) enum Command {
    Ask {
        asker: Asker,
        id: Id,
        ask: Box<Ask>,
        outcome: oneshot::Sender<Outcome>,
    },
    Leave(Asker),
    Decide {
        id: Id,
        decision: Box<Decision>,
        reply: oneshot::Sender<Result<Arc<Record>, Refusal>>,
    },
    Stop,
}

/// Drives the broker.
#[derive(Debug)]
pub(crate) struct Driver {
    commands: mpsc::UnboundedReceiver<Command>,
    loaded: watch::Sender<bool>,
    clock: Clock,
    broker: Broker,
    askers: HashMap<Asker, oneshot::Sender<Outcome>>,
    deciders: HashMap<Decider, oneshot::Sender<Result<Arc<Record>, Refusal>>>,
    last_decider: Decider,
    /// What is under way beside: writes, models.
    work: JoinSet<Done>,
    models: HashMap<Id, AbortHandle>,
    /// Who leaves now does so because the gateway stops, and withdraws nothing.
    stopping: bool,
}

/// What has been done.
enum Done {
    Loaded(Vec<Record>, Vec<switchboard_store::Rule>),
    Written(Id, Result<(), StoreError>),
    Generated(Id, generate::Generated),
}

/// How long to rest before it is tried again to read what an earlier run left behind.
const LOAD_AGAIN: Duration = Duration::from_millis(500);
/// The most that an earlier run can have left behind.
const LOADED_MAX: usize = 2 * switchboard_approvals::broker::OPEN_MAX;

impl Driver {
    pub(super) fn new(
        commands: mpsc::UnboundedReceiver<Command>,
        loaded: watch::Sender<bool>,
        clock: Clock,
    ) -> Self {
        Self {
            commands,
            loaded,
            clock,
            broker: Broker::new(),
            askers: HashMap::new(),
            deciders: HashMap::new(),
            last_decider: 0,
            work: JoinSet::new(),
            models: HashMap::new(),
            stopping: false,
        }
    }

    /// Drives the broker for as long as there is a gateway.
    pub(crate) fn start(self, context: &Arc<Context>) {
        let store = context.store.clone();
        let context = Arc::downgrade(context);
        tokio::spawn(self.run(context, store));
    }

    async fn run(mut self, context: Weak<Context>, store: Store) {
        self.work.spawn(load(store));
        loop {
            let wake = self.broker.wake().map(|at| self.clock.until(at));
            let input = tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.receive(command),
                    None => return,
                },
                done = self.work.join_next(), if !self.work.is_empty() => {
                    // Whatever is aborted or fails is not awaited any more.
                    let Some(Ok(done)) = done else { continue };
                    let Some(context) = context.upgrade() else { return };
                    self.finish(&context, done)
                }
                () = async {
                    match wake {
                        Some(wake) => sleep(wake).await,
                        None => pending().await,
                    }
                } => Input::Tick,
            };
            let Some(context) = context.upgrade() else {
                return;
            };
            self.handle(&context, input);
        }
    }

    fn receive(&mut self, command: Command) -> Input {
        match command {
            Command::Stop => {
                self.stopping = true;
                // Whoever waits hears it by this.
                self.askers.clear();
                self.deciders.clear();
                Input::Tick
            }
            // As above.
            Command::Ask { .. } | Command::Decide { .. } | Command::Leave(_) if self.stopping => {
                Input::Tick
            }
            Command::Ask {
                asker,
                id,
                ask,
                outcome,
            } => {
                self.askers.insert(asker, outcome);
                Input::Raise {
                    asker,
                    id,
                    ask: *ask,
                }
            }
            Command::Leave(asker) => {
                self.askers.remove(&asker);
                Input::Leave(asker)
            }
            Command::Decide {
                id,
                decision,
                reply,
            } => {
                self.last_decider += 1;
                let decider = self.last_decider;
                self.deciders.insert(decider, reply);
                Input::Decide {
                    decider,
                    id,
                    decision: *decision,
                }
            }
        }
    }

    fn finish(&mut self, context: &Context, done: Done) -> Input {
        match done {
            Done::Loaded(records, rules) => {
                let config = context.config.load();
                let now = self.clock.now();
                let policy = &context.approvals;
                policy.set_policy(|_| Policy::remembering(&config, &rules, now));
                self.loaded.send_replace(true);
                Input::Loaded(records)
            }
            Done::Written(id, result) => Input::Written {
                id,
                failed: result.err().map(|error| error.to_string().into()),
            },
            Done::Generated(id, result) => {
                self.models.remove(&id);
                Input::Generated { id, result }
            }
        }
    }

    fn handle(&mut self, context: &Arc<Context>, input: Input) {
        let config = context.config.load();
        let can_generate = config.sampling.provider.is_some();
        self.broker
            .set_generation(can_generate, config.sampling.review);
        for effect in self.broker.handle(self.clock.now(), input) {
            self.carry_out(context, effect);
        }
    }

    fn carry_out(&mut self, context: &Arc<Context>, effect: Effect) {
        match effect {
            Effect::Write { record, why } => {
                let context = Arc::clone(context);
                let now = self.clock.now();
                self.work.spawn(async move {
                    let changes = audit::changes(&record, why, now);
                    let result = context.store.write(changes).await;
                    if let Err(error) = &result {
                        tracing::error!(%error, approval = %record.id, "Cannot write down what became of a request.");
                    }
                    Done::Written(Arc::clone(&record.id), result)
                });
            }
            Effect::Tell { why, record } => self.tell(context, why, &record),
            Effect::Deliver { asker, outcome, .. } => {
                if let Some(waiting) = self.askers.remove(&asker) {
                    let _ = waiting.send(outcome);
                }
            }
            Effect::Generate(record) => {
                let (context, id) = (Arc::clone(context), Arc::clone(&record.id));
                let done = async move {
                    let result = generate::generate(&context, &record).await;
                    Done::Generated(Arc::clone(&record.id), result)
                };
                self.models.insert(id, self.work.spawn(done));
            }
            Effect::Reply { decider, result } => {
                if let Some(waiting) = self.deciders.remove(&decider) {
                    let _ = waiting.send(result);
                }
            }
        }
    }

    fn tell(&mut self, context: &Arc<Context>, why: Change, record: &Arc<Record>) {
        if why == Change::Withdrawn
            && let Some(model) = self.models.remove(&record.id)
        {
            // Nobody wants the answer any more.
            model.abort();
        }
        let waiting = self.broker.waiting();
        context.approvals.numbers.count(why, record, waiting);
        context.events.tell_json(event(why), &shown::event(record));
        if is_louder(&context.config.load().approvals, why) {
            context.megaphone.tell(event(why), shown::outside(record));
        }
        if let Some(rule) = record.ask.allowed_by.as_ref().filter(|_| {
            record.status == Status::Pending && matches!(why, Change::Created | Change::Resumed)
        }) {
            let decision = Decision::new(Action::Approve, format!("rule: {rule}"));
            let context = Arc::clone(context);
            let id = Arc::clone(&record.id);
            tokio::spawn(async move {
                let decided = context.approvals.decide(&context, id, decision).await;
                if let Err(error) = decided {
                    tracing::debug!(%error, "A rule allows what cannot be done.");
                }
            });
        }
        if let Some(decided) = record.decided.as_ref().filter(|_| why == Change::Decided)
            && decided.remember.is_some()
        {
            let (record, now) = (Arc::clone(record), self.clock.now());
            context
                .approvals
                .set_policy(|policy| policy.with_decision(&record, now));
        }
    }
}

/// Whether somebody outside of this machine, or its desktop, is told.
fn is_louder(settings: &Settings, why: Change) -> bool {
    let name = event(why).trim_start_matches("approval.");
    let hook = settings.webhook.as_ref();
    hook.is_some_and(|hook| hook.on.iter().any(|on| on == name))
        || (why == Change::Escalated && settings.notify == Notify::Auto)
}

/// The name of the event for what happened.
const fn event(why: Change) -> &'static str {
    match why {
        Change::Created => "approval.created",
        Change::Escalated => "approval.escalated",
        Change::Decided => "approval.decided",
        Change::Expired => "approval.expired",
        Change::Withdrawn => "approval.withdrawn",
        Change::Delivered => "approval.delivered",
        Change::Resumed | Change::Generated | Change::Orphaned | Change::Forgotten => {
            "approval.changed"
        }
    }
}

/// Reads what an earlier run left behind, however long the store takes.
async fn load(store: Store) -> Done {
    loop {
        match read(&store).await {
            Ok((records, rules)) => return Done::Loaded(records, rules),
            Err(StoreError::Closed) => return pending().await,
            Err(error) => {
                tracing::debug!(%error, "Cannot read yet which requests wait for a person.");
                sleep(LOAD_AGAIN).await;
            }
        }
    }
}

async fn read(store: &Store) -> Result<(Vec<Record>, Vec<switchboard_store::Rule>), StoreError> {
    let mut records = Vec::new();
    let mut before = None;
    while records.len() < LOADED_MAX {
        let which = Which {
            open: Some(true),
            before: before.take(),
            limit: switchboard_store::ROWS_PER_ANSWER,
            ..Which::default()
        };
        let rows = store.approvals(which).await?;
        let Some(last) = rows.last() else { break };
        before = Some(Arc::clone(&last.id));
        for row in rows {
            match serde_json::from_str(&row.body) {
                Ok(record) => records.push(record),
                Err(error) => {
                    tracing::error!(%error, approval = %row.id, "Cannot read a request that waits for a person.");
                }
            }
        }
    }
    Ok((records, store.rules().await?))
}
