//! The responses of the token endpoint.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{Credential, Error, Response, Secret, Tokens, challenge, shown};

/// The response to a token request, as far as it matters.
#[derive(Deserialize)]
struct Issued {
    access_token: Secret,
    // The others may be malformed: a response that is discarded is a login that is lost.
    #[serde(default)]
    token_type: Value,
    #[serde(default)]
    expires_in: Value,
    #[serde(default, deserialize_with = "secret_or_nothing")]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Value,
}

/// An error of OAuth.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
}

/// Reads the tokens in a response. Members that are missing are those of the former tokens, or of the request.
pub(crate) fn read(
    now: u64,
    response: &Response<'_>,
    former: Option<&Tokens>,
    credential: &Credential,
) -> Result<Tokens, Error> {
    check("the request for a token", response)?;
    let bad = |reason: &str| Error::BadToken {
        reason: reason.to_owned(),
    };
    let issued: Issued =
        serde_json::from_slice(response.body).map_err(|_| bad("the response has none"))?;
    let is = |kind: &str| {
        issued
            .token_type
            .as_str()
            .is_some_and(|it| it.eq_ignore_ascii_case(kind))
    };
    let (is_bound, may_be_bound) = (is("dpop"), credential.proof_key.is_some());
    if is("pop") || is("mac") || (is_bound && !may_be_bound) {
        return Err(bad("it is not a bearer token"));
    }
    if may_be_bound && !is_bound {
        return Err(bad(
            "it is not bound to the client's key, as the server demands",
        ));
    }
    let is_sendable =
        |token: &str| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    if !is_sendable(issued.access_token.expose()) {
        return Err(bad("it has characters that cannot be sent"));
    }
    // Zero would mean that the token is useless: nothing is known about its lifetime.
    let lifetime = seconds(&issued.expires_in).filter(|&lifetime| lifetime > 0);
    // A server that sends no new refresh token continues to accept the old one.
    let refresh = issued
        .refresh_token
        .filter(|token| !token.expose().is_empty());
    let refresh = refresh.or_else(|| former.and_then(|former| former.refresh.clone()));
    let scopes = match (issued.scope.as_str(), former) {
        (Some(scope), _) => scope.split_ascii_whitespace().map(str::to_owned).collect(),
        (None, Some(former)) => former.scopes.clone(),
        (None, None) => credential.scopes.clone(),
    };
    Ok(Tokens {
        access: issued.access_token,
        refresh,
        issued: now,
        expires: lifetime.map(|lifetime| now.saturating_add(lifetime)),
        scopes,
        is_bound,
    })
}

/// Checks that a request was not refused. Some servers report errors with the status 200.
pub(crate) fn check(request: &'static str, response: &Response<'_>) -> Result<(), Error> {
    let read = serde_json::from_slice::<Refusal>(response.body);
    let is_refused = read.is_ok_and(|refusal| !refusal.error.is_empty());
    if is_refused || !matches!(response.status, 200 | 201) {
        return Err(refusal(request, response));
    }
    Ok(())
}

/// Reads the assertion in a response of an identity provider, which exchanges tokens (RFC 8693).
pub(crate) fn read_vouched(response: &Response<'_>) -> Result<Secret, Error> {
    if let Ok(issued) = serde_json::from_slice::<Issued>(response.body)
        && matches!(response.status, 200 | 201)
    {
        return Ok(issued.access_token);
    }
    let (code, said) = told(response);
    Err(Error::NotVouched {
        code,
        status: response.status,
        said,
    })
}

fn secret_or_nothing<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text.into()),
        _ => None,
    })
}

/// The error in a response that refuses a request.
pub(crate) fn refusal(request: &'static str, response: &Response<'_>) -> Error {
    let (code, said) = told(response);
    Error::Refused {
        request: request.into(),
        code,
        status: Some(response.status),
        said,
    }
}

/// Tests if a response demands a nonce in the proof.
pub(crate) fn demands_nonce(response: &Response<'_>) -> bool {
    matches!(response.status, 400 | 401) && told(response).0 == challenge::NONCE
}

/// The code and the description of an error.
fn told(response: &Response<'_>) -> (String, Option<String>) {
    match serde_json::from_slice::<Refusal>(response.body) {
        Ok(read) => (
            shown(&read.error),
            read.error_description.as_deref().and_then(excerpt),
        ),
        Err(_) => (format!("HTTP {}", response.status), None),
    }
}

/// A refusal of a request with this secret, without the texts that repeat it. They are searched before they are cut.
pub(crate) fn without_secret(refusal: Error, response: &Response<'_>, secret: &Secret) -> Error {
    let read = serde_json::from_slice::<Refusal>(response.body).ok();
    let repeats = |text: &str| text.contains(secret.expose());
    let description = read.as_ref().and_then(|it| it.error_description.as_deref());
    let (hides_code, hides_description) = (
        read.as_ref().is_some_and(|it| repeats(&it.error)),
        description.is_some_and(repeats),
    );
    match refusal {
        Error::Refused {
            request,
            code,
            status,
            said,
        } => Error::Refused {
            request,
            code: if hides_code {
                "an error that repeats a secret".to_owned()
            } else {
                code
            },
            status,
            said: said.filter(|_| !hides_description),
        },
        other => other,
    }
}

/// The beginning of a text of another party, if it is not empty.
pub(crate) fn excerpt(text: &str) -> Option<String> {
    Some(shown(text)).filter(|text| !text.is_empty())
}

/// A number of seconds, which some servers send as text.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let seconds = value.as_f64()?;
        // The conversion saturates.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        (seconds >= 0.0).then_some(seconds as u64)
    });
    number.or_else(|| value.as_str()?.trim().parse().ok())
}
