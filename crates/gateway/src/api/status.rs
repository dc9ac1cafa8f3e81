//! How the gateway is, and its end.

use std::sync::Arc;

use axum::{Json, extract::State};
use hyper::StatusCode;
use serde::Serialize;

use crate::{gateway::Gateway, status::Status};

pub(super) async fn show(State(gateway): State<Arc<Gateway>>) -> Json<Status> {
    Json(gateway.status())
}

#[derive(Serialize)]
pub(super) struct Stopping {
    state: &'static str,
}

/// The answer does not wait for the end, which it could not survive.
pub(super) async fn stop(State(gateway): State<Arc<Gateway>>) -> (StatusCode, Json<Stopping>) {
    tokio::spawn(async move { gateway.stop().await });
    (StatusCode::ACCEPTED, Json(Stopping { state: "stopping" }))
}
