//! Whether the gateway lives and whether it can work, for whoever watches over it.

use std::sync::Arc;

use axum::{Json, extract::State, response::IntoResponse};
use hyper::StatusCode;
use serde::Serialize;

use crate::{gateway::Gateway, status::Part};

pub(super) async fn alive() -> &'static str {
    "ok"
}

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    parts: Vec<Part>,
}

/// Servers that are not up do not count: the first call starts them, and the others are served.
pub(super) async fn ready(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    let ready = gateway.context().store.status().is_ready() && !gateway.is_stopping();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let parts = gateway.status().parts;
    (status, Json(Readiness { ready, parts }))
}
