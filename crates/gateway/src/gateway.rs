//! The gateway: assembles the layers, starts and stops them.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use switchboard_admin::{admin::Admin, api};
use switchboard_base::{audit::Audit, caller::Principal, events::Events, view::Endpoint};
use switchboard_config::{Config, ConfigError, Environment, Home};
use switchboard_contain::{Containment, Instance, Sweep, own_program};
use switchboard_core::{
    core::Core, finder::Finder, search_feedback::SearchFeedback, tokens::LiveTokens, trust_requests,
};
use switchboard_files::{Links, write_private};
use switchboard_inbound::{doors::Doors, inbound::Inbound};
use switchboard_outbound::{
    cache::Reads,
    deps::{Deps, HandlerSlot},
    first_contact::FirstContact,
    launch,
    live_catalog::LiveCatalog,
    logs::Logs,
    memory::{self, Host},
    model::Models,
    sign_in::SignIns,
    start_throttle::{AFTER_FIRST_ANSWERS, StartThrottle},
    supervisor::until_deserted,
};
use switchboard_store::Store;
use tokio::io::{AsyncRead, AsyncWrite};

/// The gateway. Created once, and shared by everything that serves a client.
#[derive(Debug)]
pub struct Gateway {
    core: Arc<Core>,
    inbound: Arc<Inbound>,
    admin: Arc<Admin>,
}

/// The reason that the gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Servers cannot be contained on this system.
    #[error("cannot supervise servers: {0}")]
    Containment(#[source] io::Error),
    /// The system provides no random numbers to name this instance.
    #[error("the system provides no random numbers")]
    Random,
}

impl Gateway {
    /// Starts the gateway: reads the stored state, and leaves everything slow to background tasks. Servers
    /// receive a part of `environment`. `program` guards servers and renews tokens; `None` for the current
    /// program.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(
        home: Arc<Home>,
        config: Config,
        environment: Environment,
        program: Option<PathBuf>,
    ) -> Result<Arc<Self>, StartError> {
        let program = program.map_or_else(own_program, Ok);
        let program = program.map_err(StartError::Containment)?;
        if let Err(error) = switchboard_contain::become_subreaper() {
            tracing::warn!(%error, "Cannot adopt processes that servers leave behind.");
        }
        let instance = instance(&home).ok_or(StartError::Random)?;
        let logs = Arc::new(Logs::new(Arc::clone(&home)));
        let containment = containment(&home, instance.clone(), program.clone(), &logs)?;
        if !environment.dropped().is_empty() {
            tracing::warn!(
                entries = ?environment.dropped(),
                "Some entries of PATH are ignored, because they are relative, or in the directory in which the gateway was started, which another user may control; use absolute paths for programs there."
            );
        }
        let left_behind = Sweep::new(home.groups(), instance);
        sweep(launch::with_engines(
            left_behind,
            &config,
            &home,
            &environment,
        ));
        let config = memory::included(config);
        let live_catalog = Arc::new(LiveCatalog::open(&home, &config));
        let store = Store::open_after(home.database(), AFTER_FIRST_ANSWERS);
        let models = Arc::new(Models::new(home.models(), home.search()));
        let feedback = SearchFeedback::new(home.search().join("learnt.json"));
        let memory = Host::new(store.clone(), &config, Arc::clone(&models));
        let config = Arc::new(ArcSwap::from_pointee(config));
        let finder = Finder::new(
            Arc::clone(&live_catalog),
            Arc::clone(&config),
            models,
            feedback,
        );
        let deps = Arc::new(Deps {
            sign_ins: SignIns::new(&home, &environment, program),
            environment: Arc::new(environment),
            containment,
            logs,
            metrics: Arc::default(),
            events: Events::default(),
            audit: Arc::new(Audit::start(store.clone())),
            start_throttle: StartThrottle::default(),
            first_contact: Arc::new(FirstContact::open(home.first_contact())),
            live_catalog: Arc::clone(&live_catalog),
            reads: Reads::default(),
            subscription_budget: Arc::default(),
            memory,
            config,
            handler: HandlerSlot::default(),
            home,
        });
        let (core, driver) = Core::new(&deps, store, Arc::new(finder)).ok_or(StartError::Random)?;
        let inbound = Inbound::new(Arc::clone(&core)).ok_or(StartError::Random)?;
        let admin = Admin::start(Arc::clone(&core), Arc::clone(&inbound));
        core.start_servers();
        driver.start(&core.approvals);
        core.finder.start();
        judge_all(live_catalog);
        trust_requests::start(&core);
        tokio::spawn(LiveTokens::watch(Arc::downgrade(&core.tokens)));
        tokio::spawn(core.events.usher());
        Ok(Arc::new(Self {
            core,
            inbound,
            admin,
        }))
    }

    /// The doors through which clients connect over sockets. `token` is the owner's token on TCP.
    pub fn doors(&self, token: &str) -> Doors {
        let inbound = Arc::clone(&self.inbound);
        Doors::new(inbound, token, api::router(&self.admin), api::is_open)
    }

    /// Serves a client on a pipe until it disconnects. `project` is the directory in which it works, if
    /// known. A pipe belongs to the user who runs the gateway.
    pub async fn serve_pipe(
        &self,
        endpoint: impl Into<Endpoint>,
        project: Option<Arc<str>>,
        reader: impl AsyncRead + Unpin + Send,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        // The client disconnects when its input ends.
        let pipe = (reader, writer);
        let endpoint = endpoint.into();
        let realm = self.inbound.realm(Principal::Owner, None, &endpoint);
        let realm = realm.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
        let serving = self
            .inbound
            .serve_pipe(realm, endpoint.view, project, pipe, || false);
        serving.await
    }

    /// Waits until no client is on a pipe.
    pub async fn abandoned(&self) {
        let mut pipes = self.inbound.watch_pipes();
        // The sender lives as long as the gateway.
        let _ = pipes.wait_for(|pipes| *pipes == 0).await;
    }

    /// Waits until no client is on a pipe, and until servers that were never listed have been, for a bounded
    /// time, so that the next client sees their tools. A client that connects meanwhile keeps the gateway
    /// running, and a new configuration may add servers.
    pub async fn deserted(&self) {
        let core = &self.core;
        let (pipes, applied) = (self.inbound.watch_pipes(), core.configuration.applied());
        let feedback = || core.last_lessons();
        until_deserted(pipes, applied, &core.deps().start_throttle, feedback).await;
    }

    /// Applies a configuration to the servers.
    pub async fn apply(&self, config: Config) {
        self.core.apply(config).await;
    }

    /// Reads the configuration file again, and applies it.
    pub async fn reload(&self) -> Result<(), ConfigError> {
        self.core.reload().await
    }

    /// Reads the configuration file again whenever it changes.
    pub fn watch_config(&self) {
        self.core.watch_config();
    }

    /// Reports that the changed configuration file cannot be applied. The current configuration stays in
    /// effect.
    pub fn refuse_config(&self, problem: &str) {
        self.core.refuse_config(problem);
    }

    /// Stops the gateway: refuses new work, answers requests under way, stops every server, closes the store.
    /// Stopping is idempotent; [`hurry`](Self::hurry) ends the grace periods.
    pub async fn stop(&self) {
        self.core.stop().await;
    }

    /// Stops without further delay: kills everything that has not exited.
    pub fn hurry(&self) {
        self.core.lifecycle.hurry();
    }

    /// Waits until the gateway begins to stop.
    pub async fn stopped(&self) {
        self.core.lifecycle.stopped().await;
    }

    /// The address on which it listens for HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.inbound.address()
    }

    /// A one-time link that opens the console; `None` if there is no console, or no source of randomness.
    pub fn console_link(&self) -> Option<String> {
        self.inbound.console_link(None)
    }
}

/// The containment of servers in the name of this instance.
fn containment(
    home: &Home,
    instance: Instance,
    program: PathBuf,
    logs: &Arc<Logs>,
) -> Result<Containment, StartError> {
    let containment = Containment::new(home.groups(), instance).map_err(StartError::Containment)?;
    let containment = containment.guard_program(program);
    let logs = Arc::clone(logs);
    Ok(containment.on_step(move |server, step| launch::note_step(&logs, server, step)))
}

/// Checks all stored definitions against their pins, after the first clients have been answered.
fn judge_all(live_catalog: Arc<LiveCatalog>) {
    tokio::spawn(async move {
        tokio::time::sleep(AFTER_FIRST_ANSWERS).await;
        let _ = tokio::task::spawn_blocking(move || live_catalog.judge_all()).await;
    });
}

/// Ends processes and containers that an earlier gateway of this home left behind. Runs in the background,
/// because they do not interfere with this gateway.
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
                tracing::warn!(server = %swept.name, ended = swept.ended, left = swept.left, "Found processes that an earlier gateway left behind.");
            }
            for container in &report.containers {
                tracing::warn!(%container, "Removed a container that an earlier gateway left behind.");
            }
            for container in &report.containers_left {
                tracing::error!(%container, "Cannot remove a container that an earlier gateway left behind.");
            }
        }
        Err(error) => {
            tracing::warn!(%error, "Cannot look for processes that an earlier gateway left behind.");
        }
    }
}

/// More than a name ever takes.
const INSTANCE_BYTES: u64 = 4096;

/// The name of this home's gateway, which identifies its containers across restarts.
fn instance(home: &Home) -> Option<Instance> {
    let path = home.instance_file();
    if let Some(known) = switchboard_files::read(&path, INSTANCE_BYTES, Links::Refuse)
        .ok()
        .and_then(|name| String::from_utf8(name).ok()?.trim().parse().ok())
    {
        return Some(known);
    }
    let name = switchboard_base::random::secret()?;
    if let Err(error) = write_private(&path, name.as_bytes()) {
        tracing::warn!(%error, path = %path.display(), "Cannot save the name of this instance.");
    }
    name.parse().ok()
}
