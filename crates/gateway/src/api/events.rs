//! What happens in the gateway, as it happens.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{
    ask::Asked,
    sse::{self, Gone, Sender},
};
use crate::{events::Event, gateway::Gateway};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    kind: Option<String>,
}

pub(super) async fn follow(
    State(gateway): State<Arc<Gateway>>,
    Asked(Which { kind }): Asked<Which>,
) -> Response {
    let kind = kind.filter(|kind| !kind.is_empty());
    let events = gateway.context().events.subscribe();
    let (sender, response) = sse::stream();
    tokio::spawn(async move {
        tokio::select! {
            // The end of the gateway is an event too: what has happened is told before it counts.
            biased;
            _ = tell(events, &sender, kind.as_deref()) => {}
            () = gateway.stopped() => {}
            () = sender.closed() => {}
        }
    });
    response
}

async fn tell(
    mut events: Receiver<Arc<Event>>,
    sender: &Sender,
    kind: Option<&str>,
) -> Result<(), Gone> {
    loop {
        match events.recv().await {
            Ok(event) if kind.is_none_or(|kind| kind == event.kind) => {
                sender.send(event.kind, Some(event.id), &*event).await?;
            }
            Ok(_) => {}
            Err(RecvError::Lagged(missed)) => {
                sender
                    .send("lagged", None, &json!({ "missed": missed }))
                    .await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}
