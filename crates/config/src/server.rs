//! Converts an entry of `mcpServers` to a [`Server`], including the spellings of other programs.

mod oauth;
mod overrides;

use std::time::Duration;

use switchboard_wire::Revision;

use crate::diagnostic::Problems;
use crate::filter::ToolFilter;
use crate::json::{Json, Member, Node, quote};
use crate::keys::{SERVER, WAYS};
use crate::model::{
    CommandLine, Container, Guard, Inherit, Remote, RemoteKind, Server, Start, Transport, Trust,
};
use crate::network::Network;
use crate::read::{Block, references, texts};
use crate::reference::Placeholder;
use crate::share::Share;

/// Keys that apply only to some kinds of servers.
const COMPANIONS: [(&str, &[Way]); 7] = [
    ("args", &[Way::Command, Way::Container]),
    ("env", &[Way::Command, Way::Container]),
    ("inheritEnv", &[Way::Command]),
    ("cwd", &[Way::Command]),
    ("headers", &[Way::Remote]),
    ("oauth", &[Way::Remote]),
    ("isolation", &[Way::Container]),
];

/// A `timeout` below this is in seconds: no program gives a server less than one second.
const TIMEOUT_SECONDS_BELOW: u64 = 1000;

/// A `timeout` above this is in milliseconds: programs that count seconds allow an hour at most.
const TIMEOUT_MILLIS_ABOVE: u64 = 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Command,
    Remote,
    Container,
}

/// Converts an entry; `None` if it does not say how to reach the server. Malformed references are kept apart from
/// other problems.
pub(crate) fn read(
    member: &Member<'_>,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> Option<Server> {
    member.node.members()?;
    let block = Block(&member.node);
    let (key, way) = way(member, problems)?;
    companions(block, key, way, problems);
    let kind = kind(block, key, way, problems);
    let transport = match way {
        Way::Command => Transport::Command(command(block, problems, malformed)?),
        Way::Remote => Transport::Remote(remote(block, key, kind, problems, malformed)?),
        Way::Container => Transport::Container(container(block, problems, malformed)?),
    };
    let defaults = Server::new(transport);
    let share = block.text("share").map(Share::read).unwrap_or_default();
    contradictions(block, share, &defaults, problems);
    Some(Server {
        enabled: enabled(block, problems),
        revision: block.text("revision").and_then(Revision::parse),
        share,
        max_instances: block
            .count("maxInstances")
            .unwrap_or(defaults.max_instances),
        start: match block.text("start") {
            Some("lazy") => Some(Start::Lazy),
            Some("eager") => Some(Start::Eager),
            _ => None,
        },
        idle_stop: match block.whole("idleStopSeconds") {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => defaults.idle_stop,
        },
        request_timeout: block
            .millis("requestTimeoutMs")
            .or_else(|| foreign_timeout(block, problems))
            .unwrap_or(defaults.request_timeout),
        init_timeout: block
            .millis("initTimeoutMs")
            .unwrap_or(defaults.init_timeout),
        close_timeout: block
            .millis("closeTimeoutMs")
            .unwrap_or(defaults.close_timeout),
        term_timeout: block
            .millis("termTimeoutMs")
            .unwrap_or(defaults.term_timeout),
        max_in_flight: block.count("maxInFlight").unwrap_or(defaults.max_in_flight),
        max_queued: block.count("maxQueued").unwrap_or(defaults.max_queued),
        tools: tools(block, problems),
        overrides: overrides::read(block, problems),
        compact: defaults.compact,
        trust: match block.text("trust") {
            Some("ask") => Trust::Ask,
            Some("always") => Trust::Always,
            _ => Trust::First,
        },
        max_result_bytes: block.count("maxResultBytes"),
        max_result_tokens: block.count("maxResultTokens"),
        approve: block.text("approve").map(Guard::read),
        hold: block.flag("hold").unwrap_or_default(),
        approved_file: block.text("approvedFile").map(str::to_owned),
        malformed: None,
        transport: defaults.transport,
    })
}

/// Reports references to the caller in the entry of a server whose processes do not have one.
fn contradictions(block: Block<'_, '_>, share: Share, server: &Server, problems: &mut Problems) {
    let has_none = |placeholder: &Placeholder| match share {
        Share::All => true,
        Share::Project => *placeholder == Placeholder::Client,
        Share::Client | Share::Auto => false,
    };
    if let Some(placeholder) = server.placeholders().find(has_none) {
        let sharing = match placeholder {
            Placeholder::Client => "client",
            Placeholder::Project | Placeholder::ProjectName => "project",
        };
        problems.add_with_hint(
            block.at("share"),
            format!(
                "\"share\" is \"{}\", but the entry contains {}",
                share.as_str(),
                placeholder.as_str()
            ),
            format!("remove \"share\", or set it to \"{sharing}\""),
        );
    }
}

/// Determines how the server is reached, and the key that says so.
fn way(member: &Member<'_>, problems: &mut Problems) -> Option<(&'static str, Way)> {
    let mut found = WAYS.iter().filter(|key| member.node.get(key).is_some());
    let Some(&key) = found.next() else {
        // A misspelt key, already reported, is the likely reason.
        let members = member.node.members().unwrap_or_default();
        if members
            .iter()
            .all(|member| SERVER.get(&member.key).is_some())
        {
            problems.add_with_hint(
                member.at,
                format!(
                    "the server {} has no \"command\", \"url\" or \"image\"",
                    quote(&member.key)
                ),
                "add a \"command\" to start, a \"url\" to connect to, or an \"image\" to run",
            );
        }
        return None;
    };
    if let Some(&other) = found.next() {
        let block = Block(&member.node);
        problems.add_with_hint(
            block.at(key).max(block.at(other)),
            format!(
                "the server {} has both \"{key}\" and \"{other}\"",
                quote(&member.key)
            ),
            "keep one of them, or define two servers",
        );
        return None;
    }
    let way = match key {
        "command" => Way::Command,
        "image" => Way::Container,
        _ => Way::Remote,
    };
    Some((key, way))
}

/// Reports keys that have no effect. Empty values are accepted, since some programs always write them.
fn companions(block: Block<'_, '_>, way_key: &str, way: Way, problems: &mut Problems) {
    for (key, ways) in COMPANIONS {
        let Some(value) = block.value(key) else {
            continue;
        };
        let empty = match value {
            Json::List(items) => items.is_empty(),
            Json::Object(members) => members.is_empty(),
            Json::Text(text) => text.is_empty(),
            _ => false,
        };
        if empty || ways.contains(&way) {
            continue;
        }
        let hint = match (key, way) {
            ("headers", _) => "remove it, or pass it to the program through \"env\" or \"args\"",
            ("isolation", Way::Command) => "use \"image\" instead of \"command\"",
            ("cwd", Way::Container) => {
                "set \"runArgs\" in \"isolation\" to [\"--workdir\", \"DIR\"]"
            }
            ("inheritEnv", Way::Container) => {
                "set the variable in \"env\", such as {\"TZ\": \"${env:TZ}\"}"
            }
            ("env", Way::Remote) => "remove it, or send it in \"headers\"",
            _ => "remove it",
        };
        let message = format!("\"{key}\" has no effect for a server with \"{way_key}\"");
        problems.add_with_hint(block.at(key), message, hint);
    }
}

/// The transport of a remote server. Reports a `type` or `transport` that contradicts the server's kind
/// or the other key.
fn kind(block: Block<'_, '_>, way_key: &str, way: Way, problems: &mut Problems) -> RemoteKind {
    let mut kind = None;
    for key in ["type", "transport"] {
        let Some(name) = block.text(key) else {
            continue;
        };
        let said = match name {
            "stdio" | "local" => None,
            "http-only" => Some(RemoteKind::Http),
            "sse" => Some(RemoteKind::Sse),
            _ => Some(RemoteKind::Auto),
        };
        if said.is_some() != (way == Way::Remote) {
            problems.add_with_hint(
                block.at(key),
                format!("{} contradicts \"{way_key}\"", quote(name)),
                format!("remove \"{key}\", or change it to match \"{way_key}\""),
            );
        } else if kind.is_some_and(|kind| Some(kind) != said) {
            let message = "\"type\" and \"transport\" contradict each other";
            problems.add_with_hint(block.at(key), message, "keep one of them");
        }
        kind = said;
    }
    kind.unwrap_or_default()
}

fn command(
    block: Block<'_, '_>,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> Option<CommandLine> {
    references(block, &["command", "args", "env", "cwd"], malformed);
    variables(block, problems);
    let command = block.text("command")?;
    if command.trim().is_empty() {
        problems.add(block.at("command"), "\"command\" is empty");
    }
    Some(CommandLine {
        command: command.to_owned(),
        args: block.texts("args").unwrap_or_default(),
        env: block.map("env").unwrap_or_default(),
        inherit_env: inherit(block, problems),
        cwd: block
            .text("cwd")
            .filter(|cwd| !cwd.is_empty())
            .map(str::to_owned),
    })
}

fn remote(
    block: Block<'_, '_>,
    key: &str,
    kind: RemoteKind,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> Option<Remote> {
    references(block, &[key, "headers"], malformed);
    let url = address(block, key, problems)?;
    let headers = block
        .0
        .get("headers")
        .and_then(|member| member.node.members());
    for header in headers.unwrap_or_default() {
        if !is_header_name(&header.key) {
            let message = format!("{} is not a valid header name", quote(&header.key));
            problems.add(header.at, message);
        }
        if let Json::Text(value) = &header.node.value
            && value.contains(['\r', '\n'])
        {
            problems.add(header.node.start, "a header's value must be a single line");
        }
    }
    let headers = block.map("headers").unwrap_or_default();
    Some(Remote {
        url: url.to_owned(),
        oauth: oauth::read(block, &headers, problems, malformed),
        headers,
        kind,
    })
}

fn container(
    block: Block<'_, '_>,
    problems: &mut Problems,
    malformed: &mut Problems,
) -> Option<Container> {
    references(block, &["image", "args", "env"], malformed);
    variables(block, problems);
    let image = block.text("image")?;
    if image.trim().is_empty() || image.starts_with('-') {
        problems.add_with_hint(
            block.at("image"),
            "\"image\" is not the name of an image",
            "use the notation of the engine, such as \"mcp/time\"",
        );
    }
    let mut container = Container {
        image: image.to_owned(),
        args: block.texts("args").unwrap_or_default(),
        env: block.map("env").unwrap_or_default(),
        ..Container::default()
    };
    if let Some(isolation) = block.block("isolation") {
        references(isolation, &["mounts", "runArgs"], malformed);
        isolate(&mut container, isolation, problems);
    }
    Some(container)
}

fn isolate(container: &mut Container, block: Block<'_, '_>, problems: &mut Problems) {
    container.engine = match block.value("engine") {
        Some(Json::Text(program)) => vec![program.clone().into_owned()],
        Some(list) => texts(list).unwrap_or_default(),
        None => Vec::new(),
    };
    if container.engine.first().is_some_and(String::is_empty) {
        problems.add(block.at("engine"), "\"engine\" is empty");
    }
    container.network = match block.value("network") {
        Some(Json::Bool(true)) => Network::Default,
        Some(Json::Text(name)) => Network::named(name),
        _ => Network::None,
    };
    if block.text("network").is_some_and(str::is_empty) {
        problems.add_with_hint(
            block.at("network"),
            "\"network\" is empty",
            "write a name, true for the engine's default network, or false for none",
        );
    }
    container.memory = block.text("memory").map(str::to_owned);
    container.cpus = match block.value("cpus") {
        // Engines do not accept exponents.
        Some(Json::Number(amount)) => amount.parse::<f64>().ok().map(|cpus| cpus.to_string()),
        Some(Json::Text(amount)) => Some(amount.clone().into_owned()),
        _ => None,
    };
    container.pids = block.whole("pids").and_then(|pids| pids.try_into().ok());
    container.mounts = block.texts("mounts").unwrap_or_default();
    container.read_only = block.flag("readOnly").unwrap_or(false);
    container.run_args = block.texts("runArgs").unwrap_or_default();

    let digit_first = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    if container
        .memory
        .as_deref()
        .is_some_and(|memory| !digit_first(memory))
    {
        let message = "\"memory\" is not an amount of memory";
        problems.add_with_hint(
            block.at("memory"),
            message,
            "write it like \"512m\" or \"2g\"",
        );
    }
    if let Some(cpus) = block.text("cpus")
        && !cpus
            .parse()
            .is_ok_and(|cpus: f64| cpus.is_finite() && cpus > 0.0)
    {
        problems.add(block.at("cpus"), "\"cpus\" must be a number above 0");
    }
    for mount in items(block, "mounts") {
        if let Json::Text(text) = &mount.value
            && !text.contains(':')
        {
            let message = "a mount needs a source and a target";
            problems.add_with_hint(mount.start, message, "write \"SOURCE:TARGET\"");
        }
    }
}

fn enabled(block: Block<'_, '_>, problems: &mut Problems) -> bool {
    match (block.flag("enabled"), block.flag("disabled")) {
        (Some(enabled), Some(disabled)) if enabled == disabled => {
            let message = "\"enabled\" and \"disabled\" contradict each other";
            problems.add_with_hint(block.at("disabled"), message, "keep one of them");
            enabled
        }
        (Some(enabled), _) => enabled,
        (None, Some(disabled)) => !disabled,
        (None, None) => true,
    }
}

fn foreign_timeout(block: Block<'_, '_>, problems: &mut Problems) -> Option<Duration> {
    let timeout = block.whole("timeout")?;
    if timeout < TIMEOUT_SECONDS_BELOW {
        Some(Duration::from_secs(timeout))
    } else if timeout > TIMEOUT_MILLIS_ABOVE {
        Some(Duration::from_millis(timeout))
    } else {
        problems.add_with_hint(
            block.at("timeout"),
            format!("{timeout} is ambiguous: it may be seconds or milliseconds"),
            "replace \"timeout\" with \"requestTimeoutMs\", in milliseconds",
        );
        None
    }
}

fn tools(block: Block<'_, '_>, problems: &mut Problems) -> ToolFilter {
    let mut filter = ToolFilter::default();
    if let Some(tools) = block.block("tools") {
        filter.allow = tools.texts("allow");
        filter.deny = tools.texts("deny").unwrap_or_default();
    } else {
        filter.allow = block.texts("tools");
    }
    if let Some(include) = block.texts("includeTools") {
        if filter.allow.is_some() {
            let message = "\"includeTools\" and \"tools\" both list the tools to show";
            problems.add_with_hint(block.at("includeTools"), message, "keep one of them");
        }
        filter.allow = Some(include);
    }
    for key in ["excludeTools", "disabledTools"] {
        filter.deny.extend(block.texts(key).unwrap_or_default());
    }
    filter
}

fn inherit(block: Block<'_, '_>, problems: &mut Problems) -> Inherit {
    if block.flag("inheritEnv") == Some(true) {
        return Inherit::All;
    }
    for name in items(block, "inheritEnv") {
        if let Json::Text(text) = &name.value
            && !is_variable(text)
        {
            let message = format!("{} is not a valid variable name", quote(text));
            problems.add_with_hint(
                name.start,
                message,
                "write one name, such as \"KUBECONFIG\"",
            );
        }
    }
    Inherit::Names(block.texts("inheritEnv").unwrap_or_default())
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0', '*', ' '])
}

/// Reports names in `env` that are not valid variable names.
fn variables(block: Block<'_, '_>, problems: &mut Problems) {
    let members = block.0.get("env").and_then(|member| member.node.members());
    for variable in members.unwrap_or_default() {
        if variable.key.is_empty() || variable.key.contains(['=', '\0']) {
            let message = format!("{} is not a valid variable name", quote(&variable.key));
            problems.add(variable.at, message);
        }
    }
}

fn items<'n, 'a>(block: Block<'n, 'a>, key: &str) -> &'n [Node<'a>] {
    match block.value(key) {
        Some(Json::List(items)) => items,
        _ => &[],
    }
}

/// The address under this key. Reports an invalid one.
pub(crate) fn address<'n>(
    block: Block<'n, '_>,
    key: &str,
    problems: &mut Problems,
) -> Option<&'n str> {
    let url = block.text(key)?;
    if url.contains(is_odd) {
        problems.add_with_hint(
            block.at(key),
            format!("\"{key}\" has a character that is not allowed in a URL"),
            "remove spaces, backslashes and the part after a #; in a password, write %5C for a \
             backslash and %23 for #",
        );
    } else if !is_address(url) {
        problems.add_with_hint(
            block.at(key),
            format!("\"{key}\" is not a URL"),
            "start it with http:// or https:// and a host, without spaces",
        );
    }
    Some(url)
}

/// Tests if a character makes an address lead elsewhere than it seems to. HTTP clients read a backslash
/// as a slash, ignore line ends, and end the host at a `#`.
fn is_odd(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\\' | '#')
}

/// A preliminary check; the transport parses the address after references are resolved.
fn is_address(url: &str) -> bool {
    if url.starts_with("${") {
        return true;
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    web && !rest.is_empty() && !rest.starts_with(['/', '?', ':'])
}

/// Tests if a name is a token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
