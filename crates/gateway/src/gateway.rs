//! The gateway: all its parts together, from the first answer to the last.

use std::{
    future::Future,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use switchboard_config::{Config, Environment, Home};
use switchboard_contain::{Containment, Instance, Sweep};
use switchboard_files::{Links, write_private};
use switchboard_store::Store;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use crate::{
    approvals,
    audit::{Actor, Room},
    console::{Signed, no_console},
    context::Context,
    edge::{
        pipe,
        sessions::{Sessions, sweep_pause},
        sse,
    },
    finder::Finder,
    first_contact, launch,
    logs::Logs,
    notify,
    pace::AFTER_FIRST_ANSWERS,
    ports::Ports,
    session::Session,
    shelf::Shelf,
    supervisor::{Supervisor, Upstreams},
    tally,
    upstream::Upstream,
    view::View,
};

/// The gateway. Made once, shared by everything that serves a client.
#[derive(Debug)]
pub struct Gateway {
    context: Arc<Context>,
    supervisor: Arc<Supervisor>,
    sessions: Sessions,
    sse: sse::Streams,
    stage: watch::Sender<Stage>,
    /// How many clients are on a pipe.
    pipes: watch::Sender<usize>,
    /// Told of every configuration that was applied.
    applied: watch::Sender<()>,
    listening: OnceLock<Listening>,
    config_problem: Mutex<Option<Arc<str>>>,
    /// Held from the reading of the configuration file until it is applied, so that no change undoes
    /// another.
    changing: Arc<tokio::sync::Mutex<()>>,
}

/// Where it listens for HTTP.
#[derive(Debug)]
struct Listening {
    address: SocketAddr,
    /// The name and port of the console, or the address at which another program has the port.
    console: Result<Box<str>, SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Stopping,
    /// A second wish to stop: no more waiting.
    Hurrying,
    Stopped,
}

/// Why the gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Servers could not be contained here.
    #[error("cannot look after servers: {0}")]
    Containment(#[source] std::io::Error),
    /// There is no randomness to name this instance with.
    #[error("the system gives no random numbers")]
    Random,
}

impl Gateway {
    /// Brings the gateway up: reads what is known, and leaves everything slow to the background.
    /// Servers get a part of `environment`. `guard` is the program that looks after servers, this very one if `None`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(
        home: Arc<Home>,
        config: Config,
        environment: Environment,
        guard: Option<PathBuf>,
    ) -> Result<Arc<Self>, StartError> {
        if let Err(error) = switchboard_contain::become_subreaper() {
            tracing::warn!(%error, "Cannot adopt what servers leave behind.");
        }
        let instance = instance(&home).ok_or(StartError::Random)?;
        let mut containment =
            Containment::new(home.groups(), instance.clone()).map_err(StartError::Containment)?;
        if let Some(guard) = guard {
            containment = containment.guard_program(guard);
        }
        let logs = Arc::new(Logs::new(Arc::clone(&home)));
        let steps = Arc::clone(&logs);
        containment =
            containment.on_step(move |server, step| launch::note_step(&steps, server, step));
        if !environment.dropped().is_empty() {
            tracing::warn!(
                entries = ?environment.dropped(),
                "These entries of PATH are not searched: they are relative, or in the folder in which the gateway was started, which may be another person's. Name a program there by its whole path."
            );
        }
        let left_behind = Sweep::new(home.groups(), instance);
        sweep(launch::with_engines(
            left_behind,
            &config,
            &home,
            &environment,
        ));
        let config = config.with_memory();
        let shelf = Arc::new(Shelf::open(&home, &config));
        let store = Store::open_after(home.database(), AFTER_FIRST_ANSWERS);
        let context = Context::new(home, config, environment, containment, logs, shelf, store);
        let (context, driver) = context.ok_or(StartError::Random)?;
        let context = Arc::new(context);
        let gateway = Arc::new(Self {
            supervisor: Arc::new(Supervisor::new(Arc::clone(&context))),
            context,
            sessions: Sessions::new(),
            sse: sse::Streams::default(),
            stage: watch::Sender::new(Stage::Running),
            pipes: watch::Sender::new(0),
            applied: watch::Sender::new(()),
            listening: OnceLock::new(),
            config_problem: Mutex::default(),
            changing: Arc::default(),
        });
        driver.start(&gateway.context);
        Finder::start(&gateway.context);
        judge_all(Arc::clone(&gateway.context.shelf));
        tokio::spawn(sweep_sessions(Arc::downgrade(&gateway)));
        notify::start(&gateway);
        approvals::trust::start(&gateway);
        tokio::spawn(gateway.context.events.usher());
        tokio::spawn(tally::run(Arc::downgrade(&gateway.context)));
        Ok(gateway)
    }

    /// Serves a client on a pipe until it leaves. `project` is the folder that it works in, if that is
    /// known.
    pub async fn serve_pipe(
        self: &Arc<Self>,
        view: View,
        project: Option<Arc<str>>,
        reader: impl AsyncRead + Unpin + Send,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        // The end of what is read is its end.
        self.serve_pipe_unless(view, project, (reader, writer), || false)
            .await
    }

    /// The same until `is_gone` tells that it has left, too. That is noticed even if nothing is read.
    pub(crate) async fn serve_pipe_unless(
        self: &Arc<Self>,
        view: View,
        project: Option<Arc<str>>,
        (reader, writer): (
            impl AsyncRead + Unpin + Send,
            impl AsyncWrite + Unpin + Send + 'static,
        ),
        is_gone: impl Fn() -> bool + Send,
    ) -> std::io::Result<()> {
        let _present = Present::new(self);
        pipe::serve(Arc::clone(self), view, project, reader, writer, is_gone).await
    }

    /// Waits until no client is on a pipe.
    pub async fn abandoned(&self) {
        // The sender lives as long as the gateway.
        let _ = self.pipes.subscribe().wait_for(|pipes| *pipes == 0).await;
    }

    /// The same, and until servers that were never learnt have been, for a bounded time: the next client is to see
    /// their tools. A client that comes meanwhile keeps the gateway, and a new configuration may have new servers.
    pub async fn deserted(&self) {
        let (pipes, applied) = (self.pipes.subscribe(), self.applied.subscribe());
        let lessons = || first_contact::last_lessons(self);
        first_contact::until_deserted(pipes, applied, &self.context.pace, lessons).await;
    }

    /// Makes the servers what this configuration wants.
    pub async fn apply(&self, config: Config) {
        // The file has been changed already: there is no act to refuse.
        let room = self.context.audit.room().await.ok();
        self.apply_as(config, None, room).await;
    }

    /// The same on behalf of an actor.
    pub(crate) async fn apply_as(&self, config: Config, actor: Option<Actor>, room: Option<Room>) {
        self.set_config_problem(None);
        let config = config.with_memory();
        let embeddings = config.search.embeddings.clone();
        let before = self.context.config.load().search.embeddings.clone();
        // On its own, so that it is carried through even if whoever asked for it leaves.
        let supervisor = Arc::clone(&self.supervisor);
        let applying = async move { supervisor.apply(config, actor.as_ref(), room).await };
        let applying = tokio::spawn(applying);
        // An error means that the runtime ends.
        let _ = applying.await;
        self.context.memory.set(&self.context.config.load());
        if embeddings != before {
            self.context.finder.settings_changed();
        }
        self.applied.send_replace(());
        self.context
            .events
            .tell("config.applied", || serde_json::json!({}));
    }

    /// The configuration file was changed and cannot be applied: what was there stays.
    pub fn refuse_config(&self, problem: &str) {
        tracing::error!(%problem, "The configuration was changed and is not applied.");
        self.set_config_problem(Some(crate::scrub::shared(problem.into())));
        self.context.events.tell(
            "config.refused",
            || serde_json::json!({ "problem": problem }),
        );
    }

    /// Stops: refuses new work, answers what is under way, ends every server, closes the store.
    /// Stopping twice is the same as stopping once; [`hurry`](Self::hurry) ends the patience.
    pub async fn stop(&self) {
        // Before anybody is sent away: who leaves from now on withdraws nothing.
        self.context.approvals.stop();
        let first = self.stage.send_if_modified(|stage| {
            let first = *stage == Stage::Running;
            if first {
                *stage = Stage::Stopping;
            }
            first
        });
        if !first {
            return self.reached(Stage::Stopped).await;
        }
        tracing::info!("Stopping.");
        self.context.pace.pause();
        first_contact::cut_off(self);
        self.context
            .events
            .tell("gateway.stopping", || serde_json::json!({}));
        let total = self.context.config.load().shutdown.total_timeout;
        self.supervisor
            .stop(total, self.reached(Stage::Hurrying))
            .await;
        let context = Arc::clone(&self.context);
        let closing = tokio::task::spawn_blocking(move || {
            context.finder.close();
            context.logs.flush();
            context.first_contact.save(&context.config.load());
        });
        let _ = closing.await;
        self.context.audit.flush().await;
        self.context.store.close();
        let _ = tokio::time::timeout(CLOSE_PATIENCE, self.context.store.closed()).await;
        self.stage.send_replace(Stage::Stopped);
        tracing::info!("Stopped.");
    }

    /// A second wish to stop: whatever has not left is ended now.
    pub fn hurry(&self) {
        self.stage.send_if_modified(|stage| {
            let early = *stage == Stage::Stopping;
            if early {
                *stage = Stage::Hurrying;
            }
            early
        });
    }

    /// Waits for the end of the gateway to begin.
    pub async fn stopped(&self) {
        self.reached(Stage::Stopping).await;
    }

    /// Waits until the gateway has stopped altogether.
    pub async fn ended(&self) {
        self.reached(Stage::Stopped).await;
    }

    fn reached(&self, stage: Stage) -> impl Future<Output = ()> + use<> {
        let mut stages = self.stage.subscribe();
        async move {
            // An error means that the gateway is gone, which is as stopped as can be.
            let _ = stages.wait_for(|now| *now >= stage).await;
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// How long a session may be idle.
    fn idle(&self) -> Duration {
        self.context.config.load().sessions.idle
    }

    pub(crate) fn sse(&self) -> &sse::Streams {
        &self.sse
    }

    /// A client is here until this has ended.
    pub(crate) async fn attend(&self, client: impl Future<Output = ()>) {
        let _present = Present::new(self);
        client.await;
    }

    /// A client says that its roots have changed: the servers that it sees are told.
    pub(crate) fn roots_changed(&self, session: &Session) {
        for (name, upstream) in self.upstreams().iter() {
            if session.view.sees(name) {
                let (upstream, line) = (Arc::clone(upstream), session.line());
                let principal = session.caller.principal;
                tokio::spawn(async move { upstream.roots_changed(principal, line).await });
            }
        }
    }

    pub(crate) fn upstreams(&self) -> Arc<Upstreams> {
        self.supervisor.all()
    }

    pub(crate) fn upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        self.supervisor.get(name)
    }

    /// The number of connected clients, without those that may have left.
    pub(crate) fn clients(&self) -> usize {
        let sessions = self.sessions.count();
        sessions.saturating_sub(self.silent().len()) + self.pipes()
    }

    /// The clients that have said nothing for a while, and may have left.
    pub(crate) fn silent(&self) -> Vec<Arc<Session>> {
        self.sessions.silent()
    }

    /// The clients with a pipe or a stream of their own.
    pub(crate) fn pipes(&self) -> usize {
        *self.pipes.borrow()
    }

    /// Where it listens for HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listening.get().map(|listening| listening.address)
    }

    /// The name and port of the console, as a browser sends them.
    pub(crate) fn console_host(&self) -> Option<&str> {
        self.listening.get()?.console.as_deref().ok()
    }

    /// The address at which another program has the port, so that there is no console.
    pub(crate) fn console_taken(&self) -> Option<SocketAddr> {
        self.listening.get()?.console.as_ref().err().copied()
    }

    /// A link that opens the console, once; `None` if there is no console, or no randomness.
    pub fn console_link(&self) -> Option<String> {
        self.console_link_by(None)
    }

    /// The same for a session of the console.
    pub(crate) fn console_link_by(&self, session: Option<&Signed>) -> Option<String> {
        let host = self.console_host()?;
        let key = self.context.console.key(session, SystemTime::now())?;
        Some(format!("http://{host}/#sign-in={key}"))
    }

    /// Takes note of where it listens, the first time.
    pub(crate) fn listens(&self, ports: &Ports) {
        let console = match ports.taken {
            Some(taken) => {
                tracing::warn!("There is no console: {}.", no_console(taken));
                Err(taken)
            }
            None => Ok(self.context.console.host(ports.address.port())),
        };
        let _ = self.listening.set(Listening {
            address: ports.address,
            console,
        });
    }

    pub(crate) async fn changing(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }

    pub(crate) fn config_problem(&self) -> Option<Arc<str>> {
        self.config_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_config_problem(&self, problem: Option<Arc<str>>) {
        *self
            .config_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// How long the store may take to write what it still has.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Ends sessions that nobody uses, now and then.
async fn sweep_sessions(gateway: Weak<Gateway>) {
    loop {
        let Some(idle) = gateway.upgrade().map(|gateway| gateway.idle()) else {
            return;
        };
        tokio::time::sleep(sweep_pause(idle)).await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        let ended = gateway.sessions.sweep(gateway.idle());
        let context = Arc::clone(&gateway.context);
        if ended > 0 {
            tracing::debug!(ended, "Ended sessions that were idle.");
            // What is known of a session that has ended would keep its memory.
            context.audience.prune();
        }
        tokio::task::spawn_blocking(move || context.results.sweep(&context.config.load()));
    }
}

/// Has everything that is remembered judged, when the first clients have been answered.
fn judge_all(shelf: Arc<Shelf>) {
    tokio::spawn(async move {
        tokio::time::sleep(AFTER_FIRST_ANSWERS).await;
        let _ = tokio::task::spawn_blocking(move || shelf.judge_all()).await;
    });
}

/// A client on a pipe.
struct Present<'a>(&'a Gateway);

impl<'a> Present<'a> {
    fn new(gateway: &'a Gateway) -> Self {
        gateway.pipes.send_modify(|pipes| *pipes += 1);
        Self(gateway)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.pipes.send_modify(|pipes| *pipes -= 1);
    }
}

/// Ends what an earlier gateway of this home left behind, in the background: what it left is in nobody's
/// way.
fn sweep(sweep: Sweep) {
    tokio::spawn(async move {
        tokio::time::sleep(AFTER_FIRST_ANSWERS).await;
        tokio::task::spawn_blocking(move || run_sweep(&sweep));
    });
}

fn run_sweep(sweep: &Sweep) {
    match sweep.run() {
        Ok(report) => {
            for swept in &report.swept {
                tracing::warn!(server = %swept.name, ended = swept.ended, left = swept.left, "Swept what an earlier gateway left behind.");
            }
            for container in &report.containers {
                tracing::warn!(%container, "Removed a container that an earlier gateway left behind.");
            }
            for container in &report.containers_left {
                tracing::error!(%container, "Cannot remove a container that an earlier gateway left behind.");
            }
        }
        Err(error) => {
            tracing::warn!(%error, "Cannot look for what an earlier gateway left behind.");
        }
    }
}

/// A name is far shorter.
const INSTANCE_BYTES: u64 = 4096;

/// The name of this home's gateway, by which its containers are known from one run to the next.
fn instance(home: &Home) -> Option<Instance> {
    let path = home.instance_file();
    if let Some(known) = switchboard_files::read(&path, INSTANCE_BYTES, Links::Refuse)
        .ok()
        .and_then(|name| String::from_utf8(name).ok()?.trim().parse().ok())
    {
        return Some(known);
    }
    let name = crate::random::secret()?;
    if let Err(error) = write_private(&path, name.as_bytes()) {
        tracing::warn!(%error, path = %path.display(), "Cannot keep the name of this instance.");
    }
    name.parse().ok()
}
