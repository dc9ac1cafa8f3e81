//! The servers' side of the gateway: what all connections share, and the layer above that handles what servers say.

use std::{
    fmt::Debug,
    pin::Pin,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_config::{Config, Environment, Home};
use switchboard_contain::Containment;

use crate::{
    audit::Audit,
    cache::Reads,
    events::Events,
    first_contact::FirstContact,
    logs::Logs,
    memory::Host,
    metrics::Metrics,
    pace::Pace,
    question::{Questions, UnderWay},
    shelf::Shelf,
    watch::{self, Watched},
};

/// What connections to servers need, made once and shared.
#[derive(Debug)]
pub(crate) struct Deps {
    pub(crate) home: Arc<Home>,
    /// The environment of this process, of which servers get a part.
    pub(crate) environment: Arc<Environment>,
    pub(crate) containment: Containment,
    pub(crate) logs: Arc<Logs>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Events,
    pub(crate) audit: Arc<Audit>,
    pub(crate) pace: Pace,
    /// Servers that have never been learnt.
    pub(crate) first_contact: Arc<FirstContact>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) reads: Reads,
    /// The room for the resources that clients watch.
    pub(crate) watched: Arc<watch::Room>,
    /// The built-in memory.
    pub(crate) memory: Host,
    pub(crate) config: Arc<ArcSwap<Config>>,
    /// The layer above.
    pub(crate) handler: OnceLock<Weak<dyn Handler>>,
}

impl Deps {
    /// Has the layer above handle what servers do unasked. Until then, and when that layer is gone, nothing of it is.
    pub(crate) fn set_handler(&self, handler: Weak<dyn Handler>) {
        // It is set once, by that layer.
        let _ = self.handler.set(handler);
    }

    pub(crate) fn handler(&self) -> Option<Arc<dyn Handler>> {
        self.handler.get()?.upgrade()
    }

    /// How long a call waits for a part that is not ready.
    pub(crate) fn wait(&self) -> Duration {
        self.config.load().wait
    }
}

/// The server that something comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) server: &'a Arc<str>,
    /// Its calls under way.
    pub(crate) questions: &'a Arc<Questions>,
    /// What clients watch of it.
    pub(crate) watched: &'a Watched,
}

/// The answer to a request of a server, under way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;

/// Handles what servers do unasked. The layer above implements it, so that this one need not know clients, rules or
/// people.
pub(crate) trait Handler: Debug + Send + Sync {
    /// A new configuration holds, and no server has been started under it yet.
    fn configured(&self, config: &Config);

    /// Answers a request of a server, with the calls that were under way when it was read. Dropping the future takes
    /// the request back.
    fn answer(self: Arc<Self>, from: Source<'_>, asked: Asked, under_way: UnderWay) -> Answering;

    /// Hands on a notification that is no part of a call, and that the server may send.
    fn notified(&self, from: Source<'_>, method: &str, params: Option<&Raw>);
}
