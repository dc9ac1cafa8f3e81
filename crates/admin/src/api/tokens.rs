//! The tokens of clients and scripts.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Extension, Path, State},
};
use hyper::StatusCode;
use serde_json::json;
use switchboard_base::{
    audit::{Actor, Event, Reservation},
    error::cut,
    tokens::{details, shown},
};
use switchboard_core::tokens;
use switchboard_inbound::problem::Problem;
use switchboard_rest::tokens::{IssuedToken, NewToken, Tokens};
use switchboard_tokens::{New, Right, Rights, TokenError};

use super::{
    ask::{Said, directory},
    lacks,
};
use crate::admin::Admin;

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Tokens> {
    let tokens = admin.core.tokens.list().iter().map(shown).collect();
    Json(Tokens { tokens })
}

pub(super) async fn create(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Extension(own): Extension<Rights>,
    Said(new): Said<NewToken>,
) -> Result<(StatusCode, Json<IssuedToken>), Problem> {
    let new = read(new).await?;
    check_rights(own, new.rights)?;
    completed(async move {
        let core = &admin.core;
        let config = core.config.load_full();
        let profiles = config.profiles.keys().map(String::as_str);
        let servers = config.servers.keys().map(String::as_str);
        new.check_scope(profiles, servers)?;
        let (name, details) = (new.name.clone(), details(&new));
        let room = core.audit.room().await?;
        let token = core.tokens.create(new).await?;
        record(room, "token-created", &name, actor, details);
        Ok((StatusCode::CREATED, issued(&admin, &name, token)?))
    })
    .await
}

pub(super) async fn revoke(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    completed(async move {
        let room = admin.core.audit.room().await?;
        admin.core.tokens.revoke(&name).await?;
        record(room, "token-revoked", &name, actor, json!({}));
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

pub(super) async fn rotate(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Extension(own): Extension<Rights>,
    Path(name): Path<String>,
) -> Result<Json<IssuedToken>, Problem> {
    let known = admin.core.tokens.list();
    if let Some(token) = known.iter().find(|token| token.name == name) {
        check_rights(own, token.rights)?;
    }
    completed(async move {
        let room = admin.core.audit.room().await?;
        let token = admin.core.tokens.rotate(&name).await?;
        record(room, "token-rotated", &name, actor, json!({}));
        issued(&admin, &name, token)
    })
    .await
}

/// Completes a change, even if its sender disconnects.
async fn completed<T: Send + 'static>(
    change: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::spawn(change).await;
    done.unwrap_or_else(|_| Err(tokens::ChangeError::Stopping.into()))
}

/// Checks that the sender issues no token with a right that it lacks.
fn check_rights(own: Rights, issued: Rights) -> Result<(), Problem> {
    match issued.iter().find(|right| !own.has(*right)) {
        None => Ok(()),
        Some(right) => Err(lacks(right, &[right])),
    }
}

fn record(
    room: Reservation,
    what: &'static str,
    name: &str,
    actor: Actor,
    details: serde_json::Value,
) {
    room.record([Event {
        what,
        subject: name.into(),
        actor: Some(actor),
        details,
    }]);
}

async fn read(new: NewToken) -> Result<New, Problem> {
    let right = |word: &String| {
        Right::parse(word).ok_or_else(|| {
            let words = Right::ALL.map(Right::as_str).join(", ");
            let detail = format!("there is no right `{}`", cut(word));
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
                .hint(format!("use one of {words}"))
        })
    };
    let rights = match &new.rights {
        None => Rights::from_iter([Right::Call]),
        Some(words) => words.iter().map(right).collect::<Result<_, _>>()?,
    };
    let project = match new.project {
        None => None,
        Some(path) => Some(directory(path).await?),
    };
    Ok(New {
        name: new.name,
        rights,
        profile: new.profile,
        servers: new.servers.unwrap_or_default(),
        project,
        lifetime: new.expires_in_seconds.map(Duration::from_secs),
    })
}

fn issued(admin: &Admin, name: &str, token: String) -> Result<Json<IssuedToken>, Problem> {
    let all = admin.core.tokens.list();
    let about = all.iter().find(|token| token.name == name).map(shown);
    // Another request may have revoked it already.
    let about = about.ok_or_else(|| TokenError::Missing(name.to_owned()))?;
    Ok(Json(IssuedToken { token, about }))
}
