//! Advice about the setting to change, derived from the reason of a failed start.

use std::borrow::Cow;

use switchboard_client::NO_HANDSHAKE;
use switchboard_config::{Server, Transport};

/// The host names of this machine, each with an alternative to try.
const LOOPBACK: [(&str, &str); 3] = [
    ("127.0.0.1", "localhost"),
    ("[::1]", "localhost"),
    ("localhost", "127.0.0.1"),
];

/// Certificate errors of the TLS library, by the beginning of their text, and their explanations.
const CERTIFICATES: [(&str, &str); 8] = [
    ("UnknownIssuer", "its issuer is not a trusted authority"),
    ("Other(OtherError(CaUsedAsEndEntity))", "it is self-signed"),
    (
        "BadSignature",
        "its signature is not that of a trusted authority",
    ),
    ("Expired", "it has expired"),
    ("NotValidYet", "it is not valid yet"),
    ("NotValidForName", "it is for another host name"),
    ("Revoked", "it was revoked"),
    ("BadEncoding", "it cannot be parsed"),
];
const CERTIFICATE: &str = "invalid peer certificate: ";
const OWN_AUTHORITY: &str = "if it is your own, start the gateway with SSL_CERT_FILE set to a file \
                             with the certificate of its authority";

/// A reason in the gateway's own words, and advice if there is any.
pub(super) fn advised<'a>(reason: &'a str, server: &Server) -> (Cow<'a, str>, Option<String>) {
    match of_certificate(reason) {
        Some(reason) => (reason.into(), Some(OWN_AUTHORITY.to_owned())),
        None => (reason.into(), advice(reason, server)),
    }
}

/// Tests if a connection failed because the server demands credentials, or other ones. The reason has no text of the server,
/// so that no server can choose the advice.
pub(super) fn is_refused(reason: &str) -> bool {
    reason.contains("HTTP 401") || reason.contains("the server requires credentials")
}

/// A reason that is about a certificate, in words.
fn of_certificate(reason: &str) -> Option<String> {
    let (before, found) = reason.split_once(CERTIFICATE)?;
    let known = CERTIFICATES
        .iter()
        .find(|(word, _)| found.starts_with(word));
    // An unknown error is shown verbatim.
    let what = known.map_or_else(|| found.to_owned(), |(_, words)| (*words).to_owned());
    Some(format!(
        "{before}the server's certificate is not trusted: {what}"
    ))
}

fn advice(reason: &str, server: &Server) -> Option<String> {
    if reason.starts_with(NO_HANDSHAKE) {
        return Some("raise `initTimeoutMs` if the server needs longer to start".to_owned());
    }
    let Transport::Remote(remote) = &server.transport else {
        return None;
    };
    // Servers with protection against DNS rebinding accept only one host name.
    let is_turned_away = reason.contains("HTTP 403") || reason.contains("HTTP 421");
    if !is_turned_away || reason.contains("requires credentials") {
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
        "if the server accepts only one host name, use `{other}` instead of `{written}` in its \
         `url`"
    ))
}

#[cfg(test)]
mod tests {
    use switchboard_config::parse;

    use super::*;

    #[test]
    fn certificate_errors_are_explained_in_words() {
        let said = |found: &str| of_certificate(&format!("cannot connect: {CERTIFICATE}{found}"));
        for (found, words) in [
            ("UnknownIssuer", "not a trusted authority"),
            ("Other(OtherError(CaUsedAsEndEntity))", "self-signed"),
            ("ExpiredContext { time: 1 }", "has expired"),
            (
                "NotValidForNameContext { expected: 1 }",
                "for another host name",
            ),
            ("Strange", "not trusted: Strange"),
        ] {
            let said = said(found).unwrap();
            assert!(
                said.starts_with("cannot connect: the server's certificate is not trusted: "),
                "{said}"
            );
            assert!(said.ends_with(words), "{said}");
        }
        assert_eq!(of_certificate("no route"), None);
    }

    #[test]
    fn advice_names_the_setting_to_change() {
        let refused = "the server refused the connection: `initialize` to x: HTTP 403 Forbidden";
        let wanted = "the server requires credentials: `initialize` to x: HTTP 403 Forbidden";
        for (entry, reason, expected) in [
            (
                r#""command": "x""#,
                "no handshake within 30.0s",
                "`initTimeoutMs`",
            ),
            (
                r#""url": "http://127.0.0.1:8931/mcp""#,
                refused,
                "use `localhost` instead of `127.0.0.1`",
            ),
            (
                r#""url": "http://[::1]:8931/mcp""#,
                refused,
                "use `localhost` instead of `[::1]`",
            ),
            (
                r#""url": "http://localhost/mcp""#,
                refused,
                "use `127.0.0.1` instead of `localhost`",
            ),
            (r#""url": "http://localhost.example/mcp""#, refused, ""),
            (r#""url": "http://127.0.0.1:8931/mcp""#, wanted, ""),
            (r#""command": "x""#, refused, ""),
        ] {
            let text = format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#);
            let config = parse(&text, "it").unwrap();
            let (own, advice) = advised(reason, &config.servers["a"]);
            assert_eq!(own, reason);
            match expected {
                "" => assert_eq!(advice, None, "{entry}"),
                part => assert!(advice.unwrap().contains(part), "{entry}"),
            }
        }
    }
}
