//! The reasons why a sign-in fails.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Algorithm, shown};

/// The fault of a document that is not JSON.
const NO_JSON: &str = "not JSON";

/// The endpoint that issues the codes of users.
pub(crate) const CODE_ENDPOINT: &str = "device authorization endpoint";

/// The reason why a user is not signed in. Texts of other parties are cut, and have no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request got no usable response.
    #[error("cannot fetch the {document}: {reason}")]
    Unreachable {
        /// The document or the result that was requested.
        document: Cow<'static, str>,
        /// The cause.
        reason: String,
    },
    /// A document cannot be read.
    #[error("the metadata of the {party} cannot be read: {reason}")]
    Metadata {
        /// The party that published it.
        party: Cow<'static, str>,
        /// The fault.
        reason: String,
    },
    /// The metadata is that of another server.
    #[error(
        "the server's metadata is about another resource, `{}`",
        shown(resource)
    )]
    OtherResource {
        /// The resource in the metadata.
        resource: String,
    },
    /// The metadata is that of another issuer.
    #[error(
        "the metadata of the authorization server `{}` names another issuer, `{}`",
        shown(expected),
        shown(found)
    )]
    OtherIssuer {
        /// The issuer that was looked up.
        expected: String,
        /// The issuer in the metadata.
        found: String,
    },
    /// The server is not reached over TLS.
    #[error("the server's URL is not https, so tokens could be stolen on the way")]
    Insecure,
    /// There is no client that could sign in for itself.
    #[error("no client is configured that could sign in for itself")]
    NoClient,
    /// The private key of the client cannot be used.
    #[error("the private key of the client cannot be used: {reason}")]
    BadKey {
        /// The fault. Nothing of the key is in it.
        reason: String,
    },
    /// The authorization server accepts no signatures of this kind.
    #[error(
        "the authorization server `{}` does not accept signatures with {algorithm}",
        shown(issuer)
    )]
    KeyNotAccepted {
        /// The authorization server.
        issuer: String,
        /// The algorithm of the key.
        algorithm: Algorithm,
    },
    /// Tokens cannot be bound to a key, which the server demands.
    #[error(
        "the server demands tokens that are bound to a key, and the authorization server `{}` supports no such keys with ES256",
        shown(issuer)
    )]
    NoProof {
        /// The authorization server.
        issuer: String,
    },
    /// The assertion of the client, or the ID token for its identity provider, cannot be read.
    #[error("the client has no assertion: {reason}")]
    NoAssertion {
        /// The cause.
        reason: String,
    },
    /// The identity provider issues no assertion.
    #[error("the identity provider does not vouch for the user: {}", shown(code))]
    NotVouched {
        /// The error code of OAuth, or the HTTP status.
        code: String,
        /// The HTTP status.
        status: u16,
        /// The identity provider's own description.
        said: Option<String>,
    },
    /// The server names no authorization server, or none that can be used.
    #[error("the server names no authorization server that can be used")]
    NoAuthorizationServer,
    /// The authorization server does not support PKCE with S256.
    #[error(
        "the authorization server `{}` does not support PKCE with S256, so codes could be stolen",
        shown(issuer)
    )]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// An endpoint is missing from the metadata, or its address must not be used.
    #[error(
        "the authorization server `{}` has no usable {endpoint}",
        shown(issuer)
    )]
    NoEndpoint {
        /// The authorization server.
        issuer: String,
        /// The endpoint.
        endpoint: Cow<'static, str>,
    },
    /// Clients cannot register themselves.
    #[error(
        "the authorization server `{}` does not let clients register themselves",
        shown(issuer)
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server refused a request.
    #[error("the authorization server refused {request}: {}", shown(code))]
    Refused {
        /// The refused request.
        request: Cow<'static, str>,
        /// The error code of OAuth, or the HTTP status.
        code: String,
        /// The HTTP status, unless the refusal came through the browser.
        status: Option<u16>,
        /// The authorization server's own description.
        said: Option<String>,
    },
    /// The user, or a policy, denied the request.
    #[error("access was denied")]
    Denied {
        /// The authorization server's own description.
        said: Option<String>,
    },
    /// The response to the authorization request belongs to another one, or is forged.
    #[error("the response in the browser does not belong to this sign-in")]
    WrongState,
    /// The response to the authorization request is from another authorization server.
    #[error(
        "the response in the browser is from another authorization server than `{}`",
        shown(expected)
    )]
    WrongIssuer {
        /// The authorization server that was asked.
        expected: String,
    },
    /// The response to the authorization request has neither a code nor an error.
    #[error("the response in the browser has no code")]
    NoCode,
    /// The page that the browser is redirected to cannot be opened.
    #[error("cannot listen for the browser{}: {reason}", at(redirect_uri.as_deref()))]
    NoListener {
        /// The configured redirect URI.
        redirect_uri: Option<String>,
        /// The cause.
        reason: String,
    },
    /// The sign-in cannot be stored.
    #[error("cannot store the sign-in: {reason}")]
    NotSaved {
        /// The cause.
        reason: String,
    },
    /// The user did not finish in time.
    #[error("the sign-in was not finished in time")]
    Expired,
    /// The sign-in was cancelled.
    #[error("the sign-in was cancelled")]
    Cancelled,
    /// The user cannot be sent to the page of the authorization server.
    #[error("the authorization server sent no usable code for the user: {reason}")]
    BadCode {
        /// The fault.
        reason: Cow<'static, str>,
    },
    /// The tokens in the response cannot be used.
    #[error("the authorization server sent no usable token: {reason}")]
    BadToken {
        /// The fault.
        reason: String,
    },
    /// The server refuses a new token as well.
    #[error("the server refuses the token that was issued for it")]
    StillRefused,
    /// The server asked for more scopes too often.
    #[error("the server keeps asking for the scopes `{}`", shown(scopes))]
    TooManyStepUps {
        /// The scopes.
        scopes: String,
    },
    /// The refresh token is no longer valid.
    #[error("the sign-in has expired or was revoked")]
    SignedOut {
        /// The authorization server's own description.
        said: Option<String>,
    },
}

fn at(redirect_uri: Option<&str>) -> String {
    redirect_uri.map_or_else(String::new, |uri| format!(" at `{}`", shown(uri)))
}

impl Error {
    pub(crate) fn metadata(party: &'static str, reason: &serde_json::Error) -> Self {
        // The text of the error may quote the document.
        let reason = match reason.classify() {
            serde_json::error::Category::Data => "a field is missing or has another type",
            serde_json::error::Category::Eof => "it ends too early",
            serde_json::error::Category::Io | serde_json::error::Category::Syntax => NO_JSON,
        };
        Self::Metadata {
            party: party.into(),
            reason: reason.to_owned(),
        }
    }

    /// Tests if a document is something else than JSON, such as a page for people.
    pub(crate) fn is_no_json(&self) -> bool {
        matches!(self, Self::Metadata { reason, .. } if reason == NO_JSON)
    }

    /// Tests if the same request may succeed later, without an action of the user.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { code, status, .. } => {
                let named = ["temporarily_unavailable", "server_error"];
                named.contains(&&**code) || matches!(status, Some(429 | 500..=599))
            }
            Self::NotVouched { status, .. } => matches!(status, 429 | 500..=599),
            _ => false,
        }
    }

    /// The advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "check the network connection, then try again",
            Self::Metadata { .. } | Self::NoAuthorizationServer => {
                "this is a fault of the server's setup: report it to its operator"
            }
            Self::OtherIssuer { .. } => {
                "report this fault to the server's operator; if the provider documents the address of its metadata, set `oauth.metadataUrl`"
            }
            Self::OtherResource { .. } => {
                "check that the server's URL in the configuration is the one that its documentation names"
            }
            Self::NoPkce { .. } => {
                "if the provider's documentation says that it supports PKCE, set `oauth.assumePkce` of the server; else, ask the operator for a token for the `Authorization` header"
            }
            Self::NoEndpoint { endpoint, .. } if endpoint == CODE_ENDPOINT => {
                "the provider does not support codes: remove `oauth.grant` of the server"
            }
            Self::NoEndpoint { .. } | Self::NoProof { .. } => {
                "ask the operator for another way to sign in, such as a token for the `Authorization` header"
            }
            Self::Insecure => "use the https URL of the server",
            Self::NoRegistration { .. } | Self::NoClient => {
                "register an application with the provider, and set `oauth.clientId` (and `clientSecret`) of the server"
            }
            Self::Refused { code, .. } if code == "invalid_target" => {
                "the provider rejects the `resource` parameter: set `oauth.resource` to false, or to the value that it documents"
            }
            Self::BadKey { .. } => {
                "set `oauth.privateKey` to a key of RSA or P-256 in PKCS#8 and PEM, which `openssl pkcs8 -topk8 -nocrypt` writes"
            }
            Self::KeyNotAccepted { .. } => {
                "register another key with the provider: one on the curve P-256 signs with ES256, one of RSA with RS256"
            }
            Self::NoAssertion { .. } => {
                "check that the file named in `oauth` is there, that it can be read, and that it has a token"
            }
            Self::NotVouched { .. } => {
                "have the file `idTokenFile` renewed, which expires with your session at the identity provider, or ask its administrator for access"
            }
            Self::Refused { .. } => {
                "check `oauth` in the configuration of the server: client, redirect URI and scopes"
            }
            Self::Denied { .. } => "sign in again and grant access, or ask for access",
            Self::WrongState | Self::WrongIssuer { .. } | Self::NoCode => {
                "start the sign-in again, and use only the page that it opens"
            }
            Self::NoListener { .. } => {
                "end the program that uses the port, or set another `oauth.redirectUri`"
            }
            Self::NotSaved { .. } => {
                "make room for it, or make the directory writable, then try again"
            }
            Self::Expired | Self::Cancelled | Self::SignedOut { .. } => "sign in again",
            Self::BadCode { .. } => {
                "report this fault to the operator of the server; without `oauth.grant`, you sign in with a browser on this machine"
            }
            Self::BadToken { .. } | Self::StillRefused => {
                "sign in again; if that fails, report it to the operator of the server"
            }
            Self::TooManyStepUps { .. } => "ask the operator which scopes your account may have",
        }
    }

    /// The description that the authorization server sent. It is text of another party.
    pub fn said(&self) -> Option<&str> {
        match self {
            Self::Refused { said, .. }
            | Self::Denied { said }
            | Self::NotVouched { said, .. }
            | Self::SignedOut { said } => said.as_deref(),
            _ => None,
        }
    }
}
