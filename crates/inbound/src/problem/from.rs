//! Converts failed calls and failed changes to HTTP responses. The only place where such an error
//! becomes a status.

use std::time::Duration;

use hyper::StatusCode;
use switchboard_base::{audit::NoRoom, error::Error};
use switchboard_client::Raw;
use switchboard_config::{ConfigError, Diagnostic, EditError};
use switchboard_core::{
    core::{ChangeError, Core},
    tokens,
};
use switchboard_store::StoreError;
use switchboard_tokens::TokenError;

use super::Problem;

/// Delay before a retry that may soon succeed.
const SOON: Duration = Duration::from_secs(1);

impl From<tokens::ChangeError> for Problem {
    fn from(error: tokens::ChangeError) -> Self {
        match error {
            tokens::ChangeError::Token(error) => error.into(),
            tokens::ChangeError::File(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                let detail = format!("nothing has changed: {error}{cause}");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail).hint(error.hint())
            }
            tokens::ChangeError::Stopping => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
                    .hint("try again when the gateway is running again")
            }
        }
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let status = match &error {
            TokenError::Missing(_) => StatusCode::NOT_FOUND,
            TokenError::Taken(_) | TokenError::TooMany(_) => StatusCode::CONFLICT,
            TokenError::Random => StatusCode::INTERNAL_SERVER_ERROR,
            TokenError::Name
            | TokenError::TooManyServers(_)
            | TokenError::NoProfile(..)
            | TokenError::NoServer(..)
            | TokenError::NoRight
            | TokenError::Project
            | TokenError::LimitedAdmin
            | TokenError::Lifetime => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, error.to_string()).maybe_hint(error.hint())
    }
}

impl From<Error> for Problem {
    fn from(failure: Error) -> Self {
        let (detail, hint) = failure.parts();
        let new = |status| Self::new(status, &*detail).maybe_hint(hint.as_deref().map(Into::into));
        match failure {
            Error::Answered(error) => {
                let detail = format!("the server responded with an error: {}", error.message);
                Self::new(StatusCode::BAD_GATEWAY, detail).with(|body| {
                    body.code = Some(error.code);
                    body.message = Some(error.message);
                    body.data = error.data;
                })
            }
            Error::Memory(error) => {
                new(StatusCode::SERVICE_UNAVAILABLE).with(|body| body.data = error.data)
            }
            Error::Refused(_) => new(StatusCode::BAD_REQUEST),
            Error::Initializing { retry_after, .. } => {
                new(StatusCode::SERVICE_UNAVAILABLE).retry_after(retry_after)
            }
            Error::InitializationFailed { retry_after, .. } => {
                let problem = new(StatusCode::SERVICE_UNAVAILABLE);
                match retry_after {
                    Some(after) => problem.retry_after(after),
                    None => problem,
                }
            }
            Error::Indexing { retry_after } => {
                new(StatusCode::SERVICE_UNAVAILABLE).retry_after(retry_after)
            }
            Error::SearchClosed => new(StatusCode::SERVICE_UNAVAILABLE).retry_after(SOON),
            Error::SignInOutage { retry_after, .. } => {
                new(StatusCode::SERVICE_UNAVAILABLE).retry_after(retry_after)
            }
            Error::NeedsSignIn { .. }
            | Error::Disabled { .. }
            | Error::NoProject { .. }
            | Error::Unapproved { .. } => new(StatusCode::CONFLICT),
            Error::NotConnected { .. } => new(StatusCode::SERVICE_UNAVAILABLE).retry_after(SOON),
            Error::Busy { .. } | Error::TooManyInstances { .. } | Error::Crowded => {
                new(StatusCode::TOO_MANY_REQUESTS).retry_after(SOON)
            }
            Error::Denied { .. } | Error::Rejected { .. } => new(StatusCode::FORBIDDEN),
            Error::Unasked { .. } => new(StatusCode::SERVICE_UNAVAILABLE).retry_after(SOON),
            Error::TimedOut { .. } | Error::Unanswered { .. } => new(StatusCode::GATEWAY_TIMEOUT),
            Error::Lost { .. } | Error::Broken { .. } | Error::Input { .. } | Error::Cancelled => {
                new(StatusCode::BAD_GATEWAY)
            }
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Edit(error) => error.into(),
            // The file was invalid before, or the change would make it so. The file stays as it is.
            ChangeError::Config(error) => configuration(StatusCode::CONFLICT, &error),
            ChangeError::Audit => NoRoom.into(),
            other => Self::new(StatusCode::INTERNAL_SERVER_ERROR, other.to_string())
                .maybe_hint(other.hint()),
        }
    }
}

impl From<NoRoom> for Problem {
    fn from(error: NoRoom) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            .hint("try again")
            .retry_after(SOON)
    }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        let status = match &error {
            EditError::Name(_) | EditError::Entry { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            EditError::Missing { .. } => StatusCode::NOT_FOUND,
            EditError::Exists { .. } | EditError::Text { .. } | EditError::Shape { .. } => {
                StatusCode::CONFLICT
            }
        };
        let problem = Self::new(status, error.to_string()).maybe_hint(error.hint());
        match &error {
            EditError::Text { problems } => {
                problem.with(|body| body.problems = Some(list(problems)))
            }
            _ => problem,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).maybe_hint(error.hint());
        if error.is_retryable() {
            problem.retry_after(SOON)
        } else {
            problem
        }
    }
}

/// A configuration that cannot be read or is invalid, with all its problems.
pub fn configuration(status: StatusCode, error: &ConfigError) -> Problem {
    let problem = match error {
        ConfigError::Invalid { problems } => Problem::new(status, error.to_string())
            .with(|body| body.problems = Some(list(problems))),
        ConfigError::Read { source, .. } => Problem::new(status, format!("{error}: {source}")),
        ConfigError::Unsafe { .. } => Problem::new(status, error.to_string()),
    };
    problem.maybe_hint(error.hint())
}

fn list(problems: &[Diagnostic]) -> Raw {
    let problems: Vec<_> = problems
        .iter()
        .map(|problem| {
            serde_json::json!({
                "file": problem.file,
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
                "hint": problem.hint,
            })
        })
        .collect();
    raw(&problems)
}

/// Rejects changes while the gateway stops.
pub fn refuse_if_stopping(core: &Core) -> Result<(), Problem> {
    if core.lifecycle.is_stopping() {
        let detail = "the gateway is stopping and accepts no more changes";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            .hint("try again when the gateway is running again"));
    }
    Ok(())
}

fn raw(value: &impl serde::Serialize) -> Raw {
    // Numbers, strings and lists of them always serialize.
    Raw::from_value(value).unwrap_or_else(|_| Raw::empty_object())
}
