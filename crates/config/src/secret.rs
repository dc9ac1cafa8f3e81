//! Recognising secrets: which values look like one, and which secrets a configuration names.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Config, Server, Transport};
use crate::reference::{Piece, pieces};

/// Parts of names that say that the value is a secret.
const NAMES: [&str; 12] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "AUTHORIZATION",
    "CREDENTIAL",
    "BEARER",
    "COOKIE",
    "_PAT",
    "-PAT",
];

/// The schemes of `Authorization`, which are no secret by themselves.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "Token "];

/// Returns whether a value looks like a secret, by its name (`API_KEY`, `Authorization`) or by
/// itself (`ghp_…`, a JWT, a password in a URL). A reference such as `${secret:NAME}` is none.
pub fn looks_secret(name: &str, value: &str) -> bool {
    let Some(plain) = without_references(value) else {
        return false;
    };
    let bare = without_scheme(&plain).trim();
    if bare.is_empty() || is_path(bare) {
        return false;
    }
    let name = name.to_ascii_uppercase();
    let named = NAMES.iter().any(|part| name.contains(part));
    (named && !is_setting(bare)) || is_token(bare) || has_password(bare)
}

/// The part of a header or variable that is the secret: without `Bearer ` and its like.
pub fn without_scheme(value: &str) -> &str {
    let scheme = SCHEMES.iter().find(|scheme| {
        let start = value.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    scheme.map_or(value, |scheme| &value[scheme.len()..])
}

impl Config {
    /// The values that look like secrets and stand in the configuration in clear.
    pub fn clear_secrets(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for server in self.servers.values() {
            for (name, value) in named_values(server) {
                if looks_secret(&name, value) {
                    found.insert(without_scheme(value).to_owned());
                }
            }
        }
        let provider = self.sampling.provider.as_ref();
        let key = provider.and_then(|provider| provider.api_key.as_deref());
        let webhook = self.approvals.webhook.as_ref();
        let secret = webhook.map(|webhook| webhook.secret.as_str());
        let both = key.into_iter().chain(secret);
        found.extend(
            both.filter(|text| looks_secret("SECRET", text))
                .map(str::to_owned),
        );
        found
    }

    /// The secrets that are named with `${secret:NAME}`, and the parts of the configuration that
    /// use each of them.
    pub fn secrets_used(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut note = |owner: &str, text: &str| {
            for piece in pieces(text).into_iter().flatten() {
                if let Piece::Secret(name) = piece {
                    let owners = used.entry(name.to_owned()).or_default();
                    owners.insert(owner.to_owned());
                }
            }
        };
        for (name, server) in &self.servers {
            for text in texts(server) {
                note(name, text);
            }
        }
        if let Some(provider) = &self.sampling.provider {
            for text in [&provider.base_url, &provider.api_key]
                .into_iter()
                .flatten()
            {
                note("(sampling)", text);
            }
        }
        if let Some(webhook) = &self.approvals.webhook {
            note("(webhook)", &webhook.url);
            note("(webhook)", &webhook.secret);
        }
        used
    }
}

impl Server {
    /// The arguments that hold a secret, or a variable that looks like one. Every user of the machine
    /// can read the arguments of a process.
    pub fn secret_arguments(&self) -> usize {
        let args = match &self.transport {
            Transport::Command(line) => &line.args,
            Transport::Container(container) => &container.args,
            Transport::Remote(_) | Transport::BuiltIn => return 0,
        };
        let is_secret = |text: &&String| {
            let pieces = pieces(text).unwrap_or_default();
            pieces.iter().any(|piece| match piece {
                Piece::Secret(_) => true,
                Piece::Env(name) => looks_secret(name, "a value"),
                Piece::Plain(plain) => is_token(plain),
            })
        };
        args.iter().filter(is_secret).count()
    }

    /// Returns whether credentials go to another machine over plain `http://`.
    pub fn sends_credentials_in_clear(&self) -> bool {
        let Transport::Remote(remote) = &self.transport else {
            return false;
        };
        let has_reference = |text: &str| text.contains("${");
        let shown = remote.headers.iter().any(|(name, value)| {
            looks_secret(name, value) || has_reference(value) || looks_secret(name, "a value")
        });
        let in_address = has_reference(&remote.url) || has_password(&remote.url);
        is_plain_and_far(&remote.url) && (shown || in_address)
    }
}

/// An address of another machine without TLS.
fn is_plain_and_far(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit('@').next().unwrap_or_default();
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

/// Every text of a server that may hold references.
fn texts(server: &Server) -> Vec<&str> {
    let mut texts: Vec<&str> = named_values(server)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    match &server.transport {
        Transport::Command(line) => {
            texts.push(&line.command);
            texts.extend(line.args.iter().map(String::as_str));
            texts.extend(line.cwd.as_deref());
        }
        Transport::Container(container) => {
            texts.push(&container.image);
            texts.extend(container.args.iter().map(String::as_str));
            texts.extend(container.mounts.iter().map(String::as_str));
            texts.extend(container.run_args.iter().map(String::as_str));
        }
        Transport::Remote(_) | Transport::BuiltIn => {}
    }
    texts
}

/// The values of a server that may be secrets, with the names that they go by.
fn named_values(server: &Server) -> Vec<(String, &str)> {
    let mut values = Vec::new();
    let (args, map): (&[String], _) = match &server.transport {
        Transport::Command(line) => (&line.args, Some(&line.env)),
        Transport::Container(container) => (&container.args, Some(&container.env)),
        Transport::Remote(remote) => {
            values.push((String::new(), remote.url.as_str()));
            (&[], Some(&remote.headers))
        }
        Transport::BuiltIn => (&[], None),
    };
    let pairs = map.into_iter().flatten();
    values.extend(pairs.map(|(name, value)| (name.clone(), value.as_str())));
    let mut before = "";
    for arg in args {
        // `--token=VALUE`, `--token VALUE`, or a token that speaks for itself.
        let option = arg.split_once('=').filter(|_| arg.starts_with('-'));
        let (name, value) = option.unwrap_or((before, arg));
        if !value.starts_with('-') {
            values.push((name.to_owned(), value));
        }
        before = if arg.starts_with('-') && option.is_none() {
            arg
        } else {
            ""
        };
    }
    values
}

/// The text without its references, or `None` if it cannot be taken apart.
fn without_references(text: &str) -> Option<String> {
    let pieces = pieces(text).ok()?;
    let plain = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Plain(plain) => Some(plain),
        Piece::Env(_) | Piece::Secret(_) => None,
    });
    Some(plain.collect())
}

/// A number, a truth or a short word, such as the value of `MAX_TOKENS`.
fn is_setting(value: &str) -> bool {
    let is_number = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    value.len() < 4 || is_number || ["true", "false", "none", "auto"].contains(&value)
}

/// A place in the file system, which names a secret at most.
fn is_path(value: &str) -> bool {
    ["/", "~/", "./", "../"]
        .iter()
        .any(|start| value.starts_with(start))
}

/// A text in which the redaction knows a secret: the token of a well-known service, a JWT, a private key.
fn is_token(value: &str) -> bool {
    switchboard_redact::redact_text(value) != value
}

/// An address with a password: `scheme://user:password@host`.
fn has_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.and_then(|user| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_or_form() {
        for (name, value) in [
            ("API_KEY", "hunter22"),
            ("github_token", "abcdefgh"),
            ("Authorization", "Bearer abcdefgh"),
            ("X-Api-Key", "abcdefgh"),
            ("DB_PASSWORD", "swordfish"),
            ("GITHUB_PAT", "abcdefgh"),
            ("ANYTHING", "ghp_0123456789abcdef0123"),
            ("ANYTHING", "sk-proj-0123456789abcdef"),
            ("DATABASE_URL", "postgres://me:pass@db/x"),
            ("ANYTHING", "-----BEGIN PRIVATE KEY-----\nMII"),
            ("API_KEY", "${env:A}rest-of-it"),
        ] {
            assert!(looks_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn settings_and_references_are_no_secrets() {
        for (name, value) in [
            ("API_KEY", "${secret:x}"),
            ("Authorization", "Bearer ${secret:x}"),
            ("API_KEY", "${env:API_KEY}"),
            ("MAX_TOKENS", "4096"),
            ("USE_TOKEN", "true"),
            ("SSH_KEY", "~/.ssh/id_ed25519"),
            ("KEY_FILE", "/etc/key.pem"),
            ("PATH", "/usr/bin"),
            ("TZ", "Europe/Berlin"),
            ("DATABASE_URL", "postgres://me@db/x"),
            ("API_KEY", ""),
        ] {
            assert!(!looks_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn plain_http_with_credentials_is_seen() {
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
