//! The task that drives the broker: it carries out the broker's effects, and feeds their results
//! back.

use std::{
    collections::{HashMap, HashSet},
    future::pending,
    sync::{Arc, LazyLock, Weak},
    time::Duration,
};

use switchboard_approvals::{
    Ask, Broker, Decision, DecisionError, Effect, Id, Input, Outcome, Record, WriteError,
    broker::{Asker, Change, Decider, OPEN_MAX},
    rules::Remembered,
};
use switchboard_client::throttle::Limited;
use switchboard_config::{Approvals as Settings, Notify};
use switchboard_store::{Store, StoreError, Which};
use switchboard_wire::with_hint;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{self, AbortHandle, JoinError, JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    Approvals, Clock,
    audit::{self, Noted},
    generate,
    policy::{Policy, stored},
    shown,
};

/// A command to the driver.
#[derive(Debug)]
pub(super) enum Command {
    Ask {
        asker: Asker,
        id: Id,
        ask: Box<Ask>,
        outcome: oneshot::Sender<Outcome>,
    },
    Leave(Asker),
    /// Withdraws a request that no caller waits for and whose subject is gone.
    Withdraw(Id),
    Decide {
        id: Id,
        decision: Box<Decision>,
        reply: oneshot::Sender<Result<Arc<Record>, DecisionError>>,
    },
    Stop,
}

/// Drives the broker.
#[derive(Debug)]
pub struct Driver {
    commands: mpsc::Receiver<Command>,
    loaded: watch::Sender<bool>,
    clock: Clock,
    broker: Broker,
    askers: HashMap<Asker, oneshot::Sender<Outcome>>,
    deciders: HashMap<Decider, oneshot::Sender<Result<Arc<Record>, DecisionError>>>,
    last_decider: Decider,
    /// Background work: writes and model calls.
    work: JoinSet<Done>,
    /// The subject of each task in `work`, for the case that the task panics.
    doing: HashMap<task::Id, Doing>,
    models: HashMap<Id, AbortHandle>,
    /// The open requests that the audit log only counts.
    counted: HashSet<Id>,
    /// Open requests that an earlier run left behind.
    earlier: HashSet<Id>,
    /// The gateway is stopping: callers that leave now withdraw nothing.
    stopping: bool,
}

/// A piece of background work that has finished.
enum Done {
    Loaded(Vec<Record>, Vec<switchboard_store::Rule>),
    Written(Id, Option<WriteError>),
    /// The write failed with an unknown outcome, or takes too long; in that case the handle is
    /// awaited in the background.
    Doubtful(
        Arc<Record>,
        Arc<str>,
        Option<JoinHandle<Result<(), StoreError>>>,
    ),
    /// The final outcome of a doubtful write: the record if it was written after all.
    Late(Option<Arc<Record>>),
    Generated(Id, generate::Generated),
}

/// The kind of a running task.
#[derive(Debug)]
enum Doing {
    Load,
    Write(Id),
    Late,
    Model(Id),
}

/// Pause between attempts to load the requests of an earlier run.
const LOAD_AGAIN: Duration = Duration::from_millis(500);
const BROKEN: &str = "the gateway failed to handle this request; its log has the details";
/// The longest time that a caller waits for a write to the disk.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// The most background tasks at which a doubtful write is still awaited.
const LATE_MAX: usize = 2_000;
/// The most requests that an earlier run can have left behind.
const LOADED_MAX: usize = 2 * OPEN_MAX;

impl Driver {
    pub(super) fn new(
        commands: mpsc::Receiver<Command>,
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
            doing: HashMap::new(),
            models: HashMap::new(),
            counted: HashSet::new(),
            earlier: HashSet::new(),
            stopping: false,
        }
    }

    /// The next command, if one waits.
    #[cfg(test)]
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    /// Spawns the task, which runs until the gateway is dropped.
    pub fn start(self, approvals: &Arc<Approvals>) {
        let store = approvals.deps.store.clone();
        let approvals = Arc::downgrade(approvals);
        tokio::spawn(self.run(approvals, store));
    }

    async fn run(mut self, approvals: Weak<Approvals>, store: Store) {
        self.begin(Doing::Load, load(store.clone()));
        loop {
            let wake = self.broker.wake().map(|at| self.clock.until(at));
            let input = tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.receive(command),
                    None => return,
                },
                done = self.work.join_next_with_id(), if !self.work.is_empty() => {
                    let Some(done) = done.and_then(|done| self.ended(done, &store)) else { continue };
                    let Some(approvals) = approvals.upgrade() else { return };
                    self.finish(&approvals, done)
                }
                () = async {
                    match wake {
                        Some(wake) => sleep(wake).await,
                        None => pending().await,
                    }
                } => Input::Tick,
            };
            let Some(approvals) = approvals.upgrade() else {
                return;
            };
            self.handle(&approvals, input);
        }
    }

    fn begin(
        &mut self,
        what: Doing,
        work: impl Future<Output = Done> + Send + 'static,
    ) -> AbortHandle {
        let handle = self.work.spawn(work);
        self.doing.insert(handle.id(), what);
        handle
    }

    /// The result of a task. A task that panicked counts as failed, so that its caller receives an
    /// error.
    fn ended(&mut self, ended: Result<(task::Id, Done), JoinError>, store: &Store) -> Option<Done> {
        let error = match ended {
            Ok((id, done)) => {
                self.doing.remove(&id);
                return Some(done);
            }
            Err(error) => error,
        };
        let what = self.doing.remove(&error.id())?;
        if error.is_cancelled() {
            // Cancelled: no caller waits for it any more.
            return None;
        }
        tracing::error!(?what, %error, "A task for an approval request failed.");
        match what {
            Doing::Load => {
                self.begin(Doing::Load, load(store.clone()));
                None
            }
            Doing::Write(id) => Some(Done::Written(id, Some(WriteError::Failed(BROKEN.into())))),
            Doing::Model(id) => Some(Done::Generated(id, Err(BROKEN.into()))),
            Doing::Late => None,
        }
    }

    fn receive(&mut self, command: Command) -> Input {
        match command {
            Command::Stop => {
                self.stopping = true;
                // Dropping the senders notifies the callers that wait.
                self.deciders.clear();
                Input::Stop
            }
            // Refused for the same reason: the gateway is stopping.
            Command::Ask { .. }
            | Command::Decide { .. }
            | Command::Leave(_)
            | Command::Withdraw(_)
                if self.stopping =>
            {
                Input::Tick
            }
            Command::Withdraw(id) => Input::Withdraw(id),
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

    fn finish(&mut self, approvals: &Arc<Approvals>, done: Done) -> Input {
        match done {
            Done::Loaded(records, rules) => {
                let now = self.clock.now();
                let policy = &approvals;
                let lost = approvals.policy().lost(&rules);
                // Loaded inside the closure: the configuration may change between attempts.
                policy.set_policy(|_| {
                    let config = approvals.deps.config.load();
                    Policy::remembering(&config, &rules, now).restore(&lost, now)
                });
                if !lost.is_empty() {
                    tracing::warn!(
                        count = lost.len(),
                        "The store is missing remembered denials that rules.json has; the gateway restores them."
                    );
                    tokio::spawn(keep(approvals.deps.store.clone(), lost));
                }
                self.earlier = records.iter().map(|one| Arc::clone(&one.id)).collect();
                self.loaded.send_replace(true);
                Input::Loaded(records)
            }
            Done::Written(id, failed) => Input::Written { id, failed },
            Done::Doubtful(record, reason, writing) => {
                let id = Arc::clone(&record.id);
                if self.doing.len() < LATE_MAX {
                    self.begin(
                        Doing::Late,
                        late(approvals.deps.store.clone(), record, writing),
                    );
                }
                let failed = Some(WriteError::Failed(reason));
                Input::Written { id, failed }
            }
            Done::Late(found) => found.map_or(Input::Tick, Input::Found),
            Done::Generated(id, result) => {
                self.models.remove(&id);
                Input::Generated { id, result }
            }
        }
    }

    fn handle(&mut self, approvals: &Arc<Approvals>, input: Input) {
        let config = approvals.deps.config.load();
        let can_generate = config.sampling.provider.is_some();
        self.broker
            .set_generation(can_generate, config.sampling.review);
        for effect in self.broker.handle(self.clock.now(), input) {
            self.carry_out(approvals, effect);
        }
        let waiting = self.broker.waiting();
        approvals.numbers.set_waiting(waiting);
    }

    fn carry_out(&mut self, approvals: &Arc<Approvals>, effect: Effect) {
        match effect {
            Effect::Write { record, why } => {
                let what = Doing::Write(Arc::clone(&record.id));
                let now = self.clock.now();
                let noted = self.noted(approvals, &record, why);
                let store = approvals.deps.store.clone();
                self.begin(what, write(store, record, why, noted, now));
            }
            Effect::Tell { why, record } => self.tell(approvals, why, &record),
            Effect::Deliver { asker, outcome, .. } => {
                if let Some(waiting) = self.askers.remove(&asker) {
                    let _ = waiting.send(outcome);
                }
            }
            Effect::Generate(record) => {
                let (approvals, id) = (Arc::clone(approvals), Arc::clone(&record.id));
                let done = async move {
                    let result = generate::generate(&approvals, &record).await;
                    Done::Generated(Arc::clone(&record.id), result)
                };
                let handle = self.begin(Doing::Model(Arc::clone(&id)), done);
                self.models.insert(id, handle);
            }
            Effect::Reply { decider, result } => {
                if let Some(waiting) = self.deciders.remove(&decider) {
                    let _ = waiting.send(result);
                }
            }
        }
    }

    /// The audit log record of a request. Requests of a client over its limit are only counted.
    fn noted(&mut self, approvals: &Arc<Approvals>, record: &Record, why: Change) -> Noted {
        let id = &record.id;
        if why == Change::Created {
            let client = record.ask.client.as_deref();
            let admitted = client.is_none_or(|client| approvals.deps.audit.admits_asked(client));
            if !admitted {
                if self.counted.len() >= OPEN_MAX {
                    // Requests that could not be written leave their IDs here; keep only open ones.
                    let open: HashSet<_> = self.broker.records().map(|open| &open.id).collect();
                    self.counted.retain(|id| open.contains(id));
                }
                self.counted.insert(Arc::clone(id));
            }
            return if admitted {
                Noted::Listed
            } else {
                Noted::Counted
            };
        }
        let is_in = |all: &mut HashSet<Id>| {
            if record.is_live() {
                all.contains(id)
            } else {
                all.remove(id)
            }
        };
        if is_in(&mut self.earlier) {
            Noted::Earlier
        } else if is_in(&mut self.counted) {
            Noted::Counted
        } else {
            Noted::Listed
        }
    }

    fn tell(&mut self, approvals: &Arc<Approvals>, why: Change, record: &Arc<Record>) {
        if why == Change::Withdrawn
            && let Some(model) = self.models.remove(&record.id)
        {
            // No caller wants the model's answer any more.
            model.abort();
        }
        approvals.numbers.count(why, record);
        approvals
            .deps
            .events
            .tell_json(event(why), &shown::event(record));
        if is_louder(&approvals.deps.config.load().approvals, why) {
            approvals.notifier.tell(event(why), shown::outside(record));
        }
        if let Some(decided) = record.decided.as_ref().filter(|_| why == Change::Decided)
            && decided.remember.is_some()
        {
            let (record, now) = (Arc::clone(record), self.clock.now());
            approvals.set_policy(|policy| policy.with_decision(&record, now));
        }
    }
}

/// Returns `true` if the change is reported outside the gateway: to the webhook or the desktop.
fn is_louder(settings: &Settings, why: Change) -> bool {
    let name = event(why).trim_start_matches("approval.");
    let hook = settings.webhook.as_ref();
    hook.is_some_and(|hook| hook.on.iter().any(|on| on == name))
        || (why == Change::Escalated && settings.notify == Notify::Auto)
}

/// Report a slow or failing disk at a bounded rate.
static SLOW: LazyLock<Limited> = LazyLock::new(Limited::default);
static FAILED: LazyLock<Limited> = LazyLock::new(Limited::default);

/// Writes a change of a request, and gives up waiting after [`WRITE_WITHIN`].
async fn write(store: Store, record: Arc<Record>, why: Change, noted: Noted, now: u64) -> Done {
    let changes = audit::changes(&record, why, noted, now);
    let to = store.clone();
    let mut writing = tokio::spawn(async move { to.write(changes).await });
    let Ok(written) = timeout(WRITE_WITHIN, &mut writing).await else {
        SLOW.report(|missed| {
            tracing::error!(approval = %record.id, missed, "Recording the outcome of an approval request is taking too long.");
        });
        return Done::Doubtful(record, "the disk is too slow".into(), Some(writing));
    };
    let id = Arc::clone(&record.id);
    let error = match written {
        Ok(Ok(())) => return Done::Written(id, None),
        Ok(Err(error)) => error,
        Err(_) => return Done::Written(id, Some(WriteError::Failed(BROKEN.into()))),
    };
    if matches!(error, StoreError::Closed) {
        // The gateway has stopped. The next one asks about held definitions again.
        tracing::debug!(approval = %id, "The store is closed, so the outcome of an approval request is not recorded.");
    } else {
        FAILED.report(|missed| {
            tracing::error!(error = %with_hint(&error, error.hint()), approval = %id, missed, "Cannot record the outcome of an approval request.");
        });
    }
    let failed = |error: &StoreError| WriteError::Failed(with_hint(error, error.hint()).into());
    let fault = match &error {
        StoreError::Conflict => match timeout(WRITE_WITHIN, store.approval(&id)).await {
            Ok(Ok(row)) => WriteError::Conflict(row.and_then(|row| parsed(&row)).map(Box::new)),
            Ok(Err(error)) => failed(&error),
            Err(_) => failed(&error),
        },
        StoreError::Unavailable { .. } => {
            return Done::Doubtful(record, with_hint(&error, error.hint()).into(), None);
        }
        error => failed(error),
    };
    Done::Written(id, Some(fault))
}

/// Finds out if a write that was given up reached the disk after all. Later changes of a request
/// meet the result on the disk, as a version conflict; only a new request has to be looked for.
async fn late(
    store: Store,
    record: Arc<Record>,
    writing: Option<JoinHandle<Result<(), StoreError>>>,
) -> Done {
    if let Some(writing) = writing
        && matches!(writing.await, Ok(Ok(())))
    {
        return Done::Late(Some(record));
    }
    if record.version > 1 {
        return Done::Late(None);
    }
    loop {
        match store.approval(&record.id).await {
            Ok(Some(row)) if row.version == 1 => return Done::Late(Some(record)),
            Ok(_) | Err(StoreError::Closed) => return Done::Late(None),
            Err(_) => sleep(LOAD_AGAIN).await,
        }
    }
}

pub(crate) fn parsed(row: &switchboard_store::Approval) -> Option<Record> {
    serde_json::from_str(&row.body)
        .inspect_err(|error| {
            tracing::error!(%error, approval = %row.id, "Cannot parse a stored approval request.");
        })
        .ok()
}

/// The name of the event for a change.
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

/// Writes denials back to a store that lost them.
async fn keep(store: Store, lost: Vec<Remembered>) {
    let changes = lost
        .iter()
        .map(|one| switchboard_store::Change::Remember(stored(one)));
    if let Err(error) = store.write(changes.collect()).await {
        tracing::error!(error = %with_hint(&error, error.hint()), "Cannot write remembered denials to the store.");
    }
}

/// Loads the requests and rules of an earlier run, and retries until the store is ready.
async fn load(store: Store) -> Done {
    loop {
        match read(&store).await {
            Ok((records, rules)) => return Done::Loaded(records, rules),
            Err(StoreError::Closed) => return pending().await,
            Err(error) => {
                tracing::debug!(error = %with_hint(&error, error.hint()), "Cannot read the open approval requests yet.");
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
        records.extend(rows.iter().filter_map(parsed));
    }
    Ok((records, store.rules().await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver() -> Driver {
        let (_, commands) = mpsc::channel(1);
        let (loaded, _) = watch::channel(false);
        Driver::new(commands, loaded, Clock::new())
    }

    #[tokio::test]
    async fn panicked_task_counts_as_failed() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().join("db"));
        let mut driver = driver();
        driver.begin(Doing::Write("w".into()), async { panic!("on purpose") });
        driver.begin(Doing::Model("m".into()), async { panic!("on purpose") });
        let mut failed = Vec::new();
        while let Some(ended) = driver.work.join_next_with_id().await {
            match driver.ended(ended, &store) {
                Some(Done::Written(id, Some(WriteError::Failed(_)))) => failed.push(id),
                Some(Done::Generated(id, Err(_))) => failed.push(id),
                _ => panic!("something else"),
            }
        }
        failed.sort();
        assert_eq!(failed, ["m".into(), "w".into()]);
        assert!(driver.doing.is_empty());
        // No caller waits for a task that was aborted.
        let handle = driver.begin(Doing::Model("m".into()), pending());
        handle.abort();
        let ended = driver.work.join_next_with_id().await.unwrap();
        assert!(driver.ended(ended, &store).is_none());
        assert!(driver.doing.is_empty());
    }

    /// The paused clock advances whenever all tasks wait for the disk.
    #[tokio::test(start_paused = true)]
    async fn late_write_of_hanging_disk_is_found() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().join("db"));
        let ask = r#"{"kind":"trust","server":"s","summary":"","request":{},"key":"k"}"#;
        let record = Arc::new(Record::new(
            "a".into(),
            serde_json::from_str(ask).unwrap(),
            0,
        ));
        let (to, new) = (store.clone(), Arc::clone(&record));
        let writing = write(to, new, Change::Created, Noted::Listed, 0);
        let Done::Doubtful(doubtful, _, Some(writing)) = writing.await else {
            panic!("the disk was waited for");
        };
        let Done::Late(Some(found)) = late(store.clone(), doubtful, Some(writing)).await else {
            panic!("it was not written");
        };
        assert_eq!(found, record);
        // A new request whose write is unknown is looked up.
        let Done::Late(Some(found)) = late(store, Arc::clone(&record), None).await else {
            panic!("it was not found");
        };
        assert_eq!(found, record);
    }

    #[tokio::test]
    async fn closed_store_at_shutdown_logs_no_error() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("log");
        let writer = Arc::new(std::fs::File::create(&log).unwrap());
        let subscriber = tracing_subscriber::fmt().with_writer(writer).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let store = Store::open(home.path().join("db"));
        store.close();
        store.closed().await;
        let ask = r#"{"kind":"trust","server":"s","summary":"","request":{},"key":"k"}"#;
        let record = Record::new("a".into(), serde_json::from_str(ask).unwrap(), 0);
        let writing = write(store, Arc::new(record), Change::Created, Noted::Listed, 0);
        let Done::Written(_, Some(WriteError::Failed(_))) = writing.await else {
            panic!("it was written");
        };
        assert_eq!(std::fs::read_to_string(log).unwrap(), "");
    }
}
