//! The work on one request over HTTP, and the stream of messages before its response.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use hyper::Response;
use switchboard_base::{backchannel::Cancelled, caller::Caller, view::View};
use switchboard_client::{ErrorObject, Id, Raw, Reason};
use switchboard_core::{
    core::Core,
    dispatch::{self, ClientRequest},
    session::{NotTaken, Session},
    visitors::Visit,
};

use super::{
    body::Answer,
    event_stream::EventStream,
    http::{Peer, event_stream},
    reply,
    sessions::HttpSession,
};

/// The stream of one request, if it needs one.
pub(super) struct Stream {
    pub(super) events: Arc<EventStream>,
    /// The session that can resume it, and its number there.
    of: Option<(Arc<HttpSession>, u64)>,
}

impl Stream {
    pub(super) fn new(peer: &Peer) -> Self {
        match peer {
            Peer::Session(session) => {
                let (number, events) = session.events();
                Self {
                    events,
                    of: Some((Arc::clone(session), number)),
                }
            }
            Peer::Stranger | Peer::Modern => Self {
                events: EventStream::new(),
                of: None,
            },
        }
    }

    /// Answers with the stream, which ends with the response to the request.
    pub(super) fn play(self, id: Id, mut work: Unhurried) -> Response<Answer> {
        let Self { events, of } = self;
        if let Some((session, number)) = of {
            session.keep(number, Arc::clone(&events));
        }
        let replay = events.play();
        tokio::spawn(async move {
            let answer = if work.stays {
                (&mut work).await
            } else {
                // A client that disconnects and cannot come back has left.
                tokio::select! {
                    answer = &mut work => answer,
                    () = events.abandoned() => None,
                }
            };
            match answer {
                Some(answer) => events.finish(&reply(&id, answer)),
                None => events.close(),
            }
        });
        event_stream(Answer::Events(replay))
    }
}

/// Waits until the stream begins.
pub(super) async fn begun(stream: Option<&Stream>) {
    match stream {
        Some(stream) => poll_fn(|cx| stream.events.poll_begun(cx)).await,
        None => std::future::pending().await,
    }
}

/// A registered request, which is removed when it ends.
pub(super) struct Ongoing {
    session: Option<(Arc<Session>, Id)>,
    cancelled: Option<Cancelled>,
    /// The reason for its cancellation.
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

/// The response to a request; `None` if the client cancelled it.
pub(super) async fn work(
    core: Arc<Core>,
    view: View,
    caller: Caller,
    incoming: ClientRequest,
    (mut ongoing, _visit): (Ongoing, Option<Visit>),
) -> Option<Result<Raw, ErrorObject>> {
    // Pinned where it is created: it is large, and each move would be a copy.
    let mut answer = pin!(dispatch::answer(&core, &view, &caller, incoming));
    match ongoing.cancelled.take() {
        None => Some(answer.await),
        Some(cancelled) => tokio::select! {
            biased;
            answer = &mut answer => Some(answer),
            // Its session has ended, or the client cancelled it.
            _ = cancelled => None,
        },
    }
}

type Work = Pin<Box<dyn Future<Output = Option<Result<Raw, ErrorObject>>> + Send>>;

/// Work that, in a session, continues when its connection is lost, because that does not cancel the
/// request. A client without a session cannot come back for the response, so its work ends.
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
