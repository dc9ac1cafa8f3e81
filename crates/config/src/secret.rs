//! Detection of values that look like secrets, and of the secrets and variables that a configuration
//! references.
//!
//! Names and patterns are those of the redaction: a value that logs must not show should not be in a
//! file either.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use switchboard_redact as redact;

use crate::model::{Config, Server, Transport};
use crate::reference::{Piece, pieces, ranges};

/// Schemes of `Authorization`, which are not secret.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "Token "];

/// The location of a text in a server's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The variable of this name.
    Variable(&'a str),
    /// The header of this name.
    Header(&'a str),
    /// An argument; this is the one before it.
    Argument(&'a str),
    /// The address.
    Address,
}

/// The parts of a text that look like secrets, in order and without overlaps, because of their location
/// (`API_KEY`, `Authorization`, `--token`) or their form (`ghp_…`, a JWT, a password in a URL). For a
/// variable or header this is the whole text without a scheme such as `Bearer `. A reference such as
/// `${secret:NAME}` is not a secret.
pub fn secret_parts(place: Place<'_>, text: &str) -> Vec<Range<usize>> {
    // In a text with a malformed reference, none is spared.
    let references = ranges(text).unwrap_or_default();
    // A colon in a reference must not look like the one before a password.
    let mut masked = text.to_owned();
    for reference in &references {
        masked.replace_range(reference.clone(), &"x".repeat(reference.len()));
    }
    let bare = bare(&masked);
    let found = match place {
        Place::Variable(name) => redact::variable(name, bare),
        Place::Header(name) => redact::header(name, bare),
        Place::Argument(before) => redact::arguments("", [before, &masked]),
        Place::Address => redact::literal("", &masked),
    };
    // The host may also contain the text of a secret, but is not secret.
    let host = match place {
        Place::Address => redact::authority(&masked).map_or(0..0, |authority| authority.place),
        _ => 0..0,
    };
    let values = found.iter().map(redact::Secret::value);
    let mut parts: Vec<Range<usize>> = values
        .filter(|value| !value.is_empty())
        .flat_map(|value| {
            let starts = masked.match_indices(value).map(|(start, _)| start);
            starts.map(|start| start..start + value.len())
        })
        .filter(|part| is_secret(text, part, &references))
        .flat_map(|part| without(part, &host))
        .collect();
    if matches!(place, Place::Variable(_) | Place::Header(_)) && !parts.is_empty() {
        parts.push(text.len() - bare.len()..text.len());
    }
    joined(parts)
}

/// Returns `true` if a name looks like a value that was pasted in its place: names are shown, values are
/// not.
pub fn is_pasted_value(name: &str) -> bool {
    redact::redact_text(name) != name
}

/// The pieces of a range outside another one.
fn without(part: Range<usize>, other: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let before = part.start..part.end.min(other.start);
    let after = part.start.max(other.end)..part.end;
    let rest = if other.is_empty() || part.end <= other.start || part.start >= other.end {
        [part, 0..0]
    } else {
        [before, after]
    };
    rest.into_iter().filter(|part| part.start < part.end)
}

/// Merges overlapping ranges.
fn joined(mut parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        match apart.last_mut() {
            Some(last) if part.start < last.end => last.end = last.end.max(part.end),
            _ => apart.push(part),
        }
    }
    apart
}

/// Tests if a part of a text is more than a reference or a setting.
fn is_secret(text: &str, part: &Range<usize>, references: &[Range<usize>]) -> bool {
    let mut plain = String::new();
    let mut at = part.start;
    for reference in references {
        if reference.start >= part.end || reference.end <= part.start {
            continue;
        }
        if reference.start < at || reference.end > part.end {
            // The match overlaps a reference only by chance.
            return false;
        }
        plain.push_str(&text[at..reference.start]);
        at = reference.end;
        if plain.ends_with(':') {
            // The user name before the password.
            plain.clear();
        }
    }
    plain.push_str(&text[at..part.end]);
    !is_setting(bare(&plain.replace("$${", "${")).trim())
}

/// Tests if a value is a number, a boolean, a short word or a variable of another program, such as the
/// value of `MAX_TOKENS`.
fn is_setting(value: &str) -> bool {
    let is_number = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_variable = value.starts_with("${") && value.ends_with('}');
    value.len() < 4
        || is_number
        || is_variable
        || ["true", "false", "none", "auto"].contains(&value)
}

/// The text without a scheme such as `Bearer `.
fn bare(text: &str) -> &str {
    let scheme = SCHEMES.iter().find(|scheme| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    scheme.map_or(text, |scheme| &text[scheme.len()..])
}

/// A reference in a text to something outside the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference<'a> {
    /// A variable of the gateway's environment.
    Variable(&'a str),
    /// A secret in the home.
    Secret(&'a str),
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${{env:{name}}}"),
            Self::Secret(name) => write!(f, "${{secret:{name}}}"),
        }
    }
}

/// The references in a text.
fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    let pieces = pieces(text).into_iter().flatten();
    pieces.filter_map(|piece| match piece {
        Piece::Plain(_) | Piece::Caller(_) => None,
        Piece::Env(name) => Some(Reference::Variable(name)),
        Piece::Secret(name) => Some(Reference::Secret(name)),
    })
}

impl Config {
    /// The values in the configuration that look like secrets in plain text.
    pub fn clear_secrets(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut add = |place, text: &str| {
            let parts = secret_parts(place, text).into_iter();
            found.extend(parts.map(|part| text[part].to_owned()));
        };
        for server in self.servers.values() {
            for (place, text) in placed(server) {
                add(place, text);
            }
        }
        if let Some(provider) = &self.sampling.provider {
            let key = provider.api_key.iter();
            key.for_each(|key| add(Place::Variable("API_KEY"), key));
            let url = provider.base_url.iter();
            url.for_each(|url| add(Place::Address, url));
        }
        if let Some(webhook) = &self.approvals.webhook {
            add(Place::Variable("SECRET"), &webhook.secret);
            add(Place::Address, &webhook.url);
        }
        found
    }

    /// The secrets referenced with `${secret:NAME}`, and for each the parts of the configuration that
    /// use it.
    pub fn secrets_used(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut note = |owner: &str, reference: Reference<'_>| {
            if let Reference::Secret(name) = reference {
                let owners = used.entry(name.to_owned()).or_default();
                owners.insert(owner.to_owned());
            }
        };
        for (name, server) in &self.servers {
            let named = server.references().into_iter();
            named.for_each(|reference| note(name, reference));
        }
        if let Some(provider) = &self.sampling.provider {
            let texts = [&provider.base_url, &provider.api_key];
            let named = texts
                .into_iter()
                .flatten()
                .flat_map(|text| references(text));
            named.for_each(|reference| note("(sampling)", reference));
        }
        if let Some(webhook) = &self.approvals.webhook {
            let named = references(&webhook.url).chain(references(&webhook.secret));
            named.for_each(|reference| note("(webhook)", reference));
        }
        used
    }
}

impl Server {
    /// The secrets and variables that its texts reference.
    pub fn references(&self) -> BTreeSet<Reference<'_>> {
        texts(self).into_iter().flat_map(references).collect()
    }

    /// The number of arguments with a secret, or with a variable that looks like one. Every user of the
    /// machine can read the arguments of a process.
    pub fn secret_arguments(&self) -> usize {
        let is_key = |reference: Reference<'_>| match reference {
            Reference::Secret(_) => true,
            Reference::Variable(name) => !redact::variable(name, "a value").is_empty(),
        };
        let is_secret = |(place, text): &(Place<'_>, &str)| {
            matches!(place, Place::Argument(_))
                && (references(text).any(is_key) || !secret_parts(*place, text).is_empty())
        };
        placed(self).iter().filter(|given| is_secret(given)).count()
    }

    /// Returns `true` if credentials are sent to another machine over plain `http://`.
    pub fn sends_credentials_in_clear(&self) -> bool {
        let Transport::Remote(remote) = &self.transport else {
            return false;
        };
        let is_credential = |(place, text): (Place<'_>, &str)| {
            let is_key = match place {
                Place::Header(name) => !redact::header(name, "a value").is_empty(),
                _ => false,
            };
            is_key || text.contains("${") || !secret_parts(place, text).is_empty()
        };
        is_plain_and_far(&remote.url) && placed(self).into_iter().any(is_credential)
    }
}

/// Tests if an address is on another machine and without TLS.
fn is_plain_and_far(url: &str) -> bool {
    let Some(authority) = redact::authority(url) else {
        return false;
    };
    let scheme = url.split("://").next().unwrap_or_default();
    let place = &url[authority.place];
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    let is_near = host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    scheme.eq_ignore_ascii_case("http") && !host.is_empty() && !is_near
}

/// Every text of a server that may contain references.
fn texts(server: &Server) -> Vec<&str> {
    let mut texts: Vec<&str> = placed(server).into_iter().map(|(_, text)| text).collect();
    match &server.transport {
        Transport::Command(line) => {
            texts.push(&line.command);
            texts.extend(line.cwd.as_deref());
        }
        Transport::Container(container) => {
            texts.push(&container.image);
            texts.extend(container.mounts.iter().map(String::as_str));
        }
        Transport::Remote(_) | Transport::BuiltIn => {}
    }
    texts
}

/// The texts of a server that may contain secrets, with their locations.
fn placed(server: &Server) -> Vec<(Place<'_>, &str)> {
    let mut placed = Vec::new();
    let (env, lists): (_, [&[String]; 2]) = match &server.transport {
        Transport::Command(line) => (&line.env, [&line.args, &[]]),
        Transport::Container(container) => (&container.env, [&container.args, &container.run_args]),
        Transport::Remote(remote) => {
            placed.push((Place::Address, remote.url.as_str()));
            let headers = remote.headers.iter();
            placed.extend(headers.map(|(name, text)| (Place::Header(name), text.as_str())));
            let secret = remote.oauth.client_secret.as_deref();
            placed.extend(secret.map(|text| (Place::Variable("clientSecret"), text)));
            let key = remote.oauth.private_key.as_deref();
            placed.extend(key.map(|text| (Place::Variable("privateKey"), text)));
            let provider = remote.oauth.identity_provider.as_ref();
            let secret = provider.and_then(|provider| provider.client_secret.as_deref());
            placed.extend(secret.map(|text| (Place::Variable("clientSecret"), text)));
            return placed;
        }
        Transport::BuiltIn => return placed,
    };
    let env = env.iter();
    placed.extend(env.map(|(name, text)| (Place::Variable(name), text.as_str())));
    for args in lists {
        let mut before = "";
        for arg in args {
            placed.push((Place::Argument(before), arg));
            before = arg;
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces the parts of a text that look like secrets with `#`.
    fn masked(place: Place<'_>, text: &str) -> String {
        let mut masked = text.to_owned();
        for part in secret_parts(place, text).into_iter().rev() {
            masked.replace_range(part, "#");
        }
        masked
    }

    #[test]
    fn secrets_are_detected_by_location_or_form() {
        use Place::{Address, Argument, Header, Variable};
        let key = "f3b1c29e77d04a6f8b52";
        for (place, text, expected) in [
            (Variable("API_KEY"), "hunter22", "#"),
            (Variable("github_token"), "abcdefgh", "#"),
            (Variable("DB_PASSWORD"), "swordfish", "#"),
            (Variable("GITHUB_PAT"), "abcdefgh", "#"),
            (Variable("API_KEY"), "/9j4AAQSkZJRgABAQAAAQABAAD", "#"),
            (Variable("API_KEY"), "${env:A}rest-of-it", "#"),
            (Variable("API_KEY"), "hunter22-${projct}", "#"),
            (Header("Authorization"), "Bearer hunter22${", "Bearer #"),
            (Variable("ANYTHING"), "ghp_0123456789abcdef0123", "#"),
            (Variable("ANYTHING"), "sk-proj-0123456789abcdef", "#"),
            (Variable("DATABASE_URL"), "postgres://me:pass@db/x", "#"),
            (
                Variable("ANYTHING"),
                "-----BEGIN PRIVATE KEY-----\nMII",
                "#",
            ),
            (Header("Authorization"), "Bearer abcdefgh", "Bearer #"),
            (Header("X-Api-Key"), "abcdefgh", "#"),
            (Argument(""), "--api-key=abcdef", "--api-key=#"),
            (Argument("--token"), "abcdef", "#"),
            (Argument("-e"), "GITHUB_TOKEN=abcdef", "GITHUB_TOKEN=#"),
            (Argument(""), "ghp_0123456789abcdef0123", "#"),
            (
                Argument("--header"),
                "Authorization: Bearer abcdefgh",
                "Authorization: Bearer #",
            ),
            (
                Address,
                "https://a/?apiKey=abcdef&x=1",
                "https://a/?apiKey=#&x=1",
            ),
            (Address, &format!("https://{key}@a/"), "https://#@a/"),
            (
                Address,
                &format!("https://{key}@{key}/?key={key}"),
                &format!("https://#@{key}/?key=#"),
            ),
            (Address, "https://${env:ü}:swordfish@a/", "https://#@a/"),
            (
                Address,
                &format!("https://a/s/{key}/mcp"),
                "https://a/s/#/mcp",
            ),
        ] {
            assert_eq!(masked(place, text), expected, "{place:?} {text}");
        }
    }

    #[test]
    fn settings_and_references_are_not_secrets() {
        use Place::{Address, Argument, Header, Variable};
        for (place, text) in [
            (Variable("API_KEY"), "${secret:x}"),
            (Variable("API_KEY"), "${env:API_KEY}"),
            (Variable("MAX_TOKENS"), "4096"),
            (Variable("USE_TOKEN"), "true"),
            (Variable("SSH_KEY"), "~/.ssh/id_ed25519"),
            (Variable("KEY_FILE"), "/etc/key.pem"),
            (Variable("PATH"), "/usr/bin"),
            (Variable("TZ"), "Europe/Berlin"),
            (Variable("DATABASE_URL"), "postgres://postgres@db/x"),
            (Variable("API_KEY"), ""),
            (Header("Authorization"), "Bearer ${secret:x}"),
            (Argument("--token"), "${secret:x}"),
            (Argument("--header"), "Authorization: Bearer ${secret:x}"),
            (Argument("--header"), "Authorization:$${AUTH_HEADER}"),
            (Argument("--token"), "--verbose"),
            (Argument("-y"), "@modelcontextprotocol/server-filesystem"),
            (Argument(""), "/data"),
            (Address, "https://a.example/mcp?page=2"),
            (Address, "https://a.example/?apiKey=${secret:x}"),
            (Address, "https://${secret:user-url}@a.example/"),
            (Address, "https://admin:${secret:pass-word}@a.example/"),
            (Argument("--url"), "https://${secret:user-url}@a.example/"),
            (Argument("--url"), "${secret:a"),
        ] {
            assert_eq!(masked(place, text), text, "{place:?}");
        }
    }

    #[test]
    fn plain_http_with_credentials_is_detected() {
        let server = |url: &str, header: &str| {
            let text = format!(
                r#"{{"mcpServers": {{"a": {{"url": "{url}", "headers": {{"{header}": "${{secret:a}}"}}}}}}}}"#
            );
            let config = crate::parse(&text, "x").unwrap();
            config.servers["a"].sends_credentials_in_clear()
        };
        assert!(server("http://example.com/mcp", "Authorization"));
        assert!(server("HTTP://10.0.0.7:80", "X-Key"));
        for near in [
            "https://example.com",
            "http://127.0.0.1:1/mcp",
            "http://localhost/mcp",
            "http://[::1]/mcp",
        ] {
            assert!(!server(near, "Authorization"), "{near}");
        }
    }
}
