//! Servers that are not started until the user approves: the ones that were added over TCP.
//!
//! The hold is a key of the server's entry (`"hold": true`), written together with the entry, so that the
//! server is not started after a restart either. The approval records the file that was shown
//! (`approvedFile`) in the entry: if the command resolves to another file at a later start, the server is
//! held again.

use std::path::Path;

use serde_json::{Value, json};
use switchboard_base::scrub;
use switchboard_config::{Place, Server, Transport, secret_parts, shell_word};
use switchboard_redact::{Authority, REDACTED, Secrets, is_credential, redact_text};
use switchboard_rest::trust::Start;

use crate::{
    deps::Deps,
    identity::{self, Field, Part},
    launch,
};

/// The reason why such a server does not run.
pub(crate) const REASON: &str = "waiting for approval to start";

/// The reason why a server does not run whose command now resolves to another file.
pub(crate) fn other_file(server: &Server, file: &Path) -> String {
    let file = file.to_string_lossy();
    let approved = match server.approved_file.as_deref() {
        None | Some("") => "none".to_owned(),
        Some(approved) => format!("{approved:?}"),
    };
    format!(
        "{REASON}: its command resolves to a different file than the approved one ({file:?} \
         instead of {approved})"
    )
}

/// The advice for a server that waits for approval.
pub(crate) fn action(name: &str) -> String {
    let name = shell_word(name);
    format!(
        "review what it would start, then approve it with `switchboard trust approve {name}` or in \
         the console"
    )
}

/// The start of a server that is held, or whose command resolves to another file than was approved; `None`
/// for other servers. Reads files.
pub fn waiting(name: &str, server: &Server, deps: &Deps) -> Option<Start> {
    if !may_wait(server) {
        return None;
    }
    let file = launch::program_file(name, server, deps);
    let is_other = file.as_ref().is_some_and(|file| server.is_other_file(file));
    if !server.hold && !is_other {
        return None;
    }
    shown_start(server, file.as_deref())
}

/// Tests if a server is held, or will be if its command resolves to another file. With a malformed reference, it cannot
/// start, and there is nothing to approve yet.
pub fn may_wait(server: &Server) -> bool {
    server.malformed.is_none() && (server.hold || server.approved_file.is_some())
}

/// The start of a server whose command resolves to this file.
fn shown_start(server: &Server, file: Option<&Path>) -> Option<Start> {
    let fields = identity::fields(&server.transport);
    let program = match &server.transport {
        Transport::BuiltIn => return None,
        Transport::Remote(remote) => scrub::text(&address(&remote.url)).into_owned(),
        Transport::Command(_) | Transport::Container(_) => {
            let words = identity::words(&fields);
            // Known secrets are not scrubbed: a secret of another entry could hide a part of this one.
            let words = words.into_iter().map(shell_word);
            words.collect::<Vec<_>>().join(" ")
        }
    };
    let settings = fields.iter().filter(|field| field.part != Part::Program);
    let settings = settings.map(|field| (field.key.to_owned(), shown(field)));
    let found = match &server.transport {
        Transport::Remote(remote) => remote
            .disguised_host()
            .map(|host| ("host".to_owned(), host.into())),
        _ => Some((
            "file".to_owned(),
            file.map_or(Value::Null, |file| file.to_string_lossy().into()),
        )),
    };
    let settings = settings.chain(found);
    Some(Start {
        program,
        fingerprint: identity::start_fingerprint(server, file),
        settings: settings.collect(),
        references: server
            .references()
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}

/// A field without credentials. A variable is left out only if it has both the name and the form of a
/// credential: other variables may determine what runs.
fn shown(field: &Field<'_>) -> Value {
    let map = match field.value {
        identity::Value::Map(map) => map,
        identity::Value::Secret(secret) => {
            let is_reference = secret.starts_with("${") && secret.ends_with('}');
            return if is_reference { secret } else { REDACTED }.into();
        }
        other => return json!(other),
    };
    let members = map.iter().map(|(name, value)| {
        let shown = match field.key {
            "headers" => header(name, value).into(),
            _ if is_credential(name, value) => Value::Null,
            _ => value.as_str().into(),
        };
        (name.clone(), shown)
    });
    Value::Object(members.collect())
}

/// The value of a header without secrets: no header determines what runs.
fn header(name: &str, value: &str) -> String {
    let mut shown = value.to_owned();
    for part in secret_parts(Place::Header(name), value).into_iter().rev() {
        shown.replace_range(part, REDACTED);
    }
    shown
}

/// A URL without its credentials, the values of its query and the parts of its path that look
/// machine-generated. The rest of the path distinguishes servers.
fn address(url: &str) -> String {
    let (front, query) = match url.split_once('?') {
        Some((front, query)) => (front, Some(query)),
        None => (url, None),
    };
    let secrets = Secrets::default().with("url", switchboard_redact::address("url", front));
    let scrubbed = |text: &str| match &secrets {
        Ok(secrets) => secrets.scrub(&redact_text(text)).into_owned(),
        Err(_) => REDACTED.to_owned(),
    };
    let mut shown = match switchboard_redact::authority(front) {
        // The host is shown verbatim, even if it looks like a secret.
        Some(Authority { user, place }) => {
            let start = user.as_ref().map_or(place.start, |user| user.start);
            let user = user.map_or_else(String::new, |_| format!("{REDACTED}@"));
            let (scheme, host) = (&front[..start], &front[place.clone()]);
            format!("{scheme}{user}{host}{}", scrubbed(&front[place.end..]))
        }
        None => scrubbed(front),
    };
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    for (n, pair) in pairs.enumerate() {
        shown.push(if n == 0 { '?' } else { '&' });
        if let Some((name, _)) = pair.split_once('=') {
            shown.extend([name, "="]);
        }
        shown.push_str(REDACTED);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(url: &str) -> Start {
        let entry = json!({"mcpServers": {"a": {"url": url, "hold": true}}});
        let config = switchboard_config::parse(&entry.to_string(), "x").unwrap();
        shown_start(&config.servers["a"], None).unwrap()
    }

    #[test]
    fn secret_of_a_client_is_not_shown() {
        for (secret, expected) in [("hunter2", REDACTED), ("${secret:app}", "${secret:app}")] {
            let entry = json!({ "mcpServers": { "a": {
                "url": "https://h/mcp",
                "hold": true,
                "oauth": { "clientId": "x", "clientSecret": secret },
            } } });
            let config = switchboard_config::parse(&entry.to_string(), "x").unwrap();
            let shown = shown_start(&config.servers["a"], None).unwrap();
            assert_eq!(shown.settings["clientId"], "x");
            assert_eq!(shown.settings["clientSecret"], expected);
        }
        let entry = json!({ "mcpServers": { "a": {
            "url": "https://h/mcp",
            "hold": true,
            "oauth": {
                "clientId": "x",
                "privateKey": "hunter2",
                "identityProvider": {
                    "tokenUrl": "https://i/token",
                    "clientId": "y",
                    "clientSecret": "hunter3",
                    "idTokenFile": "/t",
                },
            },
        } } });
        let config = switchboard_config::parse(&entry.to_string(), "x").unwrap();
        let shown = shown_start(&config.servers["a"], None).unwrap();
        assert_eq!(shown.settings["privateKey"], REDACTED);
        assert_eq!(shown.settings["idpClientSecret"], REDACTED);
    }

    #[test]
    fn malformed_entry_has_no_start_to_approve() {
        let entry = |text: &str| json!({ "mcpServers": { "a": { "command": "x", "args": [text], "hold": true } } });
        for (text, is_malformed) in [("${projct}", true), ("y", false)] {
            let config = switchboard_config::parse(&entry(text).to_string(), "x").unwrap();
            assert_eq!(may_wait(&config.servers["a"]), !is_malformed);
        }
    }

    #[test]
    fn contacted_host_is_shown() {
        let token = "ghp_0123456789abcdef0123456789abcdef0123";
        for (url, program, host) in [
            ("https://h/mcp", "https://h/mcp".to_owned(), None),
            (
                "https://api.example:x@127.0.0.1:9/mcp",
                format!("https://{REDACTED}@127.0.0.1:9/mcp"),
                Some("127.0.0.1:9"),
            ),
            (
                "https://evil.example@evil.example/mcp",
                format!("https://{REDACTED}@evil.example/mcp"),
                Some("evil.example:443"),
            ),
            (
                &format!("https://{token}.example/?a=b"),
                format!("https://{token}.example/?a={REDACTED}"),
                None,
            ),
        ] {
            let shown = held(url);
            assert_eq!(shown.program, program);
            let named = shown.settings.get("host").and_then(Value::as_str);
            assert_eq!(named, host, "{url}");
        }
    }
}
