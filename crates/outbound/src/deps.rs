//! Dependencies that all connections to servers share, and the interface to the layer above, which handles
//! requests and notifications of servers.

use std::{
    fmt::Debug,
    pin::Pin,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use switchboard_base::{audit::Audit, caller::Caller, events::Events, metrics::Metrics};
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_config::{Config, Environment, Home};
use switchboard_contain::Containment;

use crate::{
    cache::Reads,
    first_contact::FirstContact,
    instances::Key,
    live_catalog::LiveCatalog,
    logs::Logs,
    memory::Host,
    questions::{Questions, UnderWay},
    sign_in::SignIns,
    start_throttle::StartThrottle,
    subscriptions::{self, Subscriptions},
};

/// The dependencies of connections to servers, created once and shared.
#[derive(Debug)]
pub struct Deps {
    /// The folders of this gateway.
    pub home: Arc<Home>,
    /// The environment of this process, of which servers get a part.
    pub environment: Arc<Environment>,
    /// Contains the processes of servers.
    pub containment: Containment,
    /// Servers in this process that are started in place of others.
    #[cfg(test)]
    pub(crate) fake_servers: Option<crate::upstream::tests::fake_servers::FakeServers>,
    /// The logs of servers.
    pub logs: Arc<Logs>,
    /// Counts of calls.
    pub metrics: Arc<Metrics>,
    /// The stream of events.
    pub events: Events,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// Schedules the starts of servers that no call waits for.
    pub start_throttle: StartThrottle,
    /// Servers that have never been listed.
    pub first_contact: Arc<FirstContact>,
    /// The catalogue of the items that servers offer.
    pub live_catalog: Arc<LiveCatalog>,
    /// Resources that were read and may be cached.
    pub reads: Reads,
    /// The budget for subscriptions of clients.
    pub subscription_budget: Arc<subscriptions::Budget>,
    /// The built-in memory; `None` in a build without it.
    pub memory: Option<Host>,
    /// The sign-ins to remote servers.
    pub sign_ins: SignIns,
    /// The current configuration.
    pub config: Arc<ArcSwap<Config>>,
    /// The layer above.
    pub handler: HandlerSlot,
}

/// The slot for the handler, which the layer above fills once.
#[derive(Debug, Default)]
pub struct HandlerSlot(OnceLock<Weak<dyn Handler>>);

impl Deps {
    /// Sets the handler of unsolicited messages. Until then, and after that layer is gone, such messages are
    /// ignored.
    pub fn set_handler(&self, handler: Weak<dyn Handler>) {
        // That layer sets it once.
        let _ = self.handler.0.set(handler);
    }

    pub(crate) fn handler(&self) -> Option<Arc<dyn Handler>> {
        self.handler.0.get()?.upgrade()
    }

    /// Time for which a call waits for a server or list that is not ready.
    pub(crate) fn wait(&self) -> Duration {
        self.config.load().wait
    }
}

/// The instance of a server that a message comes from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name.
    pub server: &'a Arc<str>,
    /// Its calls in flight.
    pub questions: &'a Arc<Questions>,
    /// Its resources that clients subscribed to.
    pub watched: &'a Subscriptions,
    /// The callers that it is for, if it is not for all of them.
    pub key: Option<&'a Key>,
    /// The directory that these callers work in, if there is one.
    pub project: Option<&'a Arc<str>>,
}

impl Source<'_> {
    /// Tests if a message that belongs to no call may concern this caller, who sees all of the server or a part of it. It
    /// may be about a call of another client that is over.
    pub fn may_concern(&self, caller: &Caller, sees_all: bool) -> bool {
        let serves = self.key.is_none_or(|key| key.serves(caller));
        let is_its_own = self.key.is_some_and(Key::is_of_one_client);
        serves && (sees_all || is_its_own) && self.questions.may_concern(caller.realm)
    }
}

/// The pending response to a request of a server.
pub type Answering = Pin<Box<dyn Future<Output = Result<Raw, ErrorObject>> + Send>>;

/// Handles unsolicited messages of servers. The layer above implements it, so that this one does not need to
/// know clients, rules or people.
pub trait Handler: Debug + Send + Sync {
    /// Called when a new configuration is in effect and no server has been started under it yet.
    fn configured(&self, config: &Config);

    /// Answers a request of a server, given the calls that were in flight when it was read. Dropping the
    /// future withdraws the request.
    fn answer(self: Arc<Self>, from: Source<'_>, asked: Asked, under_way: UnderWay) -> Answering;

    /// Forwards a notification that belongs to no call and that the server is allowed to send.
    fn notified(&self, from: Source<'_>, method: &str, params: Option<&Raw>);
}
