//! One server behind the gateway: its settings, its lists, and the processes or connections that serve its callers.
//!
//! What a server offers belongs to all of its [instances](Instance): its lists, pins and snapshots, its counters
//! and its log. A call belongs to the instance of its caller.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicBool,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use switchboard_base::{
    backchannel::Backchannel,
    caller::{Caller, Principal},
    error::Error,
    health::{Health, ServerState},
    metrics::Meter,
    tasks,
};
use switchboard_catalog::{Kind, Offers, ServerPart};
use switchboard_client::{Era, RequestFailure, model::LogLevel};
use switchboard_config::{Because, Placeholder, Remote, Server, Sharing, Transport};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    cache::Freshness,
    deps::Deps,
    discovery::Missing,
    instance::{Instance, Known, Origin, off, refusal},
    instances::{Entry, Full, InUse as _, Instances, Key, Vacancy},
    pins::{Decision, Undecided},
    questions::Questions,
    sign_in::{self, Page, Purpose, SignInError},
};

/// The time after which a call has an expired sign-in renewed again, although that has failed.
const SIGN_IN_RETRY: Duration = Duration::from_secs(15);

/// The longest time for a server to notice that a user has signed in.
const RESUMED: Duration = Duration::from_secs(1);

/// The longest time for the instances to be listed again after a decision about their definitions.
const LISTED: Duration = Duration::from_secs(1);

/// A server, as callers use it.
#[derive(Debug)]
pub struct Upstream {
    /// The dependencies that all servers share.
    pub deps: Arc<Deps>,
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// Its counters.
    pub meter: Meter,
    /// The tasks that clients started on it.
    pub begun: tasks::Begun,
    sharing: Sharing,
    because: Because,
    /// Its entry refers to the directory of its caller, so it cannot be started without one.
    refers_to_project: bool,
    common: Arc<Common>,
    /// The instance of all callers. If each caller has its own, the gateway fetches the lists from this one.
    shared: ArcSwap<Instance>,
    own: Arc<Mutex<Own>>,
    /// The server has asked a client over a pipe, where a question does not name its client.
    asks_back: AtomicBool,
    /// Held while a sign-in is started.
    signing_in: tokio::sync::Mutex<()>,
}

/// The state that all instances of a server share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) settings: ArcSwap<Server>,
    /// The freshness of the lists.
    pub(crate) freshness: Freshness,
    /// The lists whose last fetch failed.
    pub(crate) missing: Mutex<Missing>,
    /// The most verbose log level that any client requested.
    pub(crate) level: Mutex<Option<LogLevel>>,
    /// The instances whose lists are compared with those of the server, if callers have their own.
    pub(crate) split: Mutex<Vec<Weak<Instance>>>,
    /// Held while a stale list is fetched.
    pub(crate) refreshing: tokio::sync::Mutex<()>,
    /// `true` when the server that had this name before has exited.
    pub(crate) cleared: watch::Sender<bool>,
}

/// The instances of single callers.
#[derive(Debug)]
struct Own {
    instances: Instances<Arc<Instance>>,
    /// The client that keeps the instance of all callers, because it alone has used it.
    keeper: Option<Key>,
    /// The server is stopping: no instance is created any more.
    ended: bool,
}

/// An instance that a request uses. While this exists, the instance is not stopped to make room for another.
#[derive(Debug, Clone)]
pub struct Lease {
    instance: Arc<Instance>,
    _in_use: Arc<()>,
}

impl Lease {
    fn new(instance: Arc<Instance>) -> Self {
        Self {
            _in_use: Arc::clone(&instance.in_use),
            instance,
        }
    }
}

impl Deref for Lease {
    type Target = Arc<Instance>;

    fn deref(&self) -> &Arc<Instance> {
        &self.instance
    }
}

/// The reason why callers share an instance, or do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingReason {
    /// The entry of the server.
    Entry(Because),
    /// It has asked clients something, over a pipe.
    AsksBack,
}

/// Empty if there is nothing to tell.
impl fmt::Display for SharingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(because) => because.fmt(f),
            Self::AsksBack => f.write_str("it has asked its clients something"),
        }
    }
}

impl Upstream {
    /// Starts to supervise a server. `offers` are its known offers; a `predecessor` exits before it is started.
    pub(crate) fn start(
        name: &str,
        server: Arc<Server>,
        deps: &Arc<Deps>,
        offers: Option<&Offers>,
        predecessor: Option<Arc<Self>>,
    ) -> Arc<Self> {
        // It may be a different server than the previous one of that name.
        deps.reads.forget(name);
        let name: Arc<str> = name.into();
        let (sharing, because) = server.sharing();
        let is_of_project = |one| one != Placeholder::Client;
        // One with a malformed reference is not started for any caller.
        let refers_to_project =
            server.malformed.is_none() && server.placeholders().any(is_of_project);
        let common = Arc::new(Common {
            settings: ArcSwap::new(server),
            freshness: Freshness::default(),
            missing: Mutex::default(),
            level: Mutex::default(),
            split: Mutex::default(),
            refreshing: tokio::sync::Mutex::default(),
            cleared: watch::Sender::new(predecessor.is_none()),
        });
        let last = predecessor.as_ref().map_or(0, |predecessor| {
            let own = predecessor.own.lock();
            own.instances.last()
        });
        if let Some(predecessor) = predecessor {
            let common = Arc::clone(&common);
            tokio::spawn(async move {
                predecessor.stop().await;
                common.cleared.send_replace(true);
            });
        }
        let origin = Origin::shared(&name, sharing != Sharing::All, refers_to_project);
        let shared = Instance::start(origin, &common, deps, Known::of(offers), Vec::new());
        let own = Own {
            instances: Instances::after(last),
            keeper: None,
            ended: false,
        };
        Arc::new(Self {
            meter: deps.metrics.meter(&name),
            deps: Arc::clone(deps),
            name,
            begun: tasks::Begun::default(),
            sharing,
            because,
            refers_to_project,
            common,
            shared: ArcSwap::new(shared),
            own: Arc::new(Mutex::new(own)),
            asks_back: AtomicBool::new(offers.is_some_and(|offers| offers.asks_back)),
            signing_in: tokio::sync::Mutex::default(),
        })
    }

    /// Its configuration.
    pub fn settings(&self) -> Arc<Server> {
        self.common.settings.load_full()
    }

    /// Time limit of a request.
    pub fn request_timeout(&self) -> Duration {
        self.common.settings.load().request_timeout
    }

    /// The freshness of its lists.
    pub fn freshness(&self) -> &Freshness {
        &self.common.freshness
    }

    /// The lists whose last fetch failed.
    pub fn missing(&self) -> Missing {
        self.common.missing.lock().clone()
    }

    /// The callers that share an instance, and the reason.
    pub fn sharing(&self) -> (Sharing, SharingReason) {
        if self.is_split_by_questions() {
            return (Sharing::Client, SharingReason::AsksBack);
        }
        (self.sharing, SharingReason::Entry(self.because))
    }

    fn is_split_by_questions(&self) -> bool {
        self.because == Because::Default && self.asks_back.load(SeqCst)
    }

    /// The instance of this caller. If there is none, it is created, and started when it is used.
    pub fn instance(&self, caller: &Caller) -> Result<Lease, Error> {
        let (mut sharing, _) = self.sharing();
        if sharing == Sharing::All {
            let shared = self.shared();
            // The call may wait for an approver, while another client is asked.
            shared.questions.expect(caller);
            if !self.is_split_by_questions() {
                return Ok(shared);
            }
            sharing = Sharing::Client;
        }
        let settings = self.common.settings.load();
        if let Some(error) = refusal(&self.name, &settings) {
            return Err(error);
        }
        let key = self.key(sharing, caller)?;
        let mut own = self.own.lock();
        if own.ended {
            return Err(self.not_connected());
        }
        if own.keeper.as_ref() == Some(&key) {
            return Ok(self.shared());
        }
        let most = settings.max_instances;
        let found =
            own.instances
                .find_or_start(&key, caller.realm.principal.into(), most, |vacancy| {
                    let Vacancy {
                        number,
                        place,
                        predecessors,
                    } = vacancy;
                    let former = predecessors.iter();
                    let former = former.map(|entry| Arc::clone(&entry.instance)).collect();
                    self.stop_all(predecessors);
                    let origin = Origin::own(&self.name, number, &key, place, &caller.client);
                    let known = self.deps.live_catalog.offers(&self.name);
                    let known = Known::of(known.as_deref());
                    Instance::start(origin, &self.common, &self.deps, known, former)
                });
        let instance = found.map_err(|Full| Error::TooManyInstances {
            server: Arc::clone(&self.name),
            most,
        })?;
        Ok(Lease::new(instance))
    }

    /// Tests if a caller needs a project.
    pub fn needs_project(&self) -> bool {
        self.refers_to_project || self.sharing == Sharing::Project
    }

    fn key(&self, sharing: Sharing, caller: &Caller) -> Result<Key, Error> {
        let needs_project = self.needs_project();
        match (sharing, caller.project()) {
            (_, None) if needs_project => {
                Err(self.no_project(caller.realm.principal == Principal::Owner))
            }
            (Sharing::Project, Some(project)) => Ok(Key::Project(Arc::clone(project))),
            (_, _) => Ok(Key::of_client(caller, needs_project)),
        }
    }

    fn no_project(&self, is_owner: bool) -> Error {
        Error::NoProject {
            server: Arc::clone(&self.name),
            is_owner,
        }
    }

    /// The instance of all callers.
    pub fn shared(&self) -> Lease {
        Lease::new(self.shared.load_full())
    }

    /// The instance of this caller, if there is one.
    pub fn existing(&self, caller: &Caller) -> Option<Lease> {
        let (sharing, _) = self.sharing();
        if sharing == Sharing::All {
            return Some(self.shared());
        }
        let own = self.own.lock();
        if own.keeper.as_ref().is_some_and(|key| key.serves(caller)) {
            return Some(self.shared());
        }
        let mut own = own.instances.iter();
        let its = own.find(|entry| entry.key.serves(caller))?;
        Some(Lease::new(Arc::clone(&its.instance)))
    }

    /// The instance of this caller, if there is one, for a message that is sent later.
    pub fn expected(&self, caller: &Caller) -> Option<Lease> {
        let instance = self.existing(caller)?;
        // The message may wait, while another client is asked.
        instance.questions.expect(caller);
        // Another one may keep it already.
        let now = self.existing(caller)?;
        Arc::ptr_eq(&now, &instance).then_some(now)
    }

    /// Distinguishes the instances of callers in signed tokens: only callers with the same place have the same
    /// instance. The name of a server has no slash.
    pub fn place(&self, caller: &Caller) -> Arc<str> {
        let (sharing, _) = self.sharing();
        match self.key(sharing, caller) {
            Ok(key) if sharing != Sharing::All && self.own.lock().keeper.as_ref() != Some(&key) => {
                format!("{}/{key}", self.name).into()
            }
            _ => Arc::clone(&self.name),
        }
    }

    /// The instances of single callers, oldest first, with their numbers.
    pub fn own_instances(&self) -> Vec<(u64, Arc<Instance>)> {
        let own = self.own.lock();
        let own = own.instances.iter();
        own.map(|entry| (entry.number, Arc::clone(&entry.instance)))
            .collect()
    }

    /// All instances. That of all callers comes first.
    fn all(&self) -> Vec<Arc<Instance>> {
        let own = self.own_instances().into_iter();
        let own = own.map(|(_, instance)| instance);
        std::iter::once(self.shared.load_full())
            .chain(own)
            .collect()
    }

    /// The instance from which lists are fetched: one that is ready, if possible.
    fn lister(&self) -> Arc<Instance> {
        let all = self.all();
        let ready = all.iter().find(|instance| instance.live().is_some());
        Arc::clone(ready.unwrap_or(&all[0]))
    }

    /// The health of the server: that of the instance of all callers, unless instances of single callers run or have
    /// failed.
    pub fn health(&self) -> Health {
        let shared = self.shared.load().health();
        if off(&self.name, &self.settings()).is_some() {
            return shared;
        }
        let own = self.own_instances().into_iter();
        let all = std::iter::once(shared).chain(own.map(|(_, instance)| instance.health()));
        // Of equal ones the first counts, so that the health does not change back and forth.
        let rank = |health: &Health| match health.state {
            ServerState::Ready => 0,
            ServerState::Starting => 1,
            ServerState::Retrying => 2,
            ServerState::Parked | ServerState::NeedsSignIn => 3,
            ServerState::Stopping => 4,
            ServerState::Idle | ServerState::Disabled => 5,
        };
        let all = all.min_by_key(rank);
        all.unwrap_or_else(|| Health::new(ServerState::Idle))
    }

    /// The number of calls in flight, and of calls that wait for a permit.
    pub fn load(&self) -> (usize, usize) {
        let loads = self.all().into_iter().map(|one| one.limiter.load());
        loads.fold((0, 0), |(taken, queued), (more, waiting)| {
            (taken + more, queued + waiting)
        })
    }

    /// Applies an approver's decision about held items, and returns the items that it decided.
    pub async fn decide(&self, decision: Decision) -> Result<Vec<String>, Undecided> {
        let (live_catalog, settings) = (&self.deps.live_catalog, self.settings());
        let known = live_catalog.offers(&self.name);
        let decided = live_catalog.decide(&self.name, &settings, decision).await?;
        if known.is_some_and(|known| !known.apart.is_empty()) {
            // Another definition may have to be listed now.
            let until = Instant::now() + LISTED;
            let all = self.all().into_iter();
            let listing: JoinSet<()> = all
                .map(|one| async move { one.list_again(until).await })
                .collect();
            listing.join_all().await;
        }
        Ok(decided)
    }

    /// Waits for the server's offers, up to the deadline.
    pub async fn offered(
        &self,
        caller: Option<&Caller>,
        until: Instant,
        era: Option<Era>,
    ) -> Result<Arc<ServerPart>, Error> {
        if let Some(part) = self.deps.live_catalog.catalog().server(&self.name) {
            return Ok(Arc::clone(part));
        }
        let instance = match caller {
            Some(caller) if self.refers_to_project => self.instance(caller)?,
            // It can only be started for a caller.
            None if self.refers_to_project => return Err(self.no_project(true)),
            _ => self.shared(),
        };
        instance.offered(until, era).await
    }

    /// The instance that lists a server which was never listed, for this caller; `None` if it needs a project, and
    /// the caller has none.
    pub(crate) fn new_instance(&self, caller: &Caller) -> Option<Lease> {
        let is_known = || self.deps.live_catalog.offers(&self.name).is_some();
        let instance = if !self.refers_to_project {
            self.shared()
        } else if is_known() {
            return None;
        } else {
            self.instance(caller).ok()?
        };
        Some(instance).filter(|instance| instance.is_new())
    }

    /// Tests if the list of this kind is older than the server's lifetime for it.
    pub fn is_stale(&self, kind: Kind) -> bool {
        self.freshness().of(kind).is_some() && self.lister().is_stale(kind)
    }

    /// Fetches a stale list, unless another task just has.
    pub async fn refresh(&self, kind: Kind) {
        self.lister().refresh(kind).await;
    }

    /// The error if it is unknown whether the running server has an item of this kind, because its list could
    /// not be fetched. The list is fetched again.
    pub fn lacks(&self, kind: Kind) -> Option<Error> {
        self.lister().lacks(kind)
    }

    /// Requests log messages from this level on, now and on every future connection.
    pub async fn want_level(&self, level: LogLevel) {
        {
            let mut wanted = self.common.level.lock();
            *wanted = Some(wanted.map_or(level, |wanted| wanted.min(level)));
        }
        for instance in self.all() {
            for live in instance.lives() {
                live.want_level(level).await;
            }
        }
    }

    /// Records that the roots of a client on this back channel have changed.
    pub async fn roots_changed(&self, caller: &Caller, backchannel: Backchannel) {
        if let Some(instance) = self.existing(caller) {
            instance.roots_changed(caller, backchannel).await;
        }
    }

    /// Tests if the instance of all callers, which has these questions, may get the roots of this client: it would serve
    /// them to everyone. Over a pipe, the server is [split](Self::has_asked) if its entry leaves that to the gateway, and
    /// only a client that keeps the instance has it get them. Remote servers are not split: no other client may have
    /// used it, unless the request belongs to a call of this one.
    pub fn may_get_roots(
        &self,
        questions: &Arc<Questions>,
        client: &Caller,
        is_of_call: bool,
    ) -> bool {
        if !Arc::ptr_eq(&self.shared.load().questions, questions) {
            // It is being replaced.
            return false;
        }
        if self.is_remote() {
            return is_of_call || questions.is_only_user(client);
        }
        self.has_asked(Some(client));
        let own = self.own.lock();
        own.keeper.as_ref().is_some_and(|key| key.serves(client))
    }

    fn is_remote(&self) -> bool {
        matches!(self.common.settings.load().transport, Transport::Remote(_))
    }

    /// Records that the server has asked a client over a pipe, where a question does not name its client. From now on
    /// each client has its own instance. If only the client that it asked has used the present one, it keeps it, with
    /// the state that it has there; `asked` is `None` if it could be any of several.
    pub fn has_asked(&self, asked: Option<&Caller>) {
        if self.is_remote() || self.because != Because::Default || self.asks_back.load(Relaxed) {
            return;
        }
        let shared = self.shared.load_full();
        let keeper = {
            let mut own = self.own.lock();
            if own.ended || self.asks_back.swap(true, SeqCst) {
                return;
            }
            // Another client that has got this instance is recorded by now, or else it notices the split.
            let keeper = asked.filter(|caller| shared.questions.is_only_user(caller));
            own.keeper = keeper.and_then(|caller| self.key(Sharing::Client, caller).ok());
            own.keeper.clone()
        };
        shared.split_off(keeper);
        let line = "asks its clients, so each client has its own instance from now on";
        self.deps.logs.note(&self.name, line);
        let (live_catalog, name) = (Arc::clone(&self.deps.live_catalog), Arc::clone(&self.name));
        tokio::spawn(async move {
            let asks = |known: Option<&Offers>| Offers {
                asks_back: true,
                ..known.cloned().unwrap_or_else(Offers::unlisted)
            };
            live_catalog.put(&name, asks).await;
        });
    }

    /// Stops the instances of clients that have left.
    pub(crate) fn left(&self, has_left: impl Fn(&Key) -> bool) {
        for instance in self.all() {
            instance.questions.forget_left();
        }
        let mut own = self.own.lock();
        if own.keeper.take_if(|key| has_left(key)).is_some() && !own.ended {
            // The state of the client ends with it.
            let origin = Origin::shared(&self.name, true, self.refers_to_project);
            let known = self.deps.live_catalog.offers(&self.name);
            let known = Known::of(known.as_deref());
            let former = vec![self.shared.load_full()];
            let fresh = Instance::start(origin, &self.common, &self.deps, known, former);
            self.shared.store(fresh);
        }
        let left = own.instances.end(|entry| has_left(&entry.key));
        drop(own);
        self.stop_all(left);
    }

    /// The error of a call that finds no connection.
    pub fn not_connected(&self) -> Error {
        Error::NotConnected {
            server: Arc::clone(&self.name),
        }
    }

    /// Replaces the settings. [`tune`](Self::tune) has a running server follow them.
    pub(crate) fn settle(&self, server: Arc<Server>) {
        for instance in self.all() {
            instance.settle(&server);
        }
        self.common.settings.store(server);
    }

    /// Applies new settings to the same server without a restart.
    pub(crate) async fn tune(&self) {
        let mut tuning: JoinSet<()> = self
            .all()
            .into_iter()
            .map(|one| async move { one.tune().await })
            .collect();
        while tuning.join_next().await.is_some() {}
    }

    /// Stops the server if it runs, forgets its failures, and starts it. Instances of single callers that are not in
    /// use are started again when they are.
    pub async fn restart(&self) {
        let (left, kept) = {
            let mut own = self.own.lock();
            let left = own
                .instances
                .end(|entry| entry.instance.idle_since().is_some());
            let kept: Vec<_> = own
                .instances
                .iter()
                .map(|entry| Arc::clone(&entry.instance))
                .collect();
            (left, kept)
        };
        let mut restarting = self.stop_all(left);
        for instance in kept {
            restarting.push(tokio::spawn(async move { instance.restart().await }));
        }
        let (sharing, _) = self.sharing();
        let is_known = self.deps.live_catalog.offers(&self.name).is_some();
        let is_kept = self.own.lock().keeper.is_some();
        if sharing == Sharing::All || is_kept || !is_known && !self.refers_to_project {
            self.shared.load_full().restart().await;
        }
        all_done(restarting).await;
    }

    /// Starts a sign-in to the server, in place of one in progress. Returns the page that the user has to open; `None` if
    /// the gateway has signed in for itself.
    pub async fn sign_in(self: &Arc<Self>) -> Result<Option<Page>, SignInError> {
        let _starting = self.signing_in.lock().await;
        self.begin_sign_in().await
    }

    async fn begin_sign_in(self: &Arc<Self>) -> Result<Option<Page>, SignInError> {
        let remote = self.remote(Purpose::SignIn).await?;
        let page = self.deps.sign_ins.start(&self.name, &remote).await?;
        // The client that gets the page may not wait for its end.
        let upstream = Arc::clone(self);
        tokio::spawn(async move { upstream.finish_sign_in().await });
        Ok(page)
    }

    /// The page of the sign-in in progress, or of a new one; `None` if the gateway has signed in for itself.
    pub async fn sign_in_page(self: &Arc<Self>) -> Result<Option<Page>, SignInError> {
        // Many calls may need the same page.
        let _starting = self.signing_in.lock().await;
        match self.deps.sign_ins.page(&self.name) {
            Some(page) => Ok(Some(page)),
            None => self.begin_sign_in().await,
        }
    }

    /// Waits until the user has finished the sign-in that was started last, and the server is being started again.
    pub async fn finish_sign_in(&self) -> Result<(), SignInError> {
        self.deps.sign_ins.finish(&self.name).await?;
        self.resumed().await;
        Ok(())
    }

    /// Waits a moment until no instance waits for a sign-in. One that does not notice waits for the sign-in of a former
    /// entry, and is restarted.
    async fn resumed(&self) {
        let all = self.all();
        let resumed = async {
            for instance in &all {
                instance.resumed().await;
            }
        };
        if timeout(RESUMED, resumed).await.is_ok() {
            return;
        }
        for instance in all.iter().filter(|instance| instance.needs_sign_in()) {
            instance.restart().await;
        }
    }

    /// Revokes and forgets the tokens for the server, and connects to it without them.
    pub async fn sign_out(&self) -> Result<(), SignInError> {
        let remote = self.remote(Purpose::SignOut).await?;
        self.deps.sign_ins.sign_out(&self.name, &remote).await?;
        self.restart().await;
        Ok(())
    }

    /// The server that a user signs in to.
    async fn remote(&self, purpose: Purpose) -> Result<Remote, SignInError> {
        let (name, settings) = (Arc::clone(&self.name), self.settings());
        let deps = Arc::clone(&self.deps);
        let resolving = tokio::task::spawn_blocking(move || {
            sign_in::remote(&name, &settings, purpose, &deps.home, &deps.environment)
        });
        // It is cancelled only with the runtime.
        resolving.await.unwrap_or(Err(SignInError::Stopped))
    }

    /// The error of a refused request if the tokens cannot be renewed at the moment. A new sign-in would not help.
    pub fn sign_in_outage(&self) -> Option<Error> {
        let outage = self.deps.sign_ins.outage(&self.name)?;
        Some(Error::SignInOutage {
            server: Arc::clone(&self.name),
            reason: sign_in::of_outage(&outage),
            retry_after: SIGN_IN_RETRY,
        })
    }

    /// Tests if a failed request means that a user has to sign in.
    pub fn lacks_sign_in(&self, failure: &RequestFailure) -> bool {
        let is_refused = match failure.status {
            Some(401) => true,
            Some(403) => failure.challenged,
            _ => false,
        };
        is_refused && sign_in::check(&self.name, &self.settings()).is_ok()
    }

    /// The instance with this number.
    pub fn numbered(&self, number: u64) -> Option<Arc<Instance>> {
        let mut own = self.own_instances().into_iter();
        own.find_map(|(known, instance)| (known == number).then_some(instance))
    }

    /// Stops the server for good, within the time of its settings. Calls in flight are answered first.
    pub(crate) async fn stop(&self) {
        let all = {
            let mut own = self.own.lock();
            own.ended = true;
            own.instances.end_all()
        };
        let stopping = self.stop_all(all);
        self.shared.load_full().stop().await;
        all_done(stopping).await;
    }

    /// Stops instances that were removed. Until they have ended, they take up room. They end even if no caller waits.
    fn stop_all(&self, entries: Vec<Entry<Arc<Instance>>>) -> Vec<JoinHandle<()>> {
        let stopping = entries.into_iter().map(|entry| {
            let own = Arc::clone(&self.own);
            tokio::spawn(async move {
                entry.instance.stop().await;
                own.lock().instances.ended(entry.number);
            })
        });
        stopping.collect()
    }
}

async fn all_done(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        // An error means that the runtime is shutting down.
        let _ = task.await;
    }
}

#[cfg(test)]
pub(crate) mod tests;
