//! Whether the gateway lives and whether it can work, for whoever watches over it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Extension, State},
    response::IntoResponse,
};
use hyper::StatusCode;
use serde::Serialize;
use switchboard_base::{
    caller::Principal,
    health::{Part, PartState},
};

use crate::admin::Admin;

pub(super) async fn alive() -> &'static str {
    "ok"
}

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    /// For its owner: the names of servers are nobody else's business.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Named>>,
}

/// A part by its name and state. The status says why.
#[derive(Serialize)]
struct Named {
    name: String,
    state: &'static str,
}

impl From<Part> for Named {
    fn from(part: Part) -> Self {
        Self {
            name: part.name,
            state: match part.state {
                PartState::Initializing => "initializing",
                PartState::Ready => "ready",
                PartState::Error { .. } => "error",
            },
        }
    }
}

/// Servers that are not up do not count: the first call starts them, and the others are served.
pub(super) async fn ready(
    State(admin): State<Arc<Admin>>,
    Extension(principal): Extension<Principal>,
) -> impl IntoResponse {
    let ready = admin.core.store.status().is_ready() && !admin.core.lifecycle.is_stopping();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let parts = (principal == Principal::Owner).then(|| {
        let parts = admin.status().parts.into_iter();
        parts.map(Named::from).collect()
    });
    (status, Json(Readiness { ready, parts }))
}
