//! What every part of the gateway needs, made once and shared.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use switchboard_config::{Config, Environment, Home};
use switchboard_contain::Containment;
use switchboard_store::Store;
use switchboard_wire::method;

use crate::{
    approvals::{Approvals, driver::Driver},
    asking::Asking,
    audit::Audit,
    cache::Reads,
    call::{Kept, gate::Round, patience::Running},
    console::Console,
    desk::fit::Results,
    events::Events,
    finder::Finder,
    first_contact::FirstContact,
    lessons::Lessons,
    logs::Logs,
    memory::Host,
    metrics::Metrics,
    model::Models,
    notify::Megaphone,
    pace::Pace,
    park::{Parking, Room},
    seal::Seal,
    session::Audience,
    shelf::Shelf,
    watch,
};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) home: Arc<Home>,
    /// The environment of this process, of which servers get a part.
    pub(crate) environment: Environment,
    pub(crate) containment: Containment,
    pub(crate) logs: Arc<Logs>,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) megaphone: Megaphone,
    pub(crate) pace: Pace,
    /// Servers that have never been learnt.
    pub(crate) first_contact: Arc<FirstContact>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) finder: Finder,
    /// What was too long for an answer.
    pub(crate) results: Results,
    pub(crate) store: Store,
    /// The built-in memory.
    pub(crate) memory: Host,
    /// Clients that can be told things unasked.
    pub(crate) audience: Audience,
    /// Asking a person.
    pub(crate) approvals: Arc<Approvals>,
    /// The limits of what servers ask for.
    pub(crate) asking: Asking,
    /// The audit log, for everything that approvals do not record themselves.
    pub(crate) audit: Audit,
    /// Calls that go on while their clients are away.
    pub(crate) waiting: Arc<Parking<Running>>,
    /// What was decided about calls whose clients are to come back.
    pub(crate) rounds: Arc<Parking<Round>>,
    /// Calls that wait for their clients.
    pub(crate) parking: Arc<Parking<Kept>>,
    pub(crate) seal: Seal,
    /// The room for the resources that clients watch.
    pub(crate) watched: Arc<watch::Room>,
    pub(crate) console: Console,
    pub(crate) reads: Reads,
    pub(crate) config: ArcSwap<Config>,
    pub(crate) started: SystemTime,
    methods: [Arc<str>; METHODS.len()],
}

/// The most calls that are parked at a time, and of one server: it must have room for other questions.
const PARKED: Room = Room {
    all: 1_024,
    each: 32,
};
/// The most calls whose clients are away until a person has answered.
const WAITING: Room = Room {
    all: 4_096,
    each: 2_048,
};

fn finder(home: &Home) -> Finder {
    let models = Models::new(home.models(), home.search());
    Finder::new(models, Lessons::new(home.search().join("learnt.json")))
}

/// The methods that are carried to servers.
const METHODS: [&str; 4] = [
    method::TOOLS_CALL,
    method::PROMPTS_GET,
    method::RESOURCES_READ,
    method::COMPLETE,
];

impl Context {
    /// `None` if there is no randomness.
    pub(crate) fn new(
        home: Arc<Home>,
        config: Config,
        environment: Environment,
        containment: Containment,
        logs: Arc<Logs>,
        shelf: Arc<Shelf>,
        store: Store,
    ) -> Option<(Self, Driver)> {
        let lasting_seal = Seal::kept(&home.seal_key())?;
        let finder = finder(&home);
        let (approvals, driver) = Approvals::new(&config, home.rules());
        let context = Self {
            approvals: Arc::new(approvals),
            asking: Asking::default(),
            audit: Audit::start(store.clone()),
            waiting: Parking::new(lasting_seal, WAITING)?,
            rounds: Parking::new(Seal::new()?, WAITING)?,
            environment,
            containment,
            audience: Audience::default(),
            parking: Parking::new(Seal::new()?, PARKED)?,
            seal: Seal::new()?,
            watched: Arc::default(),
            console: Console::new()?,
            reads: Reads::default(),
            logs,
            metrics: Metrics::default(),
            events: Events::new(),
            megaphone: Megaphone::new(),
            pace: Pace::new(),
            first_contact: Arc::new(FirstContact::open(home.first_contact())),
            shelf,
            memory: Host::new(store.clone(), &config, Arc::clone(&finder.models)),
            finder,
            results: Results::new(home.results()),
            store,
            config: ArcSwap::from_pointee(config),
            started: SystemTime::now(),
            methods: METHODS.map(Arc::from),
            home,
        };
        Some((context, driver))
    }

    /// How long a call waits for a part that is not ready.
    pub(crate) fn wait(&self) -> Duration {
        self.config.load().wait
    }

    /// The name of a method, without making it anew for each call.
    pub(crate) fn method(&self, method: &str) -> Arc<str> {
        self.methods
            .iter()
            .find(|known| &***known == method)
            .map_or_else(|| method.into(), Arc::clone)
    }

    /// A number that differs from others; nothing secret hangs on it.
    pub(crate) fn random() -> u64 {
        let mut bytes = [0; 8];
        match getrandom::fill(&mut bytes) {
            Ok(()) => u64::from_ne_bytes(bytes),
            Err(_) => u64::from(std::process::id()),
        }
    }
}
