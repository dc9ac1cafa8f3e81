//! Descriptions of failed requests: what was sent, where to, and why it failed. The server's message is kept
//! separate.

use std::{error::Error, sync::Arc};

use reqwest::StatusCode;
use switchboard_wire::is_formatting;

use super::{super::RequestFailure, Endpoint};

/// The most characters of a server's message that are repeated.
const EXCERPT_CHARS: usize = 200;

pub(super) fn failure(
    what: &str,
    endpoint: &Endpoint,
    status: Option<StatusCode>,
    reason: &str,
) -> RequestFailure {
    let address = endpoint.address();
    let message = match status {
        None => format!("`{what}` to {address}: {reason}"),
        Some(status) if reason.is_empty() => format!("`{what}` to {address}: HTTP {status}"),
        Some(status) => format!("`{what}` to {address}: HTTP {status}: {reason}"),
    };
    RequestFailure {
        status: status.map(|status| status.as_u16()),
        message: message.into(),
        said: None,
        sent: true,
        challenged: false,
    }
}

/// Returns the root cause of an error; the errors above it only repeat that a request failed.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if std::ptr::addr_eq(cause, error) {
        // The error's own text ends with the URL, which may contain a secret.
        return if error.is_timeout() {
            "timed out"
        } else {
            "the request failed"
        }
        .to_owned();
    }
    // The text may contain all the names of a certificate.
    switchboard_wire::excerpt(&cause.to_string())
}

/// Returns the beginning of the server's message, if it is not empty.
pub(in crate::transport) fn said(body: &[u8]) -> Option<Arc<str>> {
    let excerpt = excerpt(body);
    (!excerpt.is_empty()).then(|| excerpt.into())
}

/// Returns the beginning of the server's message on one line, without characters that could manipulate a
/// terminal.
fn excerpt(body: &[u8]) -> String {
    // A character has at most four bytes, so this is enough for the excerpt and little more.
    let start = &body[..body.len().min(EXCERPT_CHARS * 8)];
    let text = String::from_utf8_lossy(start);
    let blank = |character: char| {
        character.is_whitespace() || character.is_control() || is_formatting(character)
    };
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_says_what_where_and_why() {
        let endpoint = Endpoint::new("https://u:secret@example.com/mcp?key=secret").unwrap();
        let bad_gateway = failure(
            "tools/call",
            &endpoint,
            Some(StatusCode::BAD_GATEWAY),
            "no luck",
        );
        assert_eq!(bad_gateway.status, Some(502));
        assert_eq!(
            &*bad_gateway.message,
            "`tools/call` to https://example.com: HTTP 502 Bad Gateway: no luck"
        );
        let silent = failure("tools/call", &endpoint, Some(StatusCode::NOT_FOUND), "");
        assert_eq!(
            &*silent.message,
            "`tools/call` to https://example.com: HTTP 404 Not Found"
        );
        let broken = failure("tools/call", &endpoint, None, "connection reset");
        assert_eq!(
            (broken.status, broken.message.contains("HTTP")),
            (None, false)
        );
    }

    #[test]
    fn excerpt_is_short_and_harmless() {
        assert_eq!(
            excerpt(b" <h1>\r\n\tNo\x1b[31m </h1>\n"),
            "<h1> No [31m </h1>"
        );
        assert_eq!(excerpt("a\u{202e}b\u{feff}\0c".as_bytes()), "a b c");
        assert_eq!(excerpt(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert_eq!(excerpt(&[b'x'; 200]).len(), 200);
        let long = "é".repeat(100_000);
        assert_eq!(excerpt(long.as_bytes()), format!("{}…", "é".repeat(200)));
    }
}
