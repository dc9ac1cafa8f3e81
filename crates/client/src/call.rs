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
    time::Instant,
};

use crate::{Client, Error, driver::Control, input, model::FromAnswer};

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
    trace: Option<Raw>,
    on_progress: Option<ProgressHandler>,
}

type ProgressHandler = Box<dyn FnMut(Progress) + Send>;

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
            trace: None,
            on_progress: None,
        };
        Self {
            client,
            request,
            options,
            answer: PhantomData,
        }
    }

    /// How long the call may take altogether, from now to its end.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
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
    pub fn on_progress(mut self, handler: impl FnMut(Progress) + Send + 'static) -> Self {
        self.options.on_progress = Some(Box::new(handler));
        self
    }

    /// Fails at once, in place of waiting, if the connection is not ready.
    pub fn fail_fast(mut self) -> Self {
        self.options.fail_fast = true;
        self
    }

    /// Sends a W3C trace parent along, so that the server's work shows in the trace.
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.options.trace = Some(Raw::string(traceparent));
        self
    }

    /// The call as a future that can be cancelled from elsewhere. Awaiting the call does this by
    /// itself.
    pub fn start(self) -> InFlight<T>
    where
        T: FromAnswer,
    {
        let (sender, cancelled) = watch::channel(None);
        let canceller = Canceller(Arc::new(sender));
        let Self {
            client,
            request,
            options,
            ..
        } = self;
        let future = Box::pin(async move {
            let request = request?;
            let method = request.method.clone();
            let answer = Round::new(client, options, cancelled).run(request).await?;
            T::from_answer(answer).map_err(|source| Error::UnexpectedAnswer {
                method: method.into_owned(),
                source,
            })
        });
        InFlight { future, canceller }
    }
}

impl<T: FromAnswer> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = InFlight<T>;

    fn into_future(self) -> InFlight<T> {
        self.start()
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
pub struct InFlight<T> {
    future: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
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
        self.future.as_mut().poll(cx)
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
    deadline: Option<Instant>,
    started: Instant,
    cancelled: watch::Receiver<Option<Arc<str>>>,
}

/// How much progress is kept for a caller that does not look.
const PROGRESS_DEPTH: usize = 1_024;

impl Round {
    fn new(client: Client, options: Options, cancelled: watch::Receiver<Option<Arc<str>>>) -> Self {
        let started = Instant::now();
        Self {
            deadline: options.timeout.map(|timeout| started + timeout),
            client,
            options,
            started,
            cancelled,
        }
    }

    async fn run(mut self, mut request: Request) -> Result<Raw, Error> {
        let asks_back = input::may_ask_back(&request.method);
        let mut headers_renewed = false;
        for _ in 0..input::ROUNDS_MAX {
            let answer = match self.once(&request).await {
                Err(Error::Server(error))
                    if error.code == code::HEADER_MISMATCH
                        && request.method == method::TOOLS_CALL
                        && !headers_renewed =>
                {
                    // What we knew of the tool's parameters is out of date.
                    headers_renewed = true;
                    self.client.tools().all().await?;
                    request.headers = self.client.param_headers(request.params.as_ref())?;
                    continue;
                }
                answer => answer?,
            };
            let Some(asked) = asks_back
                .then(|| input::InputRequired::read(&answer))
                .flatten()
            else {
                return Ok(answer);
            };
            let responses = self.ask(&request, &asked).await?;
            request.params = Some(asked.answered(request.params.as_ref(), &responses)?);
        }
        Err(Error::Endless {
            method: request.method.into_owned(),
            reason: "the server keeps asking for input",
        })
    }

    /// Sends the request once, and waits for its answer.
    async fn once(&mut self, request: &Request) -> Result<Raw, Error> {
        let (progress_sender, mut progress) = match &self.options.on_progress {
            Some(_) => {
                let (sender, receiver) = mpsc::channel(PROGRESS_DEPTH);
                (Some(sender), Some(receiver))
            }
            None => (None, None),
        };
        let call = switchboard_machine::Call {
            kind: CallKind::Request,
            method: request.method.clone(),
            params: request.params.clone(),
            lane: self.client.lane(),
            timeout: self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now())),
            extend: self
                .options
                .timeout
                .zip(self.options.extend_cap)
                .map(|(by, cap)| Extend {
                    by,
                    cap: cap.saturating_sub(self.started.elapsed()),
                }),
            progress: progress.is_some(),
            fail_fast: self.options.fail_fast,
            log_level: self.client.shared().log_level(),
            trace: self.options.trace.clone(),
            headers: Arc::clone(&request.headers),
        };
        let mut pending = self.client.shared().submit(call, progress_sender)?;
        let id = pending.id();
        let on_progress = &mut self.options.on_progress;
        let mut reply = pin!(poll_fn(|cx| {
            // Progress was sent before the answer, so that all of it is there when the answer is.
            let reply = Pin::new(&mut pending).poll(cx);
            if let (Some(progress), Some(handler)) = (&mut progress, &mut *on_progress) {
                while let Poll::Ready(Some(params)) = progress.poll_recv(cx) {
                    if let Ok(progress) = params.read() {
                        handler(progress);
                    }
                }
            }
            reply
        }));
        let reply = tokio::select! {
            biased;
            reply = &mut reply => reply?,
            reason = until_cancelled(&mut self.cancelled) => {
                self.client.shared().control(Control::Cancel { id, reason });
                reply.await?
            }
        };
        match reply {
            Reply::Answered(response) => match response.outcome {
                Outcome::Result(result) => Ok(result),
                Outcome::Error(error) => Err(Error::Server(error)),
            },
            Reply::Sent => Ok(Raw::empty_object()),
        }
    }

    /// Gathers what the server asks for, within the deadline and until cancelled.
    async fn ask(&mut self, request: &Request, asked: &input::InputRequired) -> Result<Raw, Error> {
        let handlers = Arc::clone(&self.client.shared().handlers);
        let deadline = self.deadline;
        let after = self.started.elapsed();
        tokio::select! {
            responses = asked.gather(&request.method, &handlers) => responses,
            () = sleep_until(deadline) => Err(CallError::Timeout { after, sent: true }.into()),
            _ = until_cancelled(&mut self.cancelled) => Err(CallError::Cancelled.into()),
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Waits for the call to be cancelled, and gives the reason.
async fn until_cancelled(cancelled: &mut watch::Receiver<Option<Arc<str>>>) -> Option<Arc<str>> {
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
