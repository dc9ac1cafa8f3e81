//! One server behind the gateway: its connection while it has one, and the task that decides when
//! it has.
//!
//! Calls do not pass through the task. While the server is ready they take its connection from
//! [`Upstream::live`] and go; only a call that finds none wakes the task and waits, bounded.

mod talk;

use std::{
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use switchboard_client::{Client, Era, State as Connection, model::LogLevel};
use switchboard_config::{Server, Start};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{sleep_until, timeout_at},
};

use crate::{
    cache::Freshness,
    context::Context,
    failure::Failure,
    health::{Health, Reason, ServerState},
    hold,
    judgement::Due,
    launch,
    learn::{self, Curiosity, Learnt, Lists},
    limit::Limiter,
    live::Live,
    metrics::Meter,
    question::Questions,
    restart::{Fault, Restart, Settings, State},
    stderr::{self, LastWords},
    watch::Watched,
};

/// A server, for whoever calls it.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) meter: Meter,
    settings: ArcSwap<Server>,
    /// What it asks while it works.
    pub(crate) questions: Arc<Questions>,
    /// What clients watch of it.
    pub(crate) watched: Watched,
    /// How fresh its lists are.
    pub(crate) freshness: Freshness,
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
    /// What the server says has changed and nobody has looked at.
    changed: Mutex<Lists>,
    /// A call waits for a list.
    hurried: AtomicBool,
    wake: Notify,
    control: mpsc::Sender<Control>,
}

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
    /// Whether everything has been asked that was to be.
    last: bool,
}

/// How many orders may wait for the task. They are rare; what finds no room is not lost, but waits.
const CONTROL_DEPTH: usize = 64;
/// A server that was started only to learn what it offers is given so long to be used for more.
const LEARN_LINGER: Duration = Duration::from_secs(10);

impl Upstream {
    /// A server under supervision. `known` is what was learnt of it before; a `predecessor` leaves
    /// before it is started.
    pub(crate) fn start(
        name: &str,
        server: Arc<Server>,
        context: Arc<Context>,
        known: Known,
        predecessor: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let (control, orders) = mpsc::channel(CONTROL_DEPTH);
        // It may be another server than the one that had the name before.
        context.reads.forget(name);
        let off = off(name, &server);
        let is_off = off.is_some();
        let health = off.unwrap_or_else(|| {
            // Its turn has not come, but nobody has to do anything for it to come.
            let starts = is_kept_up(&server) || !known.offers;
            Health::new(if starts {
                ServerState::Starting
            } else {
                ServerState::Idle
            })
        });
        let upstream = Arc::new(Self {
            name: name.into(),
            limiter: Limiter::new(server.max_in_flight, server.max_queued),
            meter: context.metrics.meter(name),
            settings: ArcSwap::new(server),
            questions: Arc::default(),
            watched: Watched::default(),
            freshness: Freshness::default(),
            refreshing: tokio::sync::Mutex::default(),
            live: ArcSwapOption::empty(),
            level: Mutex::default(),
            health: watch::Sender::new(health),
            demand: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            changed: Mutex::new(Lists::NONE),
            hurried: AtomicBool::new(false),
            wake: Notify::new(),
            control,
        });
        let task = Task {
            upstream: Arc::clone(&upstream),
            restart: Restart::new(Settings::default(), Context::random()),
            context,
            run: None,
            runs: 0,
            known: known.offers,
            era: known.era,
            is_off,
        };
        tokio::spawn(async move {
            if let Some(predecessor) = predecessor {
                predecessor.stop().await;
            }
            task.run(orders).await;
        });
        upstream
    }

    /// How it is configured.
    pub(crate) fn settings(&self) -> Arc<Server> {
        self.settings.load_full()
    }

    /// How it is.
    pub(crate) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// The connection, if it is ready.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    /// How long an answer may take.
    pub(crate) fn request_timeout(&self) -> Duration {
        self.settings.load().request_timeout
    }

    /// Waits until then for a connection, other than the one that was lost; starts the server if
    /// need be.
    pub(crate) async fn ready(
        &self,
        until: Instant,
        lost: Option<&Arc<Live>>,
    ) -> Result<Arc<Live>, Failure> {
        self.demand.fetch_add(1, Relaxed);
        let _waits = Waits(self);
        self.wake.notify_one();
        let mut health = self.health.subscribe();
        loop {
            // Looked at before the connection: what becomes of it meanwhile is then a change.
            let now = health.borrow_and_update().clone();
            if let Some(client) = self.live()
                && lost.is_none_or(|lost| !Arc::ptr_eq(lost, &client))
            {
                return Ok(client);
            }
            if let Some(failure) = self.hopeless(&now, until) {
                return Err(failure);
            }
            match timeout_at(until.into(), health.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(self.not_connected()),
                Err(_) => return Err(self.initializing()),
            }
        }
    }

    /// Why waiting until then is of no use, if it is of none.
    fn hopeless(&self, health: &Health, until: Instant) -> Option<Failure> {
        let next_try = health.next_try.map(|at| {
            at.duration_since(SystemTime::now())
                .unwrap_or(Duration::ZERO)
        });
        if self.ending.load(Relaxed) {
            return Some(self.not_connected());
        }
        match health.state {
            ServerState::Disabled => Some(Failure::Disabled {
                server: Arc::clone(&self.name),
            }),
            ServerState::Parked => Some(Failure::InitializationFailed {
                server: Arc::clone(&self.name),
                reason: health.reason.clone().unwrap_or_else(|| "parked".into()),
                action: health.action.clone(),
                retry_after: next_try,
            }),
            ServerState::Stopping => Some(self.not_connected()),
            ServerState::Retrying if next_try.is_some_and(|next| Instant::now() + next > until) => {
                Some(self.initializing())
            }
            ServerState::Idle
            | ServerState::Starting
            | ServerState::Ready
            | ServerState::Retrying => None,
        }
    }

    pub(crate) fn not_connected(&self) -> Failure {
        Failure::NotConnected {
            server: Arc::clone(&self.name),
        }
    }

    pub(crate) fn initializing(&self) -> Failure {
        let health = self.health.borrow();
        let retry_after = health
            .next_try
            .and_then(|at| at.duration_since(SystemTime::now()).ok())
            .unwrap_or(Duration::from_secs(1));
        Failure::Initializing {
            server: Arc::clone(&self.name),
            reason: health.reason.clone(),
            retry_after,
        }
    }

    /// New settings for the same server: nothing is restarted.
    pub(crate) async fn tune(&self, server: Arc<Server>) {
        self.limiter.set(server.max_in_flight, server.max_queued);
        self.settings.store(server);
        self.order(Control::Tune).await;
    }

    /// Ends the server if it runs, forgets its failures, and starts it.
    pub(crate) async fn restart(&self) {
        self.order(Control::Restart).await;
    }

    /// Ends the server for good, within the time that its settings give it. Calls under way are
    /// answered first.
    pub(crate) async fn stop(&self) {
        self.ending.store(true, Relaxed);
        // Whoever waits for it need not wait any longer.
        self.health.send_modify(|_| ());
        self.order(Control::Stop).await;
    }

    /// Waits until it is to end for good.
    pub(crate) async fn ended(&self) {
        let mut health = self.health.subscribe();
        // An error means that it has ended.
        let _ = health.wait_for(|_| self.ending.load(Relaxed)).await;
    }

    /// Lists have changed. However often it is said, it is remembered once.
    fn relist(&self, lists: Lists) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        *changed = changed.and(lists);
        drop(changed);
        if let Some(live) = self.live() {
            live.judgements.change(lists);
        }
        self.wake.notify_one();
    }

    /// The connection is no longer to be used. Whoever waits to hear what the server offers in this life need
    /// not wait any longer.
    fn hide(&self) {
        if let Some(live) = self.live.swap(None) {
            live.judgements.end();
        }
    }

    fn take_changed(&self) -> Lists {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *changed, Lists::NONE)
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Control) {
        let (done, carried_out) = oneshot::channel();
        if self.control.send(order(done)).await.is_ok() {
            let _ = carried_out.await;
        }
    }
}

/// A call that waits for the server.
struct Waits<'a>(&'a Upstream);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.demand.fetch_sub(1, Relaxed);
    }
}

/// The task that starts and stops the server.
struct Task {
    upstream: Arc<Upstream>,
    context: Arc<Context>,
    restart: Restart,
    run: Option<Run>,
    runs: u64,
    known: bool,
    era: Option<Era>,
    /// Whether its settings keep it from running.
    is_off: bool,
}

/// One life of the server.
struct Run {
    number: u64,
    client: Client,
    /// The last lines of its standard error.
    said: LastWords,
    state: watch::Receiver<Connection>,
    ready: bool,
    curiosity: Curiosity,
    /// When it became ready.
    since: Instant,
    /// How many calls there had been before.
    uses: u64,
}

/// Whether the server is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    No,
    /// Somebody waits for it.
    Now,
    /// It is to be up, or to be learnt from, and nobody waits.
    Sometime,
}

/// What the task does next.
enum Next {
    Go,
    End(oneshot::Sender<()>),
}

impl Task {
    async fn run(mut self, mut orders: mpsc::Receiver<Control>) {
        loop {
            let wanted = match *self.restart.state() {
                State::Idle => self.wanted(),
                _ => Wanted::No,
            };
            if wanted == Wanted::Now {
                self.launch();
            }
            let due = self.due();
            let upstream = Arc::clone(&self.upstream);
            let context = Arc::clone(&self.context);
            let next = tokio::select! {
                biased;
                // The task has a sender itself, so that there is always one to come.
                Some(order) = orders.recv() => self.carry_out(order).await,
                () = state_changed(self.run.as_mut()) => {
                    self.look();
                    Next::Go
                }
                () = upstream.wake.notified() => {
                    self.heed_changes();
                    Next::Go
                }
                () = context.pace.turn(), if wanted == Wanted::Sometime => {
                    self.launch();
                    Next::Go
                }
                () = at(due) => {
                    self.tick();
                    Next::Go
                }
            };
            if let Next::End(done) = next {
                self.end(ServerState::Stopping).await;
                // Those who order something now are told by this that nobody carries it out: what came in
                // between would lie in the queue for as long as somebody could add to it.
                orders.close();
                while orders.recv().await.is_some() {}
                let _ = done.send(());
                return;
            }
        }
    }

    fn wanted(&self) -> Wanted {
        let settings = self.upstream.settings.load();
        if !runs(&settings) || self.upstream.ending.load(Relaxed) {
            Wanted::No
        } else if self.upstream.demand.load(Relaxed) > 0 {
            Wanted::Now
        } else if is_kept_up(&settings) || !self.known {
            Wanted::Sometime
        } else {
            Wanted::No
        }
    }

    /// When to look again without being asked.
    fn due(&self) -> Option<Instant> {
        let run = self.run.as_ref().filter(|run| run.ready);
        let question = run.and_then(|run| run.curiosity.due());
        [self.restart.due(), self.idle_due(), question]
            .into_iter()
            .flatten()
            .min()
    }

    /// When the server has been idle for long enough to be stopped.
    fn idle_due(&self) -> Option<Instant> {
        let run = self.run.as_ref().filter(|run| run.ready)?;
        let settings = self.upstream.settings.load();
        if is_kept_up(&settings) || !self.known {
            return None;
        }
        let unused = run.uses == self.upstream.limiter.uses();
        let patience = match settings.idle_stop? {
            // It was started only so that its lists are known.
            patience if unused => patience.min(LEARN_LINGER),
            patience => patience,
        };
        let in_use = !self.upstream.watched.is_empty() || !self.upstream.questions.is_empty();
        let used = self.upstream.limiter.last_used().filter(|_| !in_use);
        // While it is in use, it is looked at again later.
        let used = used.unwrap_or_else(Instant::now);
        Some(used.max(run.since) + patience)
    }

    fn launch(&mut self) {
        let settings = self.upstream.settings();
        self.runs += 1;
        let name = &self.upstream.name;
        self.restart.starting();
        self.tell(Health::new(ServerState::Starting));
        let upstream = Arc::downgrade(&self.upstream);
        let context = Arc::clone(&self.context);
        let asking = Arc::clone(&self.context);
        let questions = Arc::clone(&self.upstream.questions);
        let server = Arc::clone(&self.upstream.name);
        let mut builder = Client::builder("switchboard", env!("CARGO_PKG_VERSION"))
            .handshake_timeout(settings.init_timeout)
            .request_timeout(settings.request_timeout)
            // Another attempt is this task's to decide; the connection itself never gets to one.
            .backoff(NEVER, NEVER)
            .max_in_flight(settings.max_in_flight + IN_FLIGHT_SPARE)
            .capabilities(talk::capabilities())
            .label(name)
            .on_violation({
                let (logs, server) = (Arc::clone(&self.context.logs), Arc::clone(name));
                move |violation| logs.note(&server, &stderr::words(violation))
            })
            .on_asked(move |asked| {
                let (questions, server) = (Arc::clone(&questions), Arc::clone(&server));
                let context = Arc::clone(&asking);
                async move { questions.answer(&context, &server, asked).await }
            })
            .on_notification(move |news| {
                if let Some(upstream) = upstream.upgrade() {
                    upstream.told(&context, &news.method, news.params.as_ref());
                }
            });
        if let Some(era) = self.era {
            builder = builder.known_era(era);
        }
        let said = LastWords::default();
        let client = match launch::connect(builder, name, &settings, &self.context, &said) {
            Ok(client) => client,
            Err(fault) => return self.fail(fault),
        };
        self.run = Some(Run {
            number: self.runs,
            state: client.watch_state(),
            client,
            said,
            ready: false,
            curiosity: Curiosity::new(Instant::now()),
            since: Instant::now(),
            uses: self.upstream.limiter.uses(),
        });
    }

    /// The connection has changed its state.
    fn look(&mut self) {
        let Some(run) = &mut self.run else { return };
        let state = run.state.borrow_and_update().clone();
        match state {
            Connection::Ready(session) if !run.ready => {
                run.ready = true;
                run.since = Instant::now();
                self.era = Some(session.revision.era());
                self.context.reads.forget(&self.upstream.name);
                let live = Arc::new(Live::new(run.client.clone(), session));
                talk::restore(&self.upstream, &live);
                self.upstream.live.store(Some(live));
                run.curiosity.want(Lists::ALL);
                self.restart.up(Instant::now());
                self.tell(Health::new(ServerState::Ready));
                self.learn();
            }
            Connection::Backoff { reason, .. } => {
                let reason = Reason::new(&reason, run.said.told().as_deref());
                self.fail(Fault {
                    reason,
                    permanent: false,
                });
            }
            Connection::Failed { reason } => {
                let reason = Reason::new(&reason, run.said.told().as_deref());
                self.fail(Fault {
                    reason,
                    permanent: true,
                });
            }
            Connection::Starting
            | Connection::Initializing
            | Connection::Ready(_)
            | Connection::Closing => {}
        }
    }

    /// The server could not be started, or was lost.
    fn fail(&mut self, fault: Fault) {
        self.let_go();
        // What was known of its era may be what was wrong.
        self.era = None;
        tracing::warn!(server = %self.upstream.name, reason = %fault.reason, "Server failed.");
        self.context
            .logs
            .note(&self.upstream.name, &format!("failed: {}", fault.reason));
        self.restart.failed(Instant::now(), fault);
        let health = self.unwell();
        self.tell(health);
    }

    /// The health of a server that is being left alone for a while.
    fn unwell(&self) -> Health {
        let name = &self.upstream.name;
        let (until, reason, state, action) = match self.restart.state() {
            State::Waiting { until, reason } => {
                let action = format!(
                    "it is tried again by itself; `switchboard logs {name}` shows what it said"
                );
                (*until, reason, ServerState::Retrying, action)
            }
            State::Parked {
                until,
                reason,
                permanent,
            } => {
                let action = if *permanent {
                    format!(
                        "mend what the reason says, then `switchboard restart {name}`; `switchboard doctor` helps to find it"
                    )
                } else {
                    format!("see `switchboard logs {name}`, then `switchboard restart {name}`")
                };
                (*until, reason, ServerState::Parked, action)
            }
            State::Idle | State::Starting | State::Up { .. } => {
                return Health::new(ServerState::Idle);
            }
        };
        Health {
            reason: Some(reason.clone()),
            action: Some(action.into()),
            next_try: Some(SystemTime::now() + until.saturating_duration_since(Instant::now())),
            ..Health::new(state)
        }
    }

    fn tick(&mut self) {
        let was = self.restart.state().clone();
        self.restart.tick(Instant::now());
        if was != *self.restart.state() && self.wanted() == Wanted::No {
            self.tell(Health::new(ServerState::Idle));
        }
        self.learn();
        if self.idle_due().is_some_and(|due| due <= Instant::now()) {
            self.retire();
        }
    }

    /// Lets a server that nobody uses go, in the background.
    fn retire(&mut self) {
        let live = self.upstream.live.swap(None);
        // Whoever has a place by now may have seen the connection, and is about to use it.
        if self.upstream.limiter.last_used().is_none() || self.upstream.demand.load(Relaxed) > 0 {
            self.upstream.live.store(live);
            // Somebody may have looked in between, and now waits.
            self.upstream.health.send_modify(|_| ());
            return;
        }
        tracing::info!(server = %self.upstream.name, "Stopping an idle server.");
        self.let_go();
        self.restart.stopped(Instant::now());
        self.tell(Health::new(ServerState::Idle));
    }

    /// Ends the run beside whatever comes next.
    fn let_go(&mut self) {
        self.upstream.hide();
        if let Some(run) = self.run.take() {
            tokio::spawn(async move {
                run.client.stop().await;
                run.client.closed().await;
            });
        }
    }

    async fn carry_out(&mut self, order: Control) -> Next {
        match order {
            Control::Stop(done) => return Next::End(done),
            Control::Tune(done) => {
                let off = off(&self.upstream.name, &self.upstream.settings.load());
                let was_off = std::mem::replace(&mut self.is_off, off.is_some());
                if let Some(off) = off {
                    if !was_off {
                        self.let_go();
                        self.restart.stopped(Instant::now());
                    }
                    self.tell(off);
                } else if was_off {
                    self.restart.pardon();
                    let state = match self.wanted() {
                        Wanted::No => ServerState::Idle,
                        Wanted::Now | Wanted::Sometime => ServerState::Starting,
                    };
                    self.tell(Health::new(state));
                }
                let _ = done.send(());
            }
            Control::Restart(done) => {
                self.end(ServerState::Starting).await;
                self.restart.pardon();
                match off(&self.upstream.name, &self.upstream.settings.load()) {
                    None => self.launch(),
                    Some(off) => self.tell(off),
                }
                let _ = done.send(());
            }
            Control::Learnt(answer) => self.learnt(answer).await,
        }
        Next::Go
    }

    /// Takes in what the server says has changed.
    fn heed_changes(&mut self) {
        let changed = self.upstream.take_changed();
        let hurried = self.upstream.hurried.swap(false, Relaxed);
        if let Some(run) = &mut self.run {
            run.curiosity.want(changed);
            if hurried {
                run.curiosity.hurry(Instant::now());
            }
            self.learn();
        }
    }

    /// Asks the server what it offers, if it is time to.
    fn learn(&mut self) {
        let Some(run) = self.run.as_mut().filter(|run| run.ready) else {
            return;
        };
        let Some(lists) = run.curiosity.ask(Instant::now()) else {
            return;
        };
        let Some(live) = self.upstream.live() else {
            return;
        };
        let (number, client) = (run.number, run.client.clone());
        let control = self.upstream.control.clone();
        let name = Arc::clone(&self.upstream.name);
        // One that is known is judged list by list, so that no call waits for a list that it does not
        // need. Of one that is seen for the first time all is shown at once.
        let mut phases = if self.known {
            lists.one_by_one()
        } else {
            vec![lists]
        };
        phases.reverse();
        tokio::spawn(async move {
            while let Some(lists) = phases.pop() {
                let due = live.judgements.due();
                let learnt = learn::learn(&name, &client, lists).await.map(Box::new);
                // Of one that is gone, nothing more is to be had.
                let lists = match learnt {
                    Some(_) => lists,
                    None => phases.drain(..).fold(lists, Lists::and),
                };
                let answer = Answer {
                    run: number,
                    lists,
                    due,
                    last: phases.is_empty(),
                    learnt,
                };
                if control.send(Control::Learnt(answer)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// The server has said what it offers, or did not.
    async fn learnt(&mut self, answer: Answer) {
        let Answer {
            run: number,
            lists,
            due,
            learnt,
            last,
        } = answer;
        let Some(run) = self.run.as_mut().filter(|run| run.number == number) else {
            return;
        };
        if last {
            run.curiosity.answered(Instant::now());
        }
        let missing = match &learnt {
            Some(learnt) => learnt.missing.clone(),
            None => Some((lists, "the connection was lost".into())),
        };
        if let Some((missing, _)) = &missing {
            run.curiosity.want(*missing);
        }
        if let Some(learnt) = learnt {
            self.known |= learnt.has_tools();
            self.upstream.take_in(&self.context, *learnt).await;
        }
        if let Some(live) = self.upstream.live() {
            live.judgements.finish(lists, due, missing.as_ref());
        }
    }

    /// Ends the run and waits until its process is gone.
    async fn end(&mut self, state: ServerState) {
        self.upstream.hide();
        self.restart.stopped(Instant::now());
        self.tell(Health::new(state));
        if let Some(run) = self.run.take() {
            run.client.stop().await;
            run.client.closed().await;
        }
    }

    fn tell(&self, health: Health) {
        let name = &self.upstream.name;
        self.context.events.server(name, &health);
        tracing::debug!(server = %name, state = health.state.as_str(), reason = health.reason.as_ref().map(tracing::field::display), "Server state.");
        self.upstream.health.send_replace(health);
    }
}

/// The connection's own backoff, which is not used.
const NEVER: Duration = Duration::from_hours(24);
/// The gateway's own requests (lists) beside the calls.
const IN_FLIGHT_SPARE: usize = 16;

/// Whether the settings let the server run.
fn runs(settings: &Server) -> bool {
    settings.enabled && !settings.hold
}

/// Why the server does not run, if its settings keep it from that.
fn off(name: &str, settings: &Server) -> Option<Health> {
    if runs(settings) {
        return None;
    }
    if !settings.enabled {
        return Some(Health::new(ServerState::Disabled));
    }
    let action = format!(
        "look at what it would start, and approve that with `switchboard trust approve {name}` or in the console"
    );
    Some(Health {
        reason: Some(hold::REASON.into()),
        action: Some(action.into()),
        ..Health::new(ServerState::Parked)
    })
}

/// Whether the server runs all the time.
fn is_kept_up(settings: &Server) -> bool {
    settings.start == Some(Start::Eager)
}

async fn state_changed(run: Option<&mut Run>) {
    if let Some(run) = run
        && run.state.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => pending().await,
    }
}
