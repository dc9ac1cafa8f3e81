//! Tokens of clients and scripts.

use serde::{Deserialize, Serialize};

use crate::{Time, words::Right};

/// The tokens, oldest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The name.
    pub name: String,
    /// The things that it permits.
    #[serde(default)]
    pub rights: Vec<Right>,
    /// The profile that it is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The servers that it is held to; every server, if omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The directory that its clients work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The time of its creation, or of its last rotation.
    #[serde(default)]
    pub created_at: Time,
    /// The time from which on it is rejected; never, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The time of its last use; unused, if omitted. It is saved once a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Time>,
    /// The name that its last client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// It has expired.
    #[serde(default)]
    pub is_expired: bool,
}

/// A token to create.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// The name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The things that it permits: `call`, `approve` or `admin`. Only `call`, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Vec<String>>,
    /// The profile that it is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The servers that it is held to; every server, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// The directory that its clients work in, for servers with `share`: `project` or `${project}` in their
    /// entry. An absolute path. Over HTTP, an address may name a directory below it with `?project=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The time after which it is rejected; never, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub expires_in_seconds: Option<u64>,
}

/// A token that was created or rotated.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IssuedToken {
    /// The token. It is shown only here.
    pub token: String,
    /// Its entry.
    pub about: Token,
}
