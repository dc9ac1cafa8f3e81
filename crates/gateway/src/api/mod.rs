//! REST: what the command line, scripts and the console talk to.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};

use crate::gateway::Gateway;

/// How long the body of a request may take to arrive.
pub(crate) const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Whether anybody may ask this.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

pub(crate) fn router(gateway: &Arc<Gateway>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(Arc::clone(gateway))
}
