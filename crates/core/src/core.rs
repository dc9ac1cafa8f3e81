//! The core: handles a request, independent of the transport that it came in on.

mod configuration;
mod lifecycle;

pub use self::{
    configuration::{ChangeError, Configuration},
    lifecycle::Lifecycle,
};

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use switchboard_base::{
    audit::Audit,
    caller::{Caller, Principal, Realm},
    error::{Error, cut},
    events::Events,
    metrics::Metrics,
    signed_token::TokenSigner,
};
use switchboard_catalog::Kind;
use switchboard_client::{Asked, Raw};
use switchboard_config::{Config, Environment, Home};
use switchboard_outbound::{
    deps::{Answering, Deps, Handler, Source},
    live_catalog::LiveCatalog,
    questions::UnderWay,
    supervisor::{Supervisor, Upstreams},
    upstream::Upstream,
};
use switchboard_store::Store;
use switchboard_wire::{Era, method};

use crate::{
    approvals::{self, Approvals, driver::Driver},
    call::{
        SuspendedCall,
        approval::{Round, may_hear},
        resumable::Running,
        server_requests,
    },
    dispatch::fit::Results,
    finder::Finder,
    scope::{Scope, Scopes},
    session::{Audience, Session},
    suspended::{Limits, SuspendedCalls},
    tokens::LiveTokens,
    translate,
    visitors::Visitors,
};

/// The servers, the rules, and the calls between them.
#[derive(Debug)]
pub struct Core {
    pub(crate) servers: Arc<Supervisor>,
    /// The folders of this gateway.
    pub home: Arc<Home>,
    /// The environment of this process.
    pub environment: Arc<Environment>,
    /// The configuration in force.
    pub config: Arc<ArcSwap<Config>>,
    /// Changes of the configuration.
    pub configuration: Configuration,
    /// The scopes of callers.
    pub scopes: Arc<Scopes>,
    /// The tokens of clients.
    pub tokens: Arc<LiveTokens>,
    /// The stage of the gateway: running, stopping, stopped.
    pub lifecycle: Lifecycle,
    /// The stream of events.
    pub events: Events,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// Counts of calls.
    pub metrics: Arc<Metrics>,
    /// The store of activity, approvals, the audit log and memories.
    pub store: Store,
    /// The catalog of the servers' offers.
    pub live_catalog: Arc<LiveCatalog>,
    /// The search for tools.
    pub finder: Arc<Finder>,
    /// Results that were too long for an agent.
    pub results: Results,
    /// Clients that can receive unsolicited notifications.
    pub audience: Audience,
    /// Clients of 2026-07-28.
    pub visitors: Visitors,
    /// The approvals by a person.
    pub approvals: Arc<Approvals>,
    /// Calls that continue while their clients are away.
    pub(crate) waiting: Arc<SuspendedCalls<Running>>,
    /// Decisions about calls whose clients are to come back.
    pub(crate) rounds: Arc<SuspendedCalls<Round>>,
    /// Calls that wait for their clients.
    pub(crate) suspended: Arc<SuspendedCalls<SuspendedCall>>,
    pub(crate) signer: TokenSigner,
    status: OnceLock<Weak<dyn Status>>,
    methods: [Arc<str>; METHODS.len()],
}

/// Describes the gateway to agents. A layer above implements it, since it knows more than the core does.
pub trait Status: std::fmt::Debug + Send + Sync {
    /// The state of the gateway and of the servers in this scope, without text from servers.
    fn for_agents(&self, scope: &Scope) -> Raw;
}

/// The most suspended calls, in total and per server. A server has to have room for other
/// questions.
const PARKED: Limits = Limits {
    all: 1_024,
    each: 32,
};
/// The most calls whose clients are away until a person has answered.
const WAITING: Limits = Limits {
    all: 4_096,
    each: 2_048,
};

/// The longest time that authorization servers may take to answer. A token in an answer that comes later is lost.
const SIGN_IN_PATIENCE: Duration = Duration::from_secs(10);

/// The longest time that the store may take to write its queue.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The methods that are forwarded to servers.
const METHODS: [&str; 4] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::COMPLETE,
];

impl Core {
    /// Creates the core over these servers, none of which has been started. `None` if the system
    /// provides no random numbers.
    pub fn new(deps: &Arc<Deps>, store: Store, finder: Arc<Finder>) -> Option<(Arc<Self>, Driver)> {
        let home = Arc::clone(&deps.home);
        let (approvals, driver) = Approvals::new(approvals::Deps {
            home: Arc::clone(&home),
            environment: Arc::clone(&deps.environment),
            config: Arc::clone(&deps.config),
            events: deps.events.clone(),
            audit: Arc::clone(&deps.audit),
            store: store.clone(),
        });
        let scopes = Arc::new(Scopes::new(&deps.config.load()));
        let tokens = LiveTokens::open(home.tokens(), Arc::clone(&scopes));
        let core = Arc::new(Self {
            environment: Arc::clone(&deps.environment),
            config: Arc::clone(&deps.config),
            configuration: Configuration::default(),
            scopes,
            tokens: Arc::new(tokens),
            lifecycle: Lifecycle::default(),
            events: deps.events.clone(),
            audit: Arc::clone(&deps.audit),
            metrics: Arc::clone(&deps.metrics),
            store,
            live_catalog: Arc::clone(&deps.live_catalog),
            finder,
            results: Results::new(home.results()),
            audience: Audience::default(),
            visitors: Visitors::default(),
            approvals,
            waiting: SuspendedCalls::new(TokenSigner::kept(&home.seal_key())?, WAITING)?,
            rounds: SuspendedCalls::new(TokenSigner::new()?, WAITING)?,
            suspended: SuspendedCalls::new(TokenSigner::new()?, PARKED)?,
            signer: TokenSigner::new()?,
            status: OnceLock::new(),
            methods: METHODS.map(Arc::from),
            servers: Arc::new(Supervisor::new(Arc::clone(deps))),
            home,
        });
        let handler: Weak<Self> = Arc::downgrade(&core);
        deps.set_handler(handler);
        Some((core, driver))
    }

    /// The longest time that a call waits for a part that is not ready.
    pub fn wait(&self) -> Duration {
        self.config.load().wait
    }

    /// The name of a method, without allocating it for each call.
    pub(crate) fn method(&self, method: &str) -> Arc<str> {
        self.methods
            .iter()
            .find(|known| &***known == method)
            .map_or_else(|| method.into(), Arc::clone)
    }

    /// All servers, by name.
    pub fn upstreams(&self) -> Arc<Upstreams> {
        self.servers.all()
    }

    /// The server with this name.
    pub fn upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        self.servers.get(name)
    }

    /// Distinguishes the instances of a server in signed tokens.
    pub(crate) fn place(&self, server: &str, caller: &Caller) -> Arc<str> {
        let upstream = self.upstream(server);
        upstream.map_or_else(|| server.into(), |upstream| upstream.place(caller))
    }

    /// Starts the servers that the configuration enables.
    pub fn start_servers(&self) {
        self.servers.start();
    }

    /// Waits for servers that were never listed, for a bounded time.
    pub async fn last_lessons(&self) {
        self.servers.last_lessons().await;
    }

    /// The dependencies that the servers share.
    pub fn deps(&self) -> &Arc<Deps> {
        self.servers.deps()
    }

    /// Sets the source of the gateway's status.
    pub fn set_status(&self, status: Weak<dyn Status>) {
        // Set once, by the assembly.
        let _ = self.status.set(status);
    }

    /// The state of the gateway and its servers, as agents see it.
    pub(crate) fn status_for_agents(&self, scope: &Scope) -> Raw {
        let status = self.status.get().and_then(Weak::upgrade);
        status.map_or_else(Raw::empty_object, |status| status.for_agents(scope))
    }

    /// Stops the gateway: rejects new work, answers the requests in flight, stops every server,
    /// closes the store. A second call waits for the first.
    pub async fn stop(&self) {
        // Before any client is disconnected: callers that leave from now on withdraw nothing.
        self.approvals.stop();
        if !self.lifecycle.begin_stop() {
            return self.lifecycle.ended().await;
        }
        tracing::info!("Stopping.");
        let deps = self.deps();
        deps.start_throttle.pause();
        self.servers.cut_off();
        self.events
            .tell("gateway.stopping", || serde_json::json!({}));
        let total = self.config.load().shutdown.total_timeout;
        self.servers.stop(total, self.lifecycle.hurried()).await;
        // The tokens in the response to a request in flight would be lost.
        tokio::select! {
            () = deps.sign_ins.settled() => {}
            () = self.lifecycle.hurried() => {}
            () = tokio::time::sleep(SIGN_IN_PATIENCE) => {}
        }
        let (finder, deps) = (Arc::clone(&self.finder), Arc::clone(deps));
        let closing = tokio::task::spawn_blocking(move || {
            finder.close();
            deps.logs.flush();
            deps.first_contact.save(&deps.config.load());
        });
        let _ = closing.await;
        self.tokens.save().await;
        self.audit.flush().await;
        self.store.close();
        let _ = tokio::time::timeout(CLOSE_PATIENCE, self.store.closed()).await;
        self.lifecycle.end();
        tracing::info!("Stopped.");
    }

    /// Drops the calls of a principal that wait for its client, and the processes that only its clients needed.
    pub fn drop_calls_of(&self, principal: Principal) {
        self.servers.principal_left(principal);
        self.waiting.drop_of(principal);
        self.rounds.drop_of(principal);
        self.suspended.drop_of(principal);
    }

    /// The server with this name, if the scope permits it.
    pub(crate) fn upstream_in(&self, scope: &Scope, name: &str) -> Result<Arc<Upstream>, Error> {
        let upstream = self.upstream(name);
        upstream
            .filter(|_| scope.permits_server(name))
            .ok_or_else(|| Error::invalid_params(format!("there is no server `{}`", cut(name))))
    }

    /// Checks that a client may use an item of a server, or with `None` the server at all: its scope
    /// permits it, it is approved, and the server's settings show it.
    pub(crate) fn may_use(
        &self,
        scope: &Scope,
        upstream: &Upstream,
        item: Option<(Kind, &str)>,
    ) -> Result<(), Error> {
        if let Some((kind, name)) = item
            && !scope.permits(kind, &upstream.name, name)
        {
            return Err(match kind {
                Kind::Tool => no_tool(upstream, name),
                Kind::Prompt => {
                    Error::invalid_params(format!("there is no prompt `{}`", cut(name)))
                }
                Kind::Resource | Kind::Template => {
                    Error::Refused(translate::no_resource(Era::Legacy, name))
                }
            });
        }
        self.is_shown(upstream, item)
    }

    /// The same for an item that the scope permits.
    pub(crate) fn is_shown(
        &self,
        upstream: &Upstream,
        item: Option<(Kind, &str)>,
    ) -> Result<(), Error> {
        if let Some((Kind::Tool, tool)) = item
            && !upstream.settings().shows_tool(tool)
        {
            return Err(no_tool(upstream, tool));
        }
        self.is_approved(upstream, item)
    }

    /// Checks that an item of a server is approved. The error has the name that clients know a tool by.
    pub(crate) fn is_approved(
        &self,
        upstream: &Upstream,
        item: Option<(Kind, &str)>,
    ) -> Result<(), Error> {
        let approved = self.live_catalog.permits(&upstream.name, item);
        approved.map_err(|mut error| {
            if let (Error::Unapproved { new_name, .. }, Some((Kind::Tool, tool))) =
                (&mut error, item)
            {
                *new_name = upstream.settings().overrides.new_name(tool).map(Arc::from);
            }
            error
        })
    }

    /// Tests if a realm sees a server.
    pub(crate) fn permits_server(&self, realm: Realm, server: &str) -> bool {
        let scope = self.scopes.of(realm);
        scope.is_ok_and(|scope| scope.permits_server(server))
    }

    /// Stops the processes that only a client needed which has left.
    pub fn client_left(&self, caller: &Caller) {
        self.servers.client_left(caller);
    }

    /// Forwards a client's notice that its roots have changed to the servers that it sees.
    pub fn roots_changed(&self, session: &Session) {
        session.caller.project.roots_changed();
        for (name, upstream) in self.upstreams().iter() {
            let realm = session.caller.realm;
            if session.view.sees(name) && self.permits_server(realm, name) {
                let (upstream, backchannel) = (Arc::clone(upstream), session.backchannel());
                let caller = session.caller.clone();
                tokio::spawn(async move { upstream.roots_changed(&caller, backchannel).await });
            }
        }
    }
}

/// The error for a tool that does not exist, by the name that clients know it by.
fn no_tool(upstream: &Upstream, tool: &str) -> Error {
    let settings = upstream.settings();
    translate::no_tool(settings.overrides.new_name(tool).unwrap_or(tool))
}

impl Handler for Core {
    fn configured(&self, config: &Config) {
        self.approvals.set_policy(|policy| policy.under(config));
        self.scopes.set(config);
        // Profiles and views may have changed; clients whose lists are the same are not notified.
        self.live_catalog.touch();
    }

    fn answer(self: Arc<Self>, from: Source<'_>, asked: Asked, under_way: UnderWay) -> Answering {
        let asking = server_requests::Asking {
            questions: Arc::clone(from.questions),
            server: Arc::clone(from.server),
            key: from.key.cloned(),
            project: from.project.cloned(),
            asked,
            under_way,
        };
        Box::pin(async move { server_requests::answer(&self, &asking).await })
    }

    fn notified(&self, from: Source<'_>, said: &str, params: Option<&Raw>) {
        // The end of an elicitation is matched by its ID.
        let is_matched = said == method::ELICITATION_COMPLETE;
        let is_meant = |caller: &Caller| {
            let scope = self.scopes.of(caller.realm).ok();
            let scope = scope.filter(|scope| scope.permits_server(from.server));
            scope.is_some_and(|scope| {
                is_matched || from.may_concern(caller, scope.sees_all_of(from.server))
            })
        };
        match (said, params) {
            (method::RESOURCE_UPDATED, Some(params)) => {
                let server = from.server;
                let may_hear = |caller: &Caller, uri: &str| may_hear(self, caller, server, uri);
                from.watched.updated(server, params, may_hear);
            }
            (method::LOG_MESSAGE | method::ELICITATION_COMPLETE, _) => {
                self.audience.hear(from, said, params, &is_meant);
            }
            _ => self.audience.hand_on(from, said, params, &is_meant),
        }
    }
}
