//! URIs of resources, to the extent that the gateway parses them.

use std::borrow::Cow;

use switchboard_text::percent;

/// The scheme of a URI, or of everything that a template expands to, in lower case; `None` if it does not
/// start with one.
pub fn scheme(uri: &str) -> Option<String> {
    let (scheme, _) = uri.split_once(':')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_part);
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// Normalizes a URI, so that all spellings that a server is likely to treat as equal become one: letter case,
/// percent-encoding, dots and slashes make no difference. The result is for comparison, not for use.
pub fn plain(uri: &str) -> String {
    let decoded = percent::decode(uri).unwrap_or(Cow::Borrowed(uri));
    let text = decoded.to_lowercase().replace('\\', "/");
    let scheme = scheme(&text).unwrap_or_default();
    let rest = &text[scheme.len()..];
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let is_here = scheme == "file" && host == "localhost";
    let host = if is_here { "" } else { host };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("{scheme}://{host}/{}", parts.join("/"))
}

/// Tests if a template can expand to this URI. Every expression stands for any text, so the answer is `true`
/// more often than under RFC 6570.
pub fn matches(template: &str, uri: &str) -> bool {
    let mut literals = literals(template);
    let Some(first) = literals.next() else {
        return true;
    };
    let Some(mut rest) = uri.strip_prefix(first) else {
        return false;
    };
    let mut literals = literals.peekable();
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        if literals.peek().is_none() {
            return rest.ends_with(literal);
        }
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    true
}

/// The literal texts before, between and after the expressions.
fn literals(template: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(template);
    std::iter::from_fn(move || {
        let text = rest?;
        let open = text.find('{');
        let close = open.and_then(|open| text[open..].find('}').map(|close| open + close));
        let Some((open, close)) = open.zip(close) else {
            rest = None;
            return Some(text);
        };
        rest = Some(&text[close + 1..]);
        Some(&text[..open])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_ignores_letter_case() {
        for (uri, expected) in [
            ("file:///a", Some("file")),
            ("FILE:/a", Some("file")),
            ("x-a+b.1:c", Some("x-a+b.1")),
            ("{scheme}://a", None),
            ("/etc/passwd", None),
            (" file:///a", None),
            ("%66ile:///a", None),
            ("1a:b", None),
        ] {
            assert_eq!(scheme(uri).as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn spellings_of_one_uri_are_equal() {
        for uri in [
            "file:///etc/x",
            "FILE:///etc/x",
            "file:/etc/x",
            "file://localhost/etc/x",
            "file:////etc//x",
            "file:///etc/./x",
            "file:///tmp/../etc/x",
            "file:///%65tc%2fx",
            "file:///etc\\x",
        ] {
            assert_eq!(plain(uri), "file:///etc/x", "{uri}");
        }
        for (one, other) in [
            ("file:///etc/x", "file:///etc/y"),
            ("file:///a", "mem:///a"),
            ("db://one/a", "db://two/a"),
        ] {
            assert_ne!(plain(one), plain(other));
        }
    }

    #[test]
    fn expansions_match_their_template() {
        for (template, uri) in [
            ("file:///{path}", "file:///a"),
            ("file:///{+path}", "file:///a/b"),
            ("db://{table}/rows/{id}", "db://users/rows/7"),
            (
                "db://{table}/rows/{id}{?fields}",
                "db://users/rows/7?fields=a",
            ),
            ("{+any}", "x:y"),
            ("x:{a}{b}y", "x:y"),
            ("plain:uri", "plain:uri"),
            ("open:{x", "open:{x"),
        ] {
            assert!(matches(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("file:///{path}", "http://a"),
            ("db://{table}/rows/{id}", "db://users/columns/7"),
            ("x:{a}:end", "x:1:endless"),
            ("plain:uri", "plain:uri2"),
        ] {
            assert!(!matches(template, uri), "{template} {uri}");
        }
    }
}
