//! [`Call`]: a request that can be configured before it is awaited.

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

use crate::{
    Error, connection::Handle, handlers::LogMessage, model::FromAnswer, pending::Reason,
    round::Round,
};

/// A request to the server. Configure it, then await it.
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
    /// The handlers provide the input that the server asks for in a result. Raw calls return such results.
    asks_back: bool,
    answer: PhantomData<fn() -> T>,
}

pub(crate) struct Request {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Option<Raw>,
    pub(crate) headers: Headers,
}

pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) extend_cap: Option<Duration>,
    pub(crate) fail_fast: bool,
    pub(crate) tag: Option<u64>,
    pub(crate) trace: Option<Raw>,
    pub(crate) reason: Option<Reason>,
    pub(crate) on_progress: Option<Hearer<Raw>>,
    pub(crate) on_log: Option<Hearer<LogMessage>>,
}

/// A handler for the progress or log messages of a call.
pub(crate) type Hearer<M> = Box<dyn FnMut(M) + Send>;

/// The progress of a call.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// The amount done so far.
    pub progress: f64,
    /// The total amount, if the server knows it.
    pub total: Option<f64>,
    /// A description of the current work.
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

    /// Creates a call of any method except `tools/call`, which may need headers.
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

    /// Lets the handlers provide the input that the server asks for in its results.
    pub(crate) fn asking_back(mut self) -> Self {
        self.asks_back = true;
        self
    }

    /// Sets the time limit of the whole call, measured from when it is first polled. It includes the wait for
    /// the connection, retries, and the time that handlers take to provide input. Allow several minutes for a
    /// call that may ask the user for input.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets a deadline instead of a timeout.
    pub fn deadline(self, deadline: std::time::Instant) -> Self {
        self.timeout(deadline.saturating_duration_since(std::time::Instant::now()))
    }

    /// Removes the time limit.
    pub fn no_timeout(mut self) -> Self {
        self.options.timeout = None;
        self
    }

    /// Lets each progress notification move the deadline to a full timeout from then, but never further than
    /// `cap` from the start of the call.
    pub fn extend_on_progress(mut self, cap: Duration) -> Self {
        self.options.extend_cap = Some(cap);
        self
    }

    /// Requests progress notifications. The handler runs where the call is awaited, in the order of the
    /// notifications, and always before the call ends.
    pub fn on_progress(self, mut handler: impl FnMut(Progress) + Send + 'static) -> Self {
        self.on_raw_progress(move |params| {
            if let Ok(progress) = params.read_owned() {
                handler(progress);
            }
        })
    }

    /// Requests progress notifications, and receives the parameters of each as they arrived. The progress
    /// token in them was chosen by this library.
    pub fn on_raw_progress(mut self, handler: impl FnMut(Raw) + Send + 'static) -> Self {
        self.options.on_progress = Some(Box::new(handler));
        self
    }

    /// Handles the log messages that belong to this call. The handler receives them in order with the progress
    /// notifications, and always before the call ends. A log message belongs to the call if it arrives on the call's
    /// own stream, or, over a transport without such streams, while no other request is in flight. All others go to
    /// [`on_notification`](crate::ClientBuilder::on_notification). If the caller falls 1,024 messages behind,
    /// the newest are dropped and counted.
    pub fn on_raw_log(mut self, handler: impl FnMut(LogMessage) + Send + 'static) -> Self {
        self.options.on_log = Some(Box::new(handler));
        self
    }

    /// Fails immediately, instead of waiting, if the connection is not ready.
    pub fn fail_fast(mut self) -> Self {
        self.options.fail_fast = true;
        self
    }

    /// Sets a number to identify the call by: [`on_asked`](crate::ClientBuilder::on_asked) receives it with
    /// the requests that the server sends on the stream of this call, or in its result. It is not sent to the
    /// server.
    pub fn tag(mut self, tag: u64) -> Self {
        self.options.tag = Some(tag);
        self
    }

    /// Sends a W3C trace parent, so that the server's work appears in the trace.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.options.trace = Some(Raw::string(traceparent));
        self
    }

    /// Sets a cell for the reason of a cancellation. If the call is dropped before its response arrives, and
    /// the cell is set by then, the reason is sent to the server.
    pub fn reason(mut self, reason: &Reason) -> Self {
        self.options.reason = Some(Arc::clone(reason));
        self
    }

    /// Converts the call into a future that can be cancelled from elsewhere. Like every future, it only
    /// starts when it is first polled.
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

/// A call in flight. Dropping it cancels the call.
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

/// A call in flight that can be cancelled from elsewhere. Dropping it cancels the call.
#[must_use = "a call is only sent when it is awaited"]
pub struct InFlight<T> {
    answering: Answering<T>,
    canceller: Canceller,
}

impl<T> InFlight<T> {
    /// Returns a handle that cancels the call.
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
    /// Cancels the call. The server receives the reason, even if the call is dropped without being polled
    /// again; the caller gets [`CallError::Cancelled`](crate::CallError::Cancelled). Does nothing if the call
    /// has ended.
    pub fn cancel(&self, reason: &str) {
        // The first of two reasons wins.
        let _ = self.0.reason.set(Arc::from(reason));
        self.0.rung.notify_one();
    }

    /// Returns the cell for the reason.
    pub(crate) fn reason(&self) -> Reason {
        Arc::clone(&self.0.reason)
    }

    /// Waits until the call is cancelled, and returns the reason.
    pub(crate) async fn cancelled(&self) -> Arc<str> {
        loop {
            if let Some(reason) = self.0.reason.get() {
                return Arc::clone(reason);
            }
            self.0.rung.notified().await;
        }
    }
}
