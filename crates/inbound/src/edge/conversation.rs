//! A client that sends one message after another on one channel: over a pipe, or over HTTP+SSE of
//! 2024-11-05.
//!
//! Both eras may be mixed on it: messages after `initialize` belong to a session, and a request of
//! 2026-07-28 stands for itself.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use switchboard_base::{
    backchannel::{Backchannel, Cancel, Cancelled, Sink, withdrawal},
    caller::{Caller, Guest, Realm, said},
    project::Project,
    view::View,
};
use switchboard_client::{ErrorObject, Id, Reason};
use switchboard_core::{
    core::Core,
    dispatch::{self, ClientRequest, handshake},
    list_fingerprints::ListFingerprints,
    session::Session,
    visitors::Stay,
};
use switchboard_wire::{
    Era, Frame, Message, Notification, Request, Response, code, encode, meta, method,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    BATCH_MAX, BatchAnswers, client_key, era_of, heed, modern_fault, nameless, reply, withdrawn,
};
use crate::listen::Listening;

/// The most requests of one client in flight, and the most that wait after them; further requests
/// are rejected. Responses and notifications are always read, because requests in flight may wait
/// for them.
const IN_FLIGHT_MAX: usize = BATCH_MAX;
const WAITING_MAX: usize = 4_096;
/// The most bytes of requests in flight, unless there is only one, and of waiting requests. Beyond
/// that the client is not read.
const IN_FLIGHT_BYTES: usize = 32 * 1024 * 1024;
const WAITING_BYTES: usize = 32 * 1024 * 1024;
/// Interval at which a client that is not read is checked. It is read again once it has been asked
/// something, because requests in flight wait for its answer. Requests are rejected then.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The most listen streams of one client.
const LISTENING_MAX: usize = 64;
/// The largest frame that may be kept in memory for the sake of the id in it.
const SMALL_BYTES: usize = 16 * 1024;
/// The time for which a client that has closed its end still receives responses.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The source of a client's messages.
pub(crate) trait Source {
    /// The next message, or the error of reading it; `None` at the end. Cancel safe: no message is
    /// lost if the future is dropped.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, ErrorObject>>> + Send;

    /// Waits until the client has left, even if messages are unread. Never completes where that
    /// cannot be detected.
    fn gone(&mut self) -> impl Future<Output = ()> + Send;

    /// Tests, at the end, if the client may no longer use the gateway.
    fn is_expelled(&self) -> bool {
        false
    }
}

/// The destination of messages to the client.
pub(crate) trait Writer: Sink + 'static {
    /// Takes a response. Waits while the buffer is full.
    fn say(&self, message: Bytes) -> impl Future<Output = ()> + Send;

    /// Returns `true` if the buffer is full.
    fn is_full(&self) -> bool;

    /// Waits until the buffer is not full.
    fn room(&self) -> impl Future<Output = ()> + Send;
}

/// One client.
pub(crate) struct Conversation<S> {
    core: Arc<Core>,
    view: View,
    caller: Caller,
    /// The session of a client of an older revision, after `initialize`.
    session: Option<Arc<Session>>,
    /// The place of a client of 2026-07-28 among the connected ones, once it has told its name.
    stay: Option<Stay>,
    /// Requests that can be cancelled. Ended ones are removed when there are many.
    in_flight: HashMap<Id, Cancel>,
    tasks: JoinSet<()>,
    /// The bytes of requests in flight, and of responses that wait for the client.
    held: Arc<AtomicUsize>,
    /// Requests that wait until others are answered.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    listening: JoinSet<()>,
    /// The lists that the client has seen.
    shown: ListFingerprints,
    sink: Arc<S>,
}

/// A request that waits.
struct Waiting {
    request: Request,
    bytes: usize,
}

/// Bytes that are counted until this is dropped.
struct Held {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl Held {
    fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Self {
        all.fetch_add(bytes, Relaxed);
        Self {
            bytes,
            all: Arc::clone(all),
        }
    }

    fn grow(&mut self, bytes: usize) {
        self.all.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

impl<S: Writer> Conversation<S> {
    pub(crate) fn new(core: Arc<Core>, view: View, realm: Realm, sink: Arc<S>) -> Self {
        Self {
            caller: Caller::new(client_key(), nameless(), realm),
            core,
            view,
            session: None,
            stay: None,
            in_flight: HashMap::new(),
            tasks: JoinSet::new(),
            held: Arc::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            listening: JoinSet::new(),
            shown: ListFingerprints::default(),
            sink,
        }
    }

    /// Marks the client as one over HTTP, through this door.
    pub(crate) fn over_http(mut self, door: &'static str) -> Self {
        self.caller = self.caller.over_http(door);
        self
    }

    /// Sets the folder that the client works in.
    pub(crate) fn working_in(mut self, project: Project) -> Self {
        self.caller.project = project;
        self
    }

    /// Serves the client until it leaves.
    pub(crate) async fn run(mut self, mut source: impl Source) {
        let mut changes = self.core.live_catalog.changes();
        self.shown = ListFingerprints::now(&self.core, &self.caller, &self.view);
        let core = Arc::clone(&self.core);
        let mut stopped = pin!(core.lifecycle.stopped());
        let sink = Arc::clone(&self.sink);
        loop {
            let session = self.session.clone();
            let crowded = self.waiting_bytes > WAITING_BYTES;
            let crowded = crowded.then(|| (&*sink, session.as_deref()));
            tokio::select! {
                message = next(&mut source, crowded) => match message {
                    None => break,
                    Some(Ok(frame)) => self.frame(frame).await,
                    Some(Err(error)) => self.sink.say(encode::error(None, &error)).await,
                },
                message = next_notification(session.as_deref()) => self.sink.say(message).await,
                changed = changes.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let now = ListFingerprints::now(&core, &self.caller, &self.view);
                    // A client that has not sent `initialize` yet fetches the lists anyway.
                    if session.is_some() {
                        for said in now.changes_since(self.shown) {
                            self.sink.say(encode::notification(said, None)).await;
                        }
                    }
                    self.shown = now;
                }
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.next_waiting().await;
                }
                () = sink.room(), if !self.waiting.is_empty() && self.tasks.is_empty() => {
                    self.next_waiting().await;
                }
                Some(_) = self.listening.join_next(), if !self.listening.is_empty() => {}
                () = &mut stopped => break,
            }
        }
        if let Some(session) = &self.session {
            self.withdraw(session.asks.close());
        }
        self.listening.abort_all();
        // Without a right to call, neither running nor waiting calls go on.
        if source.is_expelled() {
            self.tasks.abort_all();
        } else {
            let _ = timeout(LAST_ANSWERS, self.finish()).await;
        }
        if let Some(session) = &self.session {
            session.end();
        }
        self.core.client_left(&self.caller);
    }

    /// Answers all requests that are in flight or waiting.
    async fn finish(&mut self) {
        loop {
            if self.tasks.join_next().await.is_none() {
                if self.waiting.is_empty() {
                    return;
                }
                let sink = Arc::clone(&self.sink);
                sink.room().await;
            }
            self.next_waiting().await;
        }
    }

    async fn frame(&mut self, frame: Bytes) {
        let bytes = frame.len();
        match Frame::parse(frame) {
            Ok(Frame::Single(message)) => self.message(message, bytes).await,
            Ok(Frame::Batch(messages)) => self.batch(messages, bytes).await,
            Err(error) => self.refuse(None, error.code(), &error.to_string()).await,
        }
    }

    async fn message(&mut self, message: Message, bytes: usize) {
        match message {
            Message::Request(request) => self.request(request, bytes).await,
            Message::Notification(notification) => self.notification(&notification),
            Message::Response(response) => self.answered(response),
        }
    }

    fn answered(&self, response: Response) {
        if let Some(session) = &self.session {
            session.asks.answered(response);
        }
    }

    fn notification(&mut self, notification: &Notification) {
        if let Some((id, why)) = withdrawn(notification) {
            self.waiting.retain(|waiting| waiting.request.id != id);
            self.waiting_bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
            if let Some(cancel) = self.in_flight.remove(&id) {
                cancel.cancel(why.as_deref());
            }
        } else if era_of(notification.params.as_ref()) == Era::Modern {
            let guest = Guest::Modern;
            dispatch::extension::hand_on(&self.core, &self.view, &self.caller, guest, notification);
        } else if let Some(session) = &self.session {
            heed(&self.core, session, notification);
        }
    }

    /// Tests if a request of this many bytes fits beside the requests in flight.
    fn fits(&self, bytes: usize) -> bool {
        self.tasks.is_empty() || self.held.load(Relaxed) + bytes <= IN_FLIGHT_BYTES
    }

    async fn request(&mut self, request: Request, bytes: usize) {
        let id = request.id.clone();
        let era = era_of(request.params.as_ref());
        if request.method == method::INITIALIZE && era == Era::Legacy {
            return self.initialize(&request).await;
        }
        let listens = era == Era::Modern && request.method == method::LISTEN;
        // A client that does not read gets no more responses to buffer, and no request overtakes a
        // waiting one.
        let busy = self.tasks.len() >= IN_FLIGHT_MAX
            || self.sink.is_full()
            || !self.waiting.is_empty()
            || !self.fits(bytes);
        let may_wait = self.waiting.len() < WAITING_MAX && self.waiting_bytes <= WAITING_BYTES;
        if !listens && busy && may_wait {
            self.waiting_bytes += bytes;
            return self.waiting.push_back(Waiting { request, bytes });
        }
        let room = if listens {
            self.listening.len() < LISTENING_MAX
        } else {
            !busy
        };
        if !room {
            let message =
                "this client has too many requests in flight; wait for some of them to end";
            return self.refuse(Some(&id), code::INTERNAL, message).await;
        }
        self.begin(era, listens, request, bytes).await;
    }

    /// Starts work on a request.
    async fn begin(&mut self, era: Era, listens: bool, request: Request, bytes: usize) {
        // The id may be kept after the response, and must not keep the frame in memory.
        let id = if bytes > SMALL_BYTES {
            request.id.detached()
        } else {
            request.id.clone()
        };
        let Some((cancelled, reason)) = self.take_in(&id) else {
            let message = "a request with this ID is still in flight";
            return self.refuse(Some(&id), code::INVALID_REQUEST, message).await;
        };
        let sink = Arc::clone(&self.sink);
        if listens {
            let listening = self.listen(request);
            self.listening.spawn(async move {
                tokio::select! {
                    () = listening => {}
                    Ok(()) = cancelled => {}
                }
            });
            return;
        }
        let answer = self.answer(era, request, reason);
        let mut held = Held::new(&self.held, bytes);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                message = answer => {
                    held.grow(message.len());
                    sink.say(message).await;
                }
                // Cancelled: there is no response. (An error means that it cannot be cancelled any
                // more.)
                Ok(()) = cancelled => {}
            }
        });
    }

    async fn next_waiting(&mut self) {
        let fits = |waiting: &Waiting| self.fits(waiting.bytes);
        if !self.sink.is_full()
            && self.waiting.front().is_some_and(fits)
            && let Some(Waiting { request, bytes }) = self.waiting.pop_front()
        {
            self.waiting_bytes -= bytes;
            let era = era_of(request.params.as_ref());
            self.begin(era, false, request, bytes).await;
        }
    }

    async fn initialize(&mut self, request: &Request) {
        let params = request.params.as_ref();
        let answer = handshake::initialize(&self.core, &self.caller, &self.view, params);
        if answer.is_ok() {
            if let Some(before) = self.session.take() {
                self.withdraw(before.end());
            }
            let session = Session::open(self.view.clone(), self.caller.clone(), params);
            self.caller.introduce(session.about().info.as_ref());
            self.caller.project = session.caller.project.clone();
            // The list may depend on the client.
            self.shown = ListFingerprints::now(&self.core, &self.caller, &self.view);
            let tokens = &self.core.tokens;
            tokens.used_by(self.caller.realm.principal, &self.caller.client);
            self.core.audience.join(&session);
            self.session = Some(session);
        }
        self.sink.say(reply(&request.id, answer)).await;
    }

    /// Cancels questions to the client that no call waits for any more.
    fn withdraw(&self, questions: Vec<u64>) {
        for number in questions {
            // If it does not fit, the client does not read, and nothing is lost.
            self.sink.put(withdrawal(number));
        }
    }

    /// Registers a request, so that it can be cancelled; `None` if its id is in use.
    fn take_in(&mut self, id: &Id) -> Option<(Cancelled, Reason)> {
        let same = self.in_flight.get(id);
        if same.is_some_and(|cancel| !cancel.is_over()) {
            return None;
        }
        if self.in_flight.len() >= 2 * IN_FLIGHT_MAX {
            self.in_flight.retain(|_, cancel| !cancel.is_over());
        }
        let (cancel, cancelled) = Cancel::new();
        let reason = cancel.reason();
        self.in_flight.insert(id.clone(), cancel);
        Some((cancelled, reason))
    }

    /// The response to a request.
    fn answer(
        &mut self,
        era: Era,
        request: Request,
        reason: Reason,
    ) -> impl Future<Output = Bytes> + use<S> {
        let mut visit = None;
        let (guest, session) = match (era, &self.session) {
            (Era::Modern, _) => {
                self.learn_name(&request);
                visit = Some(self.core.visitors.visit(&self.caller, &self.view));
                (Guest::Modern, None)
            }
            (Era::Legacy, Some(session)) => (session.guest(), Some(Arc::clone(session))),
            (Era::Legacy, None) => (Guest::stranger(), None),
        };
        let asks = session.as_ref().map(|session| Arc::clone(&session.asks));
        let backchannel = Backchannel::new(Arc::<S>::clone(&self.sink), asks, reason);
        let (core, view, caller) = (
            Arc::clone(&self.core),
            self.view.clone(),
            self.caller.clone(),
        );
        async move {
            let _visit = visit;
            let id = request.id;
            if era == Era::Modern
                && let Some(error) = modern_fault(request.params.as_ref())
            {
                return encode::error(Some(&id), &error);
            }
            let incoming = ClientRequest {
                guest,
                session,
                backchannel: Some(backchannel),
                method: request.method,
                params: request.params,
            };
            let answer = dispatch::answer(&core, &view, &caller, incoming).await;
            reply(&id, answer)
        }
    }

    fn learn_name(&mut self, request: &Request) {
        if self.caller.client == nameless() {
            let info = said(request.params.as_ref(), meta::CLIENT_INFO);
            self.caller.introduce(info.as_ref());
            self.stay = self.core.visitors.stay(&self.caller, &self.view);
        }
    }

    /// Runs a listen stream until it ends.
    fn listen(&self, request: Request) -> impl Future<Output = ()> + use<S> {
        let (core, view) = (Arc::clone(&self.core), self.view.clone());
        let (sink, caller) = (Arc::clone(&self.sink), self.caller.clone());
        async move {
            let params = request.params.as_ref();
            if let Some(error) = modern_fault(params) {
                return sink.say(encode::error(Some(&request.id), &error)).await;
            }
            match Listening::open(&core, view, &caller, request.id.clone(), params).await {
                Ok(mut listening) => {
                    while let Some(message) = listening.next().await {
                        sink.say(message).await;
                    }
                }
                Err(failure) => {
                    let error = failure.into_error(Era::Modern);
                    sink.say(encode::error(Some(&request.id), &error)).await;
                }
            }
        }
    }

    /// Handles a batch, which only 2025-03-26 has. The responses are sent in one message, too.
    async fn batch(
        &mut self,
        messages: Vec<Result<Message, switchboard_wire::EnvelopeError>>,
        bytes: usize,
    ) {
        let batches = |session: &Arc<Session>| session.about().revision.facts().batches;
        if messages.len() + self.tasks.len() > IN_FLIGHT_MAX || !self.fits(bytes) {
            let message = "this client has too many requests in flight; send a smaller batch later";
            return self.refuse(None, code::INTERNAL, message).await;
        }
        if !self.session.as_ref().is_some_and(batches) {
            let message =
                "this protocol revision does not support batches; send one message at a time";
            return self.refuse(None, code::INVALID_REQUEST, message).await;
        }
        let mut answers = BatchAnswers::default();
        let mut asked = JoinSet::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let id = request.id.clone();
                    let Some((cancelled, reason)) = self.take_in(&id) else {
                        let message = "a request with this ID is still in flight";
                        let error = ErrorObject::new(code::INVALID_REQUEST, message);
                        answers.refuse(Some(&id), &error);
                        continue;
                    };
                    let answer = self.answer(Era::Legacy, request, reason);
                    asked.spawn(async move {
                        tokio::select! {
                            biased;
                            answer = answer => Some((id, answer)),
                            Ok(()) = cancelled => None,
                        }
                    });
                }
                Ok(Message::Notification(notification)) => self.notification(&notification),
                Ok(Message::Response(response)) => self.answered(response),
                Err(error) => {
                    let error = ErrorObject::new(error.code(), error.to_string());
                    answers.refuse(None, &error);
                }
            }
        }
        let sink = Arc::clone(&self.sink);
        let mut held = Held::new(&self.held, bytes);
        self.tasks.spawn(async move {
            while let Some(answer) = asked.join_next().await {
                if let Ok(Some((id, answer))) = answer {
                    answers.put(&id, answer);
                }
            }
            if let Some(message) = answers.into_message() {
                held.grow(message.len());
                sink.say(message).await;
            }
        });
    }

    async fn refuse(&mut self, id: Option<&Id>, code: i64, message: &str) {
        let error = ErrorObject::new(code, message);
        self.sink.say(encode::error(id, &error)).await;
    }
}

/// The next message of a client. A `crowded` client, with too many bytes waiting, is read only once
/// it has been asked something and has read its responses.
async fn next<S: Writer>(
    source: &mut impl Source,
    crowded: Option<(&S, Option<&Session>)>,
) -> Option<Result<Bytes, ErrorObject>> {
    if let Some((sink, session)) = crowded {
        let wanted = async {
            while !session.is_some_and(|session| session.asks.is_asked()) {
                sleep(LOOK).await;
            }
            sink.room().await;
        };
        tokio::select! {
            () = wanted => {}
            () = source.gone() => return None,
        }
    }
    source.next().await
}

/// The next notification for the client.
async fn next_notification(session: Option<&Session>) -> Bytes {
    match session {
        Some(session) => session.notifications.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_base::view::Face;

    use super::*;
    use crate::edge::event_stream::EventStream;

    struct Ready;

    impl Source for Ready {
        async fn next(&mut self) -> Option<Result<Bytes, ErrorObject>> {
            Some(Ok(Bytes::new()))
        }

        async fn gone(&mut self) {
            std::future::pending::<()>().await;
        }
    }

    struct Left;

    impl Source for Left {
        async fn next(&mut self) -> Option<Result<Bytes, ErrorObject>> {
            Some(Ok(Bytes::new()))
        }

        async fn gone(&mut self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn departure_of_crowded_client_is_noticed() {
        let caller = Caller::new(1, "a".into(), Realm::OWNER);
        let session = Session::open(View::All(Face::Direct), caller, None);
        let sink = EventStream::new();
        let crowded = Some((&*sink, Some(&*session)));
        assert!(next(&mut Left, crowded).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn crowded_client_is_read_once_it_is_asked() {
        let caller = Caller::new(1, "a".into(), Realm::OWNER);
        let session = Session::open(View::All(Face::Direct), caller, None);
        let sink = EventStream::new();
        let crowded = Some((&*sink, Some(&*session)));
        let mut source = Ready;
        let unread = timeout(Duration::from_mins(1), next(&mut source, crowded));
        assert!(unread.await.is_err());
        let (backchannel, server) = (session.backchannel(), "s".into());
        tokio::select! {
            answer = backchannel.ask(&server, method::ROOTS_LIST, None) => panic!("{answer:?}"),
            message = next(&mut source, crowded) => assert!(message.is_some()),
        }
        let free = None::<(&EventStream, _)>;
        assert!(next(&mut source, free).await.is_some());
    }
}
