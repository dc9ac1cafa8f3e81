//! A call from its first request to its result: all its requests share one deadline.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use switchboard_machine::{CallError, CallKind, Extend, Reply};
use switchboard_wire::{Outcome, Raw, code, method};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    Error, Pages,
    call::{Canceller, Options, Request},
    connection::Handle,
    driver::{Control, Told},
    input::{InputRequired, ResultKind, UnclearInput},
    model::Tool,
};

/// The requests of a call: the call itself, and its repetitions with the input that the server asked for.
pub(crate) struct Round {
    handle: Handle,
    options: Options,
    asks_back: bool,
    started: Instant,
    deadline: Option<Instant>,
    cancelled: Option<Canceller>,
}

/// The most progress and log messages that are queued for a caller that does not poll.
const PROGRESS_DEPTH: usize = 1_024;
/// The most messages handled in one poll: a fraction of tokio's budget for a task.
const HEARD_AT_ONCE: usize = 32;

impl Round {
    pub(crate) fn new(
        handle: Handle,
        options: Options,
        asks_back: bool,
        cancelled: Option<Canceller>,
    ) -> Self {
        let started = Instant::now();
        Self {
            deadline: options
                .timeout
                .and_then(|timeout| started.checked_add(timeout)),
            handle,
            options,
            asks_back,
            started,
            cancelled,
        }
    }

    pub(crate) async fn run(mut self, mut request: Request) -> Result<Raw, Error> {
        // Every repetition consists of the original parameters plus new ones, never of the additions of an
        // earlier repetition.
        let params = request.params.clone();
        let (mut questions, mut pauses, mut headers_renewed) = (0, 0, false);
        loop {
            let answer = match self.once(&request).await {
                Err(Error::Server(error))
                    if error.code == code::HEADER_MISMATCH
                        && request.method == method::TOOLS_CALL
                        && !headers_renewed =>
                {
                    // The known header parameters of the tool are out of date.
                    headers_renewed = true;
                    let tools = Pages::<Tool>::new(self.handle.clone());
                    // Rare futures are boxed, so that the future of a common call does not reserve space for
                    // them.
                    Box::pin(self.within_deadline(tools.all())).await??;
                    request.headers = self.handle.shared.param_headers(params.as_ref())?;
                    continue;
                }
                answer => answer?,
            };
            if !self.asks_back {
                return Ok(answer);
            }
            let unclear =
                |error: UnclearInput| Error::unexpected(&request.method, error.to_string());
            let asked = match ResultKind::of(&answer).map_err(unclear)? {
                ResultKind::Complete => return Ok(answer),
                ResultKind::InputRequired(asked) => asked,
                ResultKind::Unknown(kind) => {
                    let what = format!("unknown result type {kind:?}");
                    return Err(Error::unexpected(&request.method, what));
                }
            };
            if asked.is_pause() {
                pauses += 1;
            } else {
                questions += 1;
            }
            if questions > InputRequired::ROUNDS_MAX || pauses > InputRequired::PAUSES_MAX {
                return Err(Error::Endless {
                    method: request.method.into_owned(),
                    reason: "the server keeps asking for input",
                });
            }
            let answers = if asked.is_pause() {
                let pause = sleep(InputRequired::pause(pauses));
                Box::pin(self.within_deadline(pause)).await?;
                Raw::empty_object()
            } else {
                let handlers = Arc::clone(&self.handle.shared.handlers);
                let gathering = asked.gather(&request.method, self.options.tag, &handlers);
                Box::pin(self.within_deadline(gathering)).await??
            };
            request.params = Some(asked.answered(params.as_ref(), &answers)?);
        }
    }

    /// Sends the request once, and waits for the response.
    async fn once(&mut self, request: &Request) -> Result<Raw, Error> {
        let extend = self.options.timeout.zip(self.options.extend_cap);
        let wants_progress = self.options.on_progress.is_some() || extend.is_some();
        let wants_logs = self.options.on_log.is_some();
        let (told_sender, mut told) = (wants_progress || wants_logs)
            .then(|| mpsc::channel(PROGRESS_DEPTH))
            .unzip();
        let now = Instant::now();
        let call = switchboard_machine::Call {
            kind: CallKind::Request,
            method: request.method.clone(),
            params: request.params.clone(),
            lane: self.handle.lane,
            timeout: self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now)),
            extend: extend.map(|(by, cap)| Extend {
                by,
                cap: cap.saturating_sub(now - self.started),
            }),
            progress: wants_progress,
            logs: wants_logs,
            fail_fast: self.options.fail_fast,
            log_level: self.handle.shared.log_level(),
            trace: self.options.trace.clone(),
            headers: Arc::clone(&request.headers),
        };
        let shared = &self.handle.shared;
        let pending = shared.submit(call, told_sender, self.options.tag)?;
        let reason = self.cancelled.as_ref().map(Canceller::reason);
        let mut pending = pending.because(reason.or_else(|| self.options.reason.clone()));
        let id = pending.id();
        let started = self.started;
        let (deadline, options) = (&mut self.deadline, &mut self.options);
        let mut hear = |told: Told| {
            let params = match told {
                Told::Progress(params) => params,
                Told::Log(message) => {
                    if let Some(handler) = &mut options.on_log {
                        handler(message);
                    }
                    return;
                }
            };
            // The same rule as in the connection, for the requests after this one.
            if let (Some((by, cap)), Some(deadline)) = (extend, deadline.as_mut())
                && let Some(moved) = Instant::now().checked_add(by)
                && let Some(last) = started.checked_add(cap)
            {
                *deadline = moved.min(last).max(*deadline);
            }
            if let Some(handler) = &mut options.on_progress {
                handler(params);
            }
        };
        let mut reply = pin!(poll_fn(|cx| {
            let reply = Pin::new(&mut pending).poll(cx);
            if let Some(told) = &mut told {
                hear_some(cx, told, &mut hear);
                // The messages were sent before the response, so all of them are here by now, even if the
                // task has used up its budget.
                while reply.is_ready()
                    && let Ok(told) = told.try_recv()
                {
                    hear(told);
                }
            }
            reply
        }));
        let reply = tokio::select! {
            biased;
            reply = &mut reply => reply,
            reason = until_cancelled(self.cancelled.as_ref()) => {
                self.handle.shared.control(Control::Cancel { id, reason });
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
                // Measured from the start of the call, not of its last request.
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

    /// Waits for work other than a response, until the deadline or a cancellation.
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
            _ = until_cancelled(self.cancelled.as_ref()) => Err(CallError::Cancelled.into()),
        }
    }
}

/// Handles queued messages, up to a limit: a server that never stops sending must not keep the task from
/// polling anything else, such as a deadline outside of this call.
fn hear_some(cx: &mut Context<'_>, told: &mut mpsc::Receiver<Told>, hear: &mut impl FnMut(Told)) {
    for _ in 0..HEARD_AT_ONCE {
        match told.poll_recv(cx) {
            Poll::Ready(Some(told)) => hear(told),
            Poll::Ready(None) | Poll::Pending => return,
        }
    }
    cx.waker().wake_by_ref();
}

/// Waits until the call is cancelled, and returns the reason.
async fn until_cancelled(cancelled: Option<&Canceller>) -> Option<Arc<str>> {
    match cancelled {
        Some(cancelled) => Some(cancelled.cancelled().await),
        None => std::future::pending().await,
    }
}
