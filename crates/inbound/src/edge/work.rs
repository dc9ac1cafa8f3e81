//! The work on one request over HTTP, and the stream of what is said ahead of its answer.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use hyper::Response;
use switchboard_client::{ErrorObject, Id, Raw, Reason};

use super::{
    body::Answer,
    event_stream::Tape,
    http::{Peer, event_stream},
    reply,
    sessions::HttpSession,
};
use switchboard_base::{backchannel::Cancelled, caller::Caller, view::View};
use switchboard_core::{
    core::Core,
    dispatch::{self, Inquiry},
    session::{NotTaken, Session},
};

/// The stream of one request, if it comes to that.
pub(super) struct Stream {
    pub(super) tape: Arc<Tape>,
    /// The session that can hear it again, and its number there.
    of: Option<(Arc<HttpSession>, u64)>,
}

impl Stream {
    pub(super) fn new(peer: &Peer) -> Self {
        match peer {
            Peer::Session(session) => {
                let (number, tape) = session.tape();
                Self {
                    tape,
                    of: Some((Arc::clone(session), number)),
                }
            }
            Peer::Stranger | Peer::Modern => Self {
                tape: Tape::new(),
                of: None,
            },
        }
    }

    /// Answers with the stream; the answer to the request ends it.
    pub(super) fn play(self, id: Id, mut work: Unhurried) -> Response<Answer> {
        let Self { tape, of } = self;
        if let Some((session, number)) = of {
            session.keep(number, Arc::clone(&tape));
        }
        let player = tape.play();
        tokio::spawn(async move {
            let answer = if work.stays {
                (&mut work).await
            } else {
                // A client that hangs up and cannot come back has left.
                tokio::select! {
                    answer = &mut work => answer,
                    () = tape.abandoned() => None,
                }
            };
            match answer {
                Some(answer) => tape.finish(&reply(&id, answer)),
                None => tape.close(),
            }
        });
        event_stream(Answer::Events(player))
    }
}

/// Waits until the stream is to begin.
pub(super) async fn begun(stream: Option<&Stream>) {
    match stream {
        Some(stream) => poll_fn(|cx| stream.tape.poll_begun(cx)).await,
        None => std::future::pending().await,
    }
}

/// A request that has been taken in, and is let go when it ends.
pub(super) struct Ongoing {
    session: Option<(Arc<Session>, Id)>,
    cancelled: Option<Cancelled>,
    /// Why it is withdrawn, once it is.
    pub(super) reason: Reason,
}

impl Ongoing {
    pub(super) fn new(peer: &Peer, id: &Id) -> Result<Self, NotTaken> {
        Ok(match peer {
            Peer::Session(session) => {
                let session = Arc::clone(&session.session);
                let (cancelled, reason) = session.take_in(id)?;
                Self {
                    cancelled: Some(cancelled),
                    session: Some((session, id.clone())),
                    reason,
                }
            }
            Peer::Stranger | Peer::Modern => Self {
                session: None,
                cancelled: None,
                reason: Reason::default(),
            },
        })
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.cancelled = None;
        if let Some((session, id)) = &self.session {
            session.done(id);
        }
    }
}

/// The answer to a request; `None` if the client withdrew it.
pub(super) async fn work(
    core: Arc<Core>,
    view: View,
    caller: Caller,
    inquiry: Inquiry,
    mut ongoing: Ongoing,
) -> Option<Result<Raw, ErrorObject>> {
    // Pinned where it is made: it is large, and each move of it would be a copy.
    let mut answer = pin!(dispatch::answer(&core, &view, &caller, inquiry));
    match ongoing.cancelled.take() {
        None => Some(answer.await),
        Some(cancelled) => tokio::select! {
            biased;
            answer = &mut answer => Some(answer),
            // Its session has ended, or the client withdrew it.
            _ = cancelled => None,
        },
    }
}

type Work = Pin<Box<dyn Future<Output = Option<Result<Raw, ErrorObject>>> + Send>>;

/// Work that, in a session, goes on when nobody waits for it any more: to lose a connection is not to withdraw what
/// was asked over it. A client without a session cannot come back for the answer, so its work ends.
pub(super) struct Unhurried {
    work: Option<Work>,
    stays: bool,
}

impl Unhurried {
    pub(super) fn new(
        work: impl Future<Output = Option<Result<Raw, ErrorObject>>> + Send + 'static,
        stays: bool,
    ) -> Self {
        Self {
            work: Some(Box::pin(work)),
            stays,
        }
    }
}

impl Future for Unhurried {
    type Output = Option<Result<Raw, ErrorObject>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let answer = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(answer)
    }
}

impl Drop for Unhurried {
    fn drop(&mut self) {
        if self.stays
            && let Some(work) = self.work.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}
