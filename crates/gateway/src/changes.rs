//! Changes of the configuration, as the audit log tells them: names of servers and keys, never values.

use std::sync::Arc;

use serde_json::json;
use switchboard_config::{Config, Server, Transport};

use crate::audit::{Actor, Audit, Event};

/// Records what differs between two configurations.
pub(crate) fn record(audit: &Audit, old: &Config, new: &Config, actor: Option<&Actor>) {
    let record = |what, subject: Arc<str>, details| {
        audit.record(Event {
            what,
            subject,
            actor: actor.cloned(),
            details,
        });
    };
    let names = old.servers.keys().chain(new.servers.keys());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let subject = Arc::from(name.as_str());
        match (old.servers.get(name), new.servers.get(name)) {
            (None, Some(server)) => {
                let details = json!({ "enabled": server.enabled, "hold": server.hold });
                record("server-added", subject, details);
            }
            (Some(_), None) => record("server-removed", subject, json!({})),
            (Some(old), Some(new)) if old != new => {
                let keys = changed_keys(old, new);
                let what = match (keys.as_slice(), new.enabled) {
                    (["enabled"], true) => "server-enabled",
                    (["enabled"], false) => "server-disabled",
                    _ => "server-changed",
                };
                record(what, subject, json!({ "keys": keys }));
            }
            _ => {}
        }
    }
    if old.approvals.rules != new.approvals.rules || old.approvals.tools != new.approvals.tools {
        let rules = |one: &Config, other: &Config| -> Vec<String> {
            let rules = one.approvals.rules.iter();
            let only = rules.filter(|rule| !other.approvals.rules.contains(rule));
            only.take(RULES_MAX)
                .map(|rule| json!(rule).to_string())
                .collect()
        };
        let details = json!({ "added": rules(new, old), "removed": rules(old, new) });
        record("rules-changed", "approvals".into(), details);
    }
    let others = [
        ("view", old.view != new.view),
        ("listen", old.listen_address() != new.listen_address()),
        ("auth", old.auth != new.auth),
        ("shutdown", old.shutdown != new.shutdown),
        ("waitTimeoutMs", old.wait != new.wait),
        ("sampling", old.sampling != new.sampling),
        ("memory", old.memory != new.memory),
        ("search", old.search != new.search),
        ("results", old.results != new.results),
        ("approvals", {
            let mut other = old.approvals.clone();
            other.rules.clone_from(&new.approvals.rules);
            other.tools = new.approvals.tools;
            other != new.approvals
        }),
    ];
    let keys: Vec<_> = others.iter().filter(|(_, differs)| *differs).collect();
    if !keys.is_empty() {
        let keys: Vec<_> = keys.iter().map(|(key, _)| key).collect();
        record("config-changed", "gateway".into(), json!({ "keys": keys }));
    }
}

/// Rules that are named in one entry.
const RULES_MAX: usize = 50;

/// The keys of an entry that differ.
fn changed_keys(old: &Server, new: &Server) -> Vec<&'static str> {
    let mut keys = match (&old.transport, &new.transport) {
        (Transport::Command(old), Transport::Command(new)) => differing(&[
            ("command", old.command != new.command),
            ("args", old.args != new.args),
            ("env", old.env != new.env),
            ("cwd", old.cwd != new.cwd),
        ]),
        (Transport::Remote(old), Transport::Remote(new)) => differing(&[
            ("url", old.url != new.url),
            ("headers", old.headers != new.headers),
            ("type", old.kind != new.kind),
        ]),
        (Transport::Container(old), Transport::Container(new)) => differing(&[
            ("image", old.image != new.image),
            ("args", old.args != new.args),
            ("env", old.env != new.env),
        ]),
        _ => Vec::new(),
    };
    if keys.is_empty() && old.transport != new.transport {
        keys.push("transport");
    }
    keys.extend(differing(&[
        ("enabled", old.enabled != new.enabled),
        ("hold", old.hold != new.hold),
        ("start", old.start != new.start),
        ("tools", old.tools != new.tools),
        ("trust", old.trust != new.trust),
        ("approve", old.approve != new.approve),
    ]));
    if keys.is_empty() {
        keys.push("limits");
    }
    keys
}

fn differing(keys: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = keys.iter().filter(|(_, differs)| *differs);
    differing.map(|(key, _)| *key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(entry: &str) -> Server {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        let config = switchboard_config::parse(&text, "switchboard.json").unwrap();
        config.servers["a"].clone()
    }

    #[test]
    fn changed_entry_is_told_by_its_keys() {
        let old = server(r#"{"command": "a", "env": {"KEY": "one"}}"#);
        let new = server(r#"{"command": "a", "env": {"KEY": "two"}, "trust": "ask"}"#);
        assert_eq!(changed_keys(&old, &new), ["env", "trust"]);
        let other = server(r#"{"url": "https://example.com"}"#);
        assert_eq!(changed_keys(&old, &other), ["transport"]);
        let slower = server(r#"{"command": "a", "env": {"KEY": "one"}, "initTimeoutMs": 5}"#);
        assert_eq!(changed_keys(&old, &slower), ["limits"]);
    }
}
