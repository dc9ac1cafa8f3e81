//! Streamable HTTP, as each revision has it.

mod headers;
mod legacy;
mod modern;
mod reply;
mod server;

pub(crate) use reply::{Reply, events, json, status};
pub(crate) use server::{Request, listen};

use std::{io, sync::Arc};

use hyper::{Method, Response, StatusCode};
use serde_json::Value;

use crate::{
    options::Revision,
    rpc::{self, Fault, Incoming, Message},
    world::World,
};

/// Serves until the process is ended.
pub(crate) async fn serve(world: Arc<World>, port: u16) -> io::Result<()> {
    let sessions = Arc::new(legacy::Sessions::default());
    listen(port, "/mcp", move |request| {
        let (world, sessions) = (world.clone(), sessions.clone());
        async move { answer(world, sessions, request).await }
    })
    .await
}

async fn answer(
    world: Arc<World>,
    sessions: Arc<legacy::Sessions>,
    request: Request,
) -> Response<Reply> {
    if request.path != "/mcp" {
        return status(StatusCode::NOT_FOUND);
    }
    let has_sessions = sessions_of(&world);
    match request.method {
        Method::POST => {}
        Method::GET if has_sessions => return sessions.stream(&request),
        Method::DELETE if has_sessions => return sessions.delete(&request),
        _ => return status(StatusCode::METHOD_NOT_ALLOWED),
    }
    if !headers::acceptable(&request) {
        return status(StatusCode::NOT_ACCEPTABLE);
    }
    if !request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/json"))
    {
        return status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let incoming = match Incoming::parse(&request.body) {
        Ok(incoming) => incoming,
        Err(fault) => return refuse(&Value::Null, fault),
    };
    let single = match &*incoming.messages {
        [message] if !incoming.batch => Some(message),
        _ => None,
    };
    let modern = single.is_some_and(|message| is_modern(&world, &request, message));
    if modern {
        let message = incoming.messages.into_iter().next();
        return match message {
            Some(message) => modern::post(&world, &request, message).await,
            None => status(StatusCode::BAD_REQUEST),
        };
    }
    sessions.post(&world, &request, incoming).await
}

/// Whether it speaks a revision that has sessions over HTTP.
fn sessions_of(world: &World) -> bool {
    world.options.newest_legacy().is_some()
}

/// The era of a request, by its headers and its looks.
fn is_modern(world: &World, request: &Request, message: &Message) -> bool {
    if !world.options.modern() {
        return false;
    }
    if !sessions_of(world) {
        return true;
    }
    let version = request.header("mcp-protocol-version").map(Revision::parse);
    let of_sessions = matches!(version, Some(Some(revision)) if revision < Revision::MODERN);
    crate::modern::speaks(message) || (version.is_some() && !of_sessions)
}

/// An error that is found before anything runs.
fn refuse(id: &Value, fault: Fault) -> Response<Reply> {
    let code = match fault.code {
        rpc::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    json(code, rpc::response(id, &Err(fault)))
}
