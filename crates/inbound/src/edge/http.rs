//! Streamable HTTP: clients of every revision on one address.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request as HttpRequest, Response, StatusCode,
    body::Incoming,
    header::{ACCEPT, ALLOW, AsHeaderName, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue},
};
use rustc_hash::FxBuildHasher;
use switchboard_approvals::Holder;
use switchboard_base::{
    actor::Door,
    backchannel::{Backchannel, Sink as _},
    caller::{self, Caller, Guest, Origin, Principal, Realm, said},
    project::Project,
    self_searching::searches_tools,
    view::View,
};
use switchboard_client::{ErrorObject, Id, Raw, Revision};
use switchboard_core::{
    dispatch::{self, ClientRequest, handshake},
    list_fingerprints::ListFingerprints,
    session::{NotTaken, Session},
};
use switchboard_wire::{
    Era, Frame, Message, Request, code, encode, header, meta, method, with_hint,
};
use tokio::task::JoinSet;

use super::{
    BATCH_MAX, BatchAnswers,
    body::Answer,
    era_of,
    event_stream::{EventStream, read_name},
    heed, modern_fault, nameless, reply,
    request_body::read,
    sessions::HttpSession,
    work::{Ongoing, Stream, Unhurried, begun, work},
};
use crate::{
    inbound::Inbound,
    listen::Listening,
    project::{self, Choice},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// The largest capacity of a header map that is reused.
const KEPT_HEADERS: usize = 24;
static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Hashes the client info of clients. Its key is random, so that no client can choose info with the
/// hash of another client.
static NAMED: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Answers one HTTP request to an MCP address. The key distinguishes the connection from others.
pub(crate) async fn serve(
    inbound: &Arc<Inbound>,
    view: View,
    (key, door): (u64, Door),
    realm: Realm,
    projects: Choice<'_>,
    request: HttpRequest<Incoming>,
) -> Response<Answer> {
    match *request.method() {
        Method::POST => {
            // A session has the directory from its start.
            let project = if request.headers().contains_key(&SESSION_ID) {
                Ok(Project::default())
            } else {
                project::of_request(request.uri(), projects).await
            };
            match project {
                Ok(project) => post(inbound, view, (key, door), (realm, project), request).await,
                Err(refused) => outside(&refused),
            }
        }
        Method::GET => get(inbound, &view, realm, request.headers()),
        Method::DELETE => delete(inbound, &view, realm, request.headers()),
        _ => {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = HeaderValue::from_static("GET, POST, DELETE");
            response.headers_mut().insert(ALLOW, allowed);
            response
        }
    }
}

async fn post(
    inbound: &Arc<Inbound>,
    view: View,
    (key, door): (u64, Door),
    (realm, project): (Realm, Project),
    request: HttpRequest<Incoming>,
) -> Response<Answer> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    if !is_json(&headers) {
        let message = "Content-Type must be application/json";
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            code::INVALID_REQUEST,
            message,
        );
    }
    let body = match read(body, realm.principal).await {
        Ok(body) => body,
        Err((status, message)) => return refuse(status, code::INVALID_REQUEST, &message),
    };
    let visitor = Visitor {
        inbound,
        view,
        key,
        door: door.as_str(),
        realm,
        project,
        headers,
    };
    match Frame::parse(body) {
        Ok(Frame::Single(Message::Request(request))) => visitor.request(request).await,
        Ok(Frame::Single(message)) => visitor.message(message),
        Ok(Frame::Batch(messages)) => visitor.batch(messages).await,
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.code(), &error.to_string()),
    }
}

/// The response to a request that names a directory which it may not name.
pub(crate) fn outside(refused: &project::Refused) -> Response<Answer> {
    let message = with_hint(&refused.message, Some(refused.hint));
    refuse(refused.status, code::INVALID_REQUEST, &message)
}

/// One incoming HTTP request.
struct Visitor<'a> {
    inbound: &'a Arc<Inbound>,
    view: View,
    key: u64,
    door: &'static str,
    realm: Realm,
    project: Project,
    headers: HeaderMap,
}

/// The kind of client that sent a request.
pub(super) enum Peer {
    /// A session of an older revision.
    Session(Arc<HttpSession>),
    /// An older client without a session.
    Stranger,
    /// A request of 2026-07-28, which is self-contained.
    Modern,
}

impl Visitor<'_> {
    async fn request(self, request: Request) -> Response<Answer> {
        let is_modern = era_of(request.params.as_ref()) == Era::Modern;
        if request.method == method::INITIALIZE && !is_modern {
            return self.initialize(&request);
        }
        let peer = match self.recognise(&request, is_modern) {
            Ok(peer) => peer,
            Err(response) => return *response,
        };
        if matches!(peer, Peer::Modern) && request.method == method::LISTEN {
            return self.listen(request).await;
        }
        if matches!(peer, Peer::Modern)
            && request.method == method::TOOLS_CALL
            && let Some(name) = self.odd_param_header(&request)
        {
            let message = format!("the header {name} does not match the body");
            let error = ErrorObject::new(code::HEADER_MISMATCH, message);
            return bad_request(&request.id, &error);
        }
        self.run(peer, request).await
    }

    fn initialize(&self, request: &Request) -> Response<Answer> {
        let params = request.params.as_ref();
        let mut caller =
            Caller::new(super::client_key(), nameless(), self.realm).over_http(self.door);
        caller.project = self.project.clone();
        let answer = handshake::initialize(&self.inbound.core, &caller, &self.view, params);
        let fine = answer.is_ok();
        let mut response = json(reply(&request.id, answer));
        if !fine {
            return response;
        }
        let session = Session::open(self.view.clone(), caller, params);
        let core = &self.inbound.core;
        core.tokens
            .used_by(self.realm.principal, &session.caller.client);
        let shown = ListFingerprints::now(core, &session.caller, &self.view);
        core.audience.join(&session);
        let Some(session) = self.inbound.sessions.open(session, shown) else {
            let message = "too many sessions are open; try again later";
            return refuse(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL, message);
        };
        if core.scopes.of(self.realm).is_err() {
            // The token ended meanwhile, after its other sessions were ended.
            self.inbound.sessions.end(&session.id);
        }
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(&SESSION_ID, id);
        }
        response
    }

    fn recognise(&self, request: &Request, is_modern: bool) -> Result<Peer, Box<Response<Answer>>> {
        let said = self.text(&PROTOCOL_VERSION);
        let session = self.text(&SESSION_ID);
        let is_modern = is_modern || said == Some(Revision::LATEST.as_str());
        if is_modern {
            return match self.contradiction(request, said) {
                None => Ok(Peer::Modern),
                Some(error) => Err(Box::new(bad_request(&request.id, &error))),
            };
        }
        if let Some(said) = said
            && Revision::parse(said).is_none()
        {
            let message = format!(
                "the protocol revision {:?} is not supported",
                switchboard_base::error::cut(said)
            );
            let error = ErrorObject::new(code::INVALID_REQUEST, message);
            return Err(Box::new(bad_request(&request.id, &error)));
        }
        match session {
            None => Ok(Peer::Stranger),
            Some(id) => match self.session(id) {
                Some(session) => Ok(Peer::Session(session)),
                None => Err(Box::new(no_session())),
            },
        }
    }

    fn session(&self, id: &str) -> Option<Arc<HttpSession>> {
        let sessions = &self.inbound.sessions;
        sessions.get(id, &self.view, self.realm)
    }

    /// The error of a request of 2026-07-28, if there is one: its envelope has to be complete, and
    /// its headers have to match it.
    fn contradiction(&self, request: &Request, said: Option<&str>) -> Option<ErrorObject> {
        let params = request.params.as_ref();
        let version = self::said(params, meta::PROTOCOL_VERSION);
        let version = version.and_then(|version| version.to_text());
        let mismatch = |what: &str| {
            let message = format!("the header {what} is missing, or does not match the body");
            Some(ErrorObject::new(code::HEADER_MISMATCH, message))
        };
        if version.is_some() && said != version.as_deref() {
            return mismatch("MCP-Protocol-Version");
        }
        if let Some(fault) = modern_fault(params) {
            return Some(fault);
        }
        if self.text("mcp-method") != Some(&request.method) {
            return mismatch("Mcp-Method");
        }
        let member = match &*request.method {
            method::TOOLS_CALL | method::PROMPTS_GET => "name",
            method::RESOURCES_READ => "uri",
            method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => "taskId",
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

    /// A header that repeats an argument of the tool and contradicts it.
    fn odd_param_header(&self, request: &Request) -> Option<String> {
        let params = request.params.as_ref()?;
        let name = params.member("name")?.to_text()?;
        let headers = dispatch::param_headers(&self.inbound.core, self.realm, &self.view, &name)?;
        let arguments = params.member("arguments");
        headers.disagreement(arguments.as_ref().map(Raw::as_str), |name| self.text(name))
    }

    fn caller(&self, peer: &Peer, request: &Request) -> Caller {
        let (client, searches_tools, named) = match peer {
            Peer::Session(session) => return session.session.caller.clone(),
            Peer::Stranger => (nameless(), false, None),
            Peer::Modern => {
                let info = said(request.params.as_ref(), meta::CLIENT_INFO);
                let named = info
                    .as_ref()
                    .map(|info| NAMED.hash_one((self.realm, info.as_bytes())));
                let client = caller::client_name(info.as_ref());
                let tokens = &self.inbound.core.tokens;
                tokens.used_by(self.realm.principal, &client);
                let searches_tools = searches_tools(&client, info.as_ref());
                (client, searches_tools, named)
            }
        };
        Caller {
            key: self.key,
            person: named.unwrap_or(self.key),
            holder: Holder {
                // Clients without a name share one quota, because their connections may all belong
                // to one client.
                // All clients with one token have the share of one client.
                client: named
                    .filter(|_| !matches!(self.realm.principal, Principal::Token(_)))
                    .unwrap_or_else(|| FxBuildHasher.hash_one(self.realm.principal)),
                is_web: true,
                is_stranger: self.realm.principal == Principal::Anyone,
            },
            client,
            searches_tools,
            origin: Origin::Mcp,
            door: self.door,
            realm: self.realm,
            project: self.project.clone(),
        }
    }

    /// Answers with one message, or with a stream if other messages come before the response.
    async fn run(self, peer: Peer, request: Request) -> Response<Answer> {
        let caller = self.caller(&peer, &request);
        let visitors = &self.inbound.core.visitors;
        let visit = matches!(peer, Peer::Modern).then(|| visitors.visit(&caller, &self.view));
        let id = request.id.clone();
        let (ongoing, incoming, stream) = match self.take_in(&peer, request) {
            Ok(taken) => taken,
            Err(not_taken) => return not_taken_response(&id, not_taken),
        };
        let era = incoming.guest.era();
        let stays = matches!(peer, Peer::Session(_));
        let work = work(
            Arc::clone(&self.inbound.core),
            self.view,
            caller,
            incoming,
            (ongoing, visit),
        );
        let mut work = Unhurried::new(work, stays);
        let answer = tokio::select! {
            biased;
            answer = &mut work => answer,
            () = begun(stream.as_ref()) => {
                let Some(stream) = stream else { return status(StatusCode::ACCEPTED) };
                return stream.play(id, work);
            }
        };
        let Some(answer) = answer else {
            // Cancelled. JSON-RPC has no response to that, but HTTP needs one.
            return status(StatusCode::ACCEPTED);
        };
        if let Some(stream) = stream.filter(|stream| !stream.events.is_blank()) {
            // A message was sent, and the response was ready before the stream was polled.
            let work = Unhurried::new(std::future::ready(Some(answer)), stays);
            return stream.play(id, work);
        }
        let http = match (&answer, era) {
            (Err(error), Era::Modern) => modern_status(error.code),
            _ => StatusCode::OK,
        };
        let mut response = json_in(self.headers, reply(&id, answer));
        *response.status_mut() = http;
        response
    }

    /// Registers a request, and prepares it for dispatch.
    fn take_in(
        &self,
        peer: &Peer,
        request: Request,
    ) -> Result<(Ongoing, ClientRequest, Option<Stream>), NotTaken> {
        let ongoing = Ongoing::new(peer, &request.id)?;
        let stream = accepts_events(&self.headers).then(|| Stream::new(peer));
        let asks = match peer {
            Peer::Session(session) => Some(Arc::clone(&session.session.asks)),
            Peer::Stranger | Peer::Modern => None,
        };
        let backchannel = stream.as_ref().map(|stream| {
            let reason = Arc::clone(&ongoing.reason);
            Backchannel::new(Arc::<EventStream>::clone(&stream.events), asks, reason)
        });
        let (guest, session) = match peer {
            Peer::Session(session) => (session.session.guest(), Some(Arc::clone(&session.session))),
            Peer::Stranger => (Guest::stranger(), None),
            Peer::Modern => (Guest::Modern, None),
        };
        let incoming = ClientRequest {
            guest,
            session,
            backchannel,
            method: request.method,
            params: request.params,
        };
        Ok((ongoing, incoming, stream))
    }

    /// Answers with a listen stream.
    async fn listen(self, request: Request) -> Response<Answer> {
        if !accepts_events(&self.headers) {
            let message = "Accept must include text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, message);
        }
        let caller = self.caller(&Peer::Modern, &request);
        let params = request.params.as_ref();
        let id = request.id.clone();
        let stay = self.inbound.core.visitors.stay(&caller, &self.view);
        let listening = Listening::open(&self.inbound.core, self.view, &caller, id, params).await;
        let mut listening = match listening {
            Ok(listening) => listening,
            Err(failure) => {
                let error = failure.into_error(Era::Modern);
                let mut response = json(encode::error(Some(&request.id), &error));
                *response.status_mut() = modern_status(error.code);
                return response;
            }
        };
        let events = EventStream::new();
        let replay = events.play();
        tokio::spawn(async move {
            let _stay = stay;
            loop {
                tokio::select! {
                    message = listening.next() => match message {
                        Some(message) => events.say(&message).await,
                        None => break,
                    },
                    () = events.abandoned() => break,
                }
            }
            events.close();
        });
        event_stream(Answer::Events(replay))
    }

    /// Handles a message that has no response.
    fn message(&self, message: Message) -> Response<Answer> {
        // 2026-07-28 has no sessions, and its notifications outside of one belong to an extension.
        let is_modern = self.text(&PROTOCOL_VERSION) == Some(Revision::LATEST.as_str());
        if is_modern && let Message::Notification(told) = &message {
            let mut caller = Caller::new(self.key, nameless(), self.realm).over_http(self.door);
            caller.project = self.project.clone();
            dispatch::extension::hand_on(
                &self.inbound.core,
                &self.view,
                &caller,
                Guest::Modern,
                told,
            );
        }
        let Some(id) = self.text(&SESSION_ID).filter(|_| !is_modern) else {
            return status(StatusCode::ACCEPTED);
        };
        let Some(session) = self.session(id) else {
            return no_session();
        };
        self.hear(&session, message);
        status(StatusCode::ACCEPTED)
    }

    fn hear(&self, session: &HttpSession, message: Message) {
        match message {
            Message::Notification(notification) => {
                heed(&self.inbound.core, &session.session, &notification);
            }
            Message::Response(response) => session.session.asks.answered(response),
            Message::Request(_) => {}
        }
    }

    /// Handles a batch, which only 2025-03-26 has.
    async fn batch(
        self,
        messages: Vec<Result<Message, switchboard_wire::EnvelopeError>>,
    ) -> Response<Answer> {
        let session = match self.text(&SESSION_ID) {
            None => None,
            Some(id) => match self.session(id) {
                Some(session) => Some(session),
                None => return no_session(),
            },
        };
        let revision = match &session {
            Some(session) => Some(session.session.about().revision),
            // A client that does not state its revision is assumed to have the one with batches.
            None => self
                .text(&PROTOCOL_VERSION)
                .map_or(Some(Revision::V2025_03_26), Revision::parse),
        };
        let is_modern = |message: &Message| match message {
            Message::Request(request) => era_of(request.params.as_ref()) == Era::Modern,
            Message::Notification(_) | Message::Response(_) => false,
        };
        if !revision.is_some_and(|revision| revision.facts().batches)
            || messages.iter().flatten().any(is_modern)
        {
            let message =
                "this protocol revision does not support batches; send one message at a time";
            return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
        }
        if messages.len() > BATCH_MAX {
            let message =
                format!("a batch is limited to {BATCH_MAX} messages; send several batches");
            return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, &message);
        }
        let mut answers = BatchAnswers::default();
        let mut asked = JoinSet::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) => {
                    let peer = session.clone().map_or(Peer::Stranger, Peer::Session);
                    let caller = self.caller(&peer, &request);
                    let id = request.id.clone();
                    match self.take_in(&peer, request) {
                        Ok((ongoing, mut incoming, _)) => {
                            // There is no stream for messages before the responses.
                            incoming.backchannel = None;
                            let (core, view) = (Arc::clone(&self.inbound.core), self.view.clone());
                            let work = work(core, view, caller, incoming, (ongoing, None));
                            asked.spawn(async move {
                                let answer = work.await?;
                                let answer = reply(&id, answer);
                                Some((id, answer))
                            });
                        }
                        Err(not_taken) => {
                            answers.refuse(Some(&id), &not_taken_error(not_taken));
                        }
                    }
                }
                Ok(message) => {
                    if let Some(session) = &session {
                        self.hear(session, message);
                    }
                }
                Err(error) => {
                    let error = ErrorObject::new(error.code(), error.to_string());
                    answers.refuse(None, &error);
                }
            }
        }
        let gathering = async move {
            while let Some(answer) = asked.join_next().await {
                if let Ok(Some((id, answer))) = answer {
                    answers.put(&id, answer);
                }
            }
            answers.into_message()
        };
        let answers = if session.is_some() {
            // A task of its own: losing the connection does not cancel the requests of a session.
            let gathering = tokio::spawn(gathering);
            // An error means that the runtime shuts down.
            gathering.await.ok().flatten()
        } else {
            gathering.await
        };
        match answers {
            Some(answers) => json(answers),
            None => status(StatusCode::ACCEPTED),
        }
    }

    fn text(&self, name: impl AsHeaderName) -> Option<&str> {
        text(&self.headers, name)
    }
}

/// The value of a header, if it is text.
fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The stream of unsolicited messages; or a broken stream, from where it broke.
fn get(inbound: &Arc<Inbound>, view: &View, realm: Realm, headers: &HeaderMap) -> Response<Answer> {
    let Some(id) = text(headers, &SESSION_ID) else {
        // There is no client to notify. Clients take this status for a server that sends no
        // unsolicited messages.
        return status(StatusCode::METHOD_NOT_ALLOWED);
    };
    let Some(session) = inbound.sessions.get(id, view, realm) else {
        return no_session();
    };
    let (stream, after) = match text(headers, header::LAST_EVENT_ID).map(read_name) {
        None => (0, None),
        Some(Some((stream, after))) => (stream, Some(after)),
        Some(None) => {
            let message = "unknown Last-Event-ID for this session";
            return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
        }
    };
    let Some(events) = session.stream(stream) else {
        let message = "cannot replay this stream: the gateway no longer stores it";
        return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
    };
    let replay = match after {
        None => Some(events.play()),
        Some(after) => events.replay(after),
    };
    let Some(replay) = replay else {
        let message = "cannot replay this stream: the gateway no longer stores the events after Last-Event-ID";
        return refuse(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, message);
    };
    if stream == 0 {
        session.keep_general();
        let number = replay.number();
        tokio::spawn(tell_news(Arc::clone(inbound), session, events, number));
    }
    event_stream(Answer::Events(replay))
}

/// Sends a session the notifications that belong to no request, while its stream has this reader.
async fn tell_news(
    inbound: Arc<Inbound>,
    session: Arc<HttpSession>,
    events: Arc<EventStream>,
    replay: u64,
) {
    let mut changes = inbound.core.live_catalog.changes();
    loop {
        let now = {
            let session = &session.session;
            ListFingerprints::now(&inbound.core, &session.caller, &session.view)
        };
        let before = {
            let mut shown = session.shown.lock();
            std::mem::replace(&mut *shown, now)
        };
        for said in now.changes_since(before) {
            events.put(encode::notification(said, None));
        }
        tokio::select! {
            message = next_notification(&session, &events) => drop(events.put(message)),
            changed = changes.changed() => if changed.is_err() { return },
            () = events.left_by(replay) => return,
            () = inbound.core.lifecycle.stopped() => return events.close(),
        }
    }
}

/// The next notification of a session, once its stream has room for it.
async fn next_notification(session: &HttpSession, events: &EventStream) -> Bytes {
    events.room().await;
    session.session.notifications.next().await
}

fn delete(
    inbound: &Arc<Inbound>,
    view: &View,
    realm: Realm,
    headers: &HeaderMap,
) -> Response<Answer> {
    let Some(id) = text(headers, &SESSION_ID) else {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    };
    match inbound.sessions.get(id, view, realm) {
        None => no_session(),
        Some(session) => {
            inbound.sessions.end(&session.id);
            status(StatusCode::NO_CONTENT)
        }
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
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

fn json(body: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(body)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Builds the response in the header map of the request. hyper reuses that map for the next
/// request, so that a connection needs no new one. A large map is not kept.
fn json_in(mut headers: HeaderMap, body: Bytes) -> Response<Answer> {
    if headers.capacity() > KEPT_HEADERS {
        return json(body);
    }
    headers.clear();
    headers.insert(CONTENT_TYPE, JSON);
    let mut response = Response::new(Answer::Whole(Some(body)));
    *response.headers_mut() = headers;
    response
}

pub(crate) fn event_stream(answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_CACHE);
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(crate) fn status(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::empty());
    *response.status_mut() = status;
    response
}

/// Rejects a request before its id is known.
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
            let message = "a request with this ID is still in flight";
            ErrorObject::new(code::INVALID_REQUEST, message)
        }
        NotTaken::TooMany => {
            let message =
                "this session has too many requests in flight; wait for some of them to end";
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
