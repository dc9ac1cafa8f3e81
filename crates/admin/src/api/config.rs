//! The active configuration, without its secrets.
//!
//! Values of `env` and `headers`, arguments and keys may be secrets, and there is no way to tell. Therefore
//! only values that are nothing but a reference (`${secret:NAME}`) are shown; a reference is of no use to a
//! thief.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Json, extract::State};
use hyper::StatusCode;
use serde_json::{Map, Value, json};
use switchboard_client::Raw;
use switchboard_config::{
    Approvals, Argument, Budget, Config, Grant, Guard, IdentityProvider, Inherit, McpAuth,
    MemoryTools, Network, Notify, OAuth, Override, Overrides, Prices, Profile, Provider,
    ProviderKind, RemoteKind, ResourceParameter, Route, Server, Start, ToolPattern, Transport,
    is_pasted_value,
};
use switchboard_inbound::problem::{Problem, configuration, refuse_if_stopping};
use switchboard_redact::{origin, redact};
use switchboard_rest::status;

use crate::admin::Admin;

const HIDDEN: &str = "(hidden)";

pub(super) async fn show(State(admin): State<Arc<Admin>>) -> Json<status::Config> {
    Json(shown(&admin))
}

pub(super) async fn reload(
    State(admin): State<Arc<Admin>>,
) -> Result<Json<status::Config>, Problem> {
    refuse_if_stopping(&admin.core)?;
    match admin.core.reload().await {
        Ok(()) => Ok(Json(shown(&admin))),
        Err(error) => Err(configuration(StatusCode::UNPROCESSABLE_ENTITY, &error)),
    }
}

fn shown(admin: &Admin) -> status::Config {
    let core = &admin.core;
    status::Config {
        file: core.home.config_file().display().to_string(),
        problem: core.configuration.problem().as_deref().map(Into::into),
        config: without_secrets(&core.config.load()),
    }
}

fn profile(profile: &Profile) -> Value {
    let Profile {
        servers,
        allow,
        deny,
        view,
        approvals,
        memory_namespace,
    } = profile;
    let texts =
        |patterns: &[ToolPattern]| -> Value { patterns.iter().map(ToString::to_string).collect() };
    let tools = sparse([
        ("allow", allow.as_deref().map(texts)),
        ("deny", (!deny.is_empty()).then(|| texts(deny))),
    ]);
    let tools = (!tools.is_empty()).then(|| Value::from(tools));
    let shown = sparse([
        ("servers", servers.as_ref().map(|servers| json!(servers))),
        ("tools", tools),
        ("view", view.map(|view| view.as_str().into())),
        ("approvals", approvals.map(|guard| guard.as_str().into())),
        (
            "memory",
            memory_namespace
                .as_ref()
                .map(|namespace| json!({ "namespace": namespace })),
        ),
    ]);
    shown.into()
}

fn overridden(overrides: &Overrides) -> Value {
    let all = overrides.iter().map(|(tool, changes)| {
        let Override {
            name,
            description,
            annotations,
            arguments,
            hidden,
        } = changes;
        let arguments = arguments.iter().map(|(name, argument)| {
            let shown = match argument {
                Argument::Fixed(value) => {
                    json!({ "value": json_of(&shown_argument(name, value)) })
                }
                Argument::Hidden => json!({ "hidden": true }),
            };
            (name.clone(), shown)
        });
        let arguments: Map<String, Value> = arguments.collect();
        let shown = sparse([
            ("name", name.as_deref().map(Into::into)),
            ("description", description.as_deref().map(Into::into)),
            ("annotations", annotations.as_ref().map(json_of)),
            (
                "arguments",
                (!arguments.is_empty()).then(|| arguments.into()),
            ),
            ("hidden", hidden.then(|| true.into())),
        ]);
        (tool.to_owned(), Value::from(shown))
    });
    all.collect::<Map<_, _>>().into()
}

/// The value of a fixed argument, unless it looks like a secret, by its name too.
pub(super) fn shown_argument(name: &str, value: &Raw) -> Raw {
    let named = Raw::object([(name, value.clone())]);
    // Redaction may add a few words to a short text.
    let shown = redact(&named, 2 * named.as_bytes().len() + 1024);
    shown.member(name).unwrap_or_else(|| Raw::string(HIDDEN))
}

fn json_of(value: &Raw) -> Value {
    value.read_owned().unwrap_or_default()
}

/// The configuration under the keys of the file. The destructuring makes sure that every new key is
/// considered here.
fn without_secrets(config: &Config) -> Value {
    let Config {
        listen: _,
        view,
        servers,
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
    } = config;
    let servers: Map<_, _> = servers
        .iter()
        .map(|(name, server)| (name.clone(), server_without_secrets(server)))
        .collect();
    let profiles: Map<_, _> = profiles
        .iter()
        .map(|(name, one)| (name.clone(), profile(one)))
        .collect();
    json!({
        "listen": config.listen_address().to_string(),
        "view": view.as_str(),
        "mcpServers": servers,
        "profiles": profiles,
        "clients": clients
            .iter()
            .map(|(name, view)| (name.clone(), json!({ "view": view.as_str() })))
            .collect::<Map<_, _>>(),
        "waitTimeoutMs": ms(*wait),
        "approvals": asking(approvals),
        "sampling": sparse([
            ("provider", sampling.provider.as_ref().map(provider)),
            ("review", Some(sampling.review.into())),
            ("budget", Some(budget(&sampling.budget).into())),
        ]),
        "memory": {
            "enabled": memory.enabled,
            "tools": match memory.tools {
                MemoryTools::Compact => "compact",
                MemoryTools::All => "all",
            },
        },
        "search": { "embeddings": search.embeddings.as_str(), "learn": search.learn },
        "results": {
            "maxBytes": results.max_bytes,
            "maxTokens": results.max_tokens,
            "keepSeconds": results.keep.as_secs(),
        },
        "sessions": { "idleSeconds": sessions.idle.as_secs() },
        "auth": {
            "mcp": match auth.mcp {
                McpAuth::Token => "token",
                McpAuth::None => "none",
            },
        },
        "shutdown": {
            "totalTimeoutMs": ms(shutdown.total_timeout),
            "containerTimeoutMs": ms(shutdown.container_timeout),
        },
    })
}

fn budget(budget: &Budget) -> Map<String, Value> {
    let Budget {
        requests_per_call,
        requests_per_hour,
        requests_per_day,
        tokens_per_hour,
        tokens_per_day,
        cost_per_day,
        prompt_bytes,
        concurrent,
    } = *budget;
    sparse([
        ("requestsPerCall", Some(requests_per_call.into())),
        ("requestsPerHour", Some(requests_per_hour.into())),
        ("requestsPerDay", Some(requests_per_day.into())),
        ("tokensPerHour", Some(tokens_per_hour.into())),
        ("tokensPerDay", Some(tokens_per_day.into())),
        ("costPerDay", cost_per_day.map(Into::into)),
        ("promptBytes", Some(prompt_bytes.into())),
        ("concurrent", Some(concurrent.into())),
    ])
}

fn asking(approvals: &Approvals) -> Map<String, Value> {
    let Approvals {
        short_timeout,
        long_timeout,
        route,
        tools,
        rules,
        webhook,
        notify,
        questions_per_call,
        questions_per_minute,
    } = approvals;
    let route = match route {
        Route::Auto => "auto",
        Route::Client => "client",
        Route::Human => "human",
    };
    let notify = match notify {
        Notify::Auto => "auto",
        Notify::Off => "off",
    };
    sparse([
        ("shortTimeoutMs", Some(ms(*short_timeout))),
        ("longTimeoutMs", Some(ms(*long_timeout))),
        ("route", Some(route.into())),
        ("questionsPerCall", Some((*questions_per_call).into())),
        ("questionsPerMinute", Some((*questions_per_minute).into())),
        ("tools", Some(tools.as_str().into())),
        ("rules", Some(json!(rules))),
        (
            "webhook",
            webhook.as_ref().map(|webhook| {
                json!({
                    "url": shown_value(&webhook.url),
                    "secret": shown_value(&webhook.secret),
                    "on": webhook.on,
                })
            }),
        ),
        ("notify", Some(notify.into())),
    ])
}

fn server_without_secrets(server: &Server) -> Value {
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
        compact: _,
        trust,
        max_result_bytes,
        max_result_tokens,
        approve,
        hold,
        approved_file,
        malformed: _,
    } = server;
    let start = start.map(|start| match start {
        Start::Lazy => "lazy",
        Start::Eager => "eager",
    });
    let filter = [
        ("allow", tools.allow.as_ref().map(|names| json!(names))),
        ("deny", (!tools.deny.is_empty()).then(|| json!(tools.deny))),
    ];
    let mut entry = way(transport);
    entry.extend(sparse([
        ("enabled", Some((*enabled).into())),
        (
            "revision",
            revision.map(|revision| revision.as_str().into()),
        ),
        ("share", Some(share.as_str().into())),
        ("maxInstances", Some((*max_instances).into())),
        ("start", start.map(Into::into)),
        (
            "idleStopSeconds",
            Some(idle_stop.map_or(0, |idle| idle.as_secs()).into()),
        ),
        ("requestTimeoutMs", Some(ms(*request_timeout))),
        ("initTimeoutMs", Some(ms(*init_timeout))),
        ("closeTimeoutMs", Some(ms(*close_timeout))),
        ("termTimeoutMs", Some(ms(*term_timeout))),
        ("maxInFlight", Some((*max_in_flight).into())),
        ("maxQueued", Some((*max_queued).into())),
        ("tools", Some(sparse(filter).into())),
        (
            "overrides",
            (!overrides.is_empty()).then(|| overridden(overrides)),
        ),
        ("trust", Some(trust.as_str().into())),
        ("hold", Some((*hold).into())),
        ("approvedFile", approved_file.as_deref().map(Into::into)),
        ("maxResultBytes", max_result_bytes.map(Into::into)),
        ("maxResultTokens", max_result_tokens.map(Into::into)),
        (
            "approve",
            approve.map(|approve| match approve {
                Guard::Rules => "never".into(),
                other => other.as_str().into(),
            }),
        ),
    ]));
    entry.into()
}

/// The keys of a server's transport.
fn way(transport: &Transport) -> Map<String, Value> {
    match transport {
        Transport::BuiltIn => Map::new(),
        Transport::Command(line) => sparse([
            ("command", Some(line.command.as_str().into())),
            ("args", Some(list(&line.args))),
            ("env", Some(values(&line.env))),
            (
                "inheritEnv",
                match &line.inherit_env {
                    Inherit::All => Some(true.into()),
                    Inherit::Names(names) => (!names.is_empty()).then(|| names.clone().into()),
                },
            ),
            ("cwd", line.cwd.as_deref().map(Into::into)),
        ]),
        Transport::Remote(remote) => sparse([
            ("url", Some(address(&remote.url).into())),
            ("headers", Some(values(&remote.headers))),
            (
                "type",
                match remote.kind {
                    RemoteKind::Auto => None,
                    RemoteKind::Http => Some("http-only".into()),
                    RemoteKind::Sse => Some("sse".into()),
                },
            ),
            ("oauth", oauth(&remote.oauth)),
        ]),
        Transport::Container(container) => {
            let engine = container.engine.split_first();
            let engine = engine.map(|(program, args)| {
                let shown = args.iter().map(|arg| shown_value(arg));
                let engine: Vec<_> = std::iter::once(program.as_str()).chain(shown).collect();
                json!(engine)
            });
            let network = match &container.network {
                Network::None => Some(false.into()),
                Network::Default => Some(true.into()),
                Network::Named(name) => Some(name.as_str().into()),
            };
            let isolation = sparse([
                ("engine", engine),
                ("network", network),
                ("memory", container.memory.as_deref().map(Into::into)),
                ("cpus", container.cpus.as_deref().map(Into::into)),
                ("pids", container.pids.map(Into::into)),
                ("mounts", Some(json!(container.mounts))),
                ("readOnly", Some(container.read_only.into())),
                ("runArgs", Some(list(&container.run_args))),
            ]);
            sparse([
                ("image", Some(container.image.as_str().into())),
                ("args", Some(list(&container.args))),
                ("env", Some(values(&container.env))),
                ("isolation", Some(isolation.into())),
            ])
        }
    }
}

/// The settings of a sign-in, if there are any.
fn oauth(oauth: &OAuth) -> Option<Value> {
    let OAuth {
        client_id,
        client_secret,
        private_key,
        key_id,
        issuer,
        client_metadata_url,
        redirect_uri,
        scopes,
        resource,
        metadata_url,
        assume_pkce,
        authorization_parameters,
        grant,
        assertion_file,
        identity_provider,
    } = oauth;
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let masked = |text: &Option<String>| text.as_deref().map(|text| shown_value(text).into());
    let members = sparse([
        ("clientId", text(client_id)),
        ("clientSecret", masked(client_secret)),
        ("privateKey", masked(private_key)),
        ("keyId", text(key_id)),
        ("issuer", text(issuer)),
        ("clientMetadataUrl", text(client_metadata_url)),
        ("redirectUri", text(redirect_uri)),
        ("scopes", scopes.as_ref().map(|scopes| json!(scopes))),
        (
            "resource",
            match resource {
                ResourceParameter::Published => None,
                ResourceParameter::Fixed(resource) => Some(resource.as_str().into()),
                ResourceParameter::Omitted => Some(false.into()),
            },
        ),
        ("metadataUrl", text(metadata_url)),
        ("assumePkce", assume_pkce.then(|| true.into())),
        (
            "authorizationParameters",
            (!authorization_parameters.is_empty()).then(|| json!(authorization_parameters)),
        ),
        (
            "grant",
            match grant {
                Grant::AuthorizationCode => None,
                Grant::DeviceCode => Some("device_code".into()),
                Grant::ClientCredentials => Some("client_credentials".into()),
                Grant::JwtBearer => Some("jwt_bearer".into()),
            },
        ),
        ("assertionFile", text(assertion_file)),
        (
            "identityProvider",
            identity_provider.as_ref().map(identity_provider_of),
        ),
    ]);
    (!members.is_empty()).then(|| members.into())
}

fn identity_provider_of(provider: &IdentityProvider) -> Value {
    let IdentityProvider {
        token_url,
        client_id,
        client_secret,
        id_token_file,
    } = provider;
    let secret = client_secret.as_deref();
    let members = sparse([
        ("tokenUrl", Some(address(token_url).into())),
        ("clientId", Some(client_id.as_str().into())),
        ("clientSecret", secret.map(|text| shown_value(text).into())),
        ("idTokenFile", Some(id_token_file.as_str().into())),
    ]);
    members.into()
}

fn provider(provider: &Provider) -> Value {
    let Provider {
        kind,
        base_url,
        model,
        models,
        api_key,
        max_tokens,
        timeout,
        prices,
    } = provider;
    let kind = match kind {
        ProviderKind::OpenAi => "openai",
        ProviderKind::Anthropic => "anthropic",
    };
    let price = |prices: &Prices| json!({ "input": prices.input, "output": prices.output });
    sparse([
        ("kind", Some(kind.into())),
        (
            "baseUrl",
            base_url.as_deref().map(|url| address(url).into()),
        ),
        ("model", Some(model.as_str().into())),
        ("models", Some(json!(models))),
        (
            "apiKey",
            api_key.as_deref().map(|key| shown_value(key).into()),
        ),
        ("maxTokens", Some((*max_tokens).into())),
        ("timeoutMs", Some(ms(*timeout))),
        ("prices", prices.as_ref().map(price)),
    ])
    .into()
}

/// The members that are set.
fn sparse<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

fn ms(duration: Duration) -> Value {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}

fn list(args: &[String]) -> Value {
    args.iter().map(|arg| shown_value(arg)).collect()
}

fn values(map: &BTreeMap<String, String>) -> Value {
    map.iter()
        .map(|(name, value)| (name.clone(), Value::from(shown_value(value))))
        .collect::<Map<_, _>>()
        .into()
}

fn shown_value(text: &str) -> &str {
    if is_reference(text) { text } else { HIDDEN }
}

/// Tests if the text is a single `${…}` that contains a name, and not a value that was pasted in its place.
fn is_reference(text: &str) -> bool {
    let inside = text
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    let parts = inside.and_then(|inside| inside.split_once(':'));
    parts.is_some_and(|(kind, name)| {
        matches!(kind, "env" | "secret")
            && !name.contains(['{', '}', '$'])
            && !is_pasted_value(name)
    })
}

/// An address without its path, which may be a key.
fn address(url: &str) -> String {
    if is_reference(url) {
        return url.to_owned();
    }
    match url.split_once("://") {
        None => HIDDEN.to_owned(),
        Some((_, rest)) if rest.contains(['/', '?', '#', '\\']) => {
            format!("{}/{HIDDEN}", origin(url))
        }
        Some(_) => origin(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_are_hidden_and_references_shown() {
        let config = switchboard_config::parse(
            r#"{
                "mcpServers": {
                    "a": {
                        "command": "npx",
                        "args": ["-y", "--key=s3cret", "${env:KEY}", "x${env:KEY}", "$${env:s3cret}"],
                        "env": {"A": "s3cret", "B": "${secret:mail.key}", "C": "${env:X}s3cret${env:Y}",
                                "D": "${env:sk-ant-api03-s3cret0123456789}"}
                    },
                    "d": {"url": "https://example.com/s/s3cret/mcp"},
                    "e": {"url": "${env:BASE}/s3cret"},
                    "f": {"url": "https://me:s3cret@example.com:8443"},
                    "b": {
                        "url": "https://me:s3cret@example.com/mcp?key=s3cret",
                        "headers": {"Authorization": "Bearer s3cret", "X": "${env:X}"}
                    },
                    "c": {
                        "image": "mcp/time",
                        "args": ["s3cret"],
                        "env": {"A": "s3cret"},
                        "isolation": {
                            "engine": ["podman", "--url=s3cret"],
                            "runArgs": ["-e", "s3cret"]
                        }
                    }
                },
                "sampling": {"provider": {
                    "kind": "openai", "model": "m", "apiKey": "s3cret",
                    "baseUrl": "http://s3cret@localhost/s3cret/v1#s3cret"
                }},
                "approvals": {"webhook": {"url": "https://example.com/hooks/s3cret", "secret": "s3cret"}}
            }"#,
            "switchboard.json",
        )
        .unwrap();
        let shown = without_secrets(&config);
        assert!(!shown.to_string().contains("s3cret"), "{shown:#}");
        let servers = &shown["mcpServers"];
        assert_eq!(
            servers["a"]["args"],
            json!([HIDDEN, HIDDEN, "${env:KEY}", HIDDEN, HIDDEN])
        );
        assert_eq!(
            servers["a"]["env"],
            json!({"A": HIDDEN, "B": "${secret:mail.key}", "C": HIDDEN, "D": HIDDEN})
        );
        assert_eq!(servers["b"]["url"], "https://example.com/(hidden)");
        assert_eq!(servers["d"]["url"], "https://example.com/(hidden)");
        assert_eq!(servers["e"]["url"], HIDDEN);
        assert_eq!(servers["f"]["url"], "https://example.com:8443");
        let provider = &shown["sampling"]["provider"];
        assert_eq!(provider["baseUrl"], "http://localhost/(hidden)");
        assert_eq!(
            servers["b"]["headers"],
            json!({"Authorization": HIDDEN, "X": "${env:X}"})
        );
        assert_eq!(
            servers["c"]["isolation"]["engine"],
            json!(["podman", HIDDEN])
        );
        assert_eq!(shown["sampling"]["provider"]["apiKey"], HIDDEN);
        assert_eq!(shown["listen"], "127.0.0.1:7777");
    }
}
