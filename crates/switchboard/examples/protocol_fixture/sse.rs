//! HTTP+SSE, the transport of 2024-11-05: one stream for all that is said, and a place to post to.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use hyper::{Method, Response, StatusCode, body::Bytes};
use tokio::sync::{mpsc, oneshot};

use crate::{
    feed::{Feed, Next, held},
    http::{self, Reply, Request, events, status},
    legacy,
    rpc::{self, Incoming},
    session::Session,
    world::World,
};

type Sessions = Arc<Mutex<BTreeMap<String, Arc<Session>>>>;

/// Serves until the process is ended.
pub(crate) async fn serve(world: Arc<World>, port: u16) -> io::Result<()> {
    let sessions = Sessions::default();
    http::listen(port, "/sse", move |request| {
        let (world, sessions) = (world.clone(), sessions.clone());
        async move {
            match (&request.method, &*request.path) {
                (&Method::GET, "/sse") => open(&world, &sessions),
                (&Method::POST, "/messages") => post(&world, &sessions, &request).await,
                (_, "/sse" | "/messages") => status(StatusCode::METHOD_NOT_ALLOWED),
                _ => status(StatusCode::NOT_FOUND),
            }
        }
    })
    .await
}

fn open(world: &Arc<World>, sessions: &Sessions) -> Response<Reply> {
    let name = World::random();
    let feed = Arc::new(Feed::new());
    let session = Arc::new(Session::new(feed.clone()));
    world.add_session(&session);
    held(sessions).insert(name.clone(), session.clone());
    let (sender, receiver) = mpsc::channel(1);
    let (reading, gone) = oneshot::channel();
    let sessions = sessions.clone();
    tokio::spawn(async move {
        let endpoint = format!("event: endpoint\ndata: /messages?session={name}\n\n");
        let writing = async {
            let mut place = 0;
            let mut event = endpoint;
            while sender.send(Bytes::from(event)).await.is_ok() {
                event = loop {
                    match feed.next(place, feed.cuts()).await {
                        Next::Message(message) => {
                            break format!("event: message\ndata: {message}\n\n");
                        }
                        // The one stream there is cannot be resumed, so it is not closed.
                        Next::Cut => {}
                        Next::Ended => return,
                    }
                };
                place += 1;
                feed.forget(place);
            }
        };
        tokio::select! {
            () = writing => {}
            _ = gone => {}
        }
        // The stream is the session.
        session.end();
        held(&sessions).remove(&name);
    });
    events(receiver, Some(reading))
}

async fn post(world: &Arc<World>, sessions: &Sessions, request: &Request) -> Response<Reply> {
    let name = request.query.strip_prefix("session=").unwrap_or_default();
    let session = held(sessions).get(name).cloned();
    let Some(session) = session else {
        return status(StatusCode::NOT_FOUND);
    };
    let incoming = match Incoming::parse(&request.body) {
        Ok(incoming) if !incoming.batch => incoming,
        Ok(_) => return status(StatusCode::BAD_REQUEST),
        Err(fault) => {
            let text = rpc::response(&serde_json::Value::Null, &Err(fault));
            return http::json(StatusCode::BAD_REQUEST, text);
        }
    };
    for message in incoming.messages {
        let long = message.method.as_deref().is_some_and(legacy::takes_long);
        let feed = session.feed.clone();
        let work = legacy::handle(world.clone(), session.clone(), message, feed);
        if long {
            tokio::spawn(work);
        } else {
            work.await;
        }
    }
    status(StatusCode::ACCEPTED)
}
