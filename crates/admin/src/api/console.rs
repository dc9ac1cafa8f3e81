//! Signing in to the console and out of it: links with a key, the exchange of the key for a session, and the
//! end of sessions.

use std::{sync::Arc, time::SystemTime};

use axum::{
    Json,
    extract::{Extension, Request, State},
};
use hyper::{StatusCode, header::CONTENT_TYPE};
use serde_json::json;
use switchboard_base::{
    audit::{Actor, Event},
    caller::{Principal, Realm},
    time,
};
use switchboard_inbound::{
    connection::Knock,
    console_auth::{NO_CONSOLE_HINT, Refused, Signed, no_console},
    edge::auth,
    problem::Problem,
};
use switchboard_rest::console::{
    Challenge, Link, Proof, Sessions, SignIn, SignOut, SignedIn, SignedOut,
};

use super::ask::{MaySay, read_json};
use crate::admin::Admin;

/// The longest body of an unauthenticated request, in bytes.
const BODY_BYTES: usize = 4 * 1024;
/// The allowed lengths of a nonce.
const NONCE_CHARS: std::ops::RangeInclusive<usize> = 16..=128;

/// Requests here need no authentication. Therefore nothing is processed that a page of another origin can
/// have sent: a form cannot claim to be JSON. The peer is looked up for a valid key only, since the lookup is
/// slow.
pub(super) async fn sign_in(
    State(admin): State<Arc<Admin>>,
    Extension(mut actor): Extension<Actor>,
    Extension(knock): Extension<Knock>,
    request: Request,
) -> Result<Json<SignedIn>, Problem> {
    let SignIn { key } = read_open(&admin, request).await?;
    let core = &admin.core;
    if !admin.inbound.console.is_key(&key, SystemTime::now()) {
        return Err(no_key());
    }
    actor.peer = knock.peer().await?;
    let room = core.audit.room().await?;
    match admin.inbound.console.sign_in(&key, SystemTime::now()) {
        Ok(session) => {
            room.record([Event {
                what: "signed-in",
                subject: session.id,
                actor: Some(actor),
                details: json!({}),
            }]);
            Ok(Json(SignedIn {
                token: session.token,
                expires_at: time::shown(session.until),
            }))
        }
        Err(Refused::Key) => Err(no_key()),
        Err(Refused::Random) => Err(no_randomness()),
    }
}

/// The page asks this before it sends its session, so that it does not send it to another program on this
/// port. A server could be that program and forward the question, so the peer of an existing session is
/// looked up.
pub(super) async fn prove(
    State(admin): State<Arc<Admin>>,
    Extension(knock): Extension<Knock>,
    request: Request,
) -> Result<Json<Proof>, Problem> {
    let Challenge { session, nonce } = read_open(&admin, request).await?;
    if !NONCE_CHARS.contains(&nonce.len()) {
        let detail = format!(
            "`nonce` must have {} to {} bytes",
            NONCE_CHARS.start(),
            NONCE_CHARS.end()
        );
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    let console = &admin.inbound.console;
    let proof = console.prove(&session, &nonce, SystemTime::now());
    let proof = proof.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "this session has ended")
            .hint("run `switchboard console` for a link to sign in again")
    })?;
    knock.peer().await?;
    Ok(Json(Proof { proof }))
}

/// Reads the body of an unauthenticated request: JSON to the console's own address, from its page or from a
/// program.
async fn read_open<T: serde::de::DeserializeOwned>(
    admin: &Admin,
    request: Request,
) -> Result<T, Problem> {
    if auth::check_own_page(admin.inbound.console_host(), request.headers()).is_err() {
        let detail = "only the console's own page can sign in";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).hint(
            "open the link that `switchboard console` prints, and keep its host name unchanged",
        ));
    }
    if !request.headers().contains_key(CONTENT_TYPE) {
        let detail = "the body must be JSON";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
            .hint("send it with `Content-Type: application/json`"));
    }
    read_json(request, BODY_BYTES).await
}

pub(super) async fn link(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Extension(realm): Extension<Realm>,
    session: Option<Extension<Signed>>,
) -> Result<Json<Link>, Problem> {
    if realm.principal != Principal::Owner {
        // A session of the console has all rights, and would outlive the token.
        let detail = "a token cannot open the console";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail)
            .hint("run `switchboard console` for a link"));
    }
    if admin.inbound.address().is_none() {
        let detail = "this gateway listens only on its socket, so no browser can reach it";
        return Err(Problem::new(StatusCode::CONFLICT, detail)
            .hint("stop it, then run `switchboard serve` for a gateway with a console"));
    }
    if let Some(taken) = admin.inbound.console_taken() {
        return Err(Problem::new(StatusCode::CONFLICT, no_console(taken)).hint(NO_CONSOLE_HINT));
    }
    let session = session.as_deref();
    let room = admin.core.audit.room().await?;
    let url = admin.inbound.console_link(session);
    let url = url.ok_or_else(no_randomness)?;
    room.record([Event {
        what: "link-made",
        subject: "console".into(),
        actor: Some(actor),
        details: json!({}),
    }]);
    Ok(Json(Link { url }))
}

pub(super) async fn sessions(State(admin): State<Arc<Admin>>) -> Json<Sessions> {
    let sessions = admin.inbound.console.sessions(SystemTime::now());
    Json(Sessions { sessions })
}

pub(super) async fn sign_out(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    own: Option<Extension<Signed>>,
    MaySay(which): MaySay<SignOut>,
) -> Result<Json<SignedOut>, Problem> {
    let own = own.as_ref().map(|session| &*session.id);
    let session = which.session.as_deref().or(own);
    if session.is_none() && !which.all {
        let detail = "there is no session to end";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
            .hint("send `session` with the ID of a session, or `all`"));
    }
    let core = &admin.core;
    let session = session.filter(|_| !which.all);
    let room = core.audit.room().await?;
    let ended = admin.inbound.console.sign_out(session, SystemTime::now());
    room.record(ended.iter().map(|id| Event {
        what: "signed-out",
        subject: Arc::clone(id),
        actor: Some(actor.clone()),
        details: json!({}),
    }));
    Ok(Json(SignedOut {
        ended: ended.len() as u64,
    }))
}

fn no_key() -> Problem {
    let detail =
        "this link was already used, has expired, or belongs to a gateway that has stopped";
    Problem::new(StatusCode::UNAUTHORIZED, detail).hint("run `switchboard console` for a new link")
}

fn no_randomness() -> Problem {
    let detail = "the system provides no random numbers";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).hint("try again")
}
