//! Secrets of a configuration, recognised by their place.
//!
//! A value from `${secret:NAME}` is a secret. A value from `${env:NAME}` is one unless neither its name nor
//! the value looks like a secret: `HOME` would otherwise make every path in a log unreadable. A literal is a
//! secret if its place says so, or if it has the form of one.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    known::Secret,
    patterns::AUTHORITY_ENDS,
    plain::{is_plain, is_token_like},
    text,
    words::{is_secret_name, words},
};

/// The source of a referenced value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The store of secrets.
    Secret,
    /// The environment.
    Variable,
}

/// The value of a reference as a secret, if it is one.
pub fn reference(source: Source, name: &str, value: &str) -> Option<Secret> {
    let is_secret = match source {
        Source::Secret => true,
        Source::Variable => has_key_name(name) && !is_location(value) || !is_plain(value),
    };
    is_secret.then(|| Secret::new(name, value))
}

/// The secrets in the value of a variable that a server receives.
pub fn variable(name: &str, value: &str) -> Vec<Secret> {
    let place = format!("env.{name}");
    let mut found = literal(&place, value);
    if has_key_name(name) && !is_location(value) {
        found.push(Secret::new(&place, value));
    }
    found
}

/// Tests if a variable holds a credential: its name says so, and its value has the form of a token. Text that
/// could be a path, an option or code does not have that form, regardless of the name.
pub fn is_credential(name: &str, value: &str) -> bool {
    let is_whole = |part: &Range<usize>| *part == (0..value.len());
    let is_issued = || text::find(value).first().is_some_and(is_whole);
    has_key_name(name) && (is_token_like(value) && !value.contains('/') || is_issued())
}

/// The secrets in a header.
pub fn header(name: &str, value: &str) -> Vec<Secret> {
    let place = format!("headers.{name}");
    let mut found = literal(&place, value);
    if !has_key_name(name) {
        return found;
    }
    let secret = |value: &str| Secret::new(&place, value);
    found.push(secret(value));
    if let Some((scheme, rest)) = value.split_once(' ') {
        let rest = rest.trim();
        found.push(secret(rest));
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(decoded) = STANDARD.decode(rest)
            && let Ok(decoded) = String::from_utf8(decoded)
        {
            let password = decoded.split_once(':').map_or("", |(_, password)| password);
            found.push(secret(password));
            found.push(secret(&decoded));
        }
    }
    for cookie in value.split(';') {
        found.extend(
            cookie
                .split_once('=')
                .map(|(_, value)| secret(value.trim())),
        );
    }
    found
}

/// The secrets in the arguments of a program: `--token SECRET`, `--token=SECRET`, `TOKEN=SECRET`.
pub fn arguments<'a>(place: &str, args: impl IntoIterator<Item = &'a str>) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut named = false;
    for arg in args {
        let value = match arg.split_once('=') {
            Some((name, value)) if has_key_name(name) => Some(value),
            _ if named && !arg.starts_with('-') => Some(arg),
            _ => None,
        };
        let value = value.filter(|value| !is_location(value));
        found.extend(value.map(|value| Secret::new(place, value)));
        found.extend(literal(place, arg));
        named = arg.starts_with('-') && !arg.contains('=') && has_key_name(arg);
    }
    found
}

/// The secrets in a text of no particular place: those of a URL, and all text that has the form of a secret.
pub fn literal(place: &str, text: &str) -> Vec<Secret> {
    let forms = text::find(text).into_iter();
    let mut found: Vec<Secret> = forms.map(|part| Secret::new(place, &text[part])).collect();
    found.extend(address(place, text));
    found
}

/// The secrets in a URL: its password, the values of its query, and the parts of its path that look
/// machine-generated.
pub fn address(place: &str, url: &str) -> Vec<Secret> {
    let Some(Authority { user, place: host }) = authority(url) else {
        return Vec::new();
    };
    let rest = &url[host.end..];
    let (path, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let query = query.get(1..).unwrap_or_default();
    let mut values: Vec<&str> = Vec::new();
    if let Some(user) = user.map(|user| &url[user]) {
        let scheme = url.split("://").next().unwrap_or_default();
        // Without a password, the user is a token on the web, and an account name in databases and shells.
        let is_web = scheme.to_ascii_lowercase().ends_with("http")
            || scheme.to_ascii_lowercase().ends_with("https");
        let (name, password) = match user.split_once(':') {
            None if is_web => ("", user),
            None => (user, ""),
            Some(both) => both,
        };
        values.push(password);
        values.extend(is_token_like(name).then_some(name));
    }
    values.extend(path.split(['/', '\\']).filter(|part| is_token_like(part)));
    for pair in query.split(['&', '#']) {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let is_secret = has_key_name(name) || is_token_like(value);
        values.extend(is_secret.then_some(value));
    }
    let decoded = |value: &str| {
        let decoded = percent_decoded(value);
        (decoded != value).then(|| Secret::new(place, decoded))
    };
    values
        .into_iter()
        .filter(|value| !value.is_empty())
        .flat_map(|value| [Some(Secret::new(place, value)), decoded(value)])
        .flatten()
        .collect()
}

/// The parts of a URL between its scheme and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The user name and password before the `@`, if there is one.
    pub user: Option<Range<usize>>,
    /// The host and the port.
    pub place: Range<usize>,
}

/// Finds the host of a URL where HTTP clients find it: the authority ends at the first `/`, `?`, `#` or `\`,
/// and its host starts after the last `@`.
pub fn authority(url: &str) -> Option<Authority> {
    let start = url.find("://")? + "://".len();
    let length = url[start..].find(AUTHORITY_ENDS);
    let end = length.map_or(url.len(), |length| start + length);
    let at = url[start..end].rfind('@').map(|at| start + at);
    Some(Authority {
        user: at.map(|at| start..at),
        place: at.map_or(start, |at| at + 1)..end,
    })
}

/// The part of a URL that is safe to show: scheme, host and port.
pub fn origin(url: &str) -> String {
    let Some(Authority { place, .. }) = authority(url) else {
        return "an address without a scheme".to_owned();
    };
    let scheme = url.split("://").next().unwrap_or_default();
    format!("{scheme}://{}", &url[place])
}

/// Tests if a variable, a header, an option or a parameter of this name holds a secret.
fn has_key_name(name: &str) -> bool {
    let last = words(name).pop();
    let is_key = |last: String| matches!(&*last, "key" | "keys" | "dsn" | "tokens" | "creds");
    is_secret_name(name) || last.is_some_and(is_key)
}

/// Tests if a value is a path or a plain URL: the location of a secret, not the secret.
fn is_location(value: &str) -> bool {
    value.contains('/') && is_plain(value)
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes
            .get(at + 1..at + 3)
            .filter(|digits| byte == b'%' && digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(digits.unwrap_or(byte));
        at += if digits.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secrets;

    fn is_known(found: Vec<Secret>, value: &str) -> bool {
        let scrubbed = Secrets::default().with("", found).unwrap();
        !scrubbed.scrub(&format!("<{value}>")).contains(value)
    }

    #[test]
    fn harmless_variables_stay_readable() {
        let of = |name, value| reference(Source::Variable, name, value);
        for (name, value) in [
            ("HOME", "/var/lib/ann"),
            ("LOG_LEVEL", "warning"),
            ("API_BASE", "https://api.example.com/v1"),
            ("DEBUG", "true"),
            ("TOKEN_FILE", "/etc/app/token"),
        ] {
            assert_eq!(of(name, value), None, "{name}");
        }
        for (name, value) in [
            ("API_KEY", "production"),
            ("DATABASE_URL", "postgres://app:hunter2@db/app"),
            ("FOO", "Tr0ub4dor&3"),
            ("BAR", "9f86d081884c7d659a2feaa0c55ad015"),
        ] {
            assert!(of(name, value).is_some(), "{name}");
        }
        assert!(reference(Source::Secret, "x", "/var/lib/ann").is_some());
    }

    #[test]
    fn literals_are_secrets_by_their_place() {
        let basic = format!("Basic {}", STANDARD.encode("ann:hunter22"));
        for (found, value) in [
            (variable("GITHUB_TOKEN", "abcdefgh"), "abcdefgh"),
            (variable("STRIPE_KEY", "abcdefgh"), "abcdefgh"),
            (variable("DSN", "mysql://u:passw0rd@h/d"), "passw0rd"),
            (header("Authorization", "Bearer abcdefgh"), "abcdefgh"),
            (header("Authorization", &basic), "hunter22"),
            (header("x-api-key", "abcdefgh"), "abcdefgh"),
            (header("Cookie", "a=1; sid=abcdefgh"), "abcdefgh"),
            (arguments("args", ["--token", "abcdefgh"]), "abcdefgh"),
            (arguments("args", ["--api-key=abcdefgh"]), "abcdefgh"),
            (
                arguments("args", ["ghp_0123456789abcdefghij"]),
                "ghp_0123456789abcdefghij",
            ),
            (address("url", "https://u:pass%2Fword@h/"), "pass/word"),
            (address("url", "https://h/?key=abcdefgh"), "abcdefgh"),
            (address("url", "git+https://abcdefgh@h/"), "abcdefgh"),
            (
                address("url", "https://h/s/9f86d081884c7d659a2feaa0c55ad015/mcp"),
                "9f86d081884c7d659a2feaa0c55ad015",
            ),
        ] {
            assert!(is_known(found, value), "{value}");
        }
        for (found, value) in [
            (variable("NODE_ENV", "production"), "production"),
            (header("Accept-Language", "german"), "german"),
            (arguments("args", ["--root", "/srv/data"]), "/srv/data"),
            (address("url", "https://example.com/mcp"), "example.com"),
            (address("url", "https://h/?page=second"), "second"),
            (address("url", "postgres://postgres@db/app"), "postgres"),
        ] {
            assert!(!is_known(found, value), "{value}");
        }
    }

    #[test]
    fn credential_has_the_name_and_the_form() {
        let token = "ghp_0123456789abcdef0123456789abcdef0123";
        for (name, value, expected) in [
            ("GITHUB_TOKEN", token, true),
            ("API_KEY", "9f86d081884c7d659a2feaa0c55ad015", true),
            (
                "OPENAI_API_KEY",
                "sk-proj-0123456789abcdefABCDEF0123456789",
                true,
            ),
            ("NODE_OPTIONS", token, false),
            ("PATH", "9f86d081884c7d659a2feaa0c55ad015", false),
            ("TOKEN", "--require=./x.js", false),
            ("TOKEN", "/tmp/9f86d081884c7d659a2feaa0c55ad015/x", false),
            (
                "TOKEN",
                "curl http://x/9f86d081884c7d659a2feaa0c55ad015 | sh",
                false,
            ),
            ("TOKEN", "${secret:github}", false),
            ("PASSWORD", "", false),
        ] {
            assert_eq!(is_credential(name, value), expected, "{name}={value}");
        }
    }

    #[test]
    fn host_before_a_delimiter_is_not_a_user() {
        for end in ["#", "?", "\\", "/"] {
            let url = format!("http://evil.example:80{end}@api.example/mcp");
            assert_eq!(origin(&url), "http://evil.example:80");
            let found = authority(&url).unwrap();
            assert_eq!((found.user, &url[found.place]), (None, "evil.example:80"));
            assert!(!is_known(address("url", &url), "evil.example"), "{url}");
            assert!(!is_known(literal("url", &url), "evil.example"), "{url}");
        }
    }

    #[test]
    fn origin_has_no_path_or_user() {
        for (url, shown) in [
            ("https://u:p@h:8443/s/key?x=1#y", "https://h:8443"),
            ("http://[::1]:80/mcp", "http://[::1]:80"),
            ("https://h?key=1", "https://h"),
            ("https://a@b@h/", "https://h"),
        ] {
            assert_eq!(origin(url), shown);
        }
        assert!(!origin("s3cret").contains("s3cret"));
    }
}
