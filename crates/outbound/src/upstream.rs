//! One server behind the gateway: its connection while it has one, and the task that decides when
//! it has.
//!
//! Calls do not pass through the task. While the server is ready they take its connection from
//! [`Upstream::live`] and go; only a call that finds none wakes the task and waits, bounded.

mod advice;
mod eras;
mod listing;
mod talk;
mod task;
mod watching;

pub use self::{talk::Admission, watching::Watch};

use std::{
    borrow::Cow,
    sync::{
        Arc, Weak,
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
    metrics::Meter,
    tasks,
};
use switchboard_catalog::{Kind, ServerPart};
use switchboard_client::{Era, model::LogLevel};
use switchboard_config::Server;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{sleep_until, timeout_at},
};

use self::{
    eras::Eras,
    listing::{Added, Agreement, Listing},
    task::{Task, is_kept_up, off},
};
use crate::{
    cache::Freshness,
    deps::Deps,
    discovery::{Learnt, Lists, Missing},
    judgement::Due,
    limiter::Limiter,
    live::Live,
    questions::Questions,
    subscriptions::Subscriptions,
};

/// A server, for whoever calls it.
#[derive(Debug)]
pub struct Upstream {
    /// The dependencies that all servers share.
    pub deps: Arc<Deps>,
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// Its places for calls.
    pub limiter: Arc<Limiter>,
    /// Its counts.
    pub meter: Meter,
    settings: ArcSwap<Server>,
    /// What it asks while it works.
    pub questions: Arc<Questions>,
    /// Its tasks that clients have begun.
    pub begun: tasks::Begun,
    /// What clients watch of it.
    pub(crate) watched: Subscriptions,
    /// Notifications of clients that go to it.
    pub outbound: Outbound,
    /// How fresh its lists are.
    pub freshness: Freshness,
    /// The eras that it speaks.
    eras: Eras,
    /// Its connection in the era that the first is not in.
    other: Mutex<Option<Arc<Self>>>,
    /// The first connection, of a second one.
    of: Option<Weak<Self>>,
    /// The era of a second connection.
    era: Option<Era>,
    /// What a second connection lists.
    listing: ArcSwap<Listing>,
    /// Which of that is what the server is known for.
    agreement: ArcSwap<Agreement>,
    /// What the second connection has added to what the server is known for.
    added: Mutex<Added>,
    /// Whether that is anything.
    has_added: AtomicBool,
    /// The lists that could not be had when they were last asked for.
    missing: Mutex<Missing>,
    /// Held while a list that is out of date is asked for.
    refreshing: tokio::sync::Mutex<()>,
    /// The connection, while it is ready.
    live: ArcSwapOption<Live>,
    /// The most of log messages that anybody wants of it.
    level: Mutex<Option<LogLevel>>,
    health: watch::Sender<Health>,
    /// Calls that wait for the server to come up.
    demand: AtomicUsize,
    /// It is to end, and not to be started again.
    ending: AtomicBool,
    /// It has never been learnt, and is about to be.
    new: AtomicBool,
    /// Its turn to be started has come.
    launched: AtomicBool,
    /// The lists that calls wait for.
    hurried: Mutex<Lists>,
    /// The lists that the server has announced a change of, which clients have not heard yet.
    announced: Mutex<Lists>,
    wake: Notify,
    control: mpsc::Sender<Control>,
}

/// The parts of a connection that are the server's.
struct Parts {
    name: Arc<str>,
    limiter: Arc<Limiter>,
    meter: Meter,
    server: Arc<Server>,
    questions: Arc<Questions>,
    of: Option<Weak<Upstream>>,
    era: Option<Era>,
}

/// The items of a server that a request is about, as the server calls them.
pub type Items<'a> = [Option<(Kind, Cow<'a, str>)>; 3];

/// What is known of a server from before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// Whether the catalogue has what it offers.
    pub(crate) offers: bool,
    pub(crate) era: Option<Era>,
}

#[derive(Debug)]
enum Control {
    /// Other numbers, the same server.
    Tune(oneshot::Sender<()>),
    Restart(oneshot::Sender<()>),
    Learnt(Answer),
    Stop(oneshot::Sender<()>),
}

/// What the server said when it was asked for lists.
#[derive(Debug)]
struct Answer {
    run: u64,
    lists: Lists,
    /// How often they were due when they were asked for.
    due: Due,
    /// `None` if the server is gone.
    learnt: Option<Box<Learnt>>,
}

/// How many orders may wait for the task. They are rare; what finds no room is not lost, but waits.
const CONTROL_DEPTH: usize = 64;

impl Upstream {
    /// A server under supervision. `known` is what was learnt of it before; a `predecessor` leaves
    /// before it is started.
    pub(crate) fn start(
        name: &str,
        server: Arc<Server>,
        deps: Arc<Deps>,
        known: Known,
        predecessor: Option<Arc<Self>>,
    ) -> Arc<Self> {
        // It may be another server than the one that had the name before.
        deps.reads.forget(name);
        let limiter = Limiter::new(server.max_in_flight, server.max_queued);
        let meter = deps.metrics.meter(name);
        let parts = Parts {
            name: name.into(),
            limiter,
            meter,
            server,
            questions: Arc::default(),
            of: None,
            era: None,
        };
        Self::spawn(parts, deps, known, predecessor)
    }

    /// The parts of the second connection to a server, in this era.
    fn second(self: &Arc<Self>, era: Era) -> Parts {
        Parts {
            name: Arc::clone(&self.name),
            limiter: Arc::clone(&self.limiter),
            meter: self.meter.clone(),
            server: self.settings(),
            questions: Arc::clone(&self.questions),
            of: Some(Arc::downgrade(self)),
            era: Some(era),
        }
    }

    fn spawn(
        parts: Parts,
        deps: Arc<Deps>,
        known: Known,
        predecessor: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let (control, orders) = mpsc::channel(CONTROL_DEPTH);
        let off = off(&parts.name, &parts.server);
        let is_off = off.is_some();
        let health = off.unwrap_or_else(|| {
            // Its turn has not come, but nobody has to do anything for it to come.
            let starts = parts.era.is_none() && is_kept_up(&parts.server) || !known.offers;
            Health::new(if starts {
                ServerState::Starting
            } else {
                ServerState::Idle
            })
        });
        let upstream = Arc::new(Self {
            deps,
            name: parts.name,
            limiter: parts.limiter,
            meter: parts.meter,
            settings: ArcSwap::new(parts.server),
            questions: parts.questions,
            begun: tasks::Begun::default(),
            watched: Subscriptions::default(),
            outbound: Outbound::default(),
            freshness: Freshness::default(),
            eras: Eras::new(known.era.filter(|_| parts.era.is_none())),
            other: Mutex::default(),
            of: parts.of,
            era: parts.era,
            listing: ArcSwap::default(),
            agreement: ArcSwap::default(),
            added: Mutex::default(),
            has_added: AtomicBool::new(false),
            missing: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            live: ArcSwapOption::empty(),
            level: Mutex::default(),
            health: watch::Sender::new(health),
            demand: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            new: AtomicBool::new(!known.offers && !is_off),
            launched: AtomicBool::new(false),
            hurried: Mutex::new(Lists::NONE),
            announced: Mutex::new(Lists::NONE),
            wake: Notify::new(),
            control,
        });
        let task = Task::new(Arc::clone(&upstream), known, is_off);
        tokio::spawn(async move {
            if let Some(predecessor) = predecessor {
                predecessor.stop().await;
            }
            task.run(orders).await;
        });
        upstream
    }

    /// How it is configured.
    pub fn settings(&self) -> Arc<Server> {
        self.settings.load_full()
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// The connection, if it is ready.
    pub fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    /// How long an answer may take.
    pub fn request_timeout(&self) -> Duration {
        self.settings.load().request_timeout
    }

    /// Waits until then for a connection, other than the one that was lost; starts the server if
    /// need be, in this era if it speaks that. A start that fails meanwhile ends the wait.
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
            retry_by: until.min(Instant::now() + self.deps.wait()),
            started: false,
        };
        let mut health = self.health.subscribe();
        loop {
            // Looked at before the connection: what becomes of it meanwhile is then a change.
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

    /// Waits until then for what the server offers. A list that is empty only because nobody has looked would
    /// mislead.
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
                // Its lists may have come in meanwhile.
                _ = changes.changed() => {}
                // If there is a reason, it is told by the next look at it.
                () = self.lost(&live) => {}
                () = sleep_until(until.into()) => return Err(self.initializing()),
            }
        }
    }

    /// Waits until this is no longer the connection.
    async fn lost(&self, live: &Arc<Live>) {
        let mut health = self.health.subscribe();
        let is_other = |_: &Health| {
            let now = self.live.load();
            now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, live))
        };
        // An error means that it has ended.
        let _ = health.wait_for(is_other).await;
    }

    /// Why waiting is of no use, if it is of none.
    fn hopeless(&self, health: &Health, wait: &mut Wait) -> Option<Error> {
        let next_try = health.next_try.map(|at| {
            at.duration_since(SystemTime::now())
                .unwrap_or(Duration::ZERO)
        });
        if self.ending.load(Relaxed) {
            return Some(self.not_connected());
        }
        // The first connection does as well.
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
            ServerState::Stopping => Some(self.not_connected()),
            ServerState::Retrying if wait.started => Some(failed()),
            ServerState::Retrying
                if next_try.is_some_and(|next| Instant::now() + next > wait.retry_by) =>
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

    /// The failure of a call that finds no connection.
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

    /// New settings for the same server: nothing is restarted.
    pub(crate) async fn tune(&self, server: Arc<Server>) {
        self.limiter.set(server.max_in_flight, server.max_queued);
        self.settings.store(Arc::clone(&server));
        self.order(Control::Tune).await;
        if let Some(other) = self.other() {
            other.settings.store(server);
            other.order(Control::Tune).await;
        }
    }

    /// Ends the server if it runs, forgets its failures, and starts it.
    pub async fn restart(&self) {
        // It is opened again when it is needed.
        let other = self.close_other(None);
        tokio::join!(self.order(Control::Restart), leave(other));
    }

    /// Ends the server for good, within the time that its settings give it. Calls under way are
    /// answered first.
    pub(crate) async fn stop(&self) {
        // No second connection is opened from here on.
        self.ending.store(true, Relaxed);
        let other = self.close_other(None);
        tokio::join!(self.leave(), leave(other));
    }

    /// Ends this connection for good.
    async fn leave(&self) {
        self.ending.store(true, Relaxed);
        // Whoever waits for it need not wait any longer.
        self.health.send_modify(|_| ());
        self.order(Control::Stop).await;
    }

    /// Whether it has never been learnt, and is about to be.
    pub(crate) fn is_new(&self) -> bool {
        self.new.load(Relaxed)
    }

    /// Whether it is being learnt for the first time: it does not wait for its turn any more.
    pub(crate) fn is_being_met(&self) -> bool {
        self.is_new() && self.launched.load(Relaxed)
    }

    fn set_launched(&self, launched: bool) {
        self.launched.store(launched, Relaxed);
    }

    fn set_new(&self, new: bool) {
        if self.new.swap(new, Relaxed) != new {
            // For whoever waits to meet it.
            self.health.send_modify(|_| ());
        }
    }

    /// Waits until it has been learnt or has failed, or is not to run any more.
    pub(crate) async fn met(&self) {
        let mut health = self.health.subscribe();
        // An error means that it has ended.
        let is_met = |_: &Health| !self.is_new() || self.ending.load(Relaxed);
        let _ = health.wait_for(is_met).await;
    }

    /// Waits until it is to end for good.
    pub async fn ended(&self) {
        let mut health = self.health.subscribe();
        // An error means that it has ended.
        let _ = health.wait_for(|_| self.ending.load(Relaxed)).await;
    }

    /// The connection is no longer to be used. Whoever waits to hear what the server offers in this life need
    /// not wait any longer.
    fn hide(&self) {
        if let Some(live) = self.live.swap(None) {
            live.judgements.end();
        }
    }

    /// Has a list asked for at once.
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

/// Ends a second connection, if there is one.
async fn leave(other: Option<Arc<Upstream>>) {
    if let Some(other) = other {
        other.leave().await;
    }
}

/// What a call that waits for the server has seen of it.
#[derive(Debug)]
struct Wait {
    /// A server that is down is waited for if its next start is before this.
    retry_by: Instant,
    /// Whether a start was under way, which the call would have waited for.
    started: bool,
}

/// A call that waits for the server.
struct Waits<'a>(&'a Upstream);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.demand.fetch_sub(1, Relaxed);
    }
}
