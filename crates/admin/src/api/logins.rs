//! Sign-ins to servers.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Extension, State},
};
use hyper::StatusCode;
use serde_json::json;
use switchboard_base::{
    audit::{Actor, Event},
    time,
};
use switchboard_inbound::problem::{Problem, refuse_if_stopping};
use switchboard_outbound::{sign_in::SignInError, upstream::Upstream};
use switchboard_rest::logins::{Login, LoginCallback, LoginPage, LoginProgress, Logins};
use tokio::{task::spawn_blocking, time::timeout};

use super::ask::{Named, Said};
use crate::admin::Admin;

/// The longest wait for the end of a sign-in. The client asks again.
const WAIT: Duration = Duration::from_secs(2);

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Logins>, Problem> {
    let listed = spawn_blocking(move || {
        let config = admin.core.config.load_full();
        admin.core.deps().sign_ins.list(&config)
    });
    let logins = listed.await.map_err(|error| unreadable(&error))?;
    Ok(Json(Logins { logins }))
}

pub(super) async fn start(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
) -> Result<Json<LoginPage>, Problem> {
    refuse_if_stopping(&admin.core)?;
    let room = admin.core.audit.room().await?;
    let page = upstream.sign_in().await.map_err(|error| problem(&error))?;
    room.record([Event {
        what: "login-started",
        subject: Arc::clone(&upstream.name),
        actor: Some(actor),
        details: json!({}),
    }]);
    Ok(Json(page.map_or_else(LoginPage::default, |page| {
        let shown = LoginPage {
            url: Some(page.url),
            expires_at: Some(time::shown(page.until)),
            ..LoginPage::default()
        };
        match page.code {
            None => shown,
            Some(code) => LoginPage {
                code: Some(code.text),
                complete_url: code.complete.map(Into::into),
                provider: Some(code.provider),
                other_host: code.other_host,
                ..shown
            },
        }
    })))
}

/// Waits a while for the end of the sign-in.
pub(super) async fn show(Named(upstream): Named) -> Result<Json<LoginProgress>, Problem> {
    let is_done = match timeout(WAIT, upstream.finish_sign_in()).await {
        Ok(Ok(()) | Err(SignInError::NotStarted(_))) => true,
        Ok(Err(error)) => return Err(problem(&error)),
        Err(_) => false,
    };
    let login = shown(upstream).await?;
    Ok(Json(LoginProgress { is_done, login }))
}

pub(super) async fn callback(
    Named(upstream): Named,
    Said(LoginCallback { url }): Said<LoginCallback>,
) -> Result<StatusCode, Problem> {
    let sign_ins = &upstream.deps.sign_ins;
    let checked = sign_ins.callback(&upstream.name, url).await;
    checked.map_err(|error| problem(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn end(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Named(upstream): Named,
) -> Result<Json<Login>, Problem> {
    refuse_if_stopping(&admin.core)?;
    let room = admin.core.audit.room().await?;
    upstream.sign_out().await.map_err(|error| problem(&error))?;
    room.record([Event {
        what: "logged-out",
        subject: Arc::clone(&upstream.name),
        actor: Some(actor),
        details: json!({}),
    }]);
    Ok(Json(shown(upstream).await?))
}

/// The sign-in to a server.
async fn shown(upstream: Arc<Upstream>) -> Result<Login, Problem> {
    let shown = spawn_blocking(move || upstream.deps.sign_ins.show(&upstream.name));
    shown.await.map_err(|error| unreadable(&error))
}

fn unreadable(error: &tokio::task::JoinError) -> Problem {
    let detail = format!("cannot read the sign-in: {error}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

/// The problem of a sign-in that failed.
fn problem(error: &SignInError) -> Problem {
    let status = match error {
        SignInError::NotStarted(_) => StatusCode::NOT_FOUND,
        SignInError::Failed(_) => StatusCode::BAD_GATEWAY,
        SignInError::Local(_)
        | SignInError::Header(_)
        | SignInError::Disabled(_)
        | SignInError::Held(_)
        | SignInError::Entry(_)
        | SignInError::TooMany(_)
        | SignInError::Address(_)
        | SignInError::Stopped => StatusCode::CONFLICT,
    };
    Problem::new(status, error.told()).maybe_hint(error.hint().map(Into::into))
}
