//! How the gateway is, in one shape for every surface: tool, command line, REST, console.

use std::{sync::Arc, time::SystemTime};

use serde::Serialize;
use switchboard_base::{
    health::{Health, Part, PartState, Reason},
    scrub, time,
};
use switchboard_catalog::Kind;
use switchboard_client::Raw;
use switchboard_config::{Memory, Server, Start, Transport};
use switchboard_core::core;
use switchboard_inbound::console_auth::{NO_CONSOLE_HINT, no_console};
use switchboard_outbound::{discovery::list_method, memory::Host, upstream::Upstream};
use switchboard_store::Status as StoreStatus;

use crate::admin::Admin;

/// The whole gateway.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of the program.
    pub version: &'static str,
    /// Its process.
    pub pid: u32,
    /// `running` or `stopping`.
    pub state: &'static str,
    /// Since when it runs.
    #[serde(serialize_with = "time::rfc3339")]
    pub started_at: SystemTime,
    /// Where it listens, if it does.
    pub listen: Option<String>,
    /// Sessions and pipes that are open.
    pub clients: usize,
    /// Tools that can be called.
    pub tools: usize,
    /// Tools that are held back, since nobody has approved them.
    pub held: usize,
    /// Requests that wait for a person.
    pub approvals: u64,
    /// What may be slow to come up.
    pub parts: Vec<Part>,
    /// The servers.
    pub servers: Vec<ServerStatus>,
    /// What is wrong with the configuration file, if it was changed and could not be applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_problem: Option<Arc<str>>,
}

/// One server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// How it is.
    #[serde(flatten)]
    pub health: Health,
    /// Whether the configuration has it switched on.
    pub enabled: bool,
    /// `command`, `remote`, `container` or `built-in`.
    pub kind: &'static str,
    /// The program, the address or the image. No secrets.
    pub target: String,
    /// `lazy`, `eager`, or `auto`.
    pub start: &'static str,
    /// How many tools it offers, as far as known.
    pub tools: usize,
    /// How many prompts.
    pub prompts: usize,
    /// How many resources and templates.
    pub resources: usize,
    /// The revision it spoke last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<&'static str>,
    /// Calls under way.
    pub in_flight: usize,
    /// Calls that wait for their turn.
    pub queued: usize,
    /// Calls so far.
    pub calls: u64,
    /// Those of them that failed.
    pub errors: u64,
    /// What it offers and had to be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The lists that it did not give when it was last asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_lists: Vec<FailedList>,
    /// How many definitions are mended where several servers are shown together, since clients would reject them.
    #[serde(skip_serializing_if = "is_none")]
    pub mended: usize,
}

/// A list that a server did not give.
#[derive(Debug, Clone, Serialize)]
pub struct FailedList {
    /// The request, such as `tools/list`.
    pub list: &'static str,
    /// Why not.
    pub reason: Reason,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Admin {
    /// How the gateway is.
    pub fn status(&self) -> Status {
        let core = &*self.core;
        let servers: Vec<_> = self
            .core
            .upstreams()
            .values()
            .map(|upstream| self.server_status(upstream))
            .collect();
        let mut parts = vec![
            catalog_part(core.live_catalog.problems()),
            store_part(&core.store.status()),
        ];
        parts.extend(core.finder.parts(&core.config.load().search.embeddings));
        parts.extend(servers.iter().map(|server| Part {
            name: server_part(&server.name),
            state: server.health.part(),
            note: note(server),
        }));
        let memory = core.deps().memory.as_ref();
        if let Some((message, action)) = memory.and_then(Host::problem) {
            parts.push(Part {
                name: Memory::NAME.to_owned(),
                state: PartState::Error { message },
                note: Some(action),
            });
        }
        if let Some(taken) = self.inbound.console_taken() {
            parts.push(Part {
                name: "console".to_owned(),
                state: PartState::Error {
                    message: no_console(taken).into(),
                },
                note: Some(NO_CONSOLE_HINT.into()),
            });
        }
        // Every tool that can be called, as `/api/v1/tools` lists them: merged views leave some of the memory's out.
        let catalog = core.live_catalog.catalog();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            state: if core.lifecycle.is_stopping() {
                "stopping"
            } else {
                "running"
            },
            started_at: core.lifecycle.started,
            listen: self.inbound.address().map(|address| address.to_string()),
            clients: self.inbound.clients(),
            tools: catalog.servers().map(|part| part.count(Kind::Tool)).sum(),
            held: core.live_catalog.held_count(),
            approvals: core.approvals.numbers.waiting(),
            parts,
            servers,
            config_problem: core.configuration.problem(),
        }
    }

    pub(crate) fn server_status(&self, upstream: &Upstream) -> ServerStatus {
        let settings = upstream.settings();
        let catalog = self.core.live_catalog.catalog();
        let part = catalog.server(&upstream.name);
        let count = |kind| part.map_or(0, |part| part.count(kind));
        let (in_flight, queued) = upstream.limiter.load();
        let (calls, errors) = upstream.meter.calls();
        let (kind, target) = describe(&settings);
        let target = scrub::text(&target).into_owned();
        ServerStatus {
            name: Arc::clone(&upstream.name),
            health: upstream.health(),
            enabled: settings.enabled,
            kind,
            target,
            start: match settings.start {
                Some(Start::Lazy) => "lazy",
                Some(Start::Eager) => "eager",
                None => "auto",
            },
            tools: count(Kind::Tool),
            prompts: count(Kind::Prompt),
            resources: count(Kind::Resource) + count(Kind::Template),
            revision: part
                .and_then(|part| part.offers().revision)
                .map(switchboard_client::Revision::as_str),
            in_flight,
            queued,
            calls,
            errors,
            problems: part.map_or_else(Vec::new, |part| part.problems().messages.clone()),
            failed_lists: failed_lists(upstream),
            mended: part.map_or(0, |part| part.mended().count()),
        }
    }
}

impl core::Status for Admin {
    fn for_agents(&self) -> Raw {
        let mut status = self.status();
        for server in &mut status.servers {
            server.health = server.health.clone().for_agents(&server.name);
            for failed in &mut server.failed_lists {
                failed.reason = failed.reason.plain_for_agents(&server.name);
            }
        }
        let servers = status.servers.iter();
        let parts = servers.map(|server| {
            let name = server_part(&server.name);
            (name, server.health.part(), note(server))
        });
        for (name, state, note) in parts {
            let part = status.parts.iter_mut().find(|part| part.name == name);
            if let Some(part) = part {
                part.state = state;
                part.note = note;
            }
        }
        Raw::from_value(&status).unwrap_or_else(|_| Raw::empty_object())
    }
}

/// A program, and what it runs if it is known for running others: `npx` alone says little. Other
/// arguments may be secrets.
fn program(command: &str, args: &[String]) -> String {
    const RUNNERS: [&str; 10] = [
        "npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "uv",
    ];
    let name = command.rsplit('/').next().unwrap_or(command);
    let run = args
        .iter()
        .find(|arg| !arg.starts_with('-') && !matches!(&***arg, "run" | "x" | "tool"))
        .filter(|arg| RUNNERS.contains(&name) && !arg.contains(['=', '$']));
    match run {
        Some(run) => format!("{command} {run}"),
        None => command.to_owned(),
    }
}

/// What a server is, without its arguments, which may be secrets.
pub fn describe(server: &Server) -> (&'static str, String) {
    match &server.transport {
        Transport::BuiltIn => ("built-in", "part of Switchboard".to_owned()),
        Transport::Command(line) => ("command", program(&line.command, &line.args)),
        Transport::Remote(remote) => {
            // The path may be a secret too.
            ("remote", switchboard_redact::origin(&remote.url))
        }
        Transport::Container(container) => ("container", container.image.clone()),
    }
}

fn failed_lists(upstream: &Upstream) -> Vec<FailedList> {
    let missing = upstream.missing().into_iter();
    let failed = missing.map(|(kind, reason)| FailedList {
        list: list_method(kind),
        reason,
    });
    failed.collect()
}

/// What a person should know of a server all the same, or can do.
fn note(server: &ServerStatus) -> Option<Arc<str>> {
    let action = server.health.action.clone();
    action.or_else(|| {
        let failed = server.failed_lists.first()?;
        Some(format!("{} failed: {}", failed.list, failed.reason).into())
    })
}

fn server_part(name: &str) -> String {
    format!("server:{name}")
}

fn catalog_part(problems: &[String]) -> Part {
    Part {
        name: "catalog".to_owned(),
        state: PartState::Ready,
        note: (!problems.is_empty()).then(|| {
            let problems = problems.join("; ");
            format!("some of what was known could not be read and is learnt anew: {problems}")
                .into()
        }),
    }
}

fn store_part(status: &StoreStatus) -> Part {
    let (state, note) = match status {
        StoreStatus::Initializing => (PartState::Initializing, None),
        StoreStatus::Ready { note } => (PartState::Ready, note.clone()),
        StoreStatus::Failed {
            message, action, ..
        } => {
            let message = Arc::clone(message);
            (PartState::Error { message }, Some(Arc::clone(action)))
        }
        StoreStatus::Closed => {
            let message = "closed".into();
            (PartState::Error { message }, None)
        }
    };
    Part {
        name: "store".to_owned(),
        state,
        note,
    }
}
