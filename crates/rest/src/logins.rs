//! Sign-ins to servers.

use serde::{Deserialize, Serialize};

use crate::Time;
pub use crate::words::LoginState;

/// The sign-ins to all servers at an address, except those with a header `Authorization`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Logins {
    /// The sign-ins, by the names of the servers.
    pub logins: Vec<Login>,
}

/// The sign-in to a server, without its tokens.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Login {
    /// The name of the server.
    pub server: String,
    /// The state.
    #[serde(default)]
    pub state: LoginState,
    /// The reason for the state, with advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The authorization server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The scopes that were granted, or asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The time at which the access token was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<Time>,
    /// The time at which the access token expires, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The access token is renewed before it expires.
    #[serde(default)]
    pub is_renewed: bool,
}

/// The page of a sign-in that was started.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginPage {
    /// The address that the user has to open in a browser. Missing if the client has signed in for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The code that the user has to enter there, in any browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The address of the page that knows the code already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_url: Option<String>,
    /// The host of the authorization server that the code is from. The page has to name the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The host of the page, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_host: Option<String>,
    /// The time until which the user has to finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// The progress of a sign-in.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginProgress {
    /// The user has finished, or no sign-in was started.
    #[serde(default)]
    pub is_done: bool,
    /// The sign-in.
    pub login: Login,
}

/// The address that a browser was redirected to.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoginCallback {
    /// The address, with its parameters.
    pub url: String,
}
