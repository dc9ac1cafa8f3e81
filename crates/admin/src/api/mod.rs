//! The REST interface, for the command line, scripts and the console.
//!
//! All routes are in one table, from which the router is built and against which the description in
//! `openapi.json` is checked. Requests are authenticated before they arrive here.

mod activity;
mod approvals;
mod ask;
mod audit;
mod clients;
mod config;
mod console;
mod events;
mod health;
mod logs;
mod memory;
mod numbers;
mod openapi;
mod pages;
mod rules;
mod search;
mod servers;
mod sse;
mod status;
mod tail;
mod tools;
mod trust;

use std::sync::Arc;

use axum::{
    Router, middleware,
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use hyper::{
    Method, StatusCode, Uri,
    header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use switchboard_base::error::cut;
use switchboard_inbound::problem::Problem;

use crate::admin::Admin;

/// Tests if this path needs no authentication.
pub fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/healthz" | "/readyz" | "/api/v1/console/sign-in" | "/api/v1/console/prove"
    ) || pages::is_page(path)
}

/// A route and its handler.
struct Route {
    verb: Verb,
    path: &'static str,
    to: fn(MethodFilter) -> MethodRouter<Arc<Admin>>,
}

#[derive(Clone, Copy)]
enum Verb {
    Get,
    Post,
    Delete,
}

impl Verb {
    const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

const fn get(path: &'static str, to: fn(MethodFilter) -> MethodRouter<Arc<Admin>>) -> Route {
    let verb = Verb::Get;
    Route { verb, path, to }
}

const fn post(path: &'static str, to: fn(MethodFilter) -> MethodRouter<Arc<Admin>>) -> Route {
    let verb = Verb::Post;
    Route { verb, path, to }
}

const fn delete(path: &'static str, to: fn(MethodFilter) -> MethodRouter<Arc<Admin>>) -> Route {
    let verb = Verb::Delete;
    Route { verb, path, to }
}

const ROUTES: &[Route] = &[
    get("/healthz", |by| on(by, health::alive)),
    get("/readyz", |by| on(by, health::ready)),
    get("/metrics", |by| on(by, numbers::show)),
    get("/api/v1/status", |by| on(by, status::show)),
    get("/api/v1/clients", |by| on(by, clients::list)),
    post("/api/v1/shutdown", |by| on(by, status::stop)),
    get("/api/v1/servers", |by| on(by, servers::list)),
    post("/api/v1/servers", |by| on(by, servers::add)),
    get("/api/v1/servers/{name}", |by| on(by, servers::show)),
    delete("/api/v1/servers/{name}", |by| on(by, servers::remove)),
    post("/api/v1/servers/{name}/restart", |by| {
        on(by, servers::restart)
    }),
    post("/api/v1/servers/{name}/enable", |by| {
        on(by, servers::enable)
    }),
    post("/api/v1/servers/{name}/disable", |by| {
        on(by, servers::disable)
    }),
    get("/api/v1/servers/{name}/logs", |by| on(by, logs::show)),
    get("/api/v1/tools", |by| on(by, tools::list)),
    post("/api/v1/tools/call", |by| on(by, tools::call)),
    get("/api/v1/search", |by| on(by, search::search)),
    delete("/api/v1/search/learnt", |by| on(by, search::forget)),
    get("/api/v1/trust", |by| on(by, trust::list)),
    get("/api/v1/trust/{name}", |by| on(by, trust::show)),
    post("/api/v1/trust/{name}/approve", |by| on(by, trust::approve)),
    post("/api/v1/trust/{name}/reject", |by| on(by, trust::reject)),
    get("/api/v1/approvals", |by| on(by, approvals::list)),
    get("/api/v1/approvals/rules", |by| on(by, rules::list)),
    post("/api/v1/approvals/rules/test", |by| on(by, rules::test)),
    delete("/api/v1/approvals/rules/{id}", |by| on(by, rules::forget)),
    get("/api/v1/approvals/{id}", |by| on(by, approvals::show)),
    post("/api/v1/approvals/{id}/approve", |by| {
        on(by, approvals::approve)
    }),
    post("/api/v1/approvals/{id}/reject", |by| {
        on(by, approvals::reject)
    }),
    post("/api/v1/approvals/{id}/respond", |by| {
        on(by, approvals::respond)
    }),
    get("/api/v1/audit", |by| on(by, audit::list)),
    post("/api/v1/memory/repair", |by| on(by, memory::repair)),
    get("/api/v1/activity", |by| on(by, activity::list)),
    get("/api/v1/events", |by| on(by, events::follow)),
    get("/api/v1/config", |by| on(by, config::show)),
    post("/api/v1/config/reload", |by| on(by, config::reload)),
    post("/api/v1/console/sign-in", |by| on(by, console::sign_in)),
    post("/api/v1/console/prove", |by| on(by, console::prove)),
    post("/api/v1/console/link", |by| on(by, console::link)),
    get("/api/v1/console/sessions", |by| on(by, console::sessions)),
    post("/api/v1/console/sign-out", |by| on(by, console::sign_out)),
    get("/api/v1/openapi.json", |by| on(by, openapi::show)),
];

/// The routes of every address except those of MCP.
pub fn router(admin: &Arc<Admin>) -> Router {
    ROUTES
        .iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path, (route.to)(route.verb.filter()))
        })
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_that_way)
        .layer(middleware::map_response(private))
        .merge(pages::router().method_not_allowed_fallback(not_that_way))
        .with_state(Arc::clone(admin))
}

async fn nothing_there(uri: Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        format!("there is no path {}", cut(uri.path())),
    )
    .hint("/api/v1/openapi.json lists every path")
}

async fn not_that_way(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!(
            "{} does not support {}",
            cut(uri.path()),
            cut(method.as_str())
        ),
    )
    .hint("the Allow header of the response lists the supported methods")
}

/// Responses describe the current state, and may contain private data, so they must not be cached.
async fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
