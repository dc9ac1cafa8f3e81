//! Every enabled server: checks if it can be started or reached, and its state in the gateway.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    net::{TcpStream, ToSocketAddrs as _},
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use switchboard_base::{health::SAID, project::real_dir, scrub};
use switchboard_config::{
    CommandLine, Config, Container, Home, Inherit, Occasion, Remote, ResolveError, Server,
    Transport,
};
use switchboard_contain::Engine;
use switchboard_rest::{servers, status::Status};
use switchboard_terminal::{error::Error, print::shell_word, visible::visible_line};

use super::{
    super::{launching, programs, words},
    Finding,
    program::{self, Answers, Question},
};

/// Time limit for resolving and reaching an address.
const REACH: Duration = Duration::from_secs(3);
/// Time limit for a program to print its version.
const VERSION: Duration = Duration::from_secs(5);
/// Servers that are checked at a time.
const AT_A_TIME: usize = 16;
const NODE_NEEDED: u32 = 18;
const NODE_WANTED: u32 = 20;

pub(super) fn look(home: &Home, config: &Config, status: Option<&Status>) -> Vec<Finding> {
    let answers = Answers::default();
    let enabled: Vec<_> = config
        .servers
        .iter()
        .filter(|(_, server)| server.enabled)
        .collect();
    let mut findings = Vec::new();
    for some in enabled.chunks(AT_A_TIME) {
        thread::scope(|scope| {
            let looks: Vec<_> = some
                .iter()
                .map(|&(name, server)| {
                    let look = Look {
                        name,
                        home,
                        answers: &answers,
                        state: status.and_then(|status| {
                            status.servers.iter().find(|server| server.name == *name)
                        }),
                        gateway_runs: status.is_some(),
                        findings: Vec::new(),
                    };
                    scope.spawn(move || look.server(server))
                })
                .collect();
            for look in looks {
                findings.extend(look.join().unwrap_or_default());
            }
        });
    }
    findings
}

const OTHER_FILE: &str =
    "its program is not the file that you approved, so it is held until you approve it";

/// The check of one server.
struct Look<'a> {
    name: &'a str,
    home: &'a Home,
    answers: &'a Answers,
    /// The state of the server, if a gateway runs.
    state: Option<&'a servers::Server>,
    gateway_runs: bool,
    findings: Vec<Finding>,
}

impl Look<'_> {
    fn server(mut self, server: &Server) -> Vec<Finding> {
        self.exposed(server);
        if server.hold && server.malformed.is_none() {
            // Until then, nothing that the entry names is run, reached or read.
            self.held("it is held until you approve it");
            return self.findings;
        }
        // As for a client in this directory.
        let here = env::current_dir().ok().and_then(|dir| real_dir(&dir));
        let occasion = Occasion {
            project: here.map(Arc::from),
            client: Some("doctor".into()),
        };
        let variable = |name: &str| env::var_os(name);
        match server.resolve(self.name, &occasion, &self.home.secrets(), &variable) {
            Ok(resolved) => {
                let owner = scrub::Owner::Server(self.name);
                if let Err(error) = scrub::register(owner, &resolved.secrets) {
                    self.problem(format!("it has {error}"), error.hint());
                    return self.findings;
                }
                match &resolved.value.transport {
                    Transport::Command(line) => self.command(server, line),
                    Transport::Remote(remote) => self.remote(remote),
                    Transport::Container(container) => self.container(server, container),
                    Transport::BuiltIn => {}
                }
            }
            Err(error) => self.unresolved(&error),
        }
        // If it cannot start, the reason in the gateway is the same.
        let is_explained = self.findings.iter().any(Finding::is_problem);
        if !is_explained {
            self.health(server);
        }
        let problems = self.state.map(|server| server.problems.clone());
        for problem in problems.unwrap_or_default() {
            self.warning(
                problem,
                "correct the server's definitions, or its `overrides` in switchboard.json",
            );
        }
        if self.findings.is_empty() {
            let mut state = self
                .state
                .map_or("it can be started", |server| &*server.health.state)
                .to_owned();
            if let Some(server) = self.state.filter(|server| server.mended > 0) {
                let mended = words::count(server.mended, "definition is", "definitions are");
                state = format!("{state}; {mended} corrected for clients that would reject them");
            }
            self.findings.push(Finding::ok(self.check(), state));
        }
        self.findings
    }

    /// Warns about credentials that others can read on the network or in the process list.
    fn exposed(&mut self, server: &Server) {
        if server.sends_credentials_in_clear() {
            self.warning(
                "its credentials are sent to another machine over plain http://, so others on the network can read them",
                "use https://",
            );
        }
        if server.secret_arguments() > 0 {
            self.warning(
                "a secret is in `args`, which every user of this machine can read with `ps`",
                "pass it in `env` instead, if the server can read it there",
            );
        }
    }

    fn check(&self) -> String {
        format!("server:{}", self.name)
    }

    fn problem(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.findings
            .push(Finding::problem(self.check(), message, fix));
    }

    fn warning(&mut self, message: impl Into<String>, fix: impl Into<String>) {
        self.findings
            .push(Finding::warning(self.check(), message, fix));
    }

    /// Reports that the user has to approve the start.
    fn held(&mut self, message: &str) {
        let name = shell_word(self.name);
        self.warning(
            message,
            format!("review it with `switchboard trust show {name}`, then approve it with `switchboard trust approve {name}`"),
        );
    }

    fn unresolved(&mut self, error: &ResolveError) {
        let failure = Error::from_error(error, error.hint());
        let owner = format!("server `{}`, ", self.name);
        let message = failure.message();
        let message = message.strip_prefix(&owner).unwrap_or(message);
        match error {
            // The variable may be set in the environment of the gateway.
            ResolveError::Variable { .. } if self.gateway_runs => self.warning(
                format!("{message} here"),
                "check that it is set in the environment of the gateway",
            ),
            _ => self.problem(message, failure.advice().unwrap_or("fix the configuration")),
        }
    }

    fn command(&mut self, server: &Server, line: &CommandLine) {
        if let Some(cwd) = &line.directory(self.home)
            && !cwd.is_dir()
        {
            self.problem(
                format!(
                    "its working directory {} does not exist",
                    visible_line(&cwd.display().to_string())
                ),
                "create it, or change `cwd`",
            );
        }
        if let Some((message, fix)) = launching::missed(line) {
            self.warning(message, fix);
        }
        self.inherited(line);
        let environment = programs::environment();
        let given = environment.of_server(line);
        let path = given.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let command = &*visible_line(&line.command);
        let file = line.program(self.home);
        let Some(program) = programs::find(&file, &path) else {
            let dropped = env::join_paths(environment.dropped()).unwrap_or_default();
            if let Some(dropped) = programs::find(&file, &dropped) {
                return self.problem(
                    format!(
                        "the program `{command}` is only in {}, which is not searched because the repository there is \
                         not trusted",
                        dropped.parent().unwrap_or(&dropped).display()
                    ),
                    "install it elsewhere, or use its full path as the command",
                );
            }
            let place = if command.contains('/') {
                "does not exist or cannot be run"
            } else {
                "is not in PATH"
            };
            return self.problem(
                format!("the program `{command}` {place}"),
                program::how_to_get(command),
            );
        };
        if server.is_other_file(&program) {
            return self.held(OTHER_FILE);
        }
        if matches!(
            program.file_name().and_then(|name| name.to_str()),
            Some("npx" | "node")
        ) {
            self.node(&program, given);
        }
    }

    fn inherited(&mut self, line: &CommandLine) {
        let Inherit::Names(names) = &line.inherit_env else {
            return;
        };
        let unset = names.iter().filter(|name| env::var_os(name).is_none());
        for name in unset {
            self.warning(
                format!("the variable {name} of `inheritEnv` is not set here"),
                "set it in the environment of the gateway, or remove it from `inheritEnv`",
            );
        }
    }

    /// Servers from npm need a recent Node.js, and fail in strange ways with an older one.
    fn node(&mut self, program: &Path, env: BTreeMap<OsString, OsString>) {
        let beside = program.with_file_name("node");
        let node = if beside.is_file() {
            Some(beside)
        } else {
            let path = env.get(OsStr::new("PATH")).map(OsString::as_os_str);
            programs::find("node".as_ref(), path.unwrap_or_default())
        };
        let version = node.and_then(|program| {
            let args = vec!["--version".to_owned()];
            self.answers.of(Question { program, args, env }, VERSION)
        });
        let newer = "install Node.js 20 or newer from https://nodejs.org";
        match version.as_deref().and_then(program::major) {
            None => self.problem("`node --version` failed", newer),
            Some(..NODE_NEEDED) => {
                let version = version.unwrap_or_default();
                self.problem(
                    format!("Node.js {version} is too old for most servers"),
                    newer,
                );
            }
            Some(NODE_NEEDED..NODE_WANTED) => {
                let version = version.unwrap_or_default();
                self.warning(format!("Node.js {version} is old"), newer);
            }
            Some(_) => {}
        }
    }

    fn container(&mut self, server: &Server, container: &Container) {
        let environment = programs::environment();
        let path = environment.get("PATH").unwrap_or_default();
        let mut words: Vec<&str> = container.engine.iter().map(String::as_str).collect();
        if words.is_empty() {
            let installed = ["docker", "podman"]
                .into_iter()
                .find(|engine| programs::find(engine.as_ref(), path).is_some());
            words.extend(installed);
        }
        let Some(&engine) = words.first() else {
            return self.problem(
                "cannot run a container: neither `docker` nor `podman` is in PATH",
                "install one, or set `isolation.engine`",
            );
        };
        let file = if engine.contains('/') {
            self.home.base().join(engine)
        } else {
            engine.into()
        };
        let Some(program) = programs::find(&file, path) else {
            return self.problem(
                format!("the container engine `{engine}` was not found"),
                program::how_to_get(engine),
            );
        };
        if server.is_other_file(&program) {
            return self.held(OTHER_FILE);
        }
        let engine = engine.to_owned();
        words.push("version");
        let variables = environment.iter();
        let inherited = Engine::new(&*engine, [""; 0])
            .inherit(variables.map(|(name, value)| (name.into(), value.into())));
        let question = Question {
            program,
            args: words[1..].iter().map(|&word| word.to_owned()).collect(),
            env: inherited.variables().iter().cloned().collect(),
        };
        if self.answers.of(question, VERSION).is_none() {
            self.problem(
                format!(
                    "the container engine does not respond: `{}` failed",
                    words.join(" ")
                ),
                format!(
                    "start it, and check that you have permission to use it; `{engine} info` shows \
                     details"
                ),
            );
        }
    }

    fn remote(&mut self, remote: &Remote) {
        let Some((host, port)) = host_and_port(&remote.url) else {
            return self.problem("its URL is invalid", "write it as https://HOST[:PORT]/PATH");
        };
        // With a proxy, the proxy connects to the address.
        let proxied = [
            "https_proxy",
            "HTTPS_PROXY",
            "http_proxy",
            "HTTP_PROXY",
            "all_proxy",
            "ALL_PROXY",
        ];
        if proxied
            .iter()
            .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
        {
            return;
        }
        if let Err(why) = reach(&host, port) {
            self.problem(
                format!("{host}:{port} cannot be reached: {why}"),
                "check the address, the network, and that the server is running",
            );
        }
    }

    /// Advice for a server that refuses the credentials.
    fn renew(&self, server: &Server) -> String {
        let name = self.name;
        match secret_of(server) {
            Some(secret) => format!(
                "renew the token, which the server refused: store it with `switchboard secret set {}`, then run `switchboard restart {}`",
                shell_word(&secret),
                shell_word(name)
            ),
            None => format!(
                "store a token with `switchboard secret set {}`, and give the server \
                 \"headers\": {{\"Authorization\": \"Bearer ${{secret:{name}}}\"}}",
                shell_word(name)
            ),
        }
    }

    /// Reports the lists that the server failed to return. A server without tools is of little use.
    fn lists(&mut self, state: &servers::Server) {
        let fix = format!(
            "fix the cause, then run `switchboard restart {0}`; `switchboard logs {0}` may show more",
            shell_word(self.name)
        );
        for failed in &state.failed_lists {
            match &*failed.list {
                "tools/list" => self.problem(words::failed_list(failed), fix.clone()),
                _ => self.warning(words::failed_list(failed), fix.clone()),
            }
        }
    }

    /// Reports the state of the server in the gateway.
    fn health(&mut self, server: &Server) {
        let Some(state) = self.state else { return };
        self.lists(state);
        let is_down = words::is_down(state);
        let health = &state.health;
        // A retrying server keeps the reason of its last failure until it is ready.
        if !is_down && health.reason.is_none() {
            return;
        }
        let reason = health.reason.as_deref().unwrap_or("it failed");
        let message = format!("{}: {reason}", health.state);
        if is_refused(server, reason) {
            let fix = self.renew(server);
            return self.problem(message, fix);
        }
        let fix = match &health.action {
            Some(action) => action.clone(),
            None => format!("`switchboard logs {}` may show more", shell_word(self.name)),
        };
        if matches!(&*health.state, "parked" | "needs sign-in") {
            self.problem(message, fix);
        } else {
            self.warning(message, fix);
        }
    }
}

/// Returns `true` if a remote server demands credentials, or other ones. The server's own words do not count,
/// so that no server can choose the advice.
fn is_refused(server: &Server, reason: &str) -> bool {
    let own = reason.split(SAID).next().unwrap_or_default();
    matches!(server.transport, Transport::Remote(_))
        && (own.contains("HTTP 401") || own.contains("the server requires credentials"))
}

/// The name of the secret in the headers of a server.
fn secret_of(server: &Server) -> Option<String> {
    let Transport::Remote(remote) = &server.transport else {
        return None;
    };
    remote.headers.values().find_map(|value| {
        let (_, rest) = value.split_once("${secret:")?;
        Some(rest.split_once('}')?.0.to_owned())
    })
}

/// Resolves an address and connects to it within a time limit: the lookup of a name has none of its own.
fn reach(host: &str, port: u16) -> Result<(), String> {
    let (sender, result) = mpsc::channel();
    let target = (host.to_owned(), port);
    thread::spawn(move || {
        // The receiver is gone if it took too long.
        let _ = sender.send(connect(&target));
    });
    result
        .recv_timeout(REACH)
        .unwrap_or_else(|_| Err(format!("no response within {} s", REACH.as_secs())))
}

fn connect(target: &(String, u16)) -> Result<(), String> {
    let until = Instant::now() + REACH;
    let addresses = (target.0.as_str(), target.1)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut why = "the host name cannot be resolved".to_owned();
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// The host and port of a URL.
fn host_and_port(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let default = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let place = authority.rsplit('@').next()?;
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => default,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_words_do_not_count_as_refused_credentials() {
        for (entry, reason, expected) in [
            (
                r#""url": "https://a""#,
                "`initialize` to https://a:443: HTTP 401 Unauthorized",
                true,
            ),
            (
                r#""url": "https://a""#,
                "the server requires credentials: `initialize` to https://a:443: HTTP 403 Forbidden; its last message: no",
                true,
            ),
            (
                r#""url": "https://a""#,
                "the server refused the connection: HTTP 403 Forbidden; its last message: the server requires credentials",
                false,
            ),
            (
                r#""url": "https://a""#,
                "HTTP 500; its last message: HTTP 401",
                false,
            ),
            (
                r#""command": "x""#,
                "it ended; its last message: HTTP 401",
                false,
            ),
            (r#""command": "x""#, "HTTP 401", false),
        ] {
            let text = format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#);
            let config = switchboard_config::parse(&text, "it").unwrap();
            assert_eq!(
                is_refused(&config.servers["a"], reason),
                expected,
                "{reason}"
            );
        }
    }

    #[test]
    fn url_has_a_host_and_port() {
        for (url, expected) in [
            ("https://example.com/mcp", Some(("example.com", 443))),
            ("http://user:pass@h:81?x", Some(("h", 81))),
            ("HTTP://[::1]:7/", Some(("::1", 7))),
            ("http://[::1]", Some(("::1", 80))),
            ("http://:80/", None),
            ("http://h:x/", None),
            ("ftp://h/", None),
            ("h", None),
        ] {
            let expected = expected.map(|(host, port)| (host.to_owned(), port));
            assert_eq!(host_and_port(url), expected, "{url}");
        }
    }
}
