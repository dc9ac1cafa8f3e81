//! The cost of a call through the gateway, compared with the same call through other gateways and with no
//! gateway: the same load, the same server behind each, in turns.

mod direct;
mod disk;
mod echo;
mod flat;
mod http;
mod idle;
mod instances;
mod lane;
pub(crate) mod process;
mod relay;
mod revisions;
mod start;
mod subject;

use std::path::PathBuf;

use tokio::runtime::{Builder, Runtime};

use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::Summary,
};
use lane::{CONNECTIONS, Lane, Turn};
use subject::Subject;

pub(crate) use disk::run as run_disk;
pub(crate) use echo::serve as serve_echo;
pub(crate) use flat::run as run_flat;
pub(crate) use idle::run as run_idle;
pub(crate) use instances::run as run_instances;
pub(crate) use process::Watchdog;
pub(crate) use revisions::run as run_revisions;
pub(crate) use start::{launch_bare as launch, run as run_start};
pub(crate) use subject::{ECHO, RELAY};

/// The columns of a table of goals.
pub(crate) const GOALS: [&str; 4] = ["goal", "found", "bound", "verdict"];

/// Settings of every measurement of the gateway.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) effort: Effort,
    /// The measured program.
    pub(crate) switchboard: PathBuf,
    /// The other gateway, if it is installed.
    pub(crate) peer: Option<PathBuf>,
    /// Names of the subjects to measure; if empty, all.
    pub(crate) only: Vec<String>,
}

/// The extent of the measurement.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Number of rounds, each with fresh processes.
    rounds: usize,
    /// Number of turns of each subject in a round.
    turns: usize,
    warm_up: usize,
    /// Calls per turn, one at a time, and then under load.
    sequential: usize,
    load: usize,
}

impl Plan {
    const fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self {
                rounds: 1,
                turns: 4,
                warm_up: 500,
                sequential: 200,
                load: 2_000,
            },
            Effort::Full => Self {
                rounds: 3,
                turns: 10,
                warm_up: 2_000,
                sequential: 250,
                load: 4_000,
            },
        }
    }
}

/// The subject of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Direct,
    Relay,
    Switchboard,
    McpProxy,
}

const EVERYBODY: [Who; 4] = [Who::Direct, Who::Relay, Who::Switchboard, Who::McpProxy];

impl Who {
    const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Switchboard => "switchboard",
            Self::McpProxy => "mcp-proxy",
        }
    }
}

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let plan = Plan::of(settings.effort);
    let mut notes = vec![format!(
        "{} rounds of fresh processes, {} turns in each: {} calls one at a time, then {} on {CONNECTIONS} connections with a session each, after a warm-up. Medians of the turns; a ratio is the median of the ratios within a turn.",
        plan.rounds, plan.turns, plan.sequential, plan.load
    )];
    let mut who = EVERYBODY.to_vec();
    if !settings.only.is_empty() {
        who.retain(|who| settings.only.iter().any(|only| only == who.name()));
    }
    if who.contains(&Who::McpProxy) && settings.peer.is_none() {
        who.retain(|who| *who != Who::McpProxy);
        notes.push("Without mcp-proxy: it is not installed.".to_owned());
    }
    let load_before = process::load_average();
    let runtime = load_runtime()?;
    let mut found: Vec<(Who, Vec<Turn>)> = who.iter().map(|who| (*who, Vec::new())).collect();
    for _ in 0..plan.rounds {
        runtime.block_on(async {
            let mut lanes = Vec::new();
            for who in &who {
                lanes.push(open(settings, *who).await?);
            }
            for ((_, turns), more) in found.iter_mut().zip(lane::race(&plan, lanes).await?) {
                turns.extend(more);
            }
            Result::Ok(())
        })?;
    }
    notes.push("CPU time is that of the subject under load, with the guard of its server and without the server. RSS is that of the subject itself; guards is that of the guards.".to_owned());
    notes.push(format!(
        "Load average before {load_before}, after {}. Above the number of cores, other programs disturbed the run: trust CPU times before ratios, and ratios before rates and latencies.",
        process::load_average()
    ));
    let rows = found.iter().map(|(who, turns)| figures(*who, turns));
    Ok(Report {
        tables: vec![
            Table {
                title: "A call through the gateway: goals",
                columns: GOALS.to_vec(),
                rows: goals(&found),
            },
            Table {
                title: "Absolute figures: times in µs, memory in MB",
                columns: vec![
                    "subject",
                    "p50",
                    "p99",
                    "calls/s at 32",
                    "best",
                    "p99 at 32",
                    "CPU/call",
                    "CPU/call at 1",
                    "RSS before",
                    "RSS after",
                    "guards",
                ],
                rows: rows.collect(),
            },
        ],
        notes,
    })
}

async fn open(settings: &Settings, who: Who) -> Result<Lane> {
    let subject = match who {
        Who::Direct => return Lane::direct().await,
        Who::Relay => Subject::relay()?,
        Who::Switchboard => Subject::switchboard(&settings.switchboard)?,
        Who::McpProxy => {
            let peer = settings.peer.as_deref();
            Subject::mcp_proxy(peer.ok_or("mcp-proxy is not installed")?)?
        }
    };
    Lane::through(subject).await
}

/// The runtime of the load. It has one thread, to leave the rest of the machine to the subject.
fn load_runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn figures(who: Who, turns: &[Turn]) -> Vec<Cell> {
    let median = |figure: fn(&Turn) -> f64| Summary::of(turns.iter().map(figure).collect()).median;
    let most = |figure: fn(&Turn) -> f64| Summary::of(turns.iter().map(figure).collect()).max;
    let of_process = |figure: fn(&Turn) -> f64| match who {
        Who::Direct => Cell::Nothing,
        _ => median(figure).into(),
    };
    vec![
        who.name().into(),
        median(|turn| turn.p50).into(),
        median(|turn| turn.p99).into(),
        median(|turn| turn.calls_per_second).into(),
        most(|turn| turn.calls_per_second).into(),
        median(|turn| turn.load_p99).into(),
        of_process(|turn| turn.cpu),
        of_process(|turn| turn.cpu_sequential),
        of_process(|turn| turn.before),
        // Memory only grows.
        match who {
            Who::Direct => Cell::Nothing,
            _ => most(|turn| turn.after).into(),
        },
        of_process(|turn| turn.guards),
    ]
}

/// The goals that can be evaluated with these subjects.
fn goals(found: &[(Who, Vec<Turn>)]) -> Vec<Vec<Cell>> {
    let of = |who: Who| {
        let found = found.iter().find(|(subject, _)| *subject == who);
        found.map(|(_, turns)| turns.as_slice())
    };
    let (direct, relay) = (of(Who::Direct), of(Who::Relay));
    let (ours, peer) = (of(Who::Switchboard), of(Who::McpProxy));
    let of_both = |a: Option<&[Turn]>, b: Option<&[Turn]>, figure: fn(&Turn) -> f64| {
        Some(ratio(a?, b?, figure))
    };
    let added = || {
        let rounds = ours?.iter().zip(peer?).zip(direct?);
        let ratios =
            rounds.map(|((ours, peer), direct)| (ours.p50 - direct.p50) / (peer.p50 - direct.p50));
        Some(Summary::of(ratios.collect()).median)
    };
    let memory = ours.map(|turns| Summary::of(turns.iter().map(|turn| turn.after).collect()).max);
    let rate: fn(&Turn) -> f64 = |turn| turn.calls_per_second;
    [
        goal(
            "calls/s, ours/mcp-proxy",
            of_both(ours, peer, rate),
            Bound::AtLeast(1.5),
        ),
        goal(
            "calls/s, ours/relay",
            of_both(ours, relay, rate),
            Bound::AtLeast(0.85),
        ),
        goal(
            "CPU a call, ours/mcp-proxy",
            of_both(ours, peer, |turn| turn.cpu),
            Bound::AtMost(0.5),
        ),
        goal(
            "latency added to direct (p50), ours/mcp-proxy",
            added(),
            Bound::AtMost(0.6),
        ),
        goal("RSS after the load, MB", memory, Bound::AtMost(20.0)),
    ]
    .into_iter()
    .collect()
}

/// The ratio of a figure of the first to that of the second: the median of the ratios within a turn.
fn ratio(first: &[Turn], second: &[Turn], figure: fn(&Turn) -> f64) -> f64 {
    let turns = first.iter().zip(second);
    Summary::of(turns.map(|(a, b)| figure(a) / figure(b)).collect()).median
}

/// The bound of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A row that says if a goal is met.
pub(crate) fn goal(name: &str, found: Option<f64>, bound: Bound) -> Vec<Cell> {
    let (sign, bound, met) = match bound {
        Bound::AtLeast(bound) => ("≥", bound, found.map(|found| found >= bound)),
        Bound::AtMost(bound) => ("≤", bound, found.map(|found| found <= bound)),
    };
    let verdict = match met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "not measured",
    };
    vec![
        name.into(),
        found.into(),
        Cell::Text(format!("{sign} {bound}")),
        verdict.into(),
    ]
}

/// Relays to the server that this command line starts.
pub(crate) fn serve_relay(server: &[&str]) -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(relay::serve(server))
}
