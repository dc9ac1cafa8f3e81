//! Liveness and readiness of the gateway, for service managers and monitoring.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Extension, State},
    response::IntoResponse,
};
use hyper::StatusCode;
use switchboard_rest::status::{Part, Readiness};
use switchboard_tokens::{Right, Rights};

use crate::admin::Admin;

pub(super) async fn alive() -> &'static str {
    "ok"
}

/// Servers that are not running do not matter: the first call starts them, and the others are served.
pub(super) async fn ready(
    State(admin): State<Arc<Admin>>,
    Extension(rights): Extension<Rights>,
) -> impl IntoResponse {
    let ready = admin.core.store.status().is_ready() && !admin.core.lifecycle.is_stopping();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let parts = rights.has(Right::Admin).then(|| {
        let parts = admin.status().parts.into_iter();
        let named = parts.map(|part| Part {
            message: None,
            note: None,
            ..part
        });
        named.collect()
    });
    (status, Json(Readiness { ready, parts }))
}
