//! Every documented key reaches the model, and every documented default is correct.
//!
//! The keys come from the schema, so a new one fails here until it has a sample that changes the model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use switchboard_config::{Config, parse, schema};

const IGNORED: &str = "Ignored; other programs write it.";

/// A value for each key that is not its default.
const SAMPLES: &[(&str, &str)] = &[
    ("listen", r#""127.0.0.1:1""#),
    ("view", r#""direct""#),
    ("mcpServers", r#"{"new": {"command": "x"}}"#),
    ("clients", r#"{"new": {"view": "direct"}}"#),
    ("clients.*.view", r#""direct""#),
    ("profiles", r#"{"new": {"servers": ["s"]}}"#),
    ("profiles.*.servers", r#"["other"]"#),
    ("profiles.*.tools.allow", r#"["other:*"]"#),
    ("profiles.*.tools.deny", r#"["other:*"]"#),
    ("profiles.*.view", r#""direct""#),
    ("profiles.*.approvals", r#""all""#),
    ("profiles.*.memory.namespace", r#""other""#),
    ("waitTimeoutMs", "1"),
    ("approvals.shortTimeoutMs", "1"),
    ("approvals.longTimeoutMs", "1"),
    ("approvals.route", r#""human""#),
    ("approvals.rules", r#"["deny x"]"#),
    ("approvals.tools", r#""writes""#),
    ("approvals.notify", r#""off""#),
    ("approvals.webhook.url", r#""http://other""#),
    ("approvals.webhook.secret", r#""other""#),
    ("approvals.webhook.on", r#"["created", "decided"]"#),
    ("approvals.questionsPerCall", "1"),
    ("approvals.questionsPerMinute", "1"),
    ("sampling.review", "true"),
    ("sampling.budget.requestsPerCall", "1"),
    ("sampling.budget.requestsPerHour", "1"),
    ("sampling.budget.requestsPerDay", "1"),
    ("sampling.budget.tokensPerHour", "1"),
    ("sampling.budget.tokensPerDay", "1"),
    ("sampling.budget.costPerDay", "1"),
    ("sampling.budget.promptBytes", "1"),
    ("sampling.budget.concurrent", "1"),
    ("sampling.provider.kind", r#""anthropic""#),
    ("sampling.provider.model", r#""other""#),
    ("sampling.provider.baseUrl", r#""http://other""#),
    ("sampling.provider.apiKey", r#""other""#),
    ("sampling.provider.models", r#"["other"]"#),
    ("sampling.provider.maxTokens", "1"),
    ("sampling.provider.timeoutMs", "1"),
    ("sampling.provider.prices.input", "0"),
    ("sampling.provider.prices.output", "0.25"),
    ("memory.enabled", "false"),
    ("memory.extract", "false"),
    ("memory.tools", r#""all""#),
    ("search.embeddings", r#""off""#),
    ("auth.mcp", r#""none""#),
    ("shutdown.totalTimeoutMs", "1"),
    ("shutdown.containerTimeoutMs", "1"),
    ("mcpServers.*.command", r#""other""#),
    ("mcpServers.*.args", r#"["other"]"#),
    ("mcpServers.*.env", r#"{"OTHER": "1"}"#),
    ("mcpServers.*.hold", "true"),
    ("mcpServers.*.approvedFile", r#""/other""#),
    ("mcpServers.*.cwd", r#""/other""#),
    ("mcpServers.*.url", r#""http://other""#),
    ("mcpServers.*.serverUrl", r#""http://other""#),
    ("mcpServers.*.httpUrl", r#""http://other""#),
    ("mcpServers.*.headers", r#"{"Other": "1"}"#),
    ("mcpServers.*.oauth.clientId", r#""other""#),
    ("mcpServers.*.oauth.clientSecret", r#""other""#),
    ("mcpServers.*.oauth.privateKey", r#""other""#),
    ("mcpServers.*.oauth.keyId", r#""other""#),
    ("mcpServers.*.oauth.issuer", r#""https://other""#),
    (
        "mcpServers.*.oauth.clientMetadataUrl",
        r#""https://other/client.json""#,
    ),
    ("mcpServers.*.oauth.redirectUri", r#""http://127.0.0.1:1/""#),
    ("mcpServers.*.oauth.scopes", r#"["other"]"#),
    ("mcpServers.*.oauth.resource", "false"),
    (
        "mcpServers.*.oauth.metadataUrl",
        r#""https://other/metadata""#,
    ),
    ("mcpServers.*.oauth.assumePkce", "true"),
    (
        "mcpServers.*.oauth.authorizationParameters",
        r#"{"prompt": "consent"}"#,
    ),
    ("mcpServers.*.oauth.grant", r#""client_credentials""#),
    ("mcpServers.*.oauth.assertionFile", r#""/other""#),
    (
        "mcpServers.*.oauth.identityProvider.tokenUrl",
        r#""https://other""#,
    ),
    ("mcpServers.*.oauth.identityProvider.clientId", r#""other""#),
    (
        "mcpServers.*.oauth.identityProvider.clientSecret",
        r#""other""#,
    ),
    (
        "mcpServers.*.oauth.identityProvider.idTokenFile",
        r#""/other""#,
    ),
    ("mcpServers.*.type", r#""sse""#),
    ("mcpServers.*.transport", r#""http-only""#),
    ("mcpServers.*.image", r#""other""#),
    ("mcpServers.*.inheritEnv", r#"["KUBECONFIG"]"#),
    ("mcpServers.*.isolation.engine", r#"["podman", "--remote"]"#),
    ("mcpServers.*.isolation.network", "true"),
    ("mcpServers.*.isolation.memory", r#""1g""#),
    ("mcpServers.*.isolation.cpus", "1.5"),
    ("mcpServers.*.isolation.pids", "1"),
    ("mcpServers.*.isolation.mounts", r#"["/a:/b"]"#),
    ("mcpServers.*.isolation.readOnly", "true"),
    ("mcpServers.*.isolation.runArgs", r#"["--init"]"#),
    ("mcpServers.*.enabled", "false"),
    ("mcpServers.*.disabled", "true"),
    ("mcpServers.*.revision", r#""2025-11-25""#),
    ("mcpServers.*.share", r#""client""#),
    ("mcpServers.*.maxInstances", "1"),
    ("mcpServers.*.start", r#""eager""#),
    ("mcpServers.*.idleStopSeconds", "0"),
    ("mcpServers.*.requestTimeoutMs", "1"),
    ("mcpServers.*.timeout", "1"),
    ("mcpServers.*.initTimeoutMs", "1"),
    ("mcpServers.*.closeTimeoutMs", "1"),
    ("mcpServers.*.termTimeoutMs", "1"),
    ("mcpServers.*.maxInFlight", "1"),
    ("mcpServers.*.maxQueued", "0"),
    ("mcpServers.*.tools", r#"["other"]"#),
    ("mcpServers.*.tools.allow", r#"["other"]"#),
    ("mcpServers.*.tools.deny", r#"["other"]"#),
    ("mcpServers.*.includeTools", r#"["other"]"#),
    ("mcpServers.*.excludeTools", r#"["other"]"#),
    ("mcpServers.*.disabledTools", r#"["other"]"#),
    ("mcpServers.*.overrides", r#"{"other": {"hidden": true}}"#),
    ("mcpServers.*.overrides.*.name", r#""other""#),
    ("mcpServers.*.overrides.*.description", r#""other""#),
    ("mcpServers.*.overrides.*.hidden", "true"),
    ("mcpServers.*.overrides.*.annotations.title", r#""other""#),
    ("mcpServers.*.overrides.*.annotations.readOnlyHint", "true"),
    (
        "mcpServers.*.overrides.*.annotations.destructiveHint",
        "true",
    ),
    (
        "mcpServers.*.overrides.*.annotations.idempotentHint",
        "true",
    ),
    ("mcpServers.*.overrides.*.annotations.openWorldHint", "true"),
    (
        "mcpServers.*.overrides.*.arguments",
        r#"{"other": {"value": 1}}"#,
    ),
    ("mcpServers.*.overrides.*.arguments.*.value", "null"),
    ("mcpServers.*.overrides.*.arguments.*.hidden", "true"),
    ("mcpServers.*.trust", r#""ask""#),
    ("mcpServers.*.maxResultBytes", "2000"),
    ("mcpServers.*.maxResultTokens", "2000"),
    ("mcpServers.*.approve", r#""destructive""#),
    ("results.maxBytes", "2000"),
    ("results.maxTokens", "2000"),
    ("results.keepSeconds", "2"),
    ("sessions.idleSeconds", "60"),
    ("search.learn", "false"),
];

/// Base configurations to try a key on: one for each kind of server.
fn bases() -> [Value; 6] {
    let base = |server: Value| {
        json!({
            "mcpServers": {"s": server},
            "profiles": {"s": {}},
            "approvals": {"webhook": {"url": "http://a", "secret": "s"}},
            "sampling": {"provider": {"kind": "openai", "model": "m", "prices": {"input": 1, "output": 2}}},
        })
    };
    [
        base(json!({"command": "a", "overrides": {"s": {"description": "a"}}})),
        base(json!({"url": "http://a", "oauth": {"clientId": "a", "clientSecret": "b"}})),
        base(
            json!({"url": "http://a", "oauth": {"clientId": "a", "privateKey": "b", "keyId": "c"}}),
        ),
        base(json!({
            "url": "http://a",
            "oauth": {
                "clientId": "a",
                "identityProvider": {"tokenUrl": "https://a", "clientId": "b", "clientSecret": "c", "idTokenFile": "/d"},
            },
        })),
        base(json!({
            "url": "http://a",
            "oauth": {"clientId": "a", "grant": "jwt_bearer", "assertionFile": "/a"},
        })),
        base(json!({"image": "a"})),
    ]
}

/// Collects every property of a schema with its path; `*` stands for the name of a server.
fn properties(schema: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
    let join = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(join(name), property.clone());
        properties(property, &join(name), found);
    }
    if schema["additionalProperties"].is_object() {
        properties(&schema["additionalProperties"], &join("*"), found);
    }
    for option in schema["anyOf"].as_array().into_iter().flatten() {
        properties(option, path, found);
    }
}

/// Sets the value at a path, and removes other ways to reach the server.
fn set(base: &Value, path: &str, value: &Value) -> Value {
    let mut changed = base.clone();
    let mut place = &mut changed;
    for step in path.replace('*', "s").split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step];
    }
    *place = value.clone();
    if path.ends_with(".serverUrl") || path.ends_with(".httpUrl") {
        changed["mcpServers"]["s"]
            .as_object_mut()
            .unwrap()
            .remove("url");
    }
    changed
}

fn read(value: &Value) -> Option<Config> {
    parse(&value.to_string(), "sample").ok()
}

fn all() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    properties(&schema(), "", &mut found);
    found
}

#[test]
fn every_key_changes_the_model() {
    let mut left: Vec<_> = SAMPLES.iter().map(|(key, _)| *key).collect();
    for (path, property) in all() {
        let is_object = property["properties"].is_object();
        if path == "$schema" || property["description"] == IGNORED || is_object {
            continue;
        }
        let sample = SAMPLES
            .iter()
            .find(|(key, _)| *key == path)
            .unwrap_or_else(|| panic!("no sample for {path}"));
        let sample: Value = sample.1.parse().unwrap();
        left.retain(|key| *key != path);
        let changes = bases()
            .iter()
            .filter_map(|base| Some((read(base)?, read(&set(base, &path, &sample))?)))
            .inspect(|(before, after)| assert_ne!(before, after, "{path} changes nothing"))
            .count();
        assert!(changes > 0, "{path} fits no server");
    }
    assert!(
        left.is_empty(),
        "samples of keys that are no more: {left:?}"
    );
}

#[test]
fn ignored_key_changes_nothing() {
    let base = &bases()[0];
    let ignored: Vec<_> = all()
        .into_iter()
        .filter(|(_, property)| property["description"] == IGNORED)
        .collect();
    assert!(ignored.len() > 3);
    for (path, _) in ignored {
        let with = set(base, &path, &json!(["anything"]));
        assert_eq!(read(&with), read(base), "{path}");
    }
}

/// Tests if a key is a map whose entries the bases have.
fn is_map(path: &str) -> bool {
    matches!(path, "mcpServers" | "profiles")
}

#[test]
fn documented_defaults_are_correct() {
    let mut checked = 0;
    for (path, property) in all() {
        let Some(default) = property.get("default").filter(|_| !is_map(&path)) else {
            continue;
        };
        let mut fitting = 0;
        let has =
            |base: &Value| !path.contains("overrides.") || base.to_string().contains("overrides");
        for base in bases().into_iter().filter(has) {
            let Some(mut with) = read(&set(&base, &path, default)) else {
                continue;
            };
            if path == "listen" {
                assert_eq!(with.listen, Some(Config::default().listen_address()));
                with.listen = None;
            }
            assert_eq!(Some(with), read(&base), "{path}");
            fitting += 1;
        }
        assert!(fitting > 0, "{path} fits no server");
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}
