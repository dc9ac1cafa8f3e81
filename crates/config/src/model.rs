//! What a configuration says, with every default filled in.
//!
//! Values are plain data and compare by every field, because a running gateway restarts exactly
//! the servers whose entry became unequal. `Debug` is for logs: values of `env` and `headers`,
//! arguments and keys may be secrets, so it shows their names and number only.

mod asking;

pub use asking::{
    Approvals, Budget, Guard, Notify, Prices, Provider, ProviderKind, Route, Sampling, Webhook,
};

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use switchboard_wire::Revision;

use crate::filter::ToolFilter;
use crate::network::Network;

/// Where the gateway listens when nothing else is said.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

/// The whole of `switchboard.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The address that was asked for; see [`Config::listen_address`].
    pub listen: Option<SocketAddr>,
    /// What `/mcp` and stdio show.
    pub view: View,
    /// The servers behind the gateway, by name.
    pub servers: BTreeMap<String, Server>,
    /// Who may come in.
    pub auth: Auth,
    /// How long the way down may take.
    pub shutdown: Shutdown,
    /// How long a call waits for a part of the gateway that is still starting.
    pub wait: Duration,
    /// Asking a human.
    pub approvals: Approvals,
    /// Generating for servers that ask for a model's answer.
    pub sampling: Sampling,
    /// The built-in memory.
    pub memory: Memory,
    /// Finding tools.
    pub search: Search,
    /// How much of a tool's result an agent is given at once.
    pub results: Results,
    /// Clients of older revisions over HTTP.
    pub sessions: Sessions,
}

impl Config {
    /// The address to listen on: the configured one, else `127.0.0.1:7777`.
    pub fn listen_address(&self) -> SocketAddr {
        self.listen.unwrap_or(DEFAULT_LISTEN)
    }

    /// With the built-in memory among the servers, if it is wanted. A server that has its name already
    /// comes first.
    #[must_use]
    pub fn with_memory(mut self) -> Self {
        if self.memory.enabled {
            let name = Memory::NAME.to_owned();
            self.servers.entry(name).or_insert_with(|| Server {
                trust: Trust::Always,
                // What it keeps in memory takes a while to make, and vectors are made behind.
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

/// How the tools of all servers are shown to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Direct while the catalogue is small, else search.
    #[default]
    Auto,
    /// A small menu to find and call tools with.
    Search,
    /// Every tool of every server.
    Direct,
}

/// Who may come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// What an MCP client has to show.
    pub mcp: McpAuth,
}

/// What an MCP client has to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpAuth {
    /// The token from `run/token`.
    #[default]
    Token,
    /// Nothing; possible because the gateway listens on loopback only.
    None,
}

/// How long the way down may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// For everything together.
    pub total_timeout: Duration,
    /// For stopping and removing containers.
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
    /// Whether it is offered.
    pub enabled: bool,
    /// Whether people and things are found in what is stored.
    pub extract: bool,
    /// The tools that merged views list.
    pub tools: MemoryTools,
}

/// The tools of the built-in memory that merged views list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryTools {
    /// The few that agents need day to day, with short definitions.
    #[default]
    Compact,
    /// All of them.
    All,
}

impl Memory {
    /// What it is called among the servers.
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

/// Finding tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// How tools are found by meaning.
    pub embeddings: Embeddings,
    /// Whether what is called after a search has a say in later ones.
    pub learn: bool,
}

/// How tools are found by meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Embeddings {
    /// With the sentence model if it is there, else with the built-in vectors.
    #[default]
    Auto,
    /// With the sentence model, which is fetched if it is not there.
    MiniLm,
    /// With the built-in vectors.
    BuiltIn,
    /// Not at all.
    Off,
    /// With the model in this folder.
    Folder(String),
}

impl Embeddings {
    /// As it is written.
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

/// How much of a tool's result an agent is given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Results {
    /// In bytes.
    pub max_bytes: usize,
    /// In tokens, by estimate.
    pub max_tokens: usize,
    /// How long the rest can be read.
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

/// Sessions of clients of older revisions over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// How long one may be idle before it ends.
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

/// One entry of `mcpServers`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Whether the gateway uses it.
    pub enabled: bool,
    /// How it is reached.
    pub transport: Transport,
    /// The newest revision to speak with it; absent leaves the choice to the gateway.
    pub revision: Option<Revision>,
    /// When it is started; absent leaves the choice to the gateway.
    pub start: Option<Start>,
    /// How long it may do nothing before it is stopped; `None` is for ever.
    pub idle_stop: Option<Duration>,
    /// How long an answer may take.
    pub request_timeout: Duration,
    /// How long it may take to get ready.
    pub init_timeout: Duration,
    /// How long it may take to leave after its input was closed.
    pub close_timeout: Duration,
    /// How long it may take to leave after it was asked by signal.
    pub term_timeout: Duration,
    /// How many calls it is given at a time.
    pub max_in_flight: usize,
    /// How many calls may wait for their turn.
    pub max_queued: usize,
    /// Which of its tools are shown.
    pub tools: ToolFilter,
    /// Whether merged views list a compact set of its tools. The built-in memory has one.
    pub compact: bool,
    /// Whether its tools are shown before somebody has approved them.
    pub trust: Trust,
    /// The most bytes of a result, if other than everywhere.
    pub max_result_bytes: Option<usize>,
    /// The most tokens of a result, if other than everywhere.
    pub max_result_tokens: Option<usize>,
    /// Which calls of its tools are asked about, if other than everywhere.
    pub approve: Option<Guard>,
    /// Whether it is not started until a person agrees.
    pub hold: bool,
    /// The file that it may start, if a person has agreed to its start; empty if there was none.
    pub approved_file: Option<String>,
}

impl Server {
    /// A server with every default.
    pub fn new(transport: Transport) -> Self {
        Self {
            enabled: true,
            transport,
            revision: None,
            start: None,
            idle_stop: Some(Duration::from_mins(10)),
            request_timeout: Duration::from_mins(1),
            init_timeout: Duration::from_secs(30),
            close_timeout: Duration::from_secs(10),
            term_timeout: Duration::from_secs(9),
            max_in_flight: 64,
            max_queued: 256,
            tools: ToolFilter::default(),
            compact: false,
            trust: Trust::First,
            max_result_bytes: None,
            max_result_tokens: None,
            approve: None,
            hold: false,
            approved_file: None,
        }
    }

    /// Tests if a person has agreed to another file than this one.
    pub fn is_other_file(&self, file: &Path) -> bool {
        let approved = self.approved_file.as_deref();
        approved.is_some_and(|approved| file.to_string_lossy() != approved)
    }
}

/// Whether the tools of a server are shown before somebody has approved them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// As they are when first seen; changed ones when they are approved.
    #[default]
    First,
    /// When they are approved.
    Ask,
    /// At once, also when they change.
    Always,
}

impl Trust {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Ask => "ask",
            Self::Always => "always",
        }
    }
}

/// When a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When it is first needed.
    Lazy,
    /// With the gateway.
    Eager,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A program on this machine, over its standard input and output.
    Command(CommandLine),
    /// An address.
    Remote(Remote),
    /// A container, over its standard input and output.
    Container(Container),
    /// The memory that is part of this program.
    BuiltIn,
}

/// A program on this machine.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set in its environment.
    pub env: BTreeMap<String, String>,
    /// Variables that it gets from the gateway's environment, beyond those that every server gets.
    pub inherit_env: Inherit,
    /// Its working directory; absent is a directory of its own in the home.
    pub cwd: Option<String>,
}

/// Variables that a program gets from the gateway's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// Those of these names.
    Names(Vec<String>),
    /// Every one.
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
    /// What it speaks.
    pub kind: RemoteKind,
}

impl Remote {
    /// The host and port that are connected to, as HTTP clients read the address, where a person may read another:
    /// behind a name and an `@`, or spelled in another way.
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
            .finish()
    }
}

/// What a server at an address speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP, and HTTP+SSE where that is refused. What clients call `http` means this
    /// too, since many of them fall back without saying so.
    #[default]
    Auto,
    /// Streamable HTTP and nothing else; `"type": "http-only"`.
    Http,
    /// HTTP+SSE of the revision 2024-11-05.
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
    /// The engine's program and its leading arguments; empty means find one.
    pub engine: Vec<String>,
    /// The network to join.
    pub network: Network,
    /// The memory limit as the engine spells it, such as `512m`.
    pub memory: Option<String>,
    /// The number of CPUs, such as `1.5`.
    pub cpus: Option<String>,
    /// How many processes it may have.
    pub pids: Option<u32>,
    /// Mounts as the engine spells them, `SOURCE:TARGET[:ro]`.
    pub mounts: Vec<String>,
    /// Whether the image's own files are read-only.
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

/// Stands in a log for a value that may be a secret.
struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// A list whose items may be secrets.
struct Count(usize);

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} hidden)", self.0)
    }
}

/// A map whose values may be secrets.
struct Names<'a>(&'a BTreeMap<String, String>);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.keys().map(|name| (name, Hidden)))
            .finish()
    }
}

/// The origin of an address: the rest may carry a secret.
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
}
