//! Tokens as the REST interface and the command line show them.

use std::time::SystemTime;

use serde_json::{Value, json};
use switchboard_rest::tokens as rest;
use switchboard_tokens::{New, Token};

use crate::time;

/// The entry of a token.
pub fn shown(token: &Token) -> rest::Token {
    let rights = token.rights.iter();
    rest::Token {
        name: token.name.clone(),
        rights: rights.map(|right| right.as_str().into()).collect(),
        profile: token.profile.clone(),
        servers: token.servers.clone(),
        project: token.project.clone(),
        created_at: time::shown(token.created_at()),
        expires_at: token.expires_at().map(time::shown),
        used_at: token.used_at().map(time::shown),
        client: token.client.clone(),
        is_expired: token.is_expired(SystemTime::now()),
    }
}

/// A new token, as the audit log records it.
pub fn details(new: &New) -> Value {
    json!({
        "rights": new.rights,
        "profile": new.profile,
        "servers": new.servers,
        "project": new.project,
        "expiresInSeconds": new.lifetime.map(|lifetime| lifetime.as_secs()),
    })
}
