//! The configuration, the port and the running gateway.

use std::{
    fs::{File, TryLockError},
    io,
    net::TcpListener,
};

use switchboard_config::{Config, ConfigError, Home};
use switchboard_rest::{status::Status, tools::Tools};
use switchboard_terminal::error::Error;

use super::{
    super::words::{self, count},
    Finding,
};
use crate::link::Link;

/// The running gateway, if there is one and it responds.
pub(super) struct Gateway {
    found: Result<Option<Status>, Error>,
    /// The tools that it knows, if it responds.
    tools: Option<Tools>,
}

impl Gateway {
    pub(super) fn look(home: &Home) -> Self {
        let link = Link::find(home);
        let tools = link.as_ref().ok().and_then(Option::as_ref);
        let tools = tools.and_then(|link| link.get("/api/v1/tools").ok());
        let found = link.and_then(|link| link.map(|link| link.get("/api/v1/status")).transpose());
        Self { found, tools }
    }

    pub(super) fn tools(&self) -> Option<&Tools> {
        self.tools.as_ref()
    }

    pub(super) fn is_running(&self) -> bool {
        !matches!(self.found, Ok(None))
    }

    pub(super) fn status(&self) -> Option<&Status> {
        self.found.as_ref().ok().and_then(Option::as_ref)
    }

    /// Checks the gateway, and returns the configuration if it can be read.
    pub(super) fn check(&self, home: &Home, findings: &mut Vec<Finding>) -> Option<Config> {
        let config = config(home, findings);
        match &self.found {
            Ok(Some(status)) => running(status, findings),
            Ok(None) => findings.push(absent(home)),
            Err(failure) => findings.push(Finding::of("gateway", failure)),
        }
        if let Some(config) = &config {
            findings.push(self.port(config));
        }
        config
    }

    fn port(&self, config: &Config) -> Finding {
        let check = "port";
        let address = config.listen_address();
        let listens = self.status().and_then(|status| status.listen.as_deref());
        if listens == Some(address.to_string().as_str()) {
            return Finding::ok(check, format!("the gateway listens on {address}"));
        }
        match TcpListener::bind(address) {
            Ok(_) => match listens {
                // The system chose the port.
                Some(other) if address.port() == 0 => {
                    Finding::ok(check, format!("the gateway listens on {other}"))
                }
                Some(other) => Finding::ok(
                    check,
                    format!("{address} is free; the gateway listens on {other}"),
                ),
                None => Finding::ok(check, format!("{address} is free")),
            },
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Finding::problem(
                check,
                format!("another program listens on {address}"),
                "choose another address with `listen` in the configuration or `serve --listen`, or stop that program",
            ),
            Err(error) => Finding::problem(
                check,
                format!("cannot listen on {address}: {error}"),
                "choose another address with `listen` in the configuration or `serve --listen`",
            ),
        }
    }
}

fn config(home: &Home, findings: &mut Vec<Finding>) -> Option<Config> {
    let check = "config";
    let file = home.config_file();
    let shown = file.display();
    match Config::load(file) {
        Ok(config) => {
            findings.push(match (file.exists(), config.servers.len()) {
                (false, _) | (true, 0) => Finding::warning(
                    check,
                    format!("{shown} has no servers"),
                    "add one with `switchboard add`, or import those of your clients with `switchboard import`",
                ),
                (true, 1) => Finding::ok(check, format!("{shown} is valid, with 1 server")),
                (true, many) => Finding::ok(check, format!("{shown} is valid, with {many} servers")),
            });
            Some(config)
        }
        Err(ConfigError::Invalid { problems }) => {
            for problem in problems {
                let place = format!("{}:{}:{}", problem.file, problem.line, problem.column);
                let fix = problem.hint.unwrap_or_else(|| {
                    "fix the file; `switchboard schema` prints the allowed keys".to_owned()
                });
                let message = format!("{place}: {}", problem.message);
                findings.push(Finding::problem(check, message, fix));
            }
            None
        }
        Err(error) => {
            findings.push(Finding::of(check, &error.into()));
            None
        }
    }
}

fn running(status: &Status, findings: &mut Vec<Finding>) {
    let check = "gateway";
    let own = env!("CARGO_PKG_VERSION");
    findings.push(if status.version == own {
        Finding::ok(
            check,
            format!("running as process {}, version {own}", status.pid),
        )
    } else {
        Finding::problem(
            check,
            format!(
                "the gateway has version {}, but this program has version {own}",
                status.version
            ),
            "run `switchboard stop`, then start the gateway with this program",
        )
    });
    if let Some(problem) = &status.config_problem {
        let message = format!(
            "the gateway keeps the previous configuration, because the new one is invalid: {problem}"
        );
        findings.push(Finding::problem(check, message, "fix the configuration"));
    }
    if status.held > 0 {
        let held = count(status.held, "definition is", "definitions are");
        findings.push(Finding::warning(
            "trust",
            format!("{held} held or rejected"),
            words::review(status.held, "switchboard trust"),
        ));
    }
    for part in &status.parts {
        if part.name.starts_with("server:") || part.state != "error" {
            continue;
        }
        let message = part.message.as_deref().unwrap_or("it is not working");
        let fix = part.note.as_deref().unwrap_or("restart the gateway");
        findings.push(Finding::problem(part.name.as_str(), message, fix));
    }
}

/// No gateway responds. That is fine, unless a process holds the lock.
fn absent(home: &Home) -> Finding {
    let check = "gateway";
    let lock = File::open(home.lock_file()).map(|lock| lock.try_lock_shared());
    if let Ok(Err(TryLockError::WouldBlock)) = lock {
        let holder = std::fs::read_to_string(home.lock_file()).unwrap_or_default();
        let holder = holder.trim();
        return Finding::problem(
            check,
            format!("the gateway (process {holder}) does not respond"),
            format!(
                "wait a moment, because it may be starting or stopping; if it still does not respond, run `kill {holder}`"
            ),
        );
    }
    Finding::ok(
        check,
        "no gateway is running; `switchboard serve` or a client with `switchboard stdio` starts one",
    )
}
