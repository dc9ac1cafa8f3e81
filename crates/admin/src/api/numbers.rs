//! Metrics for Prometheus: the counters of calls, and gauges of the current state.

use std::{fmt::Write, fs, sync::Arc, time::SystemTime};

use axum::{extract::State, response::IntoResponse};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use switchboard_base::{
    health::ServerState,
    metrics::{Gauge, label},
};
use switchboard_rest::{servers::Server, status::Status};

use crate::admin::Admin;

const MEDIA_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) async fn show(State(admin): State<Arc<Admin>>) -> impl IntoResponse {
    let core = &admin.core;
    let mut text = core
        .metrics
        .render(&gauges(&admin.status(), core.lifecycle.started));
    counter(
        &mut text,
        "switchboard_store_dropped_records_total",
        "Calls that the gateway could not record.",
        core.store.dropped(),
    );
    text.push_str(&core.approvals.numbers.render());
    text.push_str(&core.approvals.question_limits.render());
    if let Some(seconds) = cpu_seconds() {
        counter(
            &mut text,
            "process_cpu_seconds_total",
            "CPU time of the process, in seconds.",
            seconds,
        );
    }
    ([(CONTENT_TYPE, MEDIA_TYPE)], text)
}

fn gauges(status: &Status, started: SystemTime) -> Vec<Gauge> {
    let by_state = ServerState::ALL.map(|state| {
        let servers = status.servers.iter();
        let count = servers
            .filter(|server| server.health.state == state.as_str())
            .count();
        (label("state", state.as_str()), count as u64)
    });
    let by_server = |number: fn(&Server) -> u64| {
        status
            .servers
            .iter()
            .map(|server| (label("server", &server.name), number(server)))
            .collect()
    };
    let one = |number: u64| vec![(String::new(), number)];
    let uptime = SystemTime::now()
        .duration_since(started)
        .unwrap_or_default();
    let mut gauges = vec![
        Gauge {
            name: "switchboard_servers",
            help: "Servers by state.",
            values: by_state.into(),
        },
        Gauge {
            name: "switchboard_in_flight",
            help: "Calls in flight.",
            values: by_server(|server| server.in_flight),
        },
        Gauge {
            name: "switchboard_queued",
            help: "Calls in the queue.",
            values: by_server(|server| server.queued),
        },
        Gauge {
            name: "switchboard_instances",
            help: "Processes or connections of servers that callers do not share.",
            values: by_server(|server| server.instances.len() as u64),
        },
        Gauge {
            name: "switchboard_clients",
            help: "Open sessions and pipes.",
            values: one(status.clients),
        },
        Gauge {
            name: "switchboard_tools",
            help: "Tools that can be called.",
            values: one(status.tools),
        },
        Gauge {
            name: "switchboard_uptime_seconds",
            help: "Time since the start of the gateway, in seconds.",
            values: one(uptime.as_secs()),
        },
    ];
    if let Some(bytes) = resident_bytes() {
        gauges.push(Gauge {
            name: "process_resident_memory_bytes",
            help: "Resident memory of the process, in bytes.",
            values: one(bytes),
        });
    }
    gauges
}

fn counter(text: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}"
    );
}

/// Requires `/proc`; reading it asks the kernel and does not touch the disk.
fn resident_bytes() -> Option<u64> {
    resident_of(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn cpu_seconds() -> Option<f64> {
    cpu_of(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn cpu_of(stat: &str) -> Option<f64> {
    /// The unit in which Linux reports times to programs, independent of its internal clock.
    const TICKS_PER_SECOND: f64 = 100.0;
    // The program name comes second, in parentheses, and may contain any character.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        assert_eq!(
            resident_of("VmHWM:\t  9 kB\nVmRSS:\t    1234 kB\n"),
            Some(1_263_616)
        );
        assert_eq!(resident_of("VmRSS:\t x kB\n"), None);
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 25 13 14";
        assert_eq!(cpu_of(stat), Some(1.75));
        assert_eq!(cpu_of("7 (a) S 1"), None);
    }
}
