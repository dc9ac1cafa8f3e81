//! The tokens of clients.

use std::time::SystemTime;

use switchboard_config::{Config, Home, shell_word};
use switchboard_tokens::Token;

use super::Finding;
use crate::token;

/// Warns about tokens that cannot be used, and reports a file that cannot be read.
pub(super) fn look(home: &Home, config: &Config) -> Vec<Finding> {
    let tokens = match token::read(home) {
        Ok(tokens) => tokens,
        Err(error) => return vec![Finding::of("tokens", &error)],
    };
    let servers = config.clone().with_memory().servers;
    let finding = |token: &Token| {
        let name = &token.name;
        let (why, fix) = if let Some(profile) = &token.profile
            && !config.profiles.contains_key(profile)
        {
            let why = format!("is held to the profile `{profile}`, which does not exist");
            (why, "add the profile, or revoke the token")
        } else if let Some(server) = token
            .servers
            .iter()
            .find(|name| !servers.contains_key(*name))
        {
            let why = format!("is held to the server `{server}`, which does not exist");
            (why, "add the server, or revoke the token")
        } else if token.is_expired(SystemTime::now()) {
            ("has expired".to_owned(), "rotate it, or revoke it")
        } else {
            return None;
        };
        Some(Finding::warning(
            "tokens",
            format!("the token `{name}` {why}"),
            format!("{fix} with `switchboard token revoke {}`", shell_word(name)),
        ))
    };
    tokens.iter().filter_map(finding).collect()
}
