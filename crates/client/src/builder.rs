//! The builder of a client: everything that is configured before it connects.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::RwLock;
use switchboard_machine::{Counters, Ids, Machine, Moment, Settings, State};
use switchboard_wire::{Era, ErrorObject, Notification, Raw, Revision};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tracing::Instrument;

use crate::{
    Asked, Client, Lossless, Violation,
    connection::Shared,
    driver::{Driver, Outlets},
    handler_tasks,
    handlers::{self, Handlers},
    lists::AskedFor,
    model::{
        ElicitationAnswer, ElicitationRequest, Root, SamplingRequest, SamplingResult,
        UrlElicitationRequest,
    },
    subscriptions::Subscriptions,
    telemetry,
    throttle::Limited,
    transport::Connect,
};

/// Builds a [`Client`].
///
/// ```no_run
/// use switchboard_client::{Client, model::{ElicitationAnswer, Root}, stdio::{Command, Stdio}};
///
/// # async fn run() {
/// let client = Client::builder("my-agent", "1.0")
///     .roots([Root::new("file:///projects/mine")])
///     .on_elicitation(|question| async move {
///         // Ask the user; here, accept the defaults of the form.
///         Ok(ElicitationAnswer::accept(question.defaults()))
///     })
///     .on_notification(|news| println!("{}", news.method))
///     .connect(Stdio::new(Command::new("my-server")));
/// # }
/// ```
#[must_use = "a builder does nothing until `connect`"]
pub struct ClientBuilder {
    settings: Settings,
    handlers: Handlers,
    /// The capabilities to declare instead of the ones that follow from the handlers.
    capabilities: Option<Raw>,
    /// The name of the server in logs.
    label: Option<String>,
}

/// The ids of all requests of this process.
static IDS: LazyLock<Ids> = LazyLock::new(Ids::new);

/// Makes the jitter of connections differ. It need not be secret.
static SEED: AtomicU64 = AtomicU64::new(0);

/// The most notifications of the server that wait for their handler, and the most requests.
const NOTIFICATIONS_DEPTH: usize = 1_024;
const REQUESTS_DEPTH: usize = 256;

/// The most calls that wait for the driver, even if more may be in flight.
const CALLS_DEPTH: usize = 65_536;

impl ClientBuilder {
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let info = Raw::object([
            ("name", Raw::string(name)),
            ("version", Raw::string(version)),
        ]);
        Self {
            settings: Settings::new(info),
            handlers: Handlers::default(),
            capabilities: None,
            label: None,
        }
    }

    /// Handles the server's requests for completions by a model.
    pub fn on_sampling<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Lossless<SamplingRequest>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<SamplingResult, ErrorObject>> + Send + 'static,
    {
        self.handlers.sampling = Some(handlers::typed(handler));
        self
    }

    /// Handles the server's requests for user input with a form. The deadline of the call that the server
    /// asks for continues while the user responds: see [`Call::timeout`](crate::Call::timeout).
    pub fn on_elicitation<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Lossless<ElicitationRequest>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitationAnswer, ErrorObject>> + Send + 'static,
    {
        self.handlers.elicitation = Some(handlers::typed(handler));
        self
    }

    /// Handles the server's requests to open a URL. Accepting means that the user has seen the URL and agreed
    /// to open it.
    pub fn on_url_elicitation<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Lossless<UrlElicitationRequest>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitationAnswer, ErrorObject>> + Send + 'static,
    {
        self.handlers.url_elicitation = Some(handlers::typed(handler));
        self
    }

    /// Declares the directories that the client works in. [`Client::set_roots`] changes them later.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.handlers.roots = Some(RwLock::new(roots.into_iter().collect()));
        self
    }

    /// Handles all other requests of the server, as raw JSON.
    pub fn on_request<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(String, Option<Raw>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Raw, ErrorObject>> + Send + 'static,
    {
        self.handlers.other = Some(Box::new(move |method, params| {
            Box::pin(handler(method, params))
        }));
        self
    }

    /// Handles all requests of the server except `ping`, as raw JSON, in place of all other handlers: the
    /// requests that an older server sends, and the ones that a newer server puts into the results of typed
    /// calls. The future is dropped if the server cancels its request. Declare the supported requests with
    /// [`capabilities`](Self::capabilities).
    ///
    /// The function runs on the connection's task as soon as a request has been read, before any later
    /// message of the server is read: no call that the server answers later has its response yet. It must not
    /// block. The future runs on another task.
    pub fn on_asked<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Asked) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Raw, ErrorObject>> + Send + 'static,
    {
        self.handlers.asked = Some(Box::new(move |asked| Box::pin(handler(asked))));
        self
    }

    /// Declares these capabilities for all revisions, instead of the ones that follow from the handlers. The
    /// value must be an object; any other value declares nothing.
    pub fn capabilities(mut self, capabilities: Raw) -> Self {
        let object = Some(capabilities).filter(Raw::is_object);
        self.capabilities = Some(object.unwrap_or_else(Raw::empty_object));
        self
    }

    /// Handles the server's notifications: changed lists, updated resources, log messages. They are passed
    /// one after another, in order; a slow handler delays only the notifications after it. It may block. If
    /// more than 1,024 notifications are queued, the newest are dropped and counted.
    ///
    /// A server of 2026-07-28 reports changed lists on a stream that must be opened, and can be lost.
    /// Whenever a stream is opened that does not directly replace an open one, the handler receives a change
    /// notification for every list that was ever requested, because it may have changed: a list may be
    /// fetched once more than necessary, but no change is missed.
    pub fn on_notification(
        mut self,
        handler: impl Fn(Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.notification = Some(Box::new(handler));
        self
    }

    /// Handles reports of protocol violations by the server, such as lines on its standard output that are
    /// not JSON-RPC: the first ten, and then one report per ten seconds. The handler must not block.
    pub fn on_violation(
        mut self,
        handler: impl Fn(&Violation<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.violation = Some(Box::new(handler));
        self
    }

    /// Sets the name of the server in logs. The default is its command or URL.
    pub fn label(mut self, name: &str) -> Self {
        self.label = Some(name.to_owned());
        self
    }

    /// Sets the default timeout of calls. 30 seconds by default.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.request_timeout = timeout;
        self
    }

    /// Sets the time limit for starting the server and the handshake together. 10 seconds by default.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.settings.handshake_timeout = timeout;
        self
    }

    /// Sets the time to wait for a response to a request in the newest revision, before the client falls back
    /// to an older one. 2 seconds by default, and at most half of
    /// [`handshake_timeout`](Self::handshake_timeout); over HTTP, where every request has a response, at least
    /// half of it.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.probe_timeout = timeout;
        self
    }

    /// Sets the first and the longest delay between attempts to connect; the delay doubles with each attempt.
    /// 1 and 30 seconds by default.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.settings.backoff_base = first;
        self.settings.backoff_max = longest;
        self
    }

    /// Sets the most concurrent calls; any further call fails immediately. 1,024 by default.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.settings.in_flight_max = calls;
        self
    }

    /// Sets the newest protocol revision to offer. The latest revision by default.
    pub fn newest_revision(mut self, revision: Revision) -> Self {
        self.settings.newest = revision;
        self
    }

    /// Sets the era of the server, known from an earlier connection ([`Client::era`]), so that it is not
    /// probed again.
    pub fn known_era(mut self, era: Era) -> Self {
        self.settings.era = Some(era);
        self
    }

    /// Starts to connect in the background, and returns immediately.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer enabled.
    pub fn connect(self, connect: impl Connect) -> Client {
        let Self {
            mut settings,
            handlers,
            capabilities,
            label,
        } = self;
        let half = settings.handshake_timeout / 2;
        settings.probe_timeout = if connect.answers_everything() {
            settings.probe_timeout.max(half)
        } else {
            // A server that ignores the probe needs time for the older handshake.
            settings.probe_timeout.min(half)
        };
        (settings.legacy_capabilities, settings.modern_capabilities) = match capabilities {
            Some(declared) => (declared.clone(), declared),
            None => (
                handlers.legacy_capabilities(),
                handlers.modern_capabilities(),
            ),
        };
        let handlers = Arc::new(handlers);
        let counters = Arc::new(Counters::default());
        let (calls_sender, calls) = mpsc::channel(settings.in_flight_max.clamp(1, CALLS_DEPTH));
        // Unbounded, because `Drop` sends here and cannot wait. Each message belongs to a call, a request of
        // the server or a stop by the caller: the first two are bounded, and each causes one message or two.
        let (control_sender, control) = mpsc::unbounded_channel();
        let (notifications_sender, notifications) = mpsc::channel(NOTIFICATIONS_DEPTH);
        let (requests_sender, requests) = mpsc::channel(REQUESTS_DEPTH);
        let (state_sender, state) = watch::channel(State::Starting);
        let (changes_sender, changes) = mpsc::channel(1);
        let (acknowledged_sender, acknowledged) = mpsc::channel(8);
        let started = Instant::now();
        let connect: Arc<dyn Connect> = Arc::new(connect);
        let label = label.unwrap_or_else(|| connect.describe());
        let span = telemetry::connection_span(&label);
        let shared = Arc::new(Shared {
            calls: calls_sender,
            control: control_sender.clone(),
            state,
            changes: changes_sender,
            counters: Arc::clone(&counters),
            handlers: Arc::clone(&handlers),
            ids: IDS.clone(),
            request_timeout: settings.request_timeout,
            connect: Arc::clone(&connect),
            param_headers: RwLock::default(),
            asked_for: AskedFor::default(),
            log_level: RwLock::default(),
            left_out: Limited::default(),
        });
        let hears = handlers.notification.is_some();
        let news = hears.then(|| notifications_sender.clone());
        let subscriptions = Subscriptions::new(&shared, changes, acknowledged, news);
        let seed = SEED.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed) ^ u64::from(std::process::id());
        let machine = Machine::new(
            settings,
            IDS.clone(),
            Arc::clone(&counters),
            seed,
            Moment::START,
        );
        let driver = Driver {
            machine,
            connect,
            calls,
            control,
            outlets: Outlets {
                notifications: notifications_sender,
                requests: requests_sender,
                acknowledged: acknowledged_sender,
            },
            state: state_sender,
            counters,
            handlers: Arc::clone(&handlers),
            started,
        };
        let answering = handler_tasks::answer_requests(requests, control_sender);
        let delivering = handler_tasks::deliver_notifications(notifications, handlers);
        tokio::spawn(driver.run().instrument(span.clone()));
        tokio::spawn(answering.instrument(span.clone()));
        tokio::spawn(delivering.instrument(span.clone()));
        tokio::spawn(subscriptions.run().instrument(span));
        Client::new(shared)
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
