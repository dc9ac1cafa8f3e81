//! The servers' side of the gateway: what all connections share, and the layer above that handles what servers say.

use std::{
    fmt::Debug,
    pin::Pin,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use switchboard_base::{audit::Audit, events::Events, metrics::Metrics};
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_config::{Config, Environment, Home};
use switchboard_contain::Containment;

use crate::{
    cache::Reads,
    first_contact::FirstContact,
    live_catalog::LiveCatalog,
    logs::Logs,
    memory::Host,
    questions::{Questions, UnderWay},
    start_throttle::StartThrottle,
    subscriptions::{self, Subscriptions},
};

/// The dependencies of connections to servers, made once and shared.
#[derive(Debug)]
pub struct Deps {
    /// The folders of this gateway.
    pub home: Arc<Home>,
    /// The environment of this process, of which servers get a part.
    pub environment: Arc<Environment>,
    /// Looks after the processes of servers.
    pub containment: Containment,
    /// The logs of servers.
    pub logs: Arc<Logs>,
    /// Counts of calls.
    pub metrics: Arc<Metrics>,
    /// The stream of events.
    pub events: Events,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// When servers start that no call waits for.
    pub start_throttle: StartThrottle,
    /// Servers that have never been learnt.
    pub first_contact: Arc<FirstContact>,
    /// The catalogue of what the servers offer.
    pub live_catalog: Arc<LiveCatalog>,
    /// Resources that were read, and may be kept.
    pub reads: Reads,
    /// The room for the resources that clients watch.
    pub subscription_budget: Arc<subscriptions::Budget>,
    /// The built-in memory; `None` in a build without it.
    pub memory: Option<Host>,
    /// The configuration that holds.
    pub config: Arc<ArcSwap<Config>>,
    /// The layer above.
    pub handler: HandlerSlot,
}

/// The place for the handler, which the layer above fills once.
#[derive(Debug, Default)]
pub struct HandlerSlot(OnceLock<Weak<dyn Handler>>);

impl Deps {
    /// Has the layer above handle what servers do unasked. Until then, and when that layer is gone, nothing of it is.
    pub fn set_handler(&self, handler: Weak<dyn Handler>) {
        // It is set once, by that layer.
        let _ = self.handler.0.set(handler);
    }

    pub(crate) fn handler(&self) -> Option<Arc<dyn Handler>> {
        self.handler.0.get()?.upgrade()
    }

    /// How long a call waits for a part that is not ready.
    pub(crate) fn wait(&self) -> Duration {
        self.config.load().wait
    }
}

/// The server that something comes from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name.
    pub server: &'a Arc<str>,
    /// Its calls under way.
    pub questions: &'a Arc<Questions>,
    /// What clients watch of it.
    pub watched: &'a Subscriptions,
}

/// The answer to a request of a server, under way.
pub type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;

/// Handles what servers do unasked. The layer above implements it, so that this one need not know clients, rules or
/// people.
pub trait Handler: Debug + Send + Sync {
    /// A new configuration holds, and no server has been started under it yet.
    fn configured(&self, config: &Config);

    /// Answers a request of a server, with the calls that were under way when it was read. Dropping the future takes
    /// the request back.
    fn answer(self: Arc<Self>, from: Source<'_>, asked: Asked, under_way: UnderWay) -> Answering;

    /// Hands on a notification that is no part of a call, and that the server may send.
    fn notified(&self, from: Source<'_>, method: &str, params: Option<&Raw>);
}
