//! Extractors for requests: the server in the path, the query and the body. Each is read completely and
//! within limits, or refused with a problem that says where it is wrong.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::request::Parts,
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;
use switchboard_base::{caller::Realm, error::cut, project::project_dir};
use switchboard_core::scope::Scope;
use switchboard_inbound::{edge::request_body::BODY_PATIENCE, problem::Problem};
use switchboard_outbound::upstream::Upstream;
use tokio::time::timeout;

use crate::admin::Admin;

/// The longest body, in bytes.
const BODY_BYTES: usize = 4 * 1024 * 1024;

/// The scope of the sender.
pub(super) struct Within(pub(super) Arc<Scope>);

impl FromRequestParts<Arc<Admin>> for Within {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Problem> {
        // The door adds it to every request.
        let realm = parts.extensions.get::<Realm>().copied();
        let realm = realm.ok_or_else(|| {
            Problem::new(
                StatusCode::FORBIDDEN,
                "the sender of the request is unknown",
            )
        })?;
        Ok(Self(admin.core.scopes.of(realm)?))
    }
}

/// The server that the path names, if the sender may see it.
pub(super) struct Named(pub(super) Arc<Upstream>);

impl FromRequestParts<Arc<Admin>> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Problem> {
        let Ok(Path(name)) = Path::<String>::from_request_parts(parts, admin).await else {
            let detail = "the name of the server in the URL is not UTF-8";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail)
                .hint("write it in UTF-8, percent-encoded"));
        };
        let Within(scope) = Within::from_request_parts(parts, admin).await?;
        find_in(admin, &scope, &name).map(Self)
    }
}

/// Finds the server with this name, for a sender that sees every server.
pub(super) fn find(admin: &Admin, name: &str) -> Result<Arc<Upstream>, Problem> {
    find_in(admin, &Scope::default(), name)
}

/// Finds the server with this name in a scope.
pub(super) fn find_in(admin: &Admin, scope: &Scope, name: &str) -> Result<Arc<Upstream>, Problem> {
    let upstream = admin.core.upstream(name);
    upstream
        .filter(|_| scope.permits_server(name))
        .ok_or_else(|| unknown_in(admin, scope, name))
}

/// The problem for an unknown server, for a sender that sees every server.
pub(super) fn unknown_server(admin: &Admin, name: &str) -> Problem {
    unknown_in(admin, &Scope::default(), name)
}

/// The problem for a server that is unknown in a scope, in the same words as the error of a configuration change.
fn unknown_in(admin: &Admin, scope: &Scope, name: &str) -> Problem {
    let name = cut(name);
    let servers: serde_json::Map<_, _> = admin
        .core
        .upstreams()
        .keys()
        .filter(|name| scope.permits_server(name))
        .map(|name| (name.clone(), serde_json::Value::Null))
        .collect();
    let text = serde_json::json!({ "mcpServers": servers }).to_string();
    if let Err(error) = switchboard_config::remove_server(&text, name) {
        return Problem::new(StatusCode::NOT_FOUND, error.to_string()).maybe_hint(error.hint());
    }
    let detail = format!("server `{name}` no longer exists");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// The query of the address.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(asked)| Self(asked))
            .map_err(|error| {
                let error = std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), ToString::to_string);
                let detail = format!("cannot parse the query: {}", short(&error));
                Problem::new(StatusCode::BAD_REQUEST, detail)
            })
    }
}

/// The path of an existing directory, without symbolic links.
pub(super) async fn directory(path: String) -> Result<String, Problem> {
    let shown = cut(&path).to_owned();
    let real = move || project_dir(std::path::Path::new(&path));
    let found = tokio::task::spawn_blocking(real).await.ok().flatten();
    found.ok_or_else(|| {
        let detail = format!("`{shown}` is not a directory that can be a project");
        let next = "name an existing directory by its absolute path, other than the home directory and those above it";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).hint(next)
    })
}

/// Parses a number in a query.
pub(super) fn number<T: std::str::FromStr>(
    name: &str,
    value: Option<String>,
) -> Result<Option<T>, Problem> {
    match value.filter(|value| !value.is_empty()) {
        None => Ok(None),
        Some(value) => value.parse().map(Some).map_err(|_| {
            let detail = format!(
                "`{name}` in the query must be a whole number, not {:?}",
                cut(&value)
            );
            Problem::new(StatusCode::BAD_REQUEST, detail)
        }),
    }
}

/// The body, which is JSON.
pub(super) struct Said<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Admin>> for Said<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Admin>) -> Result<Self, Problem> {
        read_json(request, BODY_BYTES).await.map(Self)
    }
}

/// The body, which is JSON or empty.
pub(super) struct MaySay<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<Admin>> for MaySay<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Admin>) -> Result<Self, Problem> {
        let body = read_body(request, BODY_BYTES).await?;
        if body.trim_ascii().is_empty() {
            return Ok(Self(T::default()));
        }
        parse(&body).map(Self)
    }
}

/// Reads a JSON body of up to `most` bytes.
pub(super) async fn read_json<T: DeserializeOwned>(
    request: Request,
    most: usize,
) -> Result<T, Problem> {
    parse(&read_body(request, most).await?)
}

async fn read_body(request: Request, most: usize) -> Result<Bytes, Problem> {
    if !may_be_json(request.headers()) {
        let detail = "the body must be JSON";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
            .hint("send it with `Content-Type: application/json`"));
    }
    whole(request, most).await
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let at = format!("at line {} column {}", error.line(), error.column());
        let error = error.to_string();
        let error = error.strip_suffix(&at).unwrap_or(&error).trim_end();
        let detail = format!("cannot parse the body {at}: {}", short(error));
        Problem::new(StatusCode::BAD_REQUEST, detail)
    })
}

/// The beginning of an error, which may quote names of any length from the request.
fn short(error: &str) -> &str {
    &error[..error.floor_char_boundary(300)]
}

async fn whole(request: Request, most: usize) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), most).collect();
    match timeout(BODY_PATIENCE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body is longer than {most} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).hint("send a shorter body"))
        }
        Ok(Err(_)) => {
            let detail = "the body ended too early";
            Err(Problem::new(StatusCode::BAD_REQUEST, detail).hint("send it again"))
        }
        Err(_) => {
            let detail = format!("the body did not arrive within {BODY_PATIENCE:?}");
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail).hint("send it again"))
        }
    }
}

/// A body without a content type is taken for JSON; one with another content type is not.
fn may_be_json(headers: &HeaderMap) -> bool {
    let Some(said) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let said = said.to_str().unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
