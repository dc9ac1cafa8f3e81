//! Errors of the REST interface: RFC 9457 problems.

mod from;

pub use self::from::{configuration, refuse_if_stopping};

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    response::{IntoResponse, Response as AxumResponse},
};
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use switchboard_rest as rest;

use crate::edge::body::Answer;

/// An error, and advice for the user.
#[derive(Debug)]
pub struct Problem {
    body: Box<rest::Problem>,
    retry_after: Option<Duration>,
}

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Added before a truncation, to round up.
const ALMOST_A_SECOND: Duration = Duration::from_nanos(999_999_999);

impl Problem {
    /// A problem with this status.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let body = rest::Problem {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Problem").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            ..rest::Problem::default()
        };
        Self {
            body: body.into(),
            retry_after: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.body.hint = Some(hint.into());
        self
    }

    /// Sets the advice, if there is any.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<Cow<'_, str>>) -> Self {
        self.body.hint = hint.map(Cow::into_owned);
        self
    }

    /// Sets further members.
    #[must_use]
    pub fn with(mut self, set: impl FnOnce(&mut rest::Problem)) -> Self {
        set(&mut self.body);
        self
    }

    /// The body of the response.
    pub fn body(&self) -> &rest::Problem {
        &self.body
    }

    /// Sets the time after which the same request may succeed.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub(crate) fn into_answer(self) -> Response<Answer> {
        self.into_response().map(Answer::Page)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> AxumResponse {
        let status =
            StatusCode::from_u16(self.body.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Whole seconds, and at least one, so that the state can have changed.
        let retry_after = self
            .retry_after
            .map(|after| HeaderValue::from(after.saturating_add(ALMOST_A_SECOND).as_secs().max(1)));
        let mut response = (status, Json(self.body)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, MEDIA_TYPE);
        if let Some(after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, after);
        }
        response
    }
}
