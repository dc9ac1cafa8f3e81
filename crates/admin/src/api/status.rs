//! The status of the gateway, and its shutdown.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Extension, State},
};
use hyper::StatusCode;
use switchboard_base::audit::{Actor, Event};
use switchboard_rest::status::{Shutdown, Status};

use crate::admin::Admin;

pub(super) async fn show(State(admin): State<Arc<Admin>>) -> Json<Status> {
    Json(admin.status())
}

/// The response does not wait for the shutdown, which would close its connection.
pub(super) async fn stop(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
) -> (StatusCode, Json<Shutdown>) {
    let audit = &admin.core.audit;
    let event = Event {
        what: "stop-requested",
        subject: "gateway".into(),
        actor: Some(actor),
        details: serde_json::json!({}),
    };
    match audit.room().await {
        Ok(room) => room.record([event]),
        // The gateway stops in any case, and counts the event as missing.
        Err(_) => audit.record(event),
    }
    tokio::spawn(async move { admin.core.stop().await });
    let state = "stopping".into();
    (StatusCode::ACCEPTED, Json(Shutdown { state }))
}
