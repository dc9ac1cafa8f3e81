//! Sessions over Streamable HTTP, 2025-03-26 to 2025-11-25.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use hyper::{Response, StatusCode, body::Bytes, header::HeaderValue};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Reply, Request, events, json, refuse, status};
use crate::{
    feed::{Feed, Next, held},
    legacy,
    options::Revision,
    rpc::{self, Fault, INVALID_REQUEST, Incoming, Message},
    session::Session,
    world::World,
};

const SESSION: &str = "mcp-session-id";
/// How soon a client should come back after a stream was closed.
const RETRY_MS: u32 = 100;

#[derive(Default)]
pub(super) struct Sessions(Mutex<BTreeMap<String, Arc<Session>>>);

impl Sessions {
    pub(super) async fn post(
        &self,
        world: &Arc<World>,
        request: &Request,
        incoming: Incoming,
    ) -> Response<Reply> {
        if request.header(SESSION).is_none() {
            return self.begin(world, incoming).await;
        }
        let session = match self.find(request) {
            Ok(session) => session,
            Err(code) => return status(code),
        };
        if incoming.batch && session.revision() != Some(Revision::V2025_03_26) {
            let fault = Fault::new(INVALID_REQUEST, "No batches in this revision");
            return refuse(&Value::Null, fault);
        }
        let is_request = |message: &Message| message.method.is_some() && message.id.is_some();
        let (requests, others): (Vec<_>, Vec<_>) =
            incoming.messages.into_iter().partition(is_request);
        for message in others {
            legacy::handle(
                world.clone(),
                session.clone(),
                message,
                session.feed.clone(),
            )
            .await;
        }
        if requests.is_empty() {
            return status(StatusCode::ACCEPTED);
        }
        run(world, &session, requests, incoming.batch).await
    }

    /// Without a session there is only the handshake.
    async fn begin(&self, world: &Arc<World>, incoming: Incoming) -> Response<Reply> {
        let mut messages = incoming.messages;
        let (Some(message), true) = (messages.pop(), messages.is_empty()) else {
            return status(StatusCode::BAD_REQUEST);
        };
        let id = message.id.clone().unwrap_or_default();
        match message.method.as_deref() {
            Some("initialize") => {}
            // What a server of those days says to a method that it has never heard of.
            Some(method @ "server/discover") => {
                world.count(method);
                return json(
                    StatusCode::OK,
                    rpc::response(&id, &Err(Fault::no_method(method))),
                );
            }
            _ => return refuse(&id, Fault::new(-32000, "Mcp-Session-Id is missing")),
        }
        let session = Arc::new(Session::new(Arc::new(Feed::new())));
        let feed = Arc::new(Feed::new());
        legacy::handle(world.clone(), session.clone(), message, feed.clone()).await;
        let Next::Message(answer) = feed.next(0, 0).await else {
            return status(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let mut response = json(StatusCode::OK, answer);
        if session.revision().is_some() {
            world.add_session(&session);
            let name = World::random();
            if let Ok(value) = HeaderValue::from_str(&name) {
                response.headers_mut().insert(SESSION, value);
            }
            held(&self.0).insert(name, session);
        }
        response
    }

    /// A GET: the stream that belongs to no request, or one that is resumed.
    pub(super) fn stream(&self, request: &Request) -> Response<Reply> {
        let session = match self.find(request) {
            Ok(session) => session,
            Err(code) => return status(code),
        };
        if !request
            .header("accept")
            .is_some_and(|accept| accept.contains("text/event-stream"))
        {
            return status(StatusCode::NOT_ACCEPTABLE);
        }
        let (number, place) = match request.header("last-event-id") {
            None => {
                // There is one such stream; whoever opens it anew gets what nobody has read.
                session.feed.cut();
                (0, session.feed.read())
            }
            Some(id) => {
                let parsed = id
                    .split_once('_')
                    .map(|(stream, n)| (stream.parse(), n.parse()));
                let Some((Ok(number), Ok(place))) = parsed else {
                    return status(StatusCode::BAD_REQUEST);
                };
                (number, place)
            }
        };
        let Some(feed) = session.stream(number) else {
            return status(StatusCode::NOT_FOUND);
        };
        let cuts = feed.cuts();
        streamed(&session, feed, number, place, cuts)
    }

    pub(super) fn delete(&self, request: &Request) -> Response<Reply> {
        let session = match self.find(request) {
            Ok(session) => session,
            Err(code) => return status(code),
        };
        session.end();
        held(&self.0).retain(|_, known| !Arc::ptr_eq(known, &session));
        status(StatusCode::NO_CONTENT)
    }

    fn find(&self, request: &Request) -> Result<Arc<Session>, StatusCode> {
        let name = request.header(SESSION).ok_or(StatusCode::BAD_REQUEST)?;
        let session = held(&self.0).get(name).cloned();
        let session = session.ok_or(StatusCode::NOT_FOUND)?;
        let revision = session.revision().map(Revision::name);
        let named = request.header("mcp-protocol-version");
        if named.is_some() && named != revision {
            return Err(StatusCode::BAD_REQUEST);
        }
        Ok(session)
    }
}

/// Runs requests, and answers with a document if there is nothing else to say.
async fn run(
    world: &Arc<World>,
    session: &Arc<Session>,
    requests: Vec<Message>,
    batch: bool,
) -> Response<Reply> {
    let (number, feed) = session.open_stream();
    let expected = requests.len();
    let mut work = Vec::new();
    for message in requests {
        let handled = legacy::handle(world.clone(), session.clone(), message, feed.clone());
        work.push(tokio::spawn(handled));
    }
    tokio::spawn({
        let feed = feed.clone();
        async move {
            for work in work {
                let _ = work.await;
            }
            feed.end();
        }
    });
    if !batch && expected == 1 {
        match feed.next(0, 0).await {
            Next::Message(first) if is_response(&first) => return json(StatusCode::OK, first),
            Next::Message(_) | Next::Cut => {}
            // It was cancelled, and a cancelled request has no answer.
            Next::Ended => return status(StatusCode::ACCEPTED),
        }
    }
    streamed(session, feed, number, 0, 0)
}

fn is_response(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_none()
}

/// The messages of a stream from a place on, up to its next cut.
fn streamed(
    session: &Session,
    feed: Arc<Feed>,
    number: u64,
    from: usize,
    cuts: u32,
) -> Response<Reply> {
    let resumable = session.revision() == Some(Revision::V2025_11_25);
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        if resumable {
            let priming = format!("id: {number}_{from}\nretry: {RETRY_MS}\ndata: \n\n");
            if sender.send(Bytes::from(priming)).await.is_err() {
                return;
            }
        }
        let mut place = from;
        while let Next::Message(message) = feed.next(place, cuts).await {
            place += 1;
            let event = format!("id: {number}_{place}\ndata: {message}\n\n");
            if sender.send(Bytes::from(event)).await.is_err() {
                return;
            }
        }
    });
    events(receiver, None)
}
