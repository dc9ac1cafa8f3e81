//! The configuration model, with all defaults filled in.
//!
//! Values are plain data and compare by every field, because a running gateway restarts exactly the
//! servers whose entry has changed. `Debug` is for logs: values of `env` and `headers`, arguments and
//! keys may be secrets, so it shows only their names or number.

mod asking;
mod oauth;
mod overrides;
mod profile;

pub use asking::{
    Approvals, Budget, Guard, Notify, Prices, Provider, ProviderKind, Route, Sampling, Webhook,
};
pub use oauth::{Grant, IdentityProvider, OAuth, ResourceParameter};
pub use overrides::{Argument, Override, Overrides};
pub use profile::{Profile, ToolPattern};

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use switchboard_text::glob::stars_match;
use switchboard_wire::Revision;

use crate::diagnostic::Diagnostic;
use crate::filter::ToolFilter;
use crate::network::Network;
use crate::share::Share;

/// The default address to listen on.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

/// The content of `switchboard.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The configured address; see [`Config::listen_address`].
    pub listen: Option<SocketAddr>,
    /// The view of `/mcp` and stdio.
    pub view: View,
    /// The servers behind the gateway, by name.
    pub servers: BTreeMap<String, Server>,
    /// The profiles, by name.
    pub profiles: BTreeMap<String, Profile>,
    /// The views of clients, by patterns of their names.
    pub clients: BTreeMap<String, View>,
    /// Access control.
    pub auth: Auth,
    /// Timeouts of the shutdown.
    pub shutdown: Shutdown,
    /// Time that a call waits for a part of the gateway that is still starting.
    pub wait: Duration,
    /// Requests for human approval.
    pub approvals: Approvals,
    /// Models for servers that request sampling.
    pub sampling: Sampling,
    /// The built-in memory.
    pub memory: Memory,
    /// The search for tools.
    pub search: Search,
    /// Limits for the results of tools.
    pub results: Results,
    /// Sessions of clients with older revisions over HTTP.
    pub sessions: Sessions,
}

impl Config {
    /// The address to listen on: the configured one, else `127.0.0.1:7777`.
    pub fn listen_address(&self) -> SocketAddr {
        self.listen.unwrap_or(DEFAULT_LISTEN)
    }

    /// The view that is set for a client of this name. Its own name takes precedence over patterns, and a longer
    /// pattern over a shorter one.
    pub fn client_view(&self, client: &str) -> Option<View> {
        if self.clients.is_empty() {
            return None;
        }
        let client = client.to_lowercase();
        let fits = |pattern: &&String| stars_match(&pattern.to_lowercase(), &client);
        let rank = |pattern: &&String| (!pattern.contains('*'), pattern.len());
        let best = self.clients.keys().filter(fits).max_by_key(rank)?;
        self.clients.get(best).copied()
    }

    /// Adds the built-in memory to the servers, if it is enabled. A configured server with the same name
    /// takes precedence.
    #[must_use]
    pub fn with_memory(mut self) -> Self {
        if self.memory.enabled {
            let name = Memory::NAME.to_owned();
            self.servers.entry(name).or_insert_with(|| Server {
                trust: Trust::Always,
                // Its in-memory index is slow to build, and it computes vectors in the background.
                idle_stop: None,
                compact: self.memory.tools == MemoryTools::Compact,
                ..Server::new(Transport::BuiltIn)
            });
        }
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: None,
            view: View::Auto,
            servers: BTreeMap::new(),
            profiles: BTreeMap::new(),
            clients: BTreeMap::new(),
            auth: Auth::default(),
            shutdown: Shutdown::default(),
            wait: Duration::from_secs(5),
            approvals: Approvals::default(),
            sampling: Sampling::default(),
            memory: Memory::default(),
            search: Search::default(),
            results: Results::default(),
            sessions: Sessions::default(),
        }
    }
}

/// The presentation of all servers' tools to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Direct while the catalogue is small, search otherwise.
    #[default]
    Auto,
    /// A small menu for finding and calling tools.
    Search,
    /// Every tool of every server.
    Direct,
}

impl View {
    /// The value in the configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Search => "search",
            Self::Direct => "direct",
        }
    }
}

/// Access control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// The credential that an MCP client has to present.
    pub mcp: McpAuth,
}

/// The credential that an MCP client has to present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpAuth {
    /// The token from `run/token`.
    #[default]
    Token,
    /// None. This is possible because the gateway listens on loopback only.
    None,
}

/// Timeouts of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Time for the whole shutdown.
    pub total_timeout: Duration,
    /// Time for stopping and removing containers.
    pub container_timeout: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            total_timeout: Duration::from_secs(45),
            container_timeout: Duration::from_secs(30),
        }
    }
}

/// The built-in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `true` if the memory is one of the servers.
    pub enabled: bool,
    /// `true` if people and things are extracted from stored texts.
    pub extract: bool,
    /// The tools that merged views list.
    pub tools: MemoryTools,
}

/// The tools of the built-in memory that merged views list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryTools {
    /// The few that agents need regularly, with short definitions.
    #[default]
    Compact,
    /// All of them.
    All,
}

impl Memory {
    /// Its name among the servers.
    pub const NAME: &str = "memory";
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            enabled: true,
            extract: true,
            tools: MemoryTools::Compact,
        }
    }
}

/// The search for tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The model for search by meaning.
    pub embeddings: Embeddings,
    /// `true` if the tools that are called after a search affect the ranking of later ones.
    pub learn: bool,
}

/// The model for search by meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Embeddings {
    /// The sentence model if it is installed, the built-in vectors otherwise.
    #[default]
    Auto,
    /// The sentence model, which is downloaded if it is not installed.
    MiniLm,
    /// The built-in vectors.
    BuiltIn,
    /// No search by meaning.
    Off,
    /// The model in this directory.
    Folder(String),
}

impl Embeddings {
    /// The value in the configuration file.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Auto => "auto",
            Self::MiniLm => "minilm",
            Self::BuiltIn => "built-in",
            Self::Off => "off",
            Self::Folder(folder) => folder,
        }
    }
}

impl From<&str> for Embeddings {
    fn from(written: &str) -> Self {
        match written {
            "auto" => Self::Auto,
            "minilm" => Self::MiniLm,
            "built-in" => Self::BuiltIn,
            "off" => Self::Off,
            folder => Self::Folder(folder.to_owned()),
        }
    }
}

/// Limits for the results of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// The most bytes that an agent receives at once.
    pub max_bytes: usize,
    /// The most tokens that an agent receives at once, by estimate.
    pub max_tokens: usize,
    /// Time for which the rest can be read.
    pub keep: Duration,
}

impl Default for Results {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1024,
            max_tokens: 16_000,
            keep: Duration::from_hours(1),
        }
    }
}

/// Sessions of clients with older revisions over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// Time without activity after which a session ends.
    pub idle: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(30),
        }
    }
}

impl Default for Search {
    fn default() -> Self {
        Self {
            embeddings: Embeddings::Auto,
            learn: true,
        }
    }
}

/// An entry of `mcpServers`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// `true` if the gateway uses the server.
    pub enabled: bool,
    /// The transport.
    pub transport: Transport,
    /// The newest revision to use; `None` leaves the choice to the gateway.
    pub revision: Option<Revision>,
    /// The callers that share a process.
    pub share: Share,
    /// The most processes at a time, if not all callers share one.
    pub max_instances: usize,
    /// Time of the start; `None` leaves the choice to the gateway.
    pub start: Option<Start>,
    /// Idle time after which the server is stopped; `None` means never.
    pub idle_stop: Option<Duration>,
    /// Timeout of a request.
    pub request_timeout: Duration,
    /// Timeout of the start and the handshake.
    pub init_timeout: Duration,
    /// Time to exit after its input is closed.
    pub close_timeout: Duration,
    /// Time to exit after the termination signal.
    pub term_timeout: Duration,
    /// The most calls in flight.
    pub max_in_flight: usize,
    /// The most calls in the queue.
    pub max_queued: usize,
    /// The tools that are shown.
    pub tools: ToolFilter,
    /// The owner's changes to its tools.
    pub overrides: Overrides,
    /// `true` if merged views list a compact set of its tools. The built-in memory has one.
    pub compact: bool,
    /// The approval that its definitions need before they are shown.
    pub trust: Trust,
    /// The most bytes of a result, if different from the global limit.
    pub max_result_bytes: Option<usize>,
    /// The most tokens of a result, if different from the global limit.
    pub max_result_tokens: Option<usize>,
    /// The calls that need approval, if different from the global setting.
    pub approve: Option<Guard>,
    /// `true` if the server must not start until the user approves it.
    pub hold: bool,
    /// The file that the server may start, once the user has approved it; empty if there was none.
    pub approved_file: Option<String>,
    /// The first malformed reference of the entry. Such a server does not start.
    pub malformed: Option<Diagnostic>,
}

impl Server {
    /// Creates a server with all defaults.
    pub fn new(transport: Transport) -> Self {
        Self {
            enabled: true,
            transport,
            revision: None,
            share: Share::Auto,
            max_instances: 8,
            start: None,
            idle_stop: Some(Duration::from_mins(10)),
            request_timeout: Duration::from_mins(1),
            init_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(10),
            term_timeout: Duration::from_secs(9),
            max_in_flight: 64,
            max_queued: 256,
            tools: ToolFilter::default(),
            overrides: Overrides::default(),
            compact: false,
            trust: Trust::First,
            max_result_bytes: None,
            max_result_tokens: None,
            approve: None,
            hold: false,
            approved_file: None,
            malformed: None,
        }
    }

    /// Tests if clients see a tool, by its own name. A name that an override gives to another tool is reserved for it.
    pub fn shows_tool(&self, tool: &str) -> bool {
        let changes = self.overrides.get(tool);
        let new_name = changes.and_then(|changes| changes.name.as_deref());
        let is_reserved = || new_name.is_none() && self.overrides.renamed_to(tool).is_some();
        !changes.is_some_and(|changes| changes.hidden)
            && self.tools.permits(tool, new_name)
            && !is_reserved()
    }

    /// Tests if the user has approved a file other than this one.
    pub fn is_other_file(&self, file: &Path) -> bool {
        let approved = self.approved_file.as_deref();
        approved.is_some_and(|approved| file.to_string_lossy() != approved)
    }
}

/// The approval that a server's definitions need before they are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// None when first seen; later changes need approval.
    #[default]
    First,
    /// Every definition needs approval.
    Ask,
    /// None, not even for changes.
    Always,
}

impl Trust {
    /// The value in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Ask => "ask",
            Self::Always => "always",
        }
    }
}

/// The time at which a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On first use.
    Lazy,
    /// With the gateway.
    Eager,
}

/// The transport to a server.
#[expect(clippy::large_enum_variant, reason = "a configuration has few")]
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A local program, over its standard input and output.
    Command(CommandLine),
    /// An address.
    Remote(Remote),
    /// A container, over its standard input and output.
    Container(Container),
    /// The built-in memory.
    BuiltIn,
}

/// A local program.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are set in its environment.
    pub env: BTreeMap<String, String>,
    /// Variables that it inherits from the gateway's environment, beyond the list that every server
    /// gets.
    pub inherit_env: Inherit,
    /// Working directory; `None` means its own directory in the home.
    pub cwd: Option<String>,
}

/// Variables that a program gets from the gateway's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// Variables with these names.
    Names(Vec<String>),
    /// All of them.
    All,
}

impl Default for Inherit {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLine")
            .field("command", &self.command)
            .field("args", &Count(self.args.len()))
            .field("env", &Names(&self.env))
            .field("inherit_env", &self.inherit_env)
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// A server at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// The address.
    pub url: String,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, String>,
    /// The transport at the address.
    pub kind: RemoteKind,
    /// The sign-in.
    pub oauth: OAuth,
}

impl Remote {
    /// Tests if its headers authenticate the gateway, so that there is no sign-in.
    pub fn has_authorization(&self) -> bool {
        let mut names = self.headers.keys();
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// The host and port that HTTP clients connect to, if a person could misread the address: it has a
    /// user name before an `@`, or an unusual spelling of the host.
    pub fn disguised_host(&self) -> Option<String> {
        let read = url::Url::parse(&self.url).ok()?;
        let host = read.host_str()?;
        let spelled = switchboard_redact::authority(&self.url)?;
        let port = read.port_or_known_default();
        let whole = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let place = &self.url[spelled.place];
        let is_plain = spelled.user.is_none()
            && [host, &whole]
                .iter()
                .any(|plain| plain.eq_ignore_ascii_case(place));
        (!is_plain).then_some(whole)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("url", &Url(&self.url))
            .field("headers", &Names(&self.headers))
            .field("kind", &self.kind)
            .field("oauth", &self.oauth)
            .finish()
    }
}

/// The transport of a remote server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP, with HTTP+SSE as a fallback if it is rejected. The type `http` of other clients
    /// also means this, since many of them fall back silently.
    #[default]
    Auto,
    /// Streamable HTTP only; `"type": "http-only"`.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// A server in a container.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// The image.
    pub image: String,
    /// Arguments for the program in the image.
    pub args: Vec<String>,
    /// Variables set in the container.
    pub env: BTreeMap<String, String>,
    /// The engine's program and its leading arguments; empty means that an engine is detected.
    pub engine: Vec<String>,
    /// The network to join.
    pub network: Network,
    /// Memory limit in the engine's syntax, such as `512m`.
    pub memory: Option<String>,
    /// The number of CPUs, such as `1.5`.
    pub cpus: Option<String>,
    /// The most processes.
    pub pids: Option<u32>,
    /// Mounts in the engine's syntax, `SOURCE:TARGET[:ro]`.
    pub mounts: Vec<String>,
    /// `true` if the image's files are read-only.
    pub read_only: bool,
    /// Further arguments for the engine's `run`.
    pub run_args: Vec<String>,
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("image", &self.image)
            .field("args", &Count(self.args.len()))
            .field("env", &Names(&self.env))
            .field("engine", &self.engine)
            .field("network", &self.network)
            .field("memory", &self.memory)
            .field("cpus", &self.cpus)
            .field("pids", &self.pids)
            .field("mounts", &self.mounts)
            .field("read_only", &self.read_only)
            .field("run_args", &Count(self.run_args.len()))
            .finish()
    }
}

/// The placeholder in a log for a value that may be a secret.
struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The length of a list whose items may be secrets.
struct Count(usize);

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} hidden)", self.0)
    }
}

/// The keys of a map whose values may be secrets.
struct Names<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.keys().map(|name| (name, Hidden)))
            .finish()
    }
}

/// The origin of an address. The rest may contain a secret.
struct Url<'a>(&'a str);

impl fmt::Debug for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", switchboard_redact::origin(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguised_hosts_are_named() {
        for (url, expected) in [
            ("https://api.example/mcp", None),
            ("https://API.example:443/mcp", None),
            ("http://127.0.0.1:9/mcp", None),
            ("http://[::1]:9/mcp", None),
            ("https://evil.example@api.example/", Some("api.example:443")),
            ("https://${secret:a}@api.example/", Some("api.example:443")),
            ("http://2130706433/", Some("127.0.0.1:80")),
            ("https://\u{430}pi.example/", Some("xn--pi-6kc.example:443")),
        ] {
            let remote = Remote {
                url: url.to_owned(),
                headers: BTreeMap::new(),
                kind: RemoteKind::Auto,
                oauth: OAuth::default(),
            };
            assert_eq!(remote.disguised_host().as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let secrets = BTreeMap::from([("NAME".to_owned(), "s3cret".to_owned())]);
        let shown = [
            format!(
                "{:?}",
                Transport::Command(CommandLine {
                    command: "npx".to_owned(),
                    args: vec!["--key=s3cret".to_owned()],
                    env: secrets.clone(),
                    inherit_env: Inherit::default(),
                    cwd: None,
                })
            ),
            format!(
                "{:?}",
                Server::new(Transport::Remote(Remote {
                    url: "https://me:s3cret@example.com/s3cret/mcp?key=s3cret".to_owned(),
                    headers: secrets.clone(),
                    kind: RemoteKind::Auto,
                    oauth: OAuth {
                        client_secret: Some("s3cret".to_owned()),
                        ..OAuth::default()
                    },
                }))
            ),
            format!(
                "{:#?}",
                Container {
                    image: "mcp/time".to_owned(),
                    args: vec!["s3cret".to_owned()],
                    env: secrets,
                    run_args: vec!["-e=s3cret".to_owned()],
                    ..Container::default()
                }
            ),
            format!(
                "{:?}",
                Provider {
                    kind: ProviderKind::OpenAi,
                    base_url: Some("http://s3cret@localhost/v1".to_owned()),
                    model: "small".to_owned(),
                    models: Vec::new(),
                    api_key: Some("s3cret".to_owned()),
                    max_tokens: 8_192,
                    timeout: Duration::from_secs(1),
                    prices: None,
                }
            ),
            format!(
                "{:?}",
                Webhook {
                    url: "https://hooks.example.com/?key=s3cret".to_owned(),
                    secret: "s3cret".to_owned(),
                    on: vec!["escalated".to_owned()],
                }
            ),
        ];
        for text in &shown {
            assert!(!text.contains("s3cret"), "{text}");
        }
        assert!(shown[0].contains("NAME"), "{}", shown[0]);
        assert!(shown[1].contains("https://example.com\""), "{}", shown[1]);
    }

    #[test]
    fn closest_name_sets_the_view_of_a_client() {
        let mut config = Config::default();
        assert_eq!(config.client_view("cursor"), None);
        let views = [
            ("*", View::Search),
            ("cur*", View::Direct),
            ("Cursor", View::Auto),
        ];
        config.clients = views.map(|(name, view)| (name.to_owned(), view)).into();
        for (client, view) in [
            ("cursor", View::Auto),
            ("CURSOR", View::Auto),
            ("cursor-vscode", View::Direct),
            ("zed", View::Search),
        ] {
            assert_eq!(config.client_view(client), Some(view), "{client}");
        }
    }
}
