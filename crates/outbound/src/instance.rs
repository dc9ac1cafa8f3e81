//! One instance of a server: its connection, and the task that decides when to have one.
//!
//! Calls do not pass through the task. While the instance is ready, they take its connection from
//! [`Instance::live`]; only a call that finds none wakes the task and waits, for a bounded time.

mod advice;
mod eras;
mod listing;
mod permission;
mod talk;
mod task;
mod watching;

pub use self::{talk::Admission, watching::Watch};

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use switchboard_base::{
    error::Error,
    extensions::Outbound,
    health::{Health, Reason, ServerState},
};
use switchboard_catalog::{Kind, Offers, ServerPart};
use switchboard_client::Era;
use switchboard_config::{Occasion, Server};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{sleep_until, timeout_at},
};

pub(crate) use self::permission::{off, refusal};
use self::{
    eras::Eras,
    listing::{Added, Agreement, Listing},
    permission::is_kept_up,
    task::Task,
};
use crate::{
    clock,
    deps::Deps,
    discovery::{Learnt, Lists},
    instances::{InUse, Key},
    judgement::Due,
    launch,
    limiter::Limiter,
    live::Live,
    questions::Questions,
    state_dir::StateDir,
    subscriptions::Subscriptions,
    upstream::Common,
};

/// An instance of a server, as callers use it.
#[derive(Debug)]
pub struct Instance {
    /// The dependencies that all servers share.
    pub deps: Arc<Deps>,
    /// The server's name in the configuration.
    pub name: Arc<str>,
    /// Identifies the instance in logs and caches: the server's name, with a number if it is not the only one.
    pub id: Arc<str>,
    /// Its concurrency limit for calls.
    pub limiter: Arc<Limiter>,
    /// The requests that the server sends during calls.
    pub questions: Arc<Questions>,
    /// The resources that clients subscribed to.
    pub(crate) watched: Subscriptions,
    /// Notifications of clients to it.
    pub outbound: Outbound,
    pub(crate) common: Arc<Common>,
    origin: Origin,
    /// The only callers that it serves, if it became theirs after its start.
    keeper: OnceLock<Key>,
    /// Other instances of the server may list other items.
    is_split: AtomicBool,
    /// Cloned by the requests that use it.
    pub(crate) in_use: Arc<()>,
    /// The eras that it supports.
    eras: Eras,
    /// Its second connection, in the era that the first is not in.
    other: Mutex<Option<Arc<Self>>>,
    /// For a second connection, the first one.
    of: Option<Weak<Self>>,
    /// The era of a second connection.
    era: Option<Era>,
    /// The lists of this connection, if they are not the server's.
    listing: ArcSwap<Listing>,
    /// The items of this connection that match the server's known definitions, if its lists are not the server's.
    agreement: ArcSwap<Agreement>,
    /// The items that only the second connection lists, added to the server's known offers.
    added: Mutex<Added>,
    /// `true` if there are any such items.
    has_added: AtomicBool,
    /// The connection, while it is ready.
    live: ArcSwapOption<Live>,
    health: watch::Sender<Health>,
    /// The number of calls that wait for it to be ready.
    demand: AtomicUsize,
    /// It is stopping, and is not to be started again.
    ending: AtomicBool,
    /// The server has never been listed, and this instance is about to do it.
    new: AtomicBool,
    /// Its start is no longer throttled.
    launched: AtomicBool,
    /// The lists that calls wait for.
    hurried: Mutex<Lists>,
    /// The lists with announced changes that clients have not been notified of yet.
    announced: Mutex<Lists>,
    wake: Notify,
    control: mpsc::Sender<Control>,
}

/// The callers that an instance is for.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    name: Arc<str>,
    id: Arc<str>,
    /// Its number among the instances of single callers.
    pub(crate) number: Option<u64>,
    /// The callers; `None` if it is for all of them, or for the gateway, which fetches the server's lists.
    pub(crate) key: Option<Key>,
    pub(crate) occasion: Occasion,
    pub(crate) state_dir: StateDir,
    /// Other instances of the server may list other items.
    is_split: bool,
    /// It can be started without a caller.
    is_alone: bool,
}

impl Origin {
    /// The instance for all callers, or for the gateway if others are `is_split`.
    pub(crate) fn shared(name: &Arc<str>, is_split: bool, needs_project: bool) -> Self {
        Self {
            name: Arc::clone(name),
            id: Arc::clone(name),
            number: None,
            key: None,
            occasion: Occasion {
                project: None,
                client: Some("switchboard".into()),
            },
            state_dir: StateDir::Shared,
            is_split,
            is_alone: !needs_project,
        }
    }

    /// An instance for the callers with this key.
    pub(crate) fn own(
        name: &Arc<str>,
        number: u64,
        key: &Key,
        place: usize,
        client: &Arc<str>,
    ) -> Self {
        let (state_dir, project) = match key {
            Key::Project(project) => (StateDir::Project(Arc::clone(project)), Some(project)),
            Key::Client { realm, project, .. } => {
                let realm = *realm;
                (StateDir::Client { realm, place }, project.as_ref())
            }
        };
        Self {
            name: Arc::clone(name),
            id: format!("{name}/{number}").into(),
            number: Some(number),
            key: Some(key.clone()),
            occasion: Occasion {
                project: project.cloned(),
                client: Some(Arc::clone(client)),
            },
            state_dir,
            is_split: true,
            is_alone: true,
        }
    }
}

/// The parts that differ between the first and the second connection of an instance.
struct Parts {
    origin: Origin,
    limiter: Arc<Limiter>,
    questions: Arc<Questions>,
    common: Arc<Common>,
    of: Option<Weak<Instance>>,
    era: Option<Era>,
}

/// The items that a request names, by the server's own names.
pub type Items<'a> = [Option<(Kind, Cow<'a, str>)>; 3];

/// Prior knowledge about a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// The catalogue has its offers.
    offers: bool,
    era: Option<Era>,
}

impl Known {
    /// The knowledge from its stored offers.
    pub(crate) fn of(offers: Option<&Offers>) -> Self {
        Self {
            offers: offers.is_some_and(|offers| !offers.unlisted),
            era: offers.and_then(|offers| offers.era),
        }
    }
}

#[derive(Debug)]
enum Control {
    /// New limits for the same server.
    Tune(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    Learnt(Answer),
    Stop(oneshot::Sender<()>),
}

/// The result of fetching lists.
#[derive(Debug)]
struct Answer {
    run: u64,
    lists: Lists,
    /// The `due` counters when they were fetched.
    due: Due,
    /// `None` if the server is gone.
    learnt: Option<Box<Learnt>>,
}

/// The most orders that queue for the task. They are rare; a sender that finds no room waits.
const CONTROL_DEPTH: usize = 64;

impl Instance {
    /// Starts to supervise an instance. `known` is the prior knowledge about the server; the `predecessors` exit before
    /// it is started.
    pub(crate) fn start(
        origin: Origin,
        common: &Arc<Common>,
        deps: &Arc<Deps>,
        known: Known,
        predecessors: Vec<Arc<Self>>,
    ) -> Arc<Self> {
        let settings = common.settings.load();
        let parts = Parts {
            origin,
            limiter: Limiter::new(settings.max_in_flight, settings.max_queued),
            questions: Arc::default(),
            common: Arc::clone(common),
            of: None,
            era: None,
        };
        let instance = Self::spawn(parts, Arc::clone(deps), known, predecessors);
        if instance.is_split() {
            instance.note_split();
        }
        instance
    }

    /// Tests if other instances of the server may list other items.
    pub(crate) fn is_split(&self) -> bool {
        self.is_split.load(Relaxed)
    }

    /// Tests if the instance is for the gateway, and callers have others.
    fn is_for_gateway(&self) -> bool {
        self.is_split() && self.key().is_none()
    }

    /// Forgets who has used it, because its next run is not the one that they used. A caller that has begun to use it
    /// uses the next run.
    fn forget_users(self: &Arc<Self>) {
        let is_unused = || self.idle_since().is_some();
        // A second connection may still have its state.
        let is_whole = self.of.is_none() && self.other().is_none();
        if is_whole && is_unused() {
            self.questions.forget_users(is_unused);
        }
    }

    fn note_split(self: &Arc<Self>) {
        let mut split = self.common.split.lock();
        split.retain(|instance| instance.strong_count() > 0);
        split.push(Arc::downgrade(self));
    }

    /// Has the instance of all callers serve `keeper` alone, or only the calls in flight: others get their own from now
    /// on, whose lists may differ.
    pub(crate) fn split_off(self: &Arc<Self>, keeper: Option<Key>) {
        if let Some(keeper) = keeper {
            for instance in [Some(Arc::clone(self)), self.other()].into_iter().flatten() {
                // It is set once, with the split.
                let _ = instance.keeper.set(keeper.clone());
            }
        }
        let instance = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            instance.adopt_known_lists();
            instance.is_split.store(true, Relaxed);
            instance.note_split();
            // Without a keeper, it is stopped when its calls have ended.
            for connection in [Some(&instance), instance.other().as_ref()]
                .into_iter()
                .flatten()
            {
                connection.wake.notify_one();
            }
        });
    }

    /// The parts of the second connection, in this era.
    fn second(self: &Arc<Self>, era: Era) -> Parts {
        Parts {
            origin: Origin {
                key: self.key().cloned(),
                ..self.origin.clone()
            },
            limiter: Arc::clone(&self.limiter),
            questions: Arc::clone(&self.questions),
            common: Arc::clone(&self.common),
            of: Some(Arc::downgrade(self)),
            era: Some(era),
        }
    }

    fn spawn(
        parts: Parts,
        deps: Arc<Deps>,
        known: Known,
        predecessors: Vec<Arc<Self>>,
    ) -> Arc<Self> {
        let (control, orders) = mpsc::channel(CONTROL_DEPTH);
        let settings = parts.common.settings.load_full();
        let off = off(&parts.origin.name, &settings);
        let is_off = off.is_some();
        let is_new = !known.offers && parts.origin.is_alone && !is_off;
        let health = off.unwrap_or_else(|| {
            // It has not been started yet, but will be without any action of the user.
            let is_kept_up = parts.era.is_none() && is_kept_up(&settings, &parts.origin);
            Health::new(if is_kept_up || is_new {
                ServerState::Starting
            } else {
                ServerState::Idle
            })
        });
        let is_split = AtomicBool::new(parts.origin.is_split);
        let instance = Arc::new(Self {
            deps,
            name: Arc::clone(&parts.origin.name),
            id: Arc::clone(&parts.origin.id),
            limiter: parts.limiter,
            questions: parts.questions,
            watched: Subscriptions::default(),
            outbound: Outbound::default(),
            common: parts.common,
            origin: parts.origin,
            keeper: OnceLock::new(),
            is_split,
            in_use: Arc::default(),
            eras: Eras::new(known.era.filter(|_| parts.era.is_none())),
            other: Mutex::default(),
            of: parts.of,
            era: parts.era,
            listing: ArcSwap::default(),
            agreement: ArcSwap::default(),
            added: Mutex::default(),
            has_added: AtomicBool::new(false),
            live: ArcSwapOption::empty(),
            health: watch::Sender::new(health),
            demand: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            new: AtomicBool::new(is_new),
            launched: AtomicBool::new(false),
            hurried: Mutex::new(Lists::NONE),
            announced: Mutex::new(Lists::NONE),
            wake: Notify::new(),
            control,
        });
        let task = Task::new(Arc::clone(&instance), known, is_off);
        let mut cleared = instance.common.cleared.subscribe();
        tokio::spawn(async move {
            for predecessor in predecessors {
                predecessor.stop().await;
            }
            // An error means that the server has been removed.
            let _ = cleared.wait_for(|cleared| *cleared).await;
            task.run(orders).await;
        });
        instance
    }

    /// The callers that it is for; `None` if it is for all of them.
    pub fn key(&self) -> Option<&Key> {
        self.origin.key.as_ref().or_else(|| self.keeper.get())
    }

    /// The name of its client, if it is for a single one.
    pub fn client(&self) -> Option<&Arc<str>> {
        match self.key()? {
            Key::Project(_) => None,
            Key::Client { .. } => self.origin.occasion.client.as_ref(),
        }
    }

    /// The directory that its callers work in, if there is one.
    pub fn project(&self) -> Option<&Arc<str>> {
        self.origin.occasion.project.as_ref()
    }

    /// The directories that descriptions of this instance may name. Reads files.
    fn directories(&self) -> impl Iterator<Item = String> {
        let (name, settings, deps) = (&self.name, self.settings(), &self.deps);
        let Origin {
            state_dir,
            occasion,
            ..
        } = &self.origin;
        let own = state_dir.path(name, &settings, &deps.home);
        let configured = launch::configured_directory(name, &settings, occasion, deps);
        let project = self.project().map(ToString::to_string);
        [Some(own), configured]
            .into_iter()
            .flatten()
            .filter_map(|path| path.into_os_string().into_string().ok())
            .chain(project)
    }

    /// Its configuration.
    pub fn settings(&self) -> Arc<Server> {
        self.common.settings.load_full()
    }

    /// Its health.
    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// The connection, if it is ready.
    pub fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    /// Time limit of a request.
    pub fn request_timeout(&self) -> Duration {
        self.common.settings.load().request_timeout
    }

    /// Waits for a connection other than the lost one, up to the deadline. Starts the server if necessary, in
    /// this era if it supports it. A failed start ends the wait.
    pub async fn ready(
        &self,
        until: Instant,
        lost: Option<&Arc<Live>>,
        era: Option<Era>,
    ) -> Result<Arc<Live>, Error> {
        if self.demand.fetch_add(1, Relaxed) == 0 {
            self.eras.wish(era);
        }
        let _waits = Waits(self);
        self.wake.notify_one();
        let mut wait = Wait {
            retry_by: until.min(clock::now() + self.deps.wait()),
            started: false,
        };
        let mut health = self.health.subscribe();
        loop {
            // Read before the connection, so that a later change of it counts as a change.
            let now = health.borrow_and_update().clone();
            if let Some(client) = self.live()
                && lost.is_none_or(|lost| !Arc::ptr_eq(lost, &client))
            {
                return Ok(client);
            }
            if let Some(failure) = self.hopeless(&now, &mut wait) {
                return Err(failure);
            }
            match timeout_at(until.into(), health.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(self.not_connected()),
                Err(_) => return Err(self.initializing()),
            }
        }
    }

    /// Waits for the server's offers, up to the deadline. A list that is empty only because it was never
    /// fetched would mislead.
    pub async fn offered(
        &self,
        until: Instant,
        era: Option<Era>,
    ) -> Result<Arc<ServerPart>, Error> {
        let mut changes = self.deps.live_catalog.changes();
        loop {
            changes.borrow_and_update();
            if let Some(part) = self.deps.live_catalog.catalog().server(&self.name) {
                return Ok(Arc::clone(part));
            }
            let live = self.ready(until, None, era).await?;
            tokio::select! {
                // Its lists may have arrived meanwhile.
                _ = changes.changed() => {}
                // If there is a reason, the next iteration reports it.
                () = self.lost(&live) => {}
                () = sleep_until(until.into()) => return Err(self.initializing()),
            }
        }
    }

    /// Tests if a user has to sign in.
    pub(crate) fn needs_sign_in(&self) -> bool {
        self.health.borrow().state == ServerState::NeedsSignIn
    }

    /// Waits until no user has to sign in.
    pub(crate) async fn resumed(&self) {
        let mut health = self.health.subscribe();
        // An error means that the task has ended.
        let _ = health
            .wait_for(|health| health.state != ServerState::NeedsSignIn)
            .await;
    }

    /// Waits until this is no longer the current connection.
    async fn lost(&self, live: &Arc<Live>) {
        let mut health = self.health.subscribe();
        let is_other = |_: &Health| {
            let now = self.live.load();
            now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, live))
        };
        // An error means that the task has ended.
        let _ = health.wait_for(is_other).await;
    }

    /// The error, if waiting any longer is useless.
    fn hopeless(&self, health: &Health, wait: &mut Wait) -> Option<Error> {
        let next_try = health.next_try.map(|at| {
            at.duration_since(SystemTime::now())
                .unwrap_or(Duration::ZERO)
        });
        if self.ending.load(Relaxed) {
            return Some(self.not_connected());
        }
        // The caller can use the first connection instead.
        if self.is_ruled_out() {
            return Some(self.initializing());
        }
        let failed = || Error::InitializationFailed {
            server: Arc::clone(&self.name),
            reason: health
                .reason
                .clone()
                .unwrap_or_else(|| Reason::plain("parked")),
            action: health.action.clone(),
            retry_after: next_try,
        };
        match health.state {
            ServerState::Disabled => Some(Error::Disabled {
                server: Arc::clone(&self.name),
            }),
            ServerState::Parked => Some(failed()),
            ServerState::NeedsSignIn => Some(Error::NeedsSignIn {
                server: Arc::clone(&self.name),
                reason: health.reason.clone(),
            }),
            ServerState::Stopping => Some(self.not_connected()),
            ServerState::Retrying if wait.started => Some(failed()),
            ServerState::Retrying
                if next_try.is_some_and(|next| clock::now() + next > wait.retry_by) =>
            {
                Some(self.initializing())
            }
            ServerState::Starting => {
                wait.started = true;
                None
            }
            ServerState::Idle | ServerState::Ready | ServerState::Retrying => None,
        }
    }

    /// The error of a call that finds no connection.
    pub fn not_connected(&self) -> Error {
        Error::NotConnected {
            server: Arc::clone(&self.name),
        }
    }

    pub(crate) fn initializing(&self) -> Error {
        let health = self.health.borrow();
        let retry_after = health
            .next_try
            .and_then(|at| at.duration_since(SystemTime::now()).ok())
            .unwrap_or(Duration::from_secs(1));
        Error::Initializing {
            server: Arc::clone(&self.name),
            reason: health.reason.clone(),
            retry_after,
        }
    }

    /// Applies new settings to the same server without a restart.
    pub(crate) async fn tune(&self) {
        self.order(Control::Tune).await;
        if let Some(other) = self.other() {
            other.order(Control::Tune).await;
        }
    }

    /// Applies the concurrency limit of new settings.
    pub(crate) fn settle(&self, server: &Server) {
        self.limiter.set(server.max_in_flight, server.max_queued);
    }

    /// Stops the server if it runs, forgets its failures, and starts it.
    pub async fn restart(&self) {
        // It is opened again when needed.
        let other = self.close_other(None);
        tokio::join!(self.order(Control::Restart), leave(other));
    }

    /// Stops the server for good, within the time of its settings. Calls in flight are answered first.
    pub(crate) async fn stop(&self) {
        // No second connection is opened from here on.
        self.ending.store(true, Relaxed);
        let other = self.close_other(None);
        tokio::join!(self.leave(), leave(other));
    }

    /// Closes this connection for good.
    async fn leave(&self) {
        self.ending.store(true, Relaxed);
        // Wakes all callers that wait for it.
        self.health.send_modify(|_| ());
        self.order(Control::Stop).await;
    }

    /// Tests if it has never been listed, and is about to be.
    pub(crate) fn is_new(&self) -> bool {
        self.new.load(Relaxed)
    }

    /// Tests if it is being listed for the first time: its start is no longer throttled.
    pub(crate) fn is_being_met(&self) -> bool {
        self.is_new() && self.launched.load(Relaxed)
    }

    fn set_launched(&self, launched: bool) {
        self.launched.store(launched, Relaxed);
    }

    fn set_new(&self, new: bool) {
        if self.new.swap(new, Relaxed) != new {
            // Wakes callers of `met`.
            self.health.send_modify(|_| ());
        }
    }

    /// Waits until it has been listed or has failed, or is no longer to run.
    pub(crate) async fn met(&self) {
        let mut health = self.health.subscribe();
        // An error means that the task has ended.
        let is_met = |_: &Health| !self.is_new() || self.ending.load(Relaxed);
        let _ = health.wait_for(is_met).await;
    }

    /// Waits until it is to stop for good.
    pub async fn ended(&self) {
        let mut health = self.health.subscribe();
        // An error means that the task has ended.
        let _ = health.wait_for(|_| self.ending.load(Relaxed)).await;
    }

    /// Withdraws the connection from use, and wakes all callers that wait for its lists.
    fn hide(&self) {
        if let Some(live) = self.live.swap(None) {
            live.judgements.end();
        }
    }

    /// Has a list fetched at once.
    fn hurry(&self, kind: Kind) {
        {
            let mut hurried = self.hurried.lock();
            *hurried = hurried.and(Lists::of(kind));
        }
        self.wake.notify_one();
    }

    fn take_hurried(&self) -> Lists {
        let mut hurried = self.hurried.lock();
        std::mem::replace(&mut *hurried, Lists::NONE)
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Control) {
        let (done, carried_out) = oneshot::channel();
        if self.control.send(order(done)).await.is_ok() {
            let _ = carried_out.await;
        }
    }
}

impl InUse for Arc<Instance> {
    fn idle_since(&self) -> Option<Instant> {
        let is_leased = Arc::strong_count(&self.in_use) > 1;
        let is_used = is_leased || !self.watched.is_empty() || !self.questions.is_empty();
        self.limiter.last_used().filter(|_| !is_used)
    }
}

/// Closes a second connection, if there is one.
async fn leave(other: Option<Arc<Instance>>) {
    if let Some(other) = other {
        other.leave().await;
    }
}

/// The state of a call that waits for the server.
#[derive(Debug)]
struct Wait {
    /// A failed server is waited for only if its next start is before this time.
    retry_by: Instant,
    /// A start that the call waits for is in progress.
    started: bool,
}

/// Counts a call that waits for the server.
struct Waits<'a>(&'a Instance);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.demand.fetch_sub(1, Relaxed);
    }
}
