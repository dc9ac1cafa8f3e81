//! The way into the console: links with a key, and the key for a session.

use std::{sync::Arc, time::SystemTime};

use axum::{
    Json,
    extract::{Request, State},
};
use hyper::{StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};

use super::ask::read_json;
use crate::{console::Refused, edge::gate, gateway::Gateway, problem::Problem, time};

/// The longest body of who is not known yet.
const BODY_BYTES: usize = 4 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignedIn {
    token: String,
    #[serde(serialize_with = "time::rfc3339")]
    expires_at: SystemTime,
}

/// Anybody may come here. So nothing is looked at that a page of somebody else's can have sent: a form
/// cannot say that it is JSON.
pub(super) async fn sign_in(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
) -> Result<Json<SignedIn>, Problem> {
    if gate::check_own_page(request.headers()).is_err() {
        let detail = "only the console's own page signs in: the Origin header has to be this gateway's own address";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    if !request.headers().contains_key(CONTENT_TYPE) {
        let detail = "the body has to be JSON: send it with `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let Key { key } = read_json(request, BODY_BYTES).await?;
    let context = gateway.context();
    let signed_in = context
        .console
        .sign_in(&context.lasting_seal, &key, SystemTime::now());
    match signed_in {
        Ok(session) => Ok(Json(SignedIn {
            token: session.token,
            expires_at: session.until,
        })),
        Err(Refused::Key) => {
            let detail = "this link was used before, is too old, or is of a gateway that has stopped; `switchboard console` prints a new one";
            Err(Problem::new(StatusCode::UNAUTHORIZED, detail))
        }
        Err(Refused::Crowded(after)) => {
            let detail = "too many wrong keys were tried; try again in a minute";
            Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(after))
        }
        Err(Refused::Random) => Err(no_randomness()),
    }
}

#[derive(Serialize)]
pub(super) struct Link {
    url: String,
}

pub(super) async fn link(State(gateway): State<Arc<Gateway>>) -> Result<Json<Link>, Problem> {
    let Some(address) = gateway.address() else {
        let detail = "this gateway listens on its socket only, so that no browser can reach it; end it, and `switchboard serve` starts one with a console";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    let url = gateway.console_link(address).ok_or_else(no_randomness)?;
    Ok(Json(Link { url }))
}

fn no_randomness() -> Problem {
    let detail = "the system gives no random numbers; try again";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}
