//! Errors of the REST interface: RFC 9457 problems.

use axum::{
    Json,
    response::{IntoResponse, Response as AxumResponse},
};
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;

use crate::edge::stream::Answer;

/// What went wrong, and what to do.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
}

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            detail: detail.into(),
        }
    }

    pub(crate) fn into_answer(self) -> Response<Answer> {
        self.into_response().map(Answer::Page)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> AxumResponse {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        response
    }
}
