//! The gateway: its layers put together, from the first answer to the last.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use switchboard_admin::{admin::Admin, api};
use switchboard_base::{audit::Audit, events::Events, view::View};
use switchboard_config::{Config, ConfigError, Environment, Home};
use switchboard_contain::{Containment, Instance, Sweep};
use switchboard_core::{
    core::Core, finder::Finder, search_feedback::SearchFeedback, trust_requests,
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
    start_throttle::{AFTER_FIRST_ANSWERS, StartThrottle},
    supervisor::until_deserted,
};
use switchboard_store::Store;
use tokio::io::{AsyncRead, AsyncWrite};

/// The gateway. Made once, shared by everything that serves a client.
#[derive(Debug)]
pub struct Gateway {
    core: Arc<Core>,
    inbound: Arc<Inbound>,
    admin: Arc<Admin>,
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
        let logs = Arc::new(Logs::new(Arc::clone(&home)));
        let containment = containment(&home, instance.clone(), guard, &logs)?;
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
        tokio::spawn(core.events.usher());
        Ok(Arc::new(Self {
            core,
            inbound,
            admin,
        }))
    }

    /// The doors by which clients come in over sockets. `token` is what the owner shows on TCP.
    pub fn doors(&self, token: &str) -> Doors {
        let inbound = Arc::clone(&self.inbound);
        Doors::new(inbound, token, api::router(&self.admin), api::is_open)
    }

    /// Serves a client on a pipe until it leaves. `project` is the folder that it works in, if that is
    /// known.
    pub async fn serve_pipe(
        &self,
        view: View,
        project: Option<Arc<str>>,
        reader: impl AsyncRead + Unpin + Send,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        // The end of what is read is its end.
        let pipe = (reader, writer);
        self.inbound.serve_pipe(view, project, pipe, || false).await
    }

    /// Waits until no client is on a pipe.
    pub async fn abandoned(&self) {
        let mut pipes = self.inbound.watch_pipes();
        // The sender lives as long as the gateway.
        let _ = pipes.wait_for(|pipes| *pipes == 0).await;
    }

    /// The same, and until servers that were never learnt have been, for a bounded time: the next client is to see
    /// their tools. A client that comes meanwhile keeps the gateway, and a new configuration may have new servers.
    pub async fn deserted(&self) {
        let core = &self.core;
        let (pipes, applied) = (self.inbound.watch_pipes(), core.configuration.applied());
        let feedback = || core.last_lessons();
        until_deserted(pipes, applied, &core.deps().start_throttle, feedback).await;
    }

    /// Makes the servers what this configuration wants.
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

    /// The configuration file was changed and cannot be applied: what was there stays.
    pub fn refuse_config(&self, problem: &str) {
        self.core.refuse_config(problem);
    }

    /// Stops: refuses new work, answers what is under way, ends every server, closes the store.
    /// Stopping twice is the same as stopping once; [`hurry`](Self::hurry) ends the patience.
    pub async fn stop(&self) {
        self.core.stop().await;
    }

    /// A second wish to stop: whatever has not left is ended now.
    pub fn hurry(&self) {
        self.core.lifecycle.hurry();
    }

    /// Waits for the end of the gateway to begin.
    pub async fn stopped(&self) {
        self.core.lifecycle.stopped().await;
    }

    /// Where it listens for HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.inbound.address()
    }

    /// A link that opens the console, once; `None` if there is no console, or no randomness.
    pub fn console_link(&self) -> Option<String> {
        self.inbound.console_link(None)
    }
}

/// Looks after servers in the name of this instance.
fn containment(
    home: &Home,
    instance: Instance,
    guard: Option<PathBuf>,
    logs: &Arc<Logs>,
) -> Result<Containment, StartError> {
    let mut containment =
        Containment::new(home.groups(), instance).map_err(StartError::Containment)?;
    if let Some(guard) = guard {
        containment = containment.guard_program(guard);
    }
    let logs = Arc::clone(logs);
    Ok(containment.on_step(move |server, step| launch::note_step(&logs, server, step)))
}

/// Has everything that is remembered judged, when the first clients have been answered.
fn judge_all(live_catalog: Arc<LiveCatalog>) {
    tokio::spawn(async move {
        tokio::time::sleep(AFTER_FIRST_ANSWERS).await;
        let _ = tokio::task::spawn_blocking(move || live_catalog.judge_all()).await;
    });
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
    let name = switchboard_base::random::secret()?;
    if let Err(error) = write_private(&path, name.as_bytes()) {
        tracing::warn!(%error, path = %path.display(), "Cannot keep the name of this instance.");
    }
    name.parse().ok()
}
