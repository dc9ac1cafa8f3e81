//! [`Call`]: a request that can be shaped before it is awaited.

use std::{
    borrow::Cow,
    fmt,
    future::{Future, IntoFuture},
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use serde::Deserialize;
use switchboard_machine::Headers;
use switchboard_wire::Raw;
use tokio::sync::Notify;

use crate::{Error, connection::Handle, model::FromAnswer, pending::Reason, round::Round};

/// A request to the server. Shape it, then await it.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn run(client: switchboard_client::Client) -> Result<(), switchboard_client::Error> {
/// let result = client
///     .call_tool("build", serde_json::json!({"target": "all"}))
///     .timeout(Duration::from_secs(60))
///     .extend_on_progress(Duration::from_secs(600))
///     .on_progress(|progress| println!("{:?} of {:?}", progress.progress, progress.total))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call is only sent when it is awaited"]
pub struct Call<T> {
    handle: Handle,
    request: Result<Request, Error>,
    options: Options,
    /// Whether what the server asks in a result is answered by the handlers. Raw calls hand it back.
    asks_back: bool,
    answer: PhantomData<fn() -> T>,
}

/// What is asked.
pub(crate) struct Request {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Option<Raw>,
    pub(crate) headers: Headers,
}

/// How it is asked.
pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) extend_cap: Option<Duration>,
    pub(crate) fail_fast: bool,
    pub(crate) tag: Option<u64>,
    pub(crate) trace: Option<Raw>,
    pub(crate) reason: Option<Reason>,
    pub(crate) on_progress: Option<Hearer>,
    pub(crate) on_log: Option<Hearer>,
}

/// Takes what the server says of a call on the way.
pub(crate) type Hearer = Box<dyn FnMut(Raw) + Send>;

/// How far a call has come.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// So much is done.
    pub progress: f64,
    /// Of so much, if the server knows.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

impl<T> Call<T> {
    pub(crate) fn new(handle: Handle, request: Result<Request, Error>) -> Self {
        let options = Options {
            timeout: Some(handle.shared.request_timeout),
            extend_cap: None,
            fail_fast: false,
            tag: None,
            trace: None,
            reason: None,
            on_progress: None,
            on_log: None,
        };
        Self {
            handle,
            request,
            options,
            asks_back: false,
            answer: PhantomData,
        }
    }

    /// A call of any method but that of tools, which may need headers.
    pub(crate) fn of(
        handle: &Handle,
        method: impl Into<Cow<'static, str>>,
        params: Result<Option<Raw>, Error>,
    ) -> Self {
        let method = method.into();
        handle.shared.asked_for.note(&method);
        let request = params.map(|params| Request {
            method,
            params,
            headers: Arc::from([]),
        });
        Self::new(handle.clone(), request)
    }

    /// Lets the handlers answer what the server asks in its results.
    pub(crate) fn asking_back(mut self) -> Self {
        self.asks_back = true;
        self
    }

    /// How long the call may take altogether, from when it is first polled: the wait for the
    /// connection, retries, and the time that handlers take to answer the server's questions. A
    /// call that asks a person wants minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// When the call has to be answered, in place of how long it may take.
    pub fn deadline(self, deadline: std::time::Instant) -> Self {
        self.timeout(deadline.saturating_duration_since(std::time::Instant::now()))
    }

    /// Lets the call take as long as it takes.
    pub fn no_timeout(mut self) -> Self {
        self.options.timeout = None;
        self
    }

    /// Lets each progress report move the deadline to a full timeout from then, but never further
    /// than `cap` from the start of the call.
    pub fn extend_on_progress(mut self, cap: Duration) -> Self {
        self.options.extend_cap = Some(cap);
        self
    }

    /// Asks for progress. The handler runs where the call is awaited, in the order in which the
    /// server reported, always before the call ends.
    pub fn on_progress(self, mut handler: impl FnMut(Progress) + Send + 'static) -> Self {
        self.on_raw_progress(move |params| {
            if let Ok(progress) = params.read_owned() {
                handler(progress);
            }
        })
    }

    /// Asks for progress, and takes the parameters of each notification as they came, but for the
    /// token, which is this library's own.
    pub fn on_raw_progress(mut self, handler: impl FnMut(Raw) + Send + 'static) -> Self {
        self.options.on_progress = Some(Box::new(handler));
        self
    }

    /// Takes the parameters of the log messages that belong to this call, as they came, in order with
    /// its progress and always before the call ends: those on the call's own stream, or over a
    /// transport without such streams those that come while no other request is under way. All
    /// others go to [`on_notification`](crate::ClientBuilder::on_notification). A caller that falls
    /// 1,024 messages behind loses the newest, which are counted.
    pub fn on_raw_log(mut self, handler: impl FnMut(Raw) + Send + 'static) -> Self {
        self.options.on_log = Some(Box::new(handler));
        self
    }

    /// Fails at once, in place of waiting, if the connection is not ready.
    pub fn fail_fast(mut self) -> Self {
        self.options.fail_fast = true;
        self
    }

    /// A number of the caller's choice to know the call by: what the server asks on the stream of
    /// this call, or in its result, comes to [`on_asked`](crate::ClientBuilder::on_asked) with it.
    /// Nothing of it is sent.
    pub fn tag(mut self, tag: u64) -> Self {
        self.options.tag = Some(tag);
        self
    }

    /// Sends a W3C trace parent along, so that the server's work shows in the trace.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.options.trace = Some(Raw::string(traceparent));
        self
    }

    /// If the call is dropped before it is answered, the server is told the reason that stands here by
    /// then, if one does.
    pub fn reason(mut self, reason: &Reason) -> Self {
        self.options.reason = Some(Arc::clone(reason));
        self
    }

    /// The call as a future that can be cancelled from elsewhere. Like every future, it is sent
    /// when it is first polled.
    pub fn cancellable(self) -> InFlight<T>
    where
        T: FromAnswer,
    {
        let canceller = Canceller(Arc::default());
        InFlight {
            answering: self.answering(Some(canceller.clone())),
            canceller,
        }
    }

    fn answering(self, cancelled: Option<Canceller>) -> Answering<T>
    where
        T: FromAnswer,
    {
        let Self {
            handle,
            request,
            options,
            asks_back,
            ..
        } = self;
        Answering(Box::pin(async move {
            let request = request?;
            let method = request.method.clone();
            let round = Round::new(handle, options, asks_back, cancelled);
            let answer = round.run(request).await?;
            T::from_answer(answer).map_err(|source| Error::UnexpectedAnswer {
                method: method.into_owned(),
                source,
            })
        }))
    }
}

impl<T: FromAnswer> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Answering<T>;

    fn into_future(self) -> Answering<T> {
        self.answering(None)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.request.as_ref().map(|request| &request.method);
        f.debug_struct("Call")
            .field("method", &method)
            .finish_non_exhaustive()
    }
}

/// A call under way. Dropping it withdraws the call.
#[must_use = "a call is only sent when it is awaited"]
pub struct Answering<T>(Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>);

impl<T> Future for Answering<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<T> fmt::Debug for Answering<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answering")
    }
}

/// A call under way that can be cancelled from elsewhere. Dropping it withdraws the call.
#[must_use = "a call is only sent when it is awaited"]
pub struct InFlight<T> {
    answering: Answering<T>,
    canceller: Canceller,
}

impl<T> InFlight<T> {
    /// A handle that cancels the call from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl<T> Future for InFlight<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answering).poll(cx)
    }
}

impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InFlight")
    }
}

/// Cancels a call from elsewhere.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Cancellation>);

#[derive(Debug, Default)]
struct Cancellation {
    reason: Reason,
    rung: Notify,
}

impl Canceller {
    /// Cancels the call: the server is told why, also if the call is dropped without being polled
    /// again; the caller gets [`CallError::Cancelled`](crate::CallError::Cancelled). Does nothing if
    /// the call has ended.
    pub fn cancel(&self, reason: &str) {
        // Of two reasons the first stands.
        let _ = self.0.reason.set(Arc::from(reason));
        self.0.rung.notify_one();
    }

    /// Where it says why.
    pub(crate) fn reason(&self) -> Reason {
        Arc::clone(&self.0.reason)
    }

    /// Waits for the call to be cancelled, and gives the reason.
    pub(crate) async fn cancelled(&self) -> Arc<str> {
        loop {
            if let Some(reason) = self.0.reason.get() {
                return Arc::clone(reason);
            }
            self.0.rung.notified().await;
        }
    }
}
