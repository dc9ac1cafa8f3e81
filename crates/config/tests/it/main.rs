//! Tests of the public interface: texts and files in, a model or messages out.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod edit;
mod files;
mod home;
mod hostile;
mod keys;
mod messages;
mod pasted;
mod resolve;
mod schema;

use switchboard_config::{Config, Server, parse};

/// Parses a valid configuration.
fn config(text: &str) -> Config {
    parse(text, "switchboard.json").unwrap_or_else(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}\nin {text}", lines.join("\n"))
    })
}

/// Parses a valid entry of a server.
fn server(entry: &str) -> Server {
    config(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#)).servers["s"].clone()
}

/// The malformed reference of an entry in a text that is valid otherwise.
fn malformed(text: &str, server: &str) -> Option<String> {
    let config = config(text);
    let malformed = config.servers[server].malformed.as_ref();
    malformed.map(ToString::to_string)
}

/// The problems of a text, one line each.
fn problems(text: &str) -> Vec<String> {
    match parse(text, "switchboard.json") {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}
