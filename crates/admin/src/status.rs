//! The status of the gateway, in one form for every surface: tool, command line, REST, console.

use std::sync::Arc;

use switchboard_base::{
    health::{Health, Part, PartState, ServerState},
    scrub, time,
};
use switchboard_catalog::{Catalog, Kind};
use switchboard_client::Raw;
use switchboard_config::{Memory, Server, Start, Transport};
use switchboard_core::{core, scope::Scope};
use switchboard_inbound::console_auth::{NO_CONSOLE_HINT, no_console};
use switchboard_outbound::{
    discovery::list_method, live_catalog::LiveCatalog, memory::Host, upstream::Upstream,
};
use switchboard_rest::{
    servers::{FailedList, Instance, Server as ServerStatus},
    status::Status,
};
use switchboard_store::Status as StoreStatus;

use crate::admin::Admin;

/// The problem of the configuration in words for agents. The problem itself may quote the file, which may contain
/// secrets.
const CONFIG_PROBLEM: &str = "the file is invalid, so the gateway keeps the previous configuration; the user can see \
     the problem with `switchboard status`";

/// The reader of a status. Agents must not see the servers' own text, nor what their scope leaves out.
#[derive(Debug, Clone, Copy)]
enum Reader<'a> {
    Owner,
    Agent(&'a Scope),
}

impl Reader<'_> {
    fn catalog(self, live_catalog: &LiveCatalog) -> Arc<Catalog> {
        match self {
            Self::Owner => live_catalog.catalog_full(),
            Self::Agent(scope) => Arc::clone(&scope.catalog(live_catalog)),
        }
    }

    fn sees(self, server: &str) -> bool {
        match self {
            Self::Owner => true,
            Self::Agent(scope) => scope.permits_server(server),
        }
    }

    fn sees_everything(self) -> bool {
        match self {
            Self::Owner => true,
            Self::Agent(scope) => scope.is_everything(),
        }
    }
}

/// Counts that include what a scope leaves out: of the gateway, and of each server.
const COUNTS_OF_ALL: [&str; 3] = ["clients", "held", "approvals"];
const SERVER_COUNTS_OF_ALL: [&str; 4] = ["inFlight", "queued", "calls", "errors"];

impl Admin {
    /// The status for the owner.
    pub fn status(&self) -> Status {
        self.status_for(Reader::Owner)
    }

    fn status_for(&self, reader: Reader<'_>) -> Status {
        let core = &*self.core;
        let mut servers = Vec::new();
        let mut server_parts = Vec::new();
        let upstreams = core.upstreams();
        for upstream in upstreams
            .values()
            .filter(|upstream| reader.sees(&upstream.name))
        {
            let health = match reader {
                Reader::Owner => upstream.health(),
                Reader::Agent(_) => upstream.health().for_agents(&upstream.name),
            };
            let server = self.describe_server(upstream, &health, reader);
            server_parts.push(Part {
                name: format!("server:{}", server.name),
                state: health.part(),
                note: note(&server),
            });
            servers.push(server);
        }
        let problems = core.live_catalog.problems();
        let mut parts = vec![
            catalog_part(if reader.sees_everything() {
                problems
            } else {
                &[]
            }),
            store_part(&core.store.status()),
        ];
        parts.extend(core.finder.parts(&core.config.load().search.embeddings));
        parts.extend(server_parts);
        let memory = core.deps().memory.as_ref();
        let memory = memory.filter(|_| reader.sees(Memory::NAME));
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
        // Every tool that can be called, as `/api/v1/tools` lists them: merged views omit some tools of the
        // memory server.
        let catalog = reader.catalog(&core.live_catalog);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: if core.lifecycle.is_stopping() {
                "stopping"
            } else {
                "running"
            }
            .into(),
            started_at: time::shown(core.lifecycle.started),
            listen: self.inbound.address().map(|address| address.to_string()),
            clients: self.inbound.clients() as u64,
            tools: catalog
                .servers()
                .map(|part| part.count(Kind::Tool) as u64)
                .sum(),
            held: core.live_catalog.held_count() as u64,
            approvals: core.approvals.numbers.waiting(),
            parts: parts.into_iter().map(Into::into).collect(),
            servers,
            config_problem: core.configuration.problem().map(|problem| match reader {
                Reader::Owner => problem.as_ref().into(),
                Reader::Agent(_) => CONFIG_PROBLEM.into(),
            }),
        }
    }

    pub(crate) fn server_status(&self, upstream: &Upstream) -> ServerStatus {
        self.describe_server(upstream, &upstream.health(), Reader::Owner)
    }

    fn describe_server(
        &self,
        upstream: &Upstream,
        health: &Health,
        reader: Reader<'_>,
    ) -> ServerStatus {
        let settings = upstream.settings();
        let catalog = reader.catalog(&self.core.live_catalog);
        let part = catalog.server(&upstream.name);
        let count = |kind| part.map_or(0, |part| part.count(kind) as u64);
        let (in_flight, queued) = upstream.load();
        let (sharing, reason) = upstream.sharing();
        let (calls, errors) = upstream.meter.calls();
        let (kind, target) = describe(&settings);
        let target = scrub::text(&target).into_owned();
        ServerStatus {
            name: upstream.name.to_string(),
            health: health.shown(),
            enabled: settings.enabled,
            kind: kind.into(),
            target,
            start: match settings.start {
                Some(Start::Lazy) => "lazy",
                Some(Start::Eager) => "eager",
                None => "auto",
            }
            .into(),
            tools: count(Kind::Tool),
            prompts: count(Kind::Prompt),
            resources: count(Kind::Resource) + count(Kind::Template),
            revision: part
                .and_then(|part| part.offers().revision)
                .map(|revision| revision.as_str().to_owned()),
            sharing: sharing.as_str().into(),
            sharing_reason: reason.to_string(),
            instances: match reader {
                Reader::Owner => instances(upstream),
                // They belong to other clients, too.
                Reader::Agent(_) => Vec::new(),
            },
            in_flight: in_flight as u64,
            queued: queued as u64,
            calls,
            errors,
            problems: match (reader, part) {
                // They name hidden tools and arguments.
                (Reader::Owner, Some(part)) => part.problems().messages.clone(),
                _ => Vec::new(),
            },
            failed_lists: failed_lists(upstream, reader),
            mended: part.map_or(0, |part| part.mended().count() as u64),
        }
    }
}

impl core::Status for Admin {
    fn for_agents(&self, scope: &Scope) -> Raw {
        let status = self.status_for(Reader::Agent(scope));
        let status = Raw::from_value(&status).unwrap_or_else(|_| Raw::empty_object());
        if scope.is_everything() {
            return status;
        }
        let servers = status.member("servers");
        let servers = servers.and_then(|servers| servers.elements());
        let servers = servers.unwrap_or_default().into_iter();
        let servers = servers.map(|server| server.without(&SERVER_COUNTS_OF_ALL));
        let reduced = status.without(&COUNTS_OF_ALL);
        let reduced = reduced.with_member("servers", &Raw::array(servers));
        reduced.unwrap_or_else(|_| Raw::empty_object())
    }
}

/// A program and, if it runs other programs, the one that it runs: `npx` alone says little. Other arguments
/// may be secrets.
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

/// The kind and target of a server, without its arguments, which may be secrets.
pub fn describe(server: &Server) -> (&'static str, String) {
    match &server.transport {
        Transport::BuiltIn => ("built-in", "part of Switchboard".to_owned()),
        Transport::Command(line) => ("command", program(&line.command, &line.args)),
        Transport::Remote(remote) => {
            // The path may be a secret, too.
            ("remote", switchboard_redact::origin(&remote.url))
        }
        Transport::Container(container) => ("container", container.image.clone()),
    }
}

/// The instances for single callers that run, or have failed.
fn instances(upstream: &Upstream) -> Vec<Instance> {
    let own = upstream.own_instances().into_iter();
    let shown = own.filter_map(|(number, instance)| {
        let health = instance.health();
        let (in_flight, queued) = instance.limiter.load();
        (health.state != ServerState::Idle).then(|| Instance {
            number,
            health: health.shown(),
            project: instance.project().map(ToString::to_string),
            client: instance.client().map(ToString::to_string),
            in_flight: in_flight as u64,
            queued: queued as u64,
        })
    });
    shown.collect()
}

fn failed_lists(upstream: &Upstream, reader: Reader<'_>) -> Vec<FailedList> {
    let missing = upstream.missing().into_iter();
    let failed = missing.map(|(kind, reason)| FailedList {
        list: list_method(kind).into(),
        reason: match reader {
            Reader::Owner => reason.to_string(),
            Reader::Agent(_) => reason.plain_for_agents(&upstream.name).to_string(),
        },
    });
    failed.collect()
}

/// A remark about a server that the user should see in spite of its state, or advice.
fn note(server: &ServerStatus) -> Option<Arc<str>> {
    let action = server.health.action.as_deref();
    action.map(Into::into).or_else(|| {
        let failed = server.failed_lists.first()?;
        Some(format!("{} failed: {}", failed.list, failed.reason).into())
    })
}

fn catalog_part(problems: &[String]) -> Part {
    Part {
        name: "catalog".to_owned(),
        state: PartState::Ready,
        note: (!problems.is_empty()).then(|| {
            let problems = problems.join("; ");
            format!(
                "cannot read some snapshots, so the gateway lists these servers again: {problems}"
            )
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
