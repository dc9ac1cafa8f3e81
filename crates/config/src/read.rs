//! Converts the tree to the model: everything but servers, and access to the values of an object.
//!
//! The shapes have been checked before, and all mismatches reported. So a value of the wrong kind counts
//! as absent here, and only problems that shapes cannot express are reported.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::diagnostic::Problems;
use crate::json::{Json, Member, Node, quote};
use crate::keys::{PRICES, PROVIDER, WEBHOOK};
use crate::listen::parse_listen;
use crate::model::{
    Approvals, Auth, Budget, Config, Embeddings, Guard, McpAuth, Memory, MemoryTools, Notify,
    Prices, Provider, ProviderKind, Results, Route, Sampling, Search, Server, Shutdown, View,
    Webhook,
};
use crate::name::{check_profile_name, check_server_name};
use crate::profile;
use crate::reference::{Piece, pieces};
use crate::server;
use crate::shape::Keys;

/// The malformed references of each server that has some, by its name.
pub(crate) type Malformed = Vec<(String, Problems)>;

/// Converts the outer object.
pub(crate) fn config(
    root: &Node<'_>,
    problems: &mut Problems,
    malformed: &mut Malformed,
) -> Config {
    let block = Block(root);
    let defaults = Config::default();
    let mut config = Config {
        view: block.text("view").map(view).unwrap_or_default(),
        wait: block.millis("waitTimeoutMs").unwrap_or(defaults.wait),
        ..defaults
    };
    if let Some(address) = block.text("listen") {
        match parse_listen(address) {
            Ok(address) => config.listen = Some(address),
            Err(error) => {
                let message = format!("\"listen\": {error}");
                problems.push(block.at("listen"), message, error.hint());
            }
        }
    }
    if let Some(block) = block.block("approvals") {
        config.approvals = approvals(block, problems);
    }
    if let Some(block) = block.block("sampling") {
        config.sampling = Sampling {
            provider: block
                .block("provider")
                .and_then(|block| provider(block, problems)),
            review: block.flag("review").unwrap_or(false),
            budget: block.block("budget").map(budget).unwrap_or_default(),
        };
    }
    if let Some(block) = block.block("memory") {
        config.memory = Memory {
            enabled: block.flag("enabled").unwrap_or(true),
            extract: block.flag("extract").unwrap_or(true),
            tools: match block.text("tools") {
                Some("all") => MemoryTools::All,
                _ => MemoryTools::Compact,
            },
        };
    }
    if let Some(block) = block.block("search") {
        let embeddings = block.text("embeddings").map(Embeddings::from);
        config.search = Search {
            embeddings: embeddings.unwrap_or_default(),
            learn: block.flag("learn").unwrap_or(true),
        };
    }
    if let Some(block) = block.block("results") {
        let defaults = Results::default();
        let keep = block.whole("keepSeconds").map(Duration::from_secs);
        config.results = Results {
            max_bytes: block.count("maxBytes").unwrap_or(defaults.max_bytes),
            max_tokens: block.count("maxTokens").unwrap_or(defaults.max_tokens),
            keep: keep.unwrap_or(defaults.keep),
        };
    }
    if let Some(seconds) = block
        .block("sessions")
        .and_then(|block| block.whole("idleSeconds"))
    {
        config.sessions.idle = Duration::from_secs(seconds);
    }
    if let Some("none") = block.block("auth").and_then(|block| block.text("mcp")) {
        config.auth = Auth { mcp: McpAuth::None };
    }
    if let Some(block) = block.block("shutdown") {
        config.shutdown = shutdown(block);
    }
    config.servers = servers(root, problems, malformed);
    if let Some(profiles) = root
        .get("profiles")
        .and_then(|member| member.node.members())
    {
        for member in profiles {
            if let Err(error) = check_profile_name(&member.key) {
                problems.push(member.at, error.to_string(), error.hint());
            }
            if let Some(profile) = profile::read(member, problems) {
                let name = member.key.clone().into_owned();
                config.profiles.insert(name, profile);
            }
        }
    }
    check_namespaces(root, &config, problems);
    config.clients = client_views(root);
    config
}

/// Converts `mcpServers`.
fn servers(
    root: &Node<'_>,
    problems: &mut Problems,
    malformed: &mut Malformed,
) -> BTreeMap<String, Server> {
    let mut servers = BTreeMap::new();
    let members = root
        .get("mcpServers")
        .and_then(|member| member.node.members());
    for member in members.unwrap_or_default() {
        if let Err(error) = check_server_name(&member.key) {
            problems.push(member.at, error.to_string(), error.hint());
        }
        let name = member.key.clone().into_owned();
        let mut its = Problems::default();
        let server = server::read(member, problems, &mut its);
        if !its.is_empty() && malformed.len() < Problems::MOST {
            malformed.push((name.clone(), its));
        } else {
            // More would be useless, and a hostile file could exhaust the memory.
            problems.append(its);
        }
        if let Some(server) = server {
            servers.insert(name, server);
        }
    }
    servers
}

/// Reports namespaces of a memory that another server replaces.
fn check_namespaces(root: &Node<'_>, config: &Config, problems: &mut Problems) {
    let profiles = root.get("profiles").and_then(|all| all.node.members());
    let memory = config.servers.get(Memory::NAME);
    for profile in profiles.into_iter().flatten().filter(|_| memory.is_some()) {
        if let Some(of) = Block(&profile.node).block("memory")
            && of.text("namespace").is_some()
        {
            problems.add_with_hint(
                of.at("namespace"),
                "\"namespace\" has no effect: the server \"memory\" replaces the built-in memory",
                "rename that server, or remove this key",
            );
        }
    }
}

/// Converts `clients`.
fn client_views(root: &Node<'_>) -> BTreeMap<String, View> {
    let clients = root.get("clients").and_then(|member| member.node.members());
    let views = clients.into_iter().flatten().filter_map(|member| {
        let written = Block(&member.node).text("view")?;
        Some((member.key.clone().into_owned(), view(written)))
    });
    views.collect()
}

/// Converts the value of `view`.
pub(crate) fn view(written: &str) -> View {
    match written {
        "search" => View::Search,
        "direct" => View::Direct,
        _ => View::Auto,
    }
}

fn rule(node: &Node<'_>, problems: &mut Problems) -> serde_json::Value {
    let written = to_value(node, problems);
    if let Err(error) = switchboard_approvals::rules::Rule::parse(&written) {
        problems.push(node.start, format!("\"rules\": {error}"), error.hint());
    }
    written
}

fn approvals(block: Block<'_, '_>, problems: &mut Problems) -> Approvals {
    let defaults = Approvals::default();
    let rules = block.0.get("rules").map(|member| &member.node.value);
    Approvals {
        short_timeout: block
            .millis("shortTimeoutMs")
            .unwrap_or(defaults.short_timeout),
        long_timeout: block
            .millis("longTimeoutMs")
            .unwrap_or(defaults.long_timeout),
        route: match block.text("route") {
            Some("client") => Route::Client,
            Some("human") => Route::Human,
            _ => Route::Auto,
        },
        tools: block.text("tools").map(Guard::read).unwrap_or_default(),
        rules: match rules {
            Some(Json::List(rules)) => rules.iter().map(|node| rule(node, problems)).collect(),
            _ => Vec::new(),
        },
        webhook: block
            .block("webhook")
            .and_then(|block| webhook(block, problems)),
        notify: match block.text("notify") {
            Some("off") => Notify::Off,
            _ => Notify::Auto,
        },
        questions_per_call: block
            .whole("questionsPerCall")
            .unwrap_or(defaults.questions_per_call),
        questions_per_minute: block
            .whole("questionsPerMinute")
            .unwrap_or(defaults.questions_per_minute),
    }
}

fn budget(block: Block<'_, '_>) -> Budget {
    let defaults = Budget::default();
    let whole = |key, default| block.whole(key).unwrap_or(default);
    Budget {
        requests_per_call: whole("requestsPerCall", defaults.requests_per_call),
        requests_per_hour: whole("requestsPerHour", defaults.requests_per_hour),
        requests_per_day: whole("requestsPerDay", defaults.requests_per_day),
        tokens_per_hour: whole("tokensPerHour", defaults.tokens_per_hour),
        tokens_per_day: whole("tokensPerDay", defaults.tokens_per_day),
        cost_per_day: block.price("costPerDay"),
        prompt_bytes: whole("promptBytes", defaults.prompt_bytes),
        concurrent: block.count("concurrent").unwrap_or(defaults.concurrent),
    }
}

fn webhook(block: Block<'_, '_>, problems: &mut Problems) -> Option<Webhook> {
    gateway_references(block, &["url", "secret"], problems);
    needs(block, "webhook", &WEBHOOK, problems);
    let url = server::address(block, "url", problems);
    let secret = block.text("secret")?;
    if secret.is_empty() {
        problems.add(
            block.at("secret"),
            "\"secret\" is empty, so the gateway cannot sign messages",
        );
    }
    Some(Webhook {
        url: url?.to_owned(),
        secret: secret.to_owned(),
        on: block
            .texts("on")
            .unwrap_or_else(|| vec!["escalated".to_owned()]),
    })
}

fn provider(block: Block<'_, '_>, problems: &mut Problems) -> Option<Provider> {
    gateway_references(block, &["baseUrl", "apiKey"], problems);
    needs(block, "provider", &PROVIDER, problems);
    let prices = block.block("prices");
    if let Some(prices) = prices {
        needs(prices, "prices", &PRICES, problems);
    }
    Some(Provider {
        kind: match block.text("kind")? {
            "anthropic" => ProviderKind::Anthropic,
            _ => ProviderKind::OpenAi,
        },
        base_url: block.text("baseUrl").map(str::to_owned),
        model: block.text("model")?.to_owned(),
        models: block.texts("models").unwrap_or_default(),
        api_key: block.text("apiKey").map(str::to_owned),
        max_tokens: block.whole("maxTokens").unwrap_or(8_192),
        timeout: block.millis("timeoutMs").unwrap_or(Duration::from_mins(2)),
        prices: prices.and_then(|prices| {
            Some(Prices {
                input: prices.price("input")?,
                output: prices.price("output")?,
            })
        }),
    })
}

/// Reports malformed references under these keys of a server.
pub(crate) fn references(block: Block<'_, '_>, keys: &[&str], malformed: &mut Problems) {
    for key in keys {
        if let Some(member) = block.0.get(key) {
            check_references(&member.node, malformed, &mut |_, _| {});
        }
    }
}

/// Does the same for keys that belong to no call, and so to no caller.
fn gateway_references(block: Block<'_, '_>, keys: &[&str], problems: &mut Problems) {
    for key in keys {
        if let Some(member) = block.0.get(key) {
            check_references(&member.node, problems, &mut |piece, problems| {
                if let Piece::Caller(placeholder) = piece {
                    let message = format!("{} has no meaning here", quote(placeholder.as_str()));
                    let hint = "use it in the entry of a server";
                    problems.add_with_hint(member.node.start, message, hint);
                }
            });
        }
    }
}

/// Reports required keys that are missing.
fn needs(block: Block<'_, '_>, name: &str, keys: &Keys, problems: &mut Problems) {
    for &key in keys.one_of.iter().copied().flatten() {
        if block.0.get(key).is_none() {
            problems.add(block.0.start, format!("{name:?} needs \"{key}\""));
        }
    }
}

fn shutdown(block: Block<'_, '_>) -> Shutdown {
    let defaults = Shutdown::default();
    Shutdown {
        total_timeout: block
            .millis("totalTimeoutMs")
            .unwrap_or(defaults.total_timeout),
        container_timeout: block
            .millis("containerTimeoutMs")
            .unwrap_or(defaults.container_timeout),
    }
}

/// An object with access to its values by key.
#[derive(Clone, Copy)]
pub(crate) struct Block<'n, 'a>(pub(crate) &'n Node<'a>);

impl<'n, 'a> Block<'n, 'a> {
    /// The offset of a key that exists.
    pub(crate) fn at(self, key: &str) -> usize {
        self.0.get(key).map_or(self.0.start, |member| member.at)
    }

    pub(crate) fn value(self, key: &str) -> Option<&'n Json<'a>> {
        Some(&self.0.get(key)?.node.value)
    }

    pub(crate) fn text(self, key: &str) -> Option<&'n str> {
        match self.value(key)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Json::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn whole(self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn price(self, key: &str) -> Option<f64> {
        match self.value(key)? {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn count(self, key: &str) -> Option<usize> {
        self.whole(key)?.try_into().ok()
    }

    pub(crate) fn millis(self, key: &str) -> Option<Duration> {
        self.whole(key).map(Duration::from_millis)
    }

    pub(crate) fn texts(self, key: &str) -> Option<Vec<String>> {
        texts(self.value(key)?)
    }

    pub(crate) fn map(self, key: &str) -> Option<BTreeMap<String, String>> {
        let members = self.0.get(key)?.node.members()?;
        let entry = |member: &Member<'_>| match &member.node.value {
            Json::Text(text) => Some((member.key.clone().into_owned(), text.clone().into_owned())),
            _ => None,
        };
        Some(members.iter().filter_map(entry).collect())
    }

    pub(crate) fn block(self, key: &str) -> Option<Self> {
        let node = &self.0.get(key)?.node;
        node.members().map(|_| Self(node))
    }
}

/// The strings of a list.
pub(crate) fn texts(value: &Json<'_>) -> Option<Vec<String>> {
    let Json::List(items) = value else {
        return None;
    };
    let text = |item: &Node<'_>| match &item.value {
        Json::Text(text) => Some(text.clone().into_owned()),
        _ => None,
    };
    Some(items.iter().filter_map(text).collect())
}

/// Reports every string in a value that contains a `${` which is not a reference.
fn check_references(
    node: &Node<'_>,
    problems: &mut Problems,
    look: &mut dyn FnMut(&Piece<'_>, &mut Problems),
) {
    match &node.value {
        // Most strings have none; skipping them keeps the start fast.
        Json::Text(text) if text.contains("${") => match pieces(text) {
            Ok(pieces) => pieces.iter().for_each(|piece| look(piece, problems)),
            Err(malformed) => {
                problems.add_with_hint(node.start, malformed.message, malformed.hint);
            }
        },
        Json::Text(_) => {}
        Json::List(items) => items
            .iter()
            .for_each(|item| check_references(item, problems, look)),
        Json::Object(members) => members
            .iter()
            .for_each(|member| check_references(&member.node, problems, look)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Converts a value unchanged, for code that parses it later.
pub(crate) fn to_value(node: &Node<'_>, problems: &mut Problems) -> serde_json::Value {
    use serde_json::Value;

    match &node.value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(text) => text.parse().map_or_else(
            |_| {
                problems.add(node.start, "this number is too large");
                Value::Null
            },
            Value::Number,
        ),
        Json::Text(text) => Value::String(text.clone().into_owned()),
        Json::List(items) => items.iter().map(|item| to_value(item, problems)).collect(),
        Json::Object(members) => members
            .iter()
            .map(|member| {
                let value = to_value(&member.node, problems);
                (member.key.clone().into_owned(), value)
            })
            .collect(),
    }
}
