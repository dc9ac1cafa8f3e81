//! A client that sends one message after another on one line: over a pipe, or over the HTTP+SSE of
//! 2024-11-05.
//!
//! Both worlds may speak on it at once: what follows `initialize` belongs to a session, and a request of
//! 2026-07-28 stands for itself.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use switchboard_client::{ErrorObject, Id, Reason};
use switchboard_wire::{
    Era, Frame, Message, Notification, Request, Response, code, encode, meta, method,
};
use tokio::{task::JoinSet, time::timeout};

use super::{batch_of, client_key, era_of, heed, modern_fault, nameless, reply, withdrawn};
use crate::{
    caller::{Caller, Guest, Principal, said},
    desk::{self, Inquiry},
    gateway::Gateway,
    handshake,
    line::{Cancel, Cancelled, Line, Outlet, withdrawal},
    listen::Listening,
    session::Session,
    shown::Shown,
    view::View,
};

/// Requests of one client under way; more of them wait, up to so many, and those after them are refused.
/// What the client says besides is always heard: some of those under way may wait for it.
const IN_FLIGHT_MAX: usize = 128;
const WAITING_MAX: usize = 4_096;
/// Listen streams of one client.
const LISTENING_MAX: usize = 64;
/// A client that has closed its end is still given the answers that come within this time.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Where messages of the client come from.
pub(crate) trait Source {
    /// The next one, or why it could not be read; `None` when there is no more. Can be dropped and
    /// called again without losing one.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, ErrorObject>>> + Send;
}

/// Where messages to the client go.
pub(crate) trait Sink: Outlet + 'static {
    /// Takes an answer. Waits while there is no room.
    fn say(&self, message: Bytes) -> impl Future<Output = ()> + Send;

    /// Whether there is no room.
    fn is_full(&self) -> bool;

    /// Waits for room.
    fn room(&self) -> impl Future<Output = ()> + Send;
}

/// One client.
pub(crate) struct Conversation<S> {
    gateway: Arc<Gateway>,
    view: View,
    caller: Caller,
    /// Of a client of an older revision, once it has opened.
    session: Option<Arc<Session>>,
    /// Requests that can be withdrawn. Those that have ended are swept when there are many.
    in_flight: HashMap<Id, Cancel>,
    tasks: JoinSet<()>,
    /// Requests that wait for others to be answered.
    waiting: VecDeque<Request>,
    listening: JoinSet<()>,
    sink: Arc<S>,
}

impl<S: Sink> Conversation<S> {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        view: View,
        principal: Principal,
        sink: Arc<S>,
    ) -> Self {
        Self {
            caller: Caller::new(client_key(), nameless(), principal),
            gateway,
            view,
            session: None,
            in_flight: HashMap::new(),
            tasks: JoinSet::new(),
            waiting: VecDeque::new(),
            listening: JoinSet::new(),
            sink,
        }
    }

    /// The client came over HTTP.
    pub(crate) fn over_http(mut self) -> Self {
        self.caller = self.caller.over_http();
        self
    }

    /// The client works in this folder.
    pub(crate) fn working_in(mut self, project: Option<Arc<str>>) -> Self {
        self.caller.project = project;
        self
    }

    /// Serves the client until it leaves.
    pub(crate) async fn run(mut self, mut source: impl Source) {
        let mut changes = self.gateway.context().shelf.changes();
        let mut shown = Shown::now(self.gateway.context(), &self.view);
        let gateway = Arc::clone(&self.gateway);
        let mut stopped = pin!(gateway.stopped());
        let sink = Arc::clone(&self.sink);
        loop {
            let session = self.session.clone();
            tokio::select! {
                message = source.next() => match message {
                    None => break,
                    Some(Ok(frame)) => self.frame(frame).await,
                    Some(Err(error)) => self.sink.say(encode::error(None, &error)).await,
                },
                letter = letter(session.as_deref()) => self.sink.say(letter).await,
                changed = changes.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let now = Shown::now(gateway.context(), &self.view);
                    // A client that has not opened yet asks for the lists anyway.
                    if session.is_some() {
                        for said in now.changes_since(shown) {
                            self.sink.say(encode::notification(said, None)).await;
                        }
                    }
                    shown = now;
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
        let _ = timeout(LAST_ANSWERS, self.finish()).await;
        if let Some(session) = &self.session {
            session.end();
        }
    }

    /// Answers what has been asked: what is under way, and what waits.
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
        match Frame::parse(frame) {
            Ok(Frame::Single(message)) => self.message(message).await,
            Ok(Frame::Batch(messages)) => self.batch(messages).await,
            Err(error) => self.refuse(None, error.code(), &error.to_string()).await,
        }
    }

    async fn message(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.request(request).await,
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
            self.waiting.retain(|request| request.id != id);
            if let Some(cancel) = self.in_flight.remove(&id) {
                cancel.cancel(why.as_deref());
            }
        } else if let Some(session) = &self.session {
            heed(&self.gateway, session, notification);
        }
    }

    async fn request(&mut self, request: Request) {
        let id = request.id.clone();
        let era = era_of(request.params.as_ref());
        if request.method == method::INITIALIZE && era == Era::Legacy {
            return self.initialize(&request).await;
        }
        let listens = era == Era::Modern && request.method == method::LISTEN;
        // A client that does not read is not given more to keep; and nobody overtakes those who wait.
        let busy =
            self.tasks.len() >= IN_FLIGHT_MAX || self.sink.is_full() || !self.waiting.is_empty();
        if !listens && busy && self.waiting.len() < WAITING_MAX {
            return self.waiting.push_back(request);
        }
        let room = if listens {
            self.listening.len() < LISTENING_MAX
        } else {
            !busy
        };
        if !room {
            let message = "this client has too much under way; wait for some of it to end";
            return self.refuse(Some(&id), code::INTERNAL, message).await;
        }
        self.begin(era, listens, request).await;
    }

    /// Begins to answer a request.
    async fn begin(&mut self, era: Era, listens: bool, request: Request) {
        let id = request.id.clone();
        let Some((cancelled, reason)) = self.take_in(&id) else {
            let message = "a request of this id is still under way";
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
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                message = answer => sink.say(message).await,
                // Withdrawn: there is no answer. (An error means that nobody can withdraw it any more.)
                Ok(()) = cancelled => {}
            }
        });
    }

    async fn next_waiting(&mut self) {
        if !self.sink.is_full()
            && let Some(request) = self.waiting.pop_front()
        {
            let era = era_of(request.params.as_ref());
            self.begin(era, false, request).await;
        }
    }

    async fn initialize(&mut self, request: &Request) {
        let params = request.params.as_ref();
        let answer = handshake::initialize(&self.gateway, &self.view, handshake::negotiate(params));
        if answer.is_ok() {
            if let Some(before) = self.session.take() {
                self.withdraw(before.end());
            }
            let session = Session::open(self.view.clone(), self.caller.clone(), params);
            self.caller.client = Arc::clone(&session.caller.client);
            self.gateway.context().audience.join(&session);
            self.session = Some(session);
        }
        self.sink.say(reply(&request.id, answer)).await;
    }

    /// Takes questions back, which nobody waits for any more.
    fn withdraw(&self, questions: Vec<u64>) {
        for number in questions {
            // One that does not fit is not missed: the client does not read.
            self.sink.put(withdrawal(number));
        }
    }

    /// Takes a request in, so that it can be withdrawn; `None` if its id is in use.
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

    /// The answer to a request.
    fn answer(
        &mut self,
        era: Era,
        request: Request,
        reason: Reason,
    ) -> impl Future<Output = Bytes> + use<S> {
        let (guest, session) = match (era, &self.session) {
            (Era::Modern, _) => {
                self.learn_name(&request);
                (Guest::Modern, None)
            }
            (Era::Legacy, Some(session)) => (session.guest(), Some(Arc::clone(session))),
            (Era::Legacy, None) => (Guest::stranger(), None),
        };
        let asks = session.as_ref().map(|session| Arc::clone(&session.asks));
        let line = Line::new(Arc::<S>::clone(&self.sink), asks, reason);
        let (gateway, view, caller) = (
            Arc::clone(&self.gateway),
            self.view.clone(),
            self.caller.clone(),
        );
        async move {
            let id = request.id;
            if era == Era::Modern
                && let Some(error) = modern_fault(request.params.as_ref())
            {
                return encode::error(Some(&id), &error);
            }
            let inquiry = Inquiry {
                guest,
                session,
                line: Some(line),
                method: request.method,
                params: request.params,
            };
            let answer = desk::answer(&gateway, &view, &caller, inquiry).await;
            reply(&id, answer)
        }
    }

    fn learn_name(&mut self, request: &Request) {
        if self.caller.client == nameless() {
            let info = said(request.params.as_ref(), meta::CLIENT_INFO);
            self.caller.client = handshake::client_name(info.as_ref());
        }
    }

    /// A stream of what changes, until it ends.
    fn listen(&self, request: Request) -> impl Future<Output = ()> + use<S> {
        let (gateway, view) = (Arc::clone(&self.gateway), self.view.clone());
        let (sink, caller) = (Arc::clone(&self.sink), self.caller.clone());
        async move {
            let params = request.params.as_ref();
            if let Some(error) = modern_fault(params) {
                return sink.say(encode::error(Some(&request.id), &error)).await;
            }
            match Listening::open(&gateway, view, &caller, request.id.clone(), params).await {
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

    /// Several messages at once, which only 2025-03-26 has. They are answered at once, too.
    async fn batch(&mut self, messages: Vec<Result<Message, switchboard_wire::EnvelopeError>>) {
        let batches = |session: &Arc<Session>| session.about().revision.facts().batches;
        if messages.len() + self.tasks.len() > IN_FLIGHT_MAX {
            let message = "this client has too much under way; send a smaller batch, later";
            return self.refuse(None, code::INTERNAL, message).await;
        }
        if !self.session.as_ref().is_some_and(batches) {
            let message = "this revision has no batches; send one message at a time";
            return self.refuse(None, code::INVALID_REQUEST, message).await;
        }
        let mut answers = Vec::new();
        let mut asked = JoinSet::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let Some((cancelled, reason)) = self.take_in(&request.id) else {
                        let message = "a request of this id is still under way";
                        let error = ErrorObject::new(code::INVALID_REQUEST, message);
                        answers.push(encode::error(Some(&request.id), &error));
                        continue;
                    };
                    let answer = self.answer(Era::Legacy, request, reason);
                    asked.spawn(async move {
                        tokio::select! {
                            biased;
                            answer = answer => Some(answer),
                            Ok(()) = cancelled => None,
                        }
                    });
                }
                Ok(Message::Notification(notification)) => self.notification(&notification),
                Ok(Message::Response(response)) => self.answered(response),
                Err(error) => {
                    let error = ErrorObject::new(error.code(), error.to_string());
                    answers.push(encode::error(None, &error));
                }
            }
        }
        let sink = Arc::clone(&self.sink);
        self.tasks.spawn(async move {
            while let Some(answer) = asked.join_next().await {
                answers.extend(answer.ok().flatten());
            }
            if !answers.is_empty() {
                sink.say(batch_of(&answers)).await;
            }
        });
    }

    async fn refuse(&mut self, id: Option<&Id>, code: i64, message: &str) {
        let error = ErrorObject::new(code, message);
        self.sink.say(encode::error(id, &error)).await;
    }
}

/// What the client is to be told, once there is something.
async fn letter(session: Option<&Session>) -> Bytes {
    match session {
        Some(session) => session.mailbox.next().await,
        None => std::future::pending().await,
    }
}
