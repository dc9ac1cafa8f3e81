//! Sign-in to the console.

use serde::{Deserialize, Serialize};

use crate::Time;

/// The key of a sign-in link.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The key.
    pub key: String,
}

/// A session of the console.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignedIn {
    /// The token of the session. It works like the gateway's token, except for MCP.
    pub token: String,
    /// The time at which the session ends.
    pub expires_at: Time,
}

/// A challenge for the gateway.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Challenge {
    /// The ID of the session: its token up to the dot.
    pub session: String,
    /// A random string.
    #[cfg_attr(test, schemars(length(min = 16, max = 128)))]
    pub nonce: String,
}

/// The proof that this gateway opened a session.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proof {
    /// The HMAC-SHA-256, in hexadecimal digits, of `switchboard console`, a newline and the nonce. The key is
    /// the part of the token after the dot.
    pub proof: String,
}

/// A link that opens the console.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// The address, with the key in its fragment.
    #[cfg_attr(
        test,
        schemars(example = "http://0123456789abcdef0123456789abcdef.localhost:7777/#sign-in=KEY")
    )]
    pub url: String,
}

/// The sessions of the console, oldest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sessions {
    /// The sessions.
    pub sessions: Vec<Session>,
}

/// A session of the console in a list.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The ID: the session's token up to the dot.
    pub id: String,
    /// The time of the sign-in.
    pub signed_in_at: Time,
    /// The time of the last request.
    pub used_at: Time,
    /// The time at which the session ends.
    pub expires_at: Time,
}

/// The sessions to end.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SignOut {
    /// End every session, and revoke every link that has not been used.
    #[serde(default)]
    pub all: bool,
    /// The ID of a session. Default: the session of the request.
    pub session: Option<String>,
}

/// The result of signing out.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedOut {
    /// The number of sessions that ended.
    pub ended: u64,
}
