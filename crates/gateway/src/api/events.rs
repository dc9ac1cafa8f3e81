//! What happens in the gateway, as it happens.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::sleep,
};

use super::{
    ask::Asked,
    sse::{self, Gone, Sender},
};
use crate::{events::Event, gateway::Gateway};

/// The last event that is told.
const STOPPING: &str = "gateway.stopping";
/// A reader that is slow to take what happened before the end is given so long.
const LAST_EVENTS: Duration = Duration::from_millis(250);

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
        let ended = async {
            gateway.stopped().await;
            sleep(LAST_EVENTS).await;
        };
        tokio::select! {
            _ = tell(events, &sender, kind.as_deref()) => {}
            () = ended => {}
            () = sender.closed() => {}
        }
    });
    response
}

/// Tells everything up to the end of the gateway.
async fn tell(
    mut events: Receiver<Arc<Event>>,
    sender: &Sender,
    kind: Option<&str>,
) -> Result<(), Gone> {
    loop {
        match events.recv().await {
            Ok(event) => {
                if kind.is_none_or(|kind| kind == event.kind) {
                    sender.send(event.kind, Some(event.id), &*event).await?;
                }
                if event.kind == STOPPING {
                    return Ok(());
                }
            }
            Err(RecvError::Lagged(missed)) => {
                sender
                    .send("lagged", None, &json!({ "missed": missed }))
                    .await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}
