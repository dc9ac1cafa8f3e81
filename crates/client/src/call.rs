//! [`Call`]: a request that can be shaped before it is awaited.

use std::{
    borrow::Cow,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    marker::PhantomData,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use serde::Deserialize;
use switchboard_machine::{CallError, CallKind, Extend, Headers, Reply};
use switchboard_wire::{Outcome, Raw, code, method};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep},
};

use crate::{
    Client, Error,
    driver::Control,
    input::{self, ResultKind},
    model::FromAnswer,
};

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
    client: Client,
    request: Result<Request, Error>,
    options: Options,
    /// Whether what the server asks for on the way to a result is given to it by the library:
    /// questions by the handlers, headers by learning the tool anew. Raw calls hand it back.
    asks_back: bool,
    answer: PhantomData<fn() -> T>,
}

/// What is asked.
pub(crate) struct Request {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Option<Raw>,
    pub(crate) headers: Headers,
}

struct Options {
    timeout: Option<Duration>,
    extend_cap: Option<Duration>,
    fail_fast: bool,
    tag: Option<u64>,
    trace: Option<Raw>,
    on_progress: Option<ProgressHandler>,
}

type ProgressHandler = Box<dyn FnMut(Raw) + Send>;

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
    pub(crate) fn new(client: Client, request: Result<Request, Error>) -> Self {
        let options = Options {
            timeout: Some(client.shared().request_timeout),
            extend_cap: None,
            fail_fast: false,
            tag: None,
            trace: None,
            on_progress: None,
        };
        Self {
            client,
            request,
            options,
            asks_back: false,
            answer: PhantomData,
        }
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

    /// The call as a future that can be cancelled from elsewhere. Like every future, it is sent
    /// when it is first polled.
    pub fn cancellable(self) -> InFlight<T>
    where
        T: FromAnswer,
    {
        let (sender, cancelled) = watch::channel(None);
        InFlight {
            answering: self.answering(Some(cancelled)),
            canceller: Canceller(Arc::new(sender)),
        }
    }

    fn answering(self, cancelled: Option<Cancelled>) -> Answering<T>
    where
        T: FromAnswer,
    {
        let Self {
            client,
            request,
            options,
            asks_back,
            ..
        } = self;
        Answering(Box::pin(async move {
            let request = request?;
            let method = request.method.clone();
            let round = Round::new(client, options, asks_back, cancelled);
            let answer = round.run(request).await?;
            T::from_answer(answer).map_err(|source| Error::UnexpectedAnswer {
                method: method.into_owned(),
                source,
            })
        }))
    }
}

/// Tells a call that it is cancelled, and why.
type Cancelled = watch::Receiver<Option<Arc<str>>>;

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
pub struct Canceller(Arc<watch::Sender<Option<Arc<str>>>>);

impl Canceller {
    /// Cancels the call: the server is told why, the caller gets [`CallError::Cancelled`]. Does
    /// nothing if the call has ended.
    pub fn cancel(&self, reason: &str) {
        self.0.send_replace(Some(Arc::from(reason)));
    }
}

/// Requests under one deadline: the call itself, and its repetitions with the input that the
/// server asked for.
struct Round {
    client: Client,
    options: Options,
    asks_back: bool,
    started: Instant,
    deadline: Option<Instant>,
    cancelled: Option<Cancelled>,
}

/// How much progress is kept for a caller that does not look.
const PROGRESS_DEPTH: usize = 1_024;

impl Round {
    fn new(
        client: Client,
        options: Options,
        asks_back: bool,
        cancelled: Option<Cancelled>,
    ) -> Self {
        let started = Instant::now();
        Self {
            deadline: options
                .timeout
                .and_then(|timeout| started.checked_add(timeout)),
            client,
            options,
            asks_back,
            started,
            cancelled,
        }
    }

    async fn run(mut self, mut request: Request) -> Result<Raw, Error> {
        // Every repetition is the call itself with something added, never with what an earlier
        // one added.
        let params = request.params.clone();
        let (mut questions, mut pauses, mut headers_renewed) = (0, 0, false);
        loop {
            let answer = match self.once(&request).await {
                Err(Error::Server(error))
                    if error.code == code::HEADER_MISMATCH
                        && request.method == method::TOOLS_CALL
                        && self.asks_back
                        && !headers_renewed =>
                {
                    // What we knew of the tool's parameters is out of date.
                    headers_renewed = true;
                    let tools = self.client.same_lane().tools();
                    self.within_deadline(tools.all()).await??;
                    request.headers = self.client.param_headers(params.as_ref())?;
                    continue;
                }
                answer => answer?,
            };
            if !self.asks_back {
                return Ok(answer);
            }
            let asked = match ResultKind::of(&answer) {
                ResultKind::Complete => return Ok(answer),
                ResultKind::InputRequired(asked) => asked,
                ResultKind::Unknown(kind) => {
                    let what = format!("a result of the unknown kind {kind:?}");
                    return Err(Error::unexpected(&request.method, what));
                }
            };
            if asked.is_pause() {
                pauses += 1;
            } else {
                questions += 1;
            }
            if questions > input::ROUNDS_MAX || pauses > input::PAUSES_MAX {
                return Err(Error::Endless {
                    method: request.method.into_owned(),
                    reason: "the server keeps asking for input",
                });
            }
            let answers = if asked.is_pause() {
                self.within_deadline(sleep(input::pause(pauses))).await?;
                Raw::empty_object()
            } else {
                let handlers = Arc::clone(&self.client.shared().handlers);
                let gathering = asked.gather(&request.method, self.options.tag, &handlers);
                self.within_deadline(gathering).await??
            };
            request.params = Some(asked.answered(params.as_ref(), &answers)?);
        }
    }

    /// Sends the request once, and waits for its answer.
    async fn once(&mut self, request: &Request) -> Result<Raw, Error> {
        let extend = self.options.timeout.zip(self.options.extend_cap);
        let wants_progress = self.options.on_progress.is_some() || extend.is_some();
        let (progress_sender, mut progress) = wants_progress
            .then(|| mpsc::channel(PROGRESS_DEPTH))
            .unzip();
        let now = Instant::now();
        let call = switchboard_machine::Call {
            kind: CallKind::Request,
            method: request.method.clone(),
            params: request.params.clone(),
            lane: self.client.lane(),
            timeout: self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now)),
            extend: extend.map(|(by, cap)| Extend {
                by,
                cap: cap.saturating_sub(now - self.started),
            }),
            progress: wants_progress,
            fail_fast: self.options.fail_fast,
            log_level: self.client.shared().log_level(),
            trace: self.options.trace.clone(),
            headers: Arc::clone(&request.headers),
        };
        let shared = self.client.shared();
        let mut pending = shared.submit(call, progress_sender, self.options.tag)?;
        let id = pending.id();
        let started = self.started;
        let (deadline, on_progress) = (&mut self.deadline, &mut self.options.on_progress);
        let mut told = |params: Raw| {
            // The same rule as the connection's own, for what comes after this request.
            if let (Some((by, cap)), Some(deadline)) = (extend, deadline.as_mut())
                && let Some(moved) = Instant::now().checked_add(by)
                && let Some(last) = started.checked_add(cap)
            {
                *deadline = moved.min(last).max(*deadline);
            }
            if let Some(handler) = &mut *on_progress {
                handler(params);
            }
        };
        let mut reply = pin!(poll_fn(|cx| {
            let reply = Pin::new(&mut pending).poll(cx);
            if let Some(progress) = &mut progress {
                while let Poll::Ready(Some(params)) = progress.poll_recv(cx) {
                    told(params);
                }
                // Progress was sent before the answer, so that all of it is there by now, even if
                // the task has used up its turn.
                while reply.is_ready()
                    && let Ok(params) = progress.try_recv()
                {
                    told(params);
                }
            }
            reply
        }));
        let reply = tokio::select! {
            biased;
            reply = &mut reply => reply,
            reason = until_cancelled(&mut self.cancelled) => {
                self.client.shared().control(Control::Cancel { id, reason });
                reply.await
            }
        };
        match reply {
            Ok(Reply::Answered(response)) => match response.outcome {
                Outcome::Result(result) => Ok(result),
                Outcome::Error(error) => Err(Error::Server(error)),
            },
            Ok(Reply::Sent) => Ok(Raw::empty_object()),
            Err(CallError::Timeout { sent, reason, .. }) => {
                // From the start of the call, not of its last request.
                let after = started.elapsed();
                Err(CallError::Timeout {
                    after,
                    sent,
                    reason,
                }
                .into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for something else than an answer, within the deadline and until cancelled.
    async fn within_deadline<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        let deadline = self.deadline;
        let overdue = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = work => Ok(done),
            () = overdue => Err(CallError::Timeout {
                after: self.started.elapsed(),
                sent: true,
                reason: None,
            }
            .into()),
            _ = until_cancelled(&mut self.cancelled) => Err(CallError::Cancelled.into()),
        }
    }
}

/// Waits for the call to be cancelled, and gives the reason.
async fn until_cancelled(cancelled: &mut Option<Cancelled>) -> Option<Arc<str>> {
    let Some(cancelled) = cancelled else {
        return std::future::pending().await;
    };
    let reason = cancelled
        .wait_for(Option::is_some)
        .await
        .map(|reason| reason.clone());
    match reason {
        Ok(reason) => reason,
        // Nobody is left to cancel.
        Err(_) => std::future::pending().await,
    }
}
