//! Changes of the configuration for the audit log: names of servers and keys, never values.

use std::{collections::BTreeSet, mem::discriminant, sync::Arc};

use serde_json::json;
use switchboard_base::audit::{Actor, Event};
use switchboard_config::{Approvals, Config, Server, Transport};

use crate::identity::{Field, Value, fields};

/// The events for the differences between two configurations.
pub(crate) fn events(old: &Config, new: &Config, actor: Option<&Actor>) -> Vec<Event> {
    let mut events = Vec::new();
    let mut record = |what, subject: Arc<str>, details| {
        events.push(Event {
            what,
            subject,
            actor: actor.cloned(),
            details,
        });
    };
    let names = old.servers.keys().chain(new.servers.keys());
    for name in names.collect::<BTreeSet<_>>() {
        let subject = Arc::from(name.as_str());
        match (old.servers.get(name), new.servers.get(name)) {
            (None, Some(server)) => {
                let details = json!({ "enabled": server.enabled, "hold": server.hold });
                record("server-added", subject, details);
            }
            (Some(_), None) => record("server-removed", subject, json!({})),
            (Some(old), Some(new)) if old != new => {
                let keys = changed_keys(old, new);
                if keys.is_empty() {
                    // Only the position of a malformed reference has changed.
                    continue;
                }
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
    let (was, is) = (&old.approvals, &new.approvals);
    if was.rules != is.rules || was.tools != is.tools {
        let rules = |one: &Approvals, other: &Approvals| -> Vec<String> {
            let only = one.rules.iter().filter(|rule| !other.rules.contains(rule));
            only.take(RULES_MAX)
                .map(|rule| json!(rule).to_string())
                .collect()
        };
        let mut details = json!({ "added": rules(is, was), "removed": rules(was, is) });
        if was.tools != is.tools {
            details["tools"] = json!({ "old": was.tools.as_str(), "new": is.tools.as_str() });
        }
        record("rules-changed", "approvals".into(), details);
    }
    let keys = config_keys(old, new);
    if !keys.is_empty() {
        record("config-changed", "gateway".into(), json!({ "keys": keys }));
    }
    events
}

/// The most rules that are named in one entry.
const RULES_MAX: usize = 50;

/// The keys that differ, other than servers and rules.
fn config_keys(old: &Config, new: &Config) -> Vec<&'static str> {
    // Destructured, so that a new field has to be considered here.
    let Config {
        listen: _,
        view,
        servers: _,
        profiles,
        clients,
        auth,
        shutdown,
        wait,
        approvals,
        sampling,
        memory,
        search,
        results,
        sessions,
    } = old;
    let mut asking = approvals.clone();
    asking.rules.clone_from(&new.approvals.rules);
    asking.tools = new.approvals.tools;
    differing(&[
        ("view", *view != new.view),
        ("listen", old.listen_address() != new.listen_address()),
        ("profiles", *profiles != new.profiles),
        ("clients", *clients != new.clients),
        ("auth", *auth != new.auth),
        ("shutdown", *shutdown != new.shutdown),
        ("waitTimeoutMs", *wait != new.wait),
        ("sampling", *sampling != new.sampling),
        ("memory", *memory != new.memory),
        ("search", *search != new.search),
        ("results", *results != new.results),
        ("sessions", *sessions != new.sessions),
        ("approvals", asking != new.approvals),
    ])
}

/// The keys of an entry that differ.
fn changed_keys(old: &Server, new: &Server) -> Vec<&'static str> {
    // Destructured, so that a new field has to be considered here.
    let Server {
        enabled,
        transport,
        share,
        max_instances,
        start,
        revision,
        idle_stop,
        request_timeout,
        init_timeout,
        close_timeout,
        term_timeout,
        max_in_flight,
        max_queued,
        tools,
        overrides,
        compact,
        trust,
        max_result_bytes,
        max_result_tokens,
        approve,
        hold,
        approved_file,
        malformed: _,
    } = old;
    let mut keys = transport_keys(transport, &new.transport);
    keys.extend(differing(&[
        ("enabled", *enabled != new.enabled),
        ("hold", *hold != new.hold),
        ("approvedFile", *approved_file != new.approved_file),
        ("share", *share != new.share),
        ("maxInstances", *max_instances != new.max_instances),
        ("start", *start != new.start),
        ("tools", *tools != new.tools || *compact != new.compact),
        ("overrides", *overrides != new.overrides),
        ("trust", *trust != new.trust),
        ("approve", *approve != new.approve),
        ("revision", *revision != new.revision),
        ("idleStopSeconds", *idle_stop != new.idle_stop),
        ("requestTimeoutMs", *request_timeout != new.request_timeout),
        ("initTimeoutMs", *init_timeout != new.init_timeout),
        ("closeTimeoutMs", *close_timeout != new.close_timeout),
        ("termTimeoutMs", *term_timeout != new.term_timeout),
        ("maxInFlight", *max_in_flight != new.max_in_flight),
        ("maxQueued", *max_queued != new.max_queued),
        ("maxResultBytes", *max_result_bytes != new.max_result_bytes),
        (
            "maxResultTokens",
            *max_result_tokens != new.max_result_tokens,
        ),
    ]));
    keys
}

/// The keys of a server's transport that differ; `transport` if its kind differs.
fn transport_keys(old: &Transport, new: &Transport) -> Vec<&'static str> {
    if discriminant(old) != discriminant(new) {
        return vec!["transport"];
    }
    let (old, new) = (fields(old), fields(new));
    let keys: BTreeSet<_> = old.iter().chain(&new).map(|field| field.key).collect();
    let differs = |key: &&str| value(&old, key) != value(&new, key);
    keys.into_iter().filter(differs).collect()
}

fn value<'a>(fields: &[Field<'a>], key: &str) -> Option<Value<'a>> {
    let field = fields.iter().find(|field| field.key == key);
    field.map(|field| field.value)
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
    fn changed_entry_is_recorded_by_its_keys() {
        let old = server(r#"{"command": "a", "env": {"KEY": "one"}}"#);
        let new = server(r#"{"command": "a", "env": {"KEY": "two"}, "trust": "ask"}"#);
        assert_eq!(changed_keys(&old, &new), ["env", "trust"]);
        let other = server(r#"{"url": "https://example.com"}"#);
        assert_eq!(changed_keys(&old, &other), ["transport"]);
        let slower = server(r#"{"command": "a", "env": {"KEY": "one"}, "initTimeoutMs": 5}"#);
        assert_eq!(changed_keys(&old, &slower), ["initTimeoutMs"]);
        let open = server(r#"{"command": "a", "env": {"KEY": "one"}, "inheritEnv": true}"#);
        assert_eq!(changed_keys(&old, &open), ["inheritEnv"]);
    }

    #[test]
    fn changed_isolation_is_recorded_by_its_keys() {
        let old = server(r#"{"image": "i"}"#);
        let new = server(
            r#"{"image": "i", "isolation": {"engine": "x", "network": true, "mounts": ["/:/a"], "runArgs": ["-q"]}}"#,
        );
        let keys = ["engine", "mounts", "network", "runArgs"];
        assert_eq!(changed_keys(&old, &new), keys);
        assert_eq!(changed_keys(&new, &old), keys);
    }
}
