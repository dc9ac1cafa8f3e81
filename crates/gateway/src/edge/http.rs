//! Streamable HTTP: clients of every revision on one address.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    HeaderMap, Method, Request as HttpRequest, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use switchboard_client::{ErrorObject, Id, Raw, Revision};
use switchboard_wire::{
    Era, Frame, Message, Notification, Request, code, encode, header, limits, meta, method,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    Shown, era_of, nameless, progress_to, progress_token,
    session::{NotTaken, Session},
    stream::Answer,
    withdrawn,
};
use crate::{
    api::BODY_PATIENCE,
    call::Caller,
    desk::{self, Inquiry, View},
    gateway::Gateway,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// Answers one HTTP request to an MCP address. `key` tells the connection from others.
pub(crate) async fn serve(
    gateway: &Arc<Gateway>,
    view: View,
    key: u64,
    request: HttpRequest<Incoming>,
) -> Response<Answer> {
    match *request.method() {
        Method::POST => post(gateway, view, key, request).await,
        Method::GET => get(gateway, &view, request.headers()),
        Method::DELETE => delete(gateway, &view, request.headers()),
        _ => {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = HeaderValue::from_static("GET, POST, DELETE");
            response.headers_mut().insert(ALLOW, allowed);
            response
        }
    }
}

async fn post(
    gateway: &Arc<Gateway>,
    view: View,
    key: u64,
    request: HttpRequest<Incoming>,
) -> Response<Answer> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    if !is_json(&headers) {
        let message = "Content-Type has to be application/json";
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            code::INVALID_REQUEST,
            message,
        );
    }
    let body = Limited::new(body, limits::FRAME_BYTES).collect();
    let body = match timeout(BODY_PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the body is longer than {} bytes", limits::FRAME_BYTES);
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                code::INVALID_REQUEST,
                &message,
            );
        }
        Ok(Err(_)) => {
            let message = "the body ended too early";
            return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
        }
        Err(_) => {
            let message = "the body took too long to arrive";
            return refuse(StatusCode::REQUEST_TIMEOUT, code::INVALID_REQUEST, message);
        }
    };
    let visitor = Visitor {
        gateway,
        view,
        key,
        headers: &headers,
    };
    match Frame::parse(body) {
        Ok(Frame::Single(Message::Request(request))) => visitor.request(request).await,
        Ok(Frame::Single(Message::Notification(notification))) => {
            visitor.notification(&notification)
        }
        // The gateway asks its clients nothing, so that no answer is waited for.
        Ok(Frame::Single(Message::Response(_))) => status(StatusCode::ACCEPTED),
        Ok(Frame::Batch(messages)) => visitor.batch(messages).await,
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.code(), &error.to_string()),
    }
}

/// One HTTP request on its way in.
struct Visitor<'a> {
    gateway: &'a Arc<Gateway>,
    view: View,
    key: u64,
    headers: &'a HeaderMap,
}

/// Whom a request comes from.
enum From {
    /// A session of an older revision.
    Session(Arc<Session>),
    /// An older client that keeps no session.
    Stranger,
    /// A request of 2026-07-28, which says everything itself.
    Modern,
}

impl Visitor<'_> {
    async fn request(self, request: Request) -> Response<Answer> {
        if request.method == method::INITIALIZE {
            return self.initialize(&request);
        }
        let from = match self.recognise(&request) {
            Ok(from) => from,
            Err(response) => return *response,
        };
        let wants_events = accepts_events(self.headers);
        match progress_token(&request).filter(|_| wants_events) {
            Some(token) => self.stream(from, request, token),
            None => self.whole(from, request).await,
        }
    }

    fn initialize(&self, request: &Request) -> Response<Answer> {
        let params = request.params.as_ref();
        let revision = desk::negotiate(params);
        let info = params.and_then(|params| params.member("clientInfo"));
        let answer = desk::initialize(self.gateway, &self.view, revision);
        let fine = answer.is_ok();
        let mut response = json(reply(&request.id, answer));
        if !fine {
            return response;
        }
        let client = desk::client_name(info);
        let session = self
            .gateway
            .sessions()
            .open(self.view.clone(), revision, client);
        let Some(session) = session else {
            let message = "there are too many sessions; try again later";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL, message);
        };
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    fn recognise(&self, request: &Request) -> Result<From, Box<Response<Answer>>> {
        let said = self.text(PROTOCOL_VERSION);
        let session = self.text(SESSION_ID);
        let is_modern = match said {
            Some(said) if said == Revision::LATEST.as_str() => true,
            // Within a session its revision is settled, and need not be looked for.
            _ if session.is_some() => false,
            _ => era_of(request.frame(), request.params.as_ref()) == Era::Modern,
        };
        if is_modern {
            return match self.contradiction(request, said) {
                None => Ok(From::Modern),
                Some(error) => Err(Box::new(bad_request(&request.id, &error))),
            };
        }
        if let Some(said) = said
            && Revision::parse(said).is_none()
        {
            let message = format!("there is no revision {:?} here", crate::failure::cut(said));
            let error = ErrorObject::new(code::INVALID_REQUEST, message);
            return Err(Box::new(bad_request(&request.id, &error)));
        }
        match session {
            None => Ok(From::Stranger),
            Some(id) => match self.gateway.sessions().get(id, &self.view) {
                Some(session) => Ok(From::Session(session)),
                None => Err(Box::new(no_session())),
            },
        }
    }

    /// What is wrong with a request of 2026-07-28, if something is: what it says of itself has to be
    /// there, and its headers have to say the same.
    fn contradiction(&self, request: &Request, said: Option<&str>) -> Option<ErrorObject> {
        let meta = request
            .params
            .as_ref()
            .and_then(|params| params.member(meta::META));
        let version = meta
            .as_ref()
            .and_then(|meta| meta.member(meta::PROTOCOL_VERSION))
            .and_then(|version| version.to_text());
        let capabilities = meta
            .as_ref()
            .and_then(|meta| meta.member(meta::CLIENT_CAPABILITIES))
            .filter(Raw::is_object);
        let Some(version) = version else {
            let message = format!("`_meta` has to say `{}`", meta::PROTOCOL_VERSION);
            return Some(ErrorObject::new(code::INVALID_PARAMS, message));
        };
        let mismatch = |what: &str| {
            let message = format!("the header {what} does not say what the body says");
            Some(ErrorObject::new(code::HEADER_MISMATCH, message))
        };
        if said != Some(&version) {
            return mismatch("MCP-Protocol-Version");
        }
        if version != Revision::LATEST.as_str() {
            let supported = Revision::ALL.map(|revision| Raw::string(revision.as_str()));
            let data = Raw::object([
                ("supported", crate::failure::array(supported)),
                ("requested", Raw::string(&version)),
            ]);
            let error = ErrorObject::new(
                code::UNSUPPORTED_PROTOCOL_VERSION,
                "this revision is not supported",
            );
            return Some(error.with_data(data));
        }
        if capabilities.is_none() {
            let message = format!("`_meta` has to say `{}`", meta::CLIENT_CAPABILITIES);
            return Some(ErrorObject::new(code::INVALID_PARAMS, message));
        }
        if self.text("mcp-method") != Some(&request.method) {
            return mismatch("Mcp-Method");
        }
        let member = match &*request.method {
            method::TOOLS_CALL | method::PROMPTS_GET => "name",
            method::RESOURCES_READ => "uri",
            _ => return None,
        };
        let name = request
            .params
            .as_ref()
            .and_then(|params| params.member(member)?.to_text());
        let said = self
            .text("mcp-name")
            .and_then(|said| header::decode_value(said).ok());
        if said.as_deref() != name.as_deref() {
            return mismatch("Mcp-Name");
        }
        None
    }

    fn caller(&self, from: &From, request: &Request) -> Caller {
        match from {
            From::Session(session) => session.caller.clone(),
            From::Stranger => Caller {
                key: self.key,
                client: nameless(),
            },
            From::Modern => {
                let meta = request
                    .params
                    .as_ref()
                    .and_then(|params| params.member(meta::META));
                Caller {
                    key: self.key,
                    client: desk::client_name(meta.and_then(|meta| meta.member(meta::CLIENT_INFO))),
                }
            }
        }
    }

    /// Answers with one message.
    async fn whole(self, from: From, request: Request) -> Response<Answer> {
        let caller = self.caller(&from, &request);
        let call = match Ongoing::new(from, &request.id) {
            Ok(ongoing) => ongoing,
            Err(not_taken) => return not_taken_response(&request.id, not_taken),
        };
        let era = call.era();
        let id = request.id.clone();
        let work = work(
            Arc::clone(self.gateway),
            self.view,
            caller,
            era,
            request,
            None,
            call,
        );
        let answer = match era {
            // A client of 2026-07-28 that hangs up means it: the request is dropped with the answer.
            Era::Modern => work.await,
            Era::Legacy => Unhurried(Some(Box::pin(work))).await,
        };
        let Some(answer) = answer else {
            // Withdrawn. JSON-RPC has no answer to that, HTTP needs one.
            return status(StatusCode::ACCEPTED);
        };
        let http = match (&answer, era) {
            (Err(error), Era::Modern) => modern_status(error.code),
            _ => StatusCode::OK,
        };
        let mut response = json(reply(&id, answer));
        *response.status_mut() = http;
        response
    }

    /// Answers with a stream: progress as it comes, then the answer.
    fn stream(self, from: From, request: Request, token: Raw) -> Response<Answer> {
        let caller = self.caller(&from, &request);
        let call = match Ongoing::new(from, &request.id) {
            Ok(ongoing) => ongoing,
            Err(not_taken) => return not_taken_response(&request.id, not_taken),
        };
        let era = call.era();
        let (events, answer) = Answer::events();
        let sink = events.clone();
        // A client that does not read its progress misses some; nobody waits for it.
        let progress = progress_to(token, move |message| drop(sink.try_send(message)));
        let id = request.id.clone();
        let work = work(
            Arc::clone(self.gateway),
            self.view,
            caller,
            era,
            request,
            Some(progress),
            call,
        );
        tokio::spawn(async move {
            let answer = match era {
                Era::Legacy => work.await,
                Era::Modern => tokio::select! {
                    answer = work => answer,
                    () = events.closed() => None,
                },
            };
            if let Some(answer) = answer {
                let _ = events.send(reply(&id, answer)).await;
            }
        });
        event_stream(answer)
    }

    fn notification(&self, notification: &Notification) -> Response<Answer> {
        let Some(id) = self.text(SESSION_ID) else {
            return status(StatusCode::ACCEPTED);
        };
        let Some(session) = self.gateway.sessions().get(id, &self.view) else {
            return no_session();
        };
        if let Some(id) = withdrawn(notification) {
            session.withdraw(&id);
        }
        status(StatusCode::ACCEPTED)
    }

    /// Several messages at once, which only 2025-03-26 has.
    async fn batch(
        self,
        messages: Vec<Result<Message, switchboard_wire::EnvelopeError>>,
    ) -> Response<Answer> {
        let session = match self.text(SESSION_ID) {
            None => None,
            Some(id) => match self.gateway.sessions().get(id, &self.view) {
                Some(session) => Some(session),
                None => return no_session(),
            },
        };
        if !session
            .as_ref()
            .is_none_or(|session| session.revision.facts().batches)
        {
            let message = "this revision has no batches; send one message at a time";
            return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
        }
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let from = session.clone().map_or(From::Stranger, From::Session);
                    let caller = self.caller(&from, &request);
                    let id = request.id.clone();
                    let answer = match Ongoing::new(from, &id) {
                        Ok(call) => {
                            let (gateway, view) = (Arc::clone(self.gateway), self.view.clone());
                            work(gateway, view, caller, Era::Legacy, request, None, call).await
                        }
                        Err(not_taken) => Some(Err(not_taken_error(not_taken))),
                    };
                    answers.extend(answer.map(|answer| reply(&id, answer)));
                }
                Ok(Message::Notification(notification)) => {
                    self.notification(&notification);
                }
                Ok(Message::Response(_)) => {}
                Err(error) => {
                    let error = ErrorObject::new(error.code(), error.to_string());
                    answers.push(encode::error(None, &error));
                }
            }
        }
        if answers.is_empty() {
            return status(StatusCode::ACCEPTED);
        }
        let mut body = vec![b'['];
        for (n, answer) in answers.iter().enumerate() {
            if n > 0 {
                body.push(b',');
            }
            body.extend_from_slice(answer);
        }
        body.push(b']');
        json(body.into())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request that has been taken in, and is let go when it ends.
struct Ongoing {
    session: Option<(Arc<Session>, Id)>,
    cancelled: Option<oneshot::Receiver<()>>,
    era: Era,
}

impl Ongoing {
    fn new(from: From, id: &Id) -> Result<Self, NotTaken> {
        Ok(match from {
            From::Session(session) => Self {
                cancelled: Some(session.take_in(id)?),
                session: Some((session, id.clone())),
                era: Era::Legacy,
            },
            From::Stranger => Self {
                session: None,
                cancelled: None,
                era: Era::Legacy,
            },
            From::Modern => Self {
                session: None,
                cancelled: None,
                era: Era::Modern,
            },
        })
    }

    const fn era(&self) -> Era {
        self.era
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
async fn work(
    gateway: Arc<Gateway>,
    view: View,
    caller: Caller,
    era: Era,
    request: Request,
    progress: Option<crate::call::Progress>,
    mut ongoing: Ongoing,
) -> Option<Result<Raw, ErrorObject>> {
    let inquiry = Inquiry {
        era,
        method: request.method,
        params: request.params,
        progress,
    };
    let answer = desk::answer(&gateway, &view, &caller, inquiry);
    match ongoing.cancelled.take() {
        None => Some(answer.await),
        Some(cancelled) => tokio::select! {
            biased;
            answer = answer => Some(answer),
            // Its session has ended, or the client withdrew it.
            _ = cancelled => None,
        },
    }
}

type Work = Pin<Box<dyn Future<Output = Option<Result<Raw, ErrorObject>>> + Send>>;

/// Work that goes on when nobody waits for it any more: to lose a connection is not to withdraw what
/// was asked over it, say the older revisions.
struct Unhurried(Option<Work>);

impl Future for Unhurried {
    type Output = Option<Result<Raw, ErrorObject>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else {
            return Poll::Pending;
        };
        let answer = std::task::ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(answer)
    }
}

impl Drop for Unhurried {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// The stream of what the gateway has to say unasked: which lists have changed.
fn get(gateway: &Arc<Gateway>, view: &View, headers: &HeaderMap) -> Response<Answer> {
    let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
    let Some(id) = id else {
        // Nobody to tell anything to. Clients take it as a server that has nothing to say.
        return status(StatusCode::METHOD_NOT_ALLOWED);
    };
    let Some(session) = gateway.sessions().get(id, view) else {
        return no_session();
    };
    let (events, answer) = Answer::events();
    tokio::spawn(tell_changes(Arc::clone(gateway), session, events));
    event_stream(answer)
}

async fn tell_changes(gateway: Arc<Gateway>, session: Arc<Session>, events: mpsc::Sender<Bytes>) {
    let mut replaced = session.open_stream();
    let mut changes = gateway.context().shelf.changes();
    let mut shown = Shown::now(gateway.context(), &session.view);
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = replaced.changed() => return,
            () = events.closed() => return,
            () = gateway.stopped() => return,
        }
        let now = Shown::now(gateway.context(), &session.view);
        for change in now.changes_since(shown) {
            // A reader that is so far behind will ask for the lists anyway.
            let _ = events.try_send(change);
        }
        shown = now;
    }
}

fn delete(gateway: &Arc<Gateway>, view: &View, headers: &HeaderMap) -> Response<Answer> {
    let id = headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
    match id.and_then(|id| gateway.sessions().get(id, view)) {
        None => no_session(),
        Some(session) => {
            gateway.sessions().end(&session.id);
            status(StatusCode::NO_CONTENT)
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/json")
        })
}

fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

fn reply(id: &Id, answer: Result<Raw, ErrorObject>) -> Bytes {
    match answer {
        Ok(result) => encode::result(id, &result),
        Err(error) => encode::error(Some(id), &error),
    }
}

fn json(body: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(body)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn event_stream(answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_CACHE);
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn status(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = status;
    response
}

/// Turns a request away before its id is known.
pub(crate) fn refuse(status: StatusCode, code: i64, message: &str) -> Response<Answer> {
    let error = ErrorObject::new(code, message);
    let mut response = json(encode::error(None, &error));
    *response.status_mut() = status;
    response
}

fn bad_request(id: &Id, error: &ErrorObject) -> Response<Answer> {
    let mut response = json(encode::error(Some(id), error));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

fn no_session() -> Response<Answer> {
    let message = "there is no such session; open a new one with `initialize`";
    refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, message)
}

fn not_taken_error(not_taken: NotTaken) -> ErrorObject {
    match not_taken {
        NotTaken::SameId => {
            let message = "a request of this id is still under way";
            ErrorObject::new(code::INVALID_REQUEST, message)
        }
        NotTaken::TooMany => {
            let message = "this session has too many requests under way; wait for some of them";
            ErrorObject::new(code::INTERNAL, message)
        }
    }
}

fn not_taken_response(id: &Id, not_taken: NotTaken) -> Response<Answer> {
    let error = not_taken_error(not_taken);
    let mut response = json(encode::error(Some(id), &error));
    *response.status_mut() = match not_taken {
        NotTaken::SameId => StatusCode::BAD_REQUEST,
        NotTaken::TooMany => StatusCode::TOO_MANY_REQUESTS,
    };
    response
}

/// The HTTP status of an error in 2026-07-28.
const fn modern_status(code: i64) -> StatusCode {
    match code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
