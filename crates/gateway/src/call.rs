//! One request, from whoever asks to the server that answers.

use std::{
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use memchr::memmem::Finder;
use switchboard_client::{CallError, Client, Error, Raw};
use switchboard_store::{Activity, Outcome};
use tokio::time::timeout_at;

use crate::{context::Context, failure::Failure, upstream::Upstream};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Tells clients apart where they take turns.
    pub(crate) key: u64,
    /// What the client calls itself. For display only.
    pub(crate) client: Arc<str>,
}

/// Takes what a server says of a call's progress, as it came.
pub(crate) type Progress = Box<dyn FnMut(Raw) + Send>;

/// What is asked of a server.
pub(crate) struct Errand {
    pub(crate) method: &'static str,
    /// The tool, prompt or resource, as the server knows it.
    pub(crate) name: Arc<str>,
    pub(crate) params: Option<Raw>,
    pub(crate) progress: Option<Progress>,
}

/// A call that reports progress may take so many times its limit, each report giving it a full one.
const PROGRESS_PATIENCE: u32 = 10;

/// Carries a request to the server and its answer back. Dropping the future withdraws the request.
pub(crate) async fn carry(
    context: &Context,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    errand: Errand,
) -> Result<Raw, Failure> {
    let record = Record::new(context, caller, upstream, &errand);
    let result = reach(context, caller, upstream, errand, record.started).await;
    record.finish(&result);
    result
}

/// Waits for the server and for a place, and sends the request.
async fn reach(
    context: &Context,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    errand: Errand,
    started: Instant,
) -> Result<Raw, Failure> {
    let patience = upstream.request_timeout();
    let deadline = started + patience;
    let progress = errand
        .progress
        .or_else(|| names_progress(errand.params.as_ref()).then(unheard))
        .map(|progress| Arc::new(Mutex::new(progress)));
    let mut lost: Option<Arc<Client>> = None;
    loop {
        // The place comes first: a server that has given one is not stopped for being idle.
        let acquiring = upstream
            .limiter
            .acquire(caller.key)
            .map_err(|full| Failure::Busy {
                server: Arc::clone(&upstream.name),
                waiting: full.waiting,
            })?;
        let Ok(place) = timeout_at(deadline.into(), acquiring).await else {
            return Err(Failure::TimedOut {
                server: Arc::clone(&upstream.name),
                after: started.elapsed(),
            });
        };
        let live = upstream.live();
        let live = live.filter(|live| lost.as_ref().is_none_or(|lost| !Arc::ptr_eq(live, lost)));
        let Some(client) = live else {
            drop(place);
            let until = (Instant::now() + context.wait()).min(deadline);
            upstream.ready(until, lost.as_ref()).await?;
            continue;
        };
        let mut call = client
            .request(errand.method, errand.params.clone())
            .deadline(deadline)
            .fail_fast();
        if let Some(progress) = &progress {
            let progress = Arc::clone(progress);
            let longest = patience.saturating_mul(PROGRESS_PATIENCE);
            call = call
                .on_raw_progress(move |params| {
                    progress.lock().unwrap_or_else(PoisonError::into_inner)(params);
                })
                .extend_on_progress(longest);
        }
        match call.await {
            Ok(result) => return Ok(result),
            // The server had just been lost, and has not got the request: the next one gets it.
            Err(Error::Call(
                error @ (CallError::NotReady { .. }
                | CallError::Failed { .. }
                | CallError::ConnectionLost { .. }
                | CallError::RequestFailed(_)),
            )) if error.is_unsent() => lost = Some(client),
            Err(error) => return Err(Failure::of(&upstream.name, error)),
        }
    }
}

/// Whether a client asked for progress that nobody hears. Its token must not reach the server: our own
/// are numbers as well, and the server's reports could be taken for those of another call.
fn names_progress(params: Option<&Raw>) -> bool {
    static SAYS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"progressToken\""));
    params.is_some_and(|params| SAYS.find(params.as_bytes()).is_some())
}

fn unheard() -> Progress {
    Box::new(drop)
}

/// What is written down of a call, however it ends.
struct Record<'a> {
    context: &'a Context,
    upstream: &'a Upstream,
    started: Instant,
    at: SystemTime,
    method: &'static str,
    name: Arc<str>,
    client: Arc<str>,
    request_bytes: u64,
    finished: bool,
}

impl<'a> Record<'a> {
    fn new(context: &'a Context, caller: &Caller, upstream: &'a Upstream, errand: &Errand) -> Self {
        Self {
            context,
            upstream,
            started: Instant::now(),
            at: SystemTime::now(),
            method: errand.method,
            name: Arc::clone(&errand.name),
            client: Arc::clone(&caller.client),
            request_bytes: errand.params.as_ref().map_or(0, length),
            finished: false,
        }
    }

    fn finish(mut self, result: &Result<Raw, Failure>) {
        self.finished = true;
        match result {
            Ok(result) => {
                let outcome = if says_error(result) {
                    Outcome::ToolError
                } else {
                    Outcome::Ok
                };
                self.write(outcome, None, length(result));
            }
            Err(failure) => self.write(failure.outcome(), Some(failure.message()), 0),
        }
    }

    fn write(&self, outcome: Outcome, error: Option<Arc<str>>, response_bytes: u64) {
        let duration = self.started.elapsed();
        self.upstream
            .meter
            .count(outcome.kind(), duration, self.request_bytes, response_bytes);
        self.context.store.record(Activity {
            id: 0,
            at: self.at,
            server: Arc::clone(&self.upstream.name),
            method: self.context.method(self.method),
            name: Arc::clone(&self.name),
            client: Arc::clone(&self.client),
            duration,
            outcome,
            error,
            request_bytes: self.request_bytes,
            response_bytes,
        });
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.write(Outcome::Cancelled, None, 0);
        }
    }
}

fn length(raw: &Raw) -> u64 {
    raw.as_bytes().len() as u64
}

/// Whether the result of a tool says that it failed. A result that does not have the words in it is
/// not read at all.
fn says_error(result: &Raw) -> bool {
    static SAYS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"isError\""));
    SAYS.find(result.as_bytes()).is_some()
        && result
            .member("isError")
            .is_some_and(|says| says.as_bytes() == b"true")
}
