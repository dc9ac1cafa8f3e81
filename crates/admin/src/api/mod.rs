//! The REST interface, for the command line, scripts and the console.
//!
//! All routes are in one table with the rights that they need, from which the router is built and against which the
//! description in `openapi.json` is checked. Requests are authenticated before they arrive here.

mod activity;
mod approvals;
mod ask;
mod audit;
mod clients;
mod config;
mod console;
mod events;
mod health;
mod logins;
mod logs;
mod memory;
mod numbers;
mod openapi;
mod pages;
mod profiles;
mod rules;
mod search;
mod servers;
mod sse;
mod status;
mod tail;
mod tokens;
mod tools;
mod trust;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Extension, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use hyper::{
    Method, StatusCode, Uri,
    header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use switchboard_base::error::cut;
use switchboard_inbound::problem::Problem;
use switchboard_tokens::{Right, Rights};

use crate::admin::Admin;

/// Tests if this path needs no authentication.
pub fn is_open(path: &str) -> bool {
    matches!(
        path,
        "/healthz" | "/readyz" | "/api/v1/console/sign-in" | "/api/v1/console/prove"
    ) || pages::is_page(path)
}

/// A route, the rights that it needs, and its handler.
struct Route {
    verb: Verb,
    path: &'static str,
    needs: &'static [Right],
    to: Handler,
}

/// The rights of routes that every authenticated client may use, or anyone.
const ALL: &[Right] = &[];
const APPROVE: &[Right] = &[Right::Approve];
const ADMIN: &[Right] = &[Right::Admin];
/// A call over REST sees all servers, so it needs more than the right to call.
const CALL: &[Right] = &[Right::Call, Right::Admin];

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

type Handler = fn(MethodFilter) -> MethodRouter<Arc<Admin>>;

const fn route(verb: Verb, needs: &'static [Right], path: &'static str, to: Handler) -> Route {
    Route {
        verb,
        path,
        needs,
        to,
    }
}

const fn get(needs: &'static [Right], path: &'static str, to: Handler) -> Route {
    route(Verb::Get, needs, path, to)
}

const fn post(needs: &'static [Right], path: &'static str, to: Handler) -> Route {
    route(Verb::Post, needs, path, to)
}

const fn delete(needs: &'static [Right], path: &'static str, to: Handler) -> Route {
    route(Verb::Delete, needs, path, to)
}

const ROUTES: &[Route] = &[
    get(ALL, "/healthz", |by| on(by, health::alive)),
    get(ALL, "/readyz", |by| on(by, health::ready)),
    get(ADMIN, "/metrics", |by| on(by, numbers::show)),
    get(ADMIN, "/api/v1/status", |by| on(by, status::show)),
    get(ADMIN, "/api/v1/clients", |by| on(by, clients::list)),
    get(ADMIN, "/api/v1/profiles", |by| on(by, profiles::list)),
    get(ADMIN, "/api/v1/profiles/{name}", |by| {
        on(by, profiles::show)
    }),
    post(ADMIN, "/api/v1/shutdown", |by| on(by, status::stop)),
    get(ADMIN, "/api/v1/servers", |by| on(by, servers::list)),
    post(ADMIN, "/api/v1/servers", |by| on(by, servers::add)),
    get(ADMIN, "/api/v1/servers/{name}", |by| on(by, servers::show)),
    delete(ADMIN, "/api/v1/servers/{name}", |by| {
        on(by, servers::remove)
    }),
    post(ADMIN, "/api/v1/servers/{name}/restart", |by| {
        on(by, servers::restart)
    }),
    post(ADMIN, "/api/v1/servers/{name}/enable", |by| {
        on(by, servers::enable)
    }),
    post(ADMIN, "/api/v1/servers/{name}/disable", |by| {
        on(by, servers::disable)
    }),
    get(ADMIN, "/api/v1/logins", |by| on(by, logins::list)),
    post(ADMIN, "/api/v1/servers/{name}/login", |by| {
        on(by, logins::start)
    }),
    get(ADMIN, "/api/v1/servers/{name}/login", |by| {
        on(by, logins::show)
    }),
    post(ADMIN, "/api/v1/servers/{name}/login/callback", |by| {
        on(by, logins::callback)
    }),
    post(ADMIN, "/api/v1/servers/{name}/logout", |by| {
        on(by, logins::end)
    }),
    get(ADMIN, "/api/v1/servers/{name}/logs", |by| {
        on(by, logs::show)
    }),
    get(ADMIN, "/api/v1/tools", |by| on(by, tools::list)),
    post(CALL, "/api/v1/tools/call", |by| on(by, tools::call)),
    get(ADMIN, "/api/v1/search", |by| on(by, search::search)),
    delete(ADMIN, "/api/v1/search/learnt", |by| on(by, search::forget)),
    get(APPROVE, "/api/v1/trust", |by| on(by, trust::list)),
    get(APPROVE, "/api/v1/trust/{name}", |by| on(by, trust::show)),
    post(APPROVE, "/api/v1/trust/{name}/approve", |by| {
        on(by, trust::approve)
    }),
    post(APPROVE, "/api/v1/trust/{name}/reject", |by| {
        on(by, trust::reject)
    }),
    get(APPROVE, "/api/v1/approvals", |by| on(by, approvals::list)),
    get(ADMIN, "/api/v1/approvals/rules", |by| on(by, rules::list)),
    post(ADMIN, "/api/v1/approvals/rules/test", |by| {
        on(by, rules::test)
    }),
    delete(ADMIN, "/api/v1/approvals/rules/{id}", |by| {
        on(by, rules::forget)
    }),
    get(APPROVE, "/api/v1/approvals/{id}", |by| {
        on(by, approvals::show)
    }),
    post(APPROVE, "/api/v1/approvals/{id}/approve", |by| {
        on(by, approvals::approve)
    }),
    post(APPROVE, "/api/v1/approvals/{id}/reject", |by| {
        on(by, approvals::reject)
    }),
    post(APPROVE, "/api/v1/approvals/{id}/respond", |by| {
        on(by, approvals::respond)
    }),
    get(ADMIN, "/api/v1/audit", |by| on(by, audit::list)),
    post(ADMIN, "/api/v1/memory/repair", |by| on(by, memory::repair)),
    get(ADMIN, "/api/v1/activity", |by| on(by, activity::list)),
    get(ADMIN, "/api/v1/events", |by| on(by, events::follow)),
    get(ADMIN, "/api/v1/config", |by| on(by, config::show)),
    post(ADMIN, "/api/v1/config/reload", |by| on(by, config::reload)),
    post(ALL, "/api/v1/console/sign-in", |by| {
        on(by, console::sign_in)
    }),
    post(ALL, "/api/v1/console/prove", |by| on(by, console::prove)),
    post(ADMIN, "/api/v1/console/link", |by| on(by, console::link)),
    get(ADMIN, "/api/v1/console/sessions", |by| {
        on(by, console::sessions)
    }),
    post(ADMIN, "/api/v1/console/sign-out", |by| {
        on(by, console::sign_out)
    }),
    get(ADMIN, "/api/v1/tokens", |by| on(by, tokens::list)),
    post(ADMIN, "/api/v1/tokens", |by| on(by, tokens::create)),
    delete(ADMIN, "/api/v1/tokens/{name}", |by| on(by, tokens::revoke)),
    post(ADMIN, "/api/v1/tokens/{name}/rotate", |by| {
        on(by, tokens::rotate)
    }),
    get(ALL, "/api/v1/openapi.json", |by| on(by, openapi::show)),
];

/// The routes of every address except those of MCP.
pub fn router(admin: &Arc<Admin>) -> Router {
    ROUTES
        .iter()
        .fold(Router::new(), |router, route| {
            let needs = middleware::from_fn_with_state(route.needs, check_rights);
            let to = (route.to)(route.verb.filter()).route_layer(needs);
            router.route(route.path, to)
        })
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_that_way)
        .layer(middleware::map_response(private))
        .merge(pages::router().method_not_allowed_fallback(not_that_way))
        .with_state(Arc::clone(admin))
}

/// Refuses a request whose sender lacks a right that the route needs.
async fn check_rights(
    State(needs): State<&'static [Right]>,
    Extension(rights): Extension<Rights>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    match needs.iter().find(|right| !rights.has(**right)) {
        None => Ok(next.run(request).await),
        Some(right) => Err(lacks(*right, needs)),
    }
}

/// The problem of a token that lacks one of the rights that a route needs.
fn lacks(right: Right, needs: &[Right]) -> Problem {
    let detail = format!("this token lacks the right `{right}`");
    let options: Vec<_> = needs
        .iter()
        .map(|right| format!("--right {right}"))
        .collect();
    Problem::new(StatusCode::FORBIDDEN, detail).hint(format!(
        "use one that `switchboard token create NAME {}` creates",
        options.join(" ")
    ))
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
