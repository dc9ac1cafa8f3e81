//! HTTP+SSE, the transport of 2024-11-05: one stream for all messages to the client, which also
//! names the address for the client's messages.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use hyper::{HeaderMap, Response, StatusCode};
use parking_lot::Mutex;
use switchboard_base::{
    actor::Door,
    caller::{Principal, Realm},
    project::Project,
    random::secret,
    view::View,
};
use switchboard_client::ErrorObject;
use switchboard_wire::code;
use tokio::sync::mpsc;

use super::{
    body::Answer,
    conversation::{Conversation, Source, Writer},
    event_stream::EventStream,
    http::{event_stream, refuse, status},
};
use crate::inbound::Inbound;

/// The path for messages; the name of the stream follows it.
pub(crate) const MESSAGES: &str = "/sse/messages/";

/// The most unread messages of one client; beyond that, the client waits to send more. Each may be
/// as long as a frame.
const INBOX_DEPTH: usize = 4;
/// The most streams of a principal; all tokens count as one.
const STREAMS_MAX: usize = 4_096;

/// The open streams, by name.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<HashMap<String, Inbox>>);

#[derive(Debug, Clone)]
struct Inbox {
    principal: Principal,
    messages: mpsc::Sender<Bytes>,
}

/// Opens a stream.
pub(crate) fn open(
    inbound: &Arc<Inbound>,
    view: View,
    realm: Realm,
    door: Door,
    project: Project,
) -> Response<Answer> {
    let (messages, inbox) = mpsc::channel(INBOX_DEPTH);
    let entry = Inbox {
        principal: realm.principal,
        messages,
    };
    let Some(name) = inbound.sse.add(entry) else {
        let message = "too many streams are open; try again later";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, code::INTERNAL, message);
    };
    let events = EventStream::new();
    events.announce("endpoint", &format!("{MESSAGES}{name}"));
    let replay = events.play();
    let inbound = Arc::clone(inbound);
    tokio::spawn(async move {
        let conversation =
            Conversation::new(Arc::clone(&inbound.core), view, realm, Arc::clone(&events))
                .over_http(door.as_str())
                .working_in(project);
        let messages = Messages {
            inbox,
            events: Arc::clone(&events),
            is_expelled: false,
        };
        inbound.attend(conversation.run(messages)).await;
        inbound.sse.remove(&name);
        events.close();
    });
    event_stream(Answer::Events(replay))
}

/// Handles a message for the stream with this name.
pub(crate) async fn message(
    inbound: &Inbound,
    name: &str,
    principal: Principal,
    headers: &HeaderMap,
    body: Bytes,
) -> Response<Answer> {
    if !super::http::is_json(headers) {
        let message = "Content-Type must be application/json";
        return refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            code::INVALID_REQUEST,
            message,
        );
    }
    let inbox = inbound.sse.get(name, principal);
    let Some(inbox) = inbox else {
        let message = "there is no such stream; open a new one with GET";
        return refuse(StatusCode::NOT_FOUND, code::INVALID_REQUEST, message);
    };
    match inbox.send(body).await {
        Ok(()) => status(StatusCode::ACCEPTED),
        Err(_) => status(StatusCode::GONE),
    }
}

impl Streams {
    fn add(&self, inbox: Inbox) -> Option<String> {
        let name = secret()?;
        let mut streams = self.0.lock();
        let is_own = |known: &&Inbox| known.principal.shares_limits_with(inbox.principal);
        if streams.values().filter(is_own).count() >= STREAMS_MAX {
            return None;
        }
        streams.insert(name.clone(), inbox);
        Some(name)
    }

    fn get(&self, name: &str, principal: Principal) -> Option<mpsc::Sender<Bytes>> {
        let streams = self.0.lock();
        let inbox = streams.get(name)?;
        (inbox.principal == principal).then(|| inbox.messages.clone())
    }

    /// Ends the streams of a principal: without its inbox, a conversation is over.
    pub(crate) fn end_of(&self, principal: Principal) {
        let is_other = |_: &String, inbox: &mut Inbox| inbox.principal != principal;
        self.0.lock().retain(is_other);
    }

    fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// The messages of the client.
struct Messages {
    inbox: mpsc::Receiver<Bytes>,
    events: Arc<EventStream>,
    /// The inbox was removed.
    is_expelled: bool,
}

impl Source for Messages {
    async fn next(&mut self) -> Option<Result<Bytes, ErrorObject>> {
        tokio::select! {
            biased;
            message = self.inbox.recv() => {
                self.is_expelled = message.is_none();
                message.map(Ok)
            }
            // The stream is the session: when it is closed, the client has left.
            () = self.events.abandoned() => None,
        }
    }

    async fn gone(&mut self) {
        self.events.abandoned().await;
    }

    fn is_expelled(&self) -> bool {
        self.is_expelled
    }
}

impl Writer for EventStream {
    async fn say(&self, message: Bytes) {
        Self::say(self, &message).await;
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    async fn room(&self) {
        Self::room(self).await;
    }
}
