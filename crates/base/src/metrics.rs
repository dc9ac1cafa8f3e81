//! Metrics in the text format of Prometheus.
//!
//! A call updates a few atomics of its server, and nothing else.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use switchboard_store::OutcomeKind;

/// The bounds of the histogram of durations, in microseconds.
const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000,
    10_000_000, 60_000_000,
];

/// The metrics of one server.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    outcomes: [AtomicU64; OutcomeKind::ALL.len()],
    /// Calls per bucket: at most as long as its bound, and longer than the bound before; the last has no
    /// bound.
    durations: [AtomicU64; BOUNDS_US.len() + 1],
    duration_us: AtomicU64,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
}

impl Meter {
    /// Counts a call.
    pub fn count(&self, outcome: OutcomeKind, took: Duration, request: u64, response: u64) {
        let numbers = &self.0;
        numbers.outcomes[outcome as usize].fetch_add(1, Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < took);
        numbers.durations[bucket].fetch_add(1, Relaxed);
        numbers.duration_us.fetch_add(took, Relaxed);
        numbers.request_bytes.fetch_add(request, Relaxed);
        numbers.response_bytes.fetch_add(response, Relaxed);
    }

    /// The number of calls and of failed calls so far.
    pub fn calls(&self) -> (u64, u64) {
        let count = |kind: OutcomeKind| self.0.outcomes[kind as usize].load(Relaxed);
        let all = OutcomeKind::ALL.into_iter().map(count).sum();
        (all, all - count(OutcomeKind::Ok))
    }
}

/// The metrics of all servers. The metrics of a removed server are kept, since a counter that disappears
/// looks like one that was reset.
#[derive(Debug, Default)]
pub struct Metrics {
    servers: Mutex<BTreeMap<String, Meter>>,
}

/// The most servers counted separately in the life of one gateway; the rest share one entry.
const SERVERS_MAX: usize = 1_000;

impl Metrics {
    /// The metrics of this server.
    pub fn meter(&self, server: &str) -> Meter {
        let mut servers = self.servers.lock();
        let name = if servers.len() < SERVERS_MAX || servers.contains_key(server) {
            server
        } else {
            "other"
        };
        servers
            .entry(name.to_owned())
            .or_insert_with(|| Meter(Arc::default()))
            .clone()
    }

    /// The numbers of calls and of failed calls so far, for servers that were called.
    pub fn calls(&self) -> BTreeMap<String, (u64, u64)> {
        let servers = self.servers.lock();
        let calls = servers
            .iter()
            .map(|(name, meter)| (name.clone(), meter.calls()));
        calls.filter(|(_, (calls, _))| *calls > 0).collect()
    }

    /// Renders everything in the text format. The values of `gauges` are labelled by server or, with an empty
    /// label, belong to the gateway.
    pub fn render(&self, gauges: &[Gauge]) -> String {
        let servers = self.servers.lock().clone();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = render(&mut text, &servers, gauges);
        text
    }
}

/// A number that goes up and down.
#[derive(Debug)]
pub struct Gauge {
    /// The name of the metric.
    pub name: &'static str,
    /// Its description for Prometheus.
    pub help: &'static str,
    /// `name="value"` pairs, already formatted, and the number.
    pub values: Vec<(String, u64)>,
}

fn render(
    text: &mut String,
    servers: &BTreeMap<String, Meter>,
    gauges: &[Gauge],
) -> std::fmt::Result {
    head(
        text,
        "switchboard_calls_total",
        "counter",
        "Requests forwarded to a server, by outcome.",
    )?;
    for (server, Meter(numbers)) in servers {
        for outcome in OutcomeKind::ALL {
            let value = numbers.outcomes[outcome as usize].load(Relaxed);
            writeln!(
                text,
                "switchboard_calls_total{{{},outcome=\"{}\"}} {value}",
                label("server", server),
                outcome.as_str()
            )?;
        }
    }
    let name = "switchboard_call_duration_seconds";
    head(
        text,
        name,
        "histogram",
        "Duration of requests in seconds, including time in queues, excluding waits for approvers.",
    )?;
    for (server, Meter(numbers)) in servers {
        let server = label("server", server);
        let mut sum = 0;
        for (bound, count) in BOUNDS_US.iter().zip(&numbers.durations) {
            sum += count.load(Relaxed);
            let bound = Duration::from_micros(*bound).as_secs_f64();
            writeln!(text, "{name}_bucket{{{server},le=\"{bound}\"}} {sum}")?;
        }
        sum += numbers.durations[BOUNDS_US.len()].load(Relaxed);
        let total = Duration::from_micros(numbers.duration_us.load(Relaxed)).as_secs_f64();
        writeln!(text, "{name}_bucket{{{server},le=\"+Inf\"}} {sum}")?;
        writeln!(text, "{name}_sum{{{server}}} {total}")?;
        writeln!(text, "{name}_count{{{server}}} {sum}")?;
    }
    for (name, help, read) in [
        (
            "switchboard_request_bytes_total",
            "Bytes of parameters sent to a server.",
            (|numbers| &numbers.request_bytes) as fn(&Numbers) -> &AtomicU64,
        ),
        (
            "switchboard_response_bytes_total",
            "Bytes of results received from a server.",
            |numbers| &numbers.response_bytes,
        ),
    ] {
        head(text, name, "counter", help)?;
        for (server, Meter(numbers)) in servers {
            let value = read(numbers).load(Relaxed);
            writeln!(text, "{name}{{{}}} {value}", label("server", server))?;
        }
    }
    for Gauge { name, help, values } in gauges {
        head(text, name, "gauge", help)?;
        for (labels, value) in values {
            if labels.is_empty() {
                writeln!(text, "{name} {value}")?;
            } else {
                writeln!(text, "{name}{{{labels}}} {value}")?;
            }
        }
    }
    Ok(())
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// `name="value"`, escaped.
pub fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_counts_in_its_bucket_and_all_above() {
        let metrics = Metrics::default();
        let meter = metrics.meter("a \"b\"");
        meter.count(OutcomeKind::Ok, Duration::from_micros(250), 10, 20);
        meter.count(OutcomeKind::Timeout, Duration::from_mins(2), 1, 0);
        assert_eq!(meter.calls(), (2, 1));
        let text = metrics.render(&[Gauge {
            name: "switchboard_clients",
            help: "Clients.",
            values: vec![(String::new(), 3)],
        }]);
        for line in [
            r#"switchboard_calls_total{server="a \"b\"",outcome="ok"} 1"#,
            r#"switchboard_call_duration_seconds_bucket{server="a \"b\"",le="0.0001"} 0"#,
            r#"switchboard_call_duration_seconds_bucket{server="a \"b\"",le="0.00025"} 1"#,
            r#"switchboard_call_duration_seconds_bucket{server="a \"b\"",le="60"} 1"#,
            r#"switchboard_call_duration_seconds_bucket{server="a \"b\"",le="+Inf"} 2"#,
            r#"switchboard_call_duration_seconds_count{server="a \"b\""} 2"#,
            r#"switchboard_request_bytes_total{server="a \"b\""} 11"#,
            "switchboard_clients 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
    }
}
