//! The files of the console. They contain no data, and need no authentication.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{
        CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
        X_CONTENT_TYPE_OPTIONS,
    },
};
use switchboard_console::{File, HEADERS};

use super::nothing_there;
use crate::admin::Admin;

/// The prefix of their paths, except for the first page.
const FOLDER: &str = "/console/";

/// Tests if a path belongs to the console.
pub(super) fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with(FOLDER)
}

pub(super) fn router() -> Router<Arc<Admin>> {
    Router::new()
        .route("/", get(show))
        .route("/console/{*path}", get(show))
}

/// The path is matched verbatim: nothing is decoded, so that nothing can be hidden in it.
async fn show(uri: Uri, headers: HeaderMap) -> Response {
    match switchboard_console::file(uri.path()) {
        Some(file) => page(file, &headers),
        None => nothing_there(uri).await.into_response(),
    }
}

fn page(file: &'static File, asked: &HeaderMap) -> Response {
    let known = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|tags| is_among(file.etag, tags.to_str().unwrap_or_default()));
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = HeaderValue::from_static(file.content_type);
        ([(CONTENT_TYPE, kind)], Body::from(file.bytes)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_static(file.etag));
    // Browsers store the file, but revalidate it each time: the next gateway may have another one.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for (name, value) in HEADERS {
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

fn is_among(etag: &str, tags: &str) -> bool {
    let mut tags = tags.split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
