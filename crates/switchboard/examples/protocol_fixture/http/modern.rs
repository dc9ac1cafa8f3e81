//! A POST of the newest revision.

use std::sync::Arc;

use hyper::{Response, StatusCode, body::Bytes};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{Reply, Request, events, headers, json, refuse, status};
use crate::{
    feed::{Feed, Next},
    modern,
    rpc::{self, Message},
    world::World,
};

pub(super) async fn post(
    world: &Arc<World>,
    request: &Request,
    message: Message,
) -> Response<Reply> {
    let Some(id) = message.id.clone() else {
        return status(StatusCode::ACCEPTED);
    };
    // A bare handshake is told which versions there are, and has no headers to be checked.
    if message.method.as_deref() != Some("initialize") || modern::speaks(&message) {
        let checked = modern::check_meta(&message);
        let checked = checked.and_then(|()| headers::check(world, request, &message));
        if let Err(fault) = checked {
            return refuse(&id, fault);
        }
    }
    // Whoever closes the stream, or does not wait for it, cancels the request.
    let (reading, gone) = oneshot::channel();
    let feed = Arc::new(Feed::new());
    tokio::spawn({
        let (world, feed) = (world.clone(), feed.clone());
        async move {
            modern::handle(world, message, feed.clone(), gone).await;
            feed.end();
        }
    });
    let first = match feed.next(0, 0).await {
        Next::Message(first) => first,
        Next::Ended | Next::Cut => return status(StatusCode::INTERNAL_SERVER_ERROR),
    };
    if is_response(&first) {
        return json(code(&first), first);
    }
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut place = 0;
        while let Next::Message(message) = feed.next(place, feed.cuts()).await {
            let event = format!("data: {message}\n\n");
            if sender.send(Bytes::from(event)).await.is_err() {
                return;
            }
            place += 1;
            feed.forget(place);
        }
    });
    events(receiver, Some(reading))
}

fn is_response(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_none()
}

/// The status that goes with an answer.
fn code(response: &str) -> StatusCode {
    let response: Value = serde_json::from_str(response).unwrap_or_default();
    match response["error"]["code"].as_i64() {
        Some(rpc::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(rpc::HEADER_MISMATCH | rpc::MISSING_CAPABILITY | rpc::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
