//! Approvals: asks a person through the broker, and carries out the broker's effects.
//!
//! A caller that needs a decision awaits `Approvals::ask`; dropping that future withdraws the
//! request. A person decides through [`Approvals::decide`]. In between, one task drives the broker:
//! it stores changes, sends notifications, delivers outcomes and has models answer. Calls that need
//! no approval never reach it, because the rules are read from memory.

mod audit;
pub mod driver;
mod generate;
pub mod notifier;
pub mod numbers;
pub mod policy;
pub(crate) mod question;
pub mod shown;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use switchboard_approvals::{Ask, Decision, DecisionError, Id, Outcome, Record, broker::Asker};
use switchboard_base::{audit::Audit, events::Events};
use switchboard_config::{Config, Environment, Home};
use switchboard_store::Store;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};

use self::{
    driver::{Command, Driver},
    notifier::Notifier,
    numbers::Numbers,
    policy::Policy,
};
use crate::question_limits::QuestionLimits;

/// The dependencies of approvals.
#[derive(Debug)]
pub(crate) struct Deps {
    pub home: Arc<Home>,
    /// The environment of this process, for the key of a model's provider.
    pub environment: Arc<Environment>,
    pub config: Arc<ArcSwap<Config>>,
    pub events: Events,
    pub audit: Arc<Audit>,
    pub(crate) store: Store,
}

/// The approval broker and its rules, as the rest of the gateway uses them.
#[derive(Debug)]
pub struct Approvals {
    deps: Deps,
    /// The limits on the questions of servers.
    pub question_limits: QuestionLimits,
    /// Publishes changes of requests to the webhook and the desktop.
    pub notifier: Notifier,
    commands: mpsc::Sender<Command>,
    /// A reserved slot for [`Command::Stop`], which is sent once, by code that cannot wait.
    stop: Mutex<Option<mpsc::OwnedPermit<Command>>>,
    last: AtomicU64,
    /// `true` once the requests that an earlier run left behind are loaded.
    ready: watch::Receiver<bool>,
    policy: ArcSwap<Policy>,
    /// The file of remembered decisions. Locked while it is written.
    file: Arc<Mutex<PathBuf>>,
    /// Counts of requests by outcome.
    pub numbers: Numbers,
    clock: Clock,
    stopping: AtomicBool,
}

impl Approvals {
    /// Creates the approvals and their driver; requests queue until the driver runs.
    ///
    /// Remembered decisions are read from their file, which is small, so that the rules apply from
    /// the first call on, even if the store is not ready.
    pub(crate) fn new(deps: Deps) -> (Arc<Self>, Driver) {
        let file = deps.home.rules();
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let stop = commands.clone().try_reserve_owned().ok();
        let (loaded, ready) = watch::channel(false);
        let clock = Clock::new();
        let policy = Policy::new(&deps.config.load(), policy::read_file(&file));
        let approvals = Arc::new(Self {
            question_limits: QuestionLimits::new(deps.events.clone(), Arc::clone(&deps.audit)),
            notifier: Notifier::default(),
            deps,
            commands,
            stop: Mutex::new(stop),
            last: AtomicU64::new(0),
            ready,
            policy: ArcSwap::from_pointee(policy),
            file: Arc::new(Mutex::new(file)),
            numbers: Numbers::default(),
            clock,
            stopping: AtomicBool::new(false),
        });
        (approvals, Driver::new(received, loaded, clock))
    }

    /// The rules that are in force.
    pub fn policy(&self) -> arc_swap::Guard<Arc<Policy>> {
        self.policy.load()
    }

    /// Replaces the rules, and writes the remembered decisions to their file if they changed.
    pub fn set_policy(self: &Arc<Self>, change: impl Fn(&Policy) -> Policy) {
        let before = self.policy.rcu(|before| change(before));
        if before.lasting() != self.policy.load().lasting() {
            let (approvals, file) = (Arc::clone(self), Arc::clone(&self.file));
            tokio::task::spawn_blocking(move || {
                let file = file.lock();
                // Reads the current policy: of two concurrent writers, the last one writes the
                // right state.
                policy::write_file(&file, &approvals.policy.load());
            });
        }
    }

    /// Stops the broker: every waiting caller is notified at once. Open requests stay open for the
    /// next start.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        let mut stop = self.stop.lock();
        if let Some(place) = stop.take() {
            place.send(Command::Stop);
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// The longest time that a call waits for the store.
    fn wait(&self) -> Duration {
        self.deps.config.load().wait
    }

    /// The current time, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Asks a person. Dropping the future withdraws the request.
    pub(crate) async fn ask(&self, ask: Ask) -> Outcome {
        if !self.wait_until_ready(self.wait()).await {
            let why = "initializing: the store is not ready, so the gateway cannot ask for approval; try again, and check the part `store` with `switchboard status`";
            return Outcome::Unavailable(why.into());
        }
        let Some(id) = new_id() else {
            return Outcome::Unavailable("the system provides no random numbers".into());
        };
        let gone = || Outcome::Unavailable("the gateway is stopping".into());
        // Reserves both slots at once: callers that each hold one and wait for a second would
        // deadlock.
        let Ok(mut places) = self.commands.reserve_many(2).await else {
            return gone();
        };
        let (Some(asking), Some(leaving)) = (places.next(), places.next()) else {
            return gone();
        };
        let asker = self.last.fetch_add(1, Relaxed) + 1;
        let (sender, outcome) = oneshot::channel();
        let _waiting = Waiting {
            leaving: Some(leaving),
            asker,
        };
        asking.send(Command::Ask {
            asker,
            id,
            ask: Box::new(ask),
            outcome: sender,
        });
        outcome.await.unwrap_or_else(|_| gone())
    }

    /// Applies a decision that a person made.
    pub async fn decide(&self, id: Id, decision: Decision) -> Result<Arc<Record>, DecisionError> {
        if !self.wait_until_ready(self.wait()).await {
            return Err(DecisionError::Unavailable("the store is not ready".into()));
        }
        let (reply, result) = oneshot::channel();
        let command = Command::Decide {
            id,
            decision: Box::new(decision),
            reply,
        };
        // An error means that the gateway is stopping; the reply reports that as well.
        let _ = self.commands.send(command).await;
        let gone = |_| Err(DecisionError::Unavailable("the gateway is stopping".into()));
        result.await.unwrap_or_else(gone)
    }

    /// Withdraws a request that an earlier run left behind, unless a caller waits for it by now.
    pub(crate) async fn withdraw(&self, id: Id) {
        // An error means that the gateway is stopping.
        let _ = self.commands.send(Command::Withdraw(id)).await;
    }

    /// Waits until the remembered decisions are loaded; the error says why they are not.
    pub(crate) async fn until_rules_are_known(&self) -> Result<(), &'static str> {
        if self.wait_until_ready(self.wait()).await {
            return Ok(());
        }
        Err(
            "initializing: the store is not ready, so the remembered decisions are unknown; try again",
        )
    }

    /// Waits until the requests of an earlier run are loaded, for at most `patience`. Returns
    /// `true` if they are.
    pub(crate) async fn wait_until_ready(&self, patience: Duration) -> bool {
        if *self.ready.borrow() {
            return true;
        }
        let mut ready = self.ready.clone();
        let waiting = ready.wait_for(|ready| *ready);
        matches!(timeout(patience, waiting).await, Ok(Ok(_)))
    }
}

/// A caller that waits for an outcome. Dropping it withdraws the request.
struct Waiting<'a> {
    /// A reserved slot for [`Command::Leave`], so that a full channel cannot lose it.
    leaving: Option<mpsc::Permit<'a, Command>>,
    asker: Asker,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.leaving.take() {
            place.send(Command::Leave(self.asker));
        }
    }
}

/// The capacity of the channel to the driver. Each waiting caller keeps one slot. The broker lets
/// at most `OPEN_MAX` callers wait and rejects the others, which pass through the remaining slots.
const COMMANDS_MAX: usize = switchboard_approvals::broker::OPEN_MAX + 1_024;

/// The longest sleep before the clock is read again while a timer is pending.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// The time of day, made monotonic: the start time plus the time elapsed since then, or the system
/// clock where that is ahead, as after the machine has slept.
#[derive(Clone, Copy, Debug)]
struct Clock {
    began: Instant,
    /// Start time, in milliseconds since 1970.
    at: u64,
}

impl Clock {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            at: millis(SystemTime::now()),
        }
    }

    fn now(&self) -> u64 {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at
            .saturating_add(passed)
            .max(millis(SystemTime::now()))
    }

    /// Time until `at`, capped at [`LOOK_AGAIN`], because the machine may sleep in between.
    fn until(&self, at: u64) -> Duration {
        Duration::from_millis(at.saturating_sub(self.now())).min(LOOK_AGAIN)
    }
}

/// Converts a time to milliseconds since 1970.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Converts milliseconds since 1970 to a time.
pub fn time_of(millis: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// An ID that a person can type.
fn new_id() -> Option<Id> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).ok()?;
    let letters = bytes.map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Some(letters.iter().collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approvals() -> (tempfile::TempDir, Arc<Approvals>, Driver) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), None).unwrap();
        let store = Store::open(home.database());
        let (approvals, driver) = Approvals::new(Deps {
            environment: Arc::new(Environment::current(None)),
            config: Arc::default(),
            events: Events::default(),
            audit: Arc::new(Audit::start(store.clone())),
            store,
            home: Arc::new(home),
        });
        (folder, approvals, driver)
    }

    #[tokio::test]
    async fn stop_and_leave_fit_into_a_full_channel() {
        let (_home, approvals, mut driver) = approvals();
        let mut places = approvals.commands.reserve_many(2).await.unwrap();
        let (asking, leaving) = (places.next().unwrap(), places.next());
        drop(asking);
        let waiting = Waiting { leaving, asker: 7 };
        let mut sent = 0;
        while approvals.commands.try_send(Command::Leave(0)).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, COMMANDS_MAX - 2);
        drop(waiting);
        approvals.stop();
        approvals.stop();
        let mut received = Vec::new();
        while let Some(command) = driver.next_command() {
            received.push(command);
        }
        let is_leave = |command: &Command| matches!(command, Command::Leave(7));
        let is_stop = |command: &Command| matches!(command, Command::Stop);
        assert_eq!(received.iter().filter(|it| is_leave(it)).count(), 1);
        assert_eq!(received.iter().filter(|it| is_stop(it)).count(), 1);
    }
}
