//! The key of a server's entry that may have to be changed, by the way in which its start failed.

use switchboard_client::NO_HANDSHAKE;
use switchboard_config::{Server, Transport};

/// The names by which a server on this machine is reached, each with another one to try.
const LOOPBACK: [(&str, &str); 3] = [
    ("127.0.0.1", "localhost"),
    ("[::1]", "localhost"),
    ("localhost", "127.0.0.1"),
];

/// A reason in the gateway's own words, with advice if there is any.
pub(super) fn advised(reason: &str, server: &Server) -> String {
    match advice(reason, server) {
        Some(advice) => format!("{reason}; {advice}"),
        None => reason.to_owned(),
    }
}

fn advice(reason: &str, server: &Server) -> Option<String> {
    if reason.starts_with(NO_HANDSHAKE) {
        return Some("raise `initTimeoutMs` if it takes longer to start".to_owned());
    }
    let Transport::Remote(remote) = &server.transport else {
        return None;
    };
    // Servers that guard against DNS rebinding answer to one name only.
    let is_turned_away = reason.contains("HTTP 403") || reason.contains("HTTP 421");
    if !is_turned_away || reason.contains("wants credentials") {
        return None;
    }
    let origin = switchboard_redact::origin(&remote.url);
    let (_, host) = origin.split_once("://")?;
    let is_host = |name: &str| {
        let rest = host.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let (written, other) = LOOPBACK.into_iter().find(|(name, _)| is_host(name))?;
    Some(format!(
        "if it answers to another name only, write `{other}` in place of `{written}` in its `url`"
    ))
}

#[cfg(test)]
mod tests {
    use switchboard_config::parse;

    use super::*;

    #[test]
    fn advice_names_what_to_change() {
        let refused = "the server refused the connection: `initialize` to x: HTTP 403 Forbidden";
        let wanted = "the server wants credentials: `initialize` to x: HTTP 403 Forbidden";
        for (entry, reason, expected) in [
            (
                r#""command": "x""#,
                "no handshake within 30.0s",
                "`initTimeoutMs`",
            ),
            (
                r#""url": "http://127.0.0.1:8931/mcp""#,
                refused,
                "write `localhost` in place of `127.0.0.1`",
            ),
            (
                r#""url": "http://[::1]:8931/mcp""#,
                refused,
                "write `localhost` in place of `[::1]`",
            ),
            (
                r#""url": "http://localhost/mcp""#,
                refused,
                "write `127.0.0.1` in place of `localhost`",
            ),
            (r#""url": "http://localhost.example/mcp""#, refused, ""),
            (r#""url": "http://127.0.0.1:8931/mcp""#, wanted, ""),
            (r#""command": "x""#, refused, ""),
        ] {
            let text = format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#);
            let config = parse(&text, "it").unwrap();
            let advised = advised(reason, &config.servers["a"]);
            match expected {
                "" => assert_eq!(advised, reason, "{entry}"),
                part => assert!(advised.contains(part), "{advised}"),
            }
        }
    }
}
