//! What a call through the gateway costs, against the same call through others and through nobody:
//! the same load, the same server behind each, in turns.

mod direct;
mod disk;
mod echo;
mod flat;
mod http;
mod idle;
mod process;
mod relay;
mod start;
mod subject;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::runtime::{Builder, Runtime};

use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::{Summary, percentile},
};
use direct::Pipe;
use http::Connection;
use subject::Subject;

pub(crate) use disk::run as run_disk;
pub(crate) use echo::serve as serve_echo;
pub(crate) use flat::run as run_flat;
pub(crate) use idle::run as run_idle;
pub(crate) use start::run as run_start;
pub(crate) use subject::{ECHO, RELAY};

/// How many connections make the load.
const CONNECTIONS: usize = 32;

/// What goes for every measurement of the gateway.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) effort: Effort,
    /// The program measured.
    pub(crate) switchboard: PathBuf,
    /// The peer, if it is there.
    pub(crate) peer: Option<PathBuf>,
    /// Only these subjects; all of them if there are none.
    pub(crate) only: Vec<String>,
}

/// How much to measure.
struct Plan {
    rounds: usize,
    warm_up: usize,
    sequential: usize,
    load: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self {
                rounds: 1,
                warm_up: 200,
                sequential: 500,
                load: 5_000,
            },
            Effort::Full => Self {
                rounds: 3,
                warm_up: 2_000,
                sequential: 2_000,
                load: 40_000,
            },
        }
    }
}

/// Who is called.
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

/// What one turn of one subject found.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// Microseconds.
    p50: f64,
    p99: f64,
    calls_per_second: f64,
    /// Microseconds, under load.
    load_p99: f64,
    /// Microseconds of CPU time for a call, one at a time and under load.
    cpu_sequential: f64,
    cpu: f64,
    /// MB, before and after the load.
    before: f64,
    after: f64,
    /// MB of the processes that look after servers.
    guards: f64,
}

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let plan = Plan::of(settings.effort);
    let mut notes = Vec::new();
    let mut who = EVERYBODY.to_vec();
    if !settings.only.is_empty() {
        who.retain(|who| settings.only.iter().any(|only| only == who.name()));
    }
    if who.contains(&Who::McpProxy) && settings.peer.is_none() {
        who.retain(|who| *who != Who::McpProxy);
        notes.push("mcp-proxy is left out: it is not installed, see --help.".to_owned());
    }
    let runtime = load_runtime()?;
    let mut found: Vec<(Who, Vec<Turn>)> = who.iter().map(|who| (*who, Vec::new())).collect();
    let load_before = process::load_average();
    for round in 0..plan.rounds {
        for turn in 0..found.len() {
            let at = (round + turn) % found.len();
            let (who, turns) = &mut found[at];
            turns.push(take_turn(&runtime, settings, &plan, *who)?);
        }
    }
    notes.insert(0, format!(
        "{} rounds in turns, a fresh process each: {} calls one at a time, then {} on {CONNECTIONS} connections with a session each, after a warm-up. Medians; a ratio is the median of the ratios within a round.",
        plan.rounds, plan.sequential, plan.load
    ));
    notes.push("CPU time is that of the subject under load, the server behind it not counted, what looks after that server counted. RSS likewise, in MB; guards is the part of what looks after servers.".to_owned());
    notes.push(format!(
        "Load average before {load_before}, after {}. Above the number of cores, other programs were in the way: trust ratios and CPU times before rates and latencies.",
        process::load_average()
    ));
    let goals = goals(&found);
    let figures = found.iter().map(|(who, turns)| figures(*who, turns)).collect();
    Ok(Report {
        tables: vec![
            Table {
                title: "A call through the gateway: goals",
                columns: vec!["goal", "found", "bound", "verdict"],
                rows: goals,
            },
            Table {
                title: "The same in figures: times in µs, memory in MB",
                columns: vec![
                    "subject",
                    "p50",
                    "p99",
                    "calls/s at 32",
                    "p99 at 32",
                    "CPU/call",
                    "CPU/call at 1",
                    "RSS before",
                    "RSS after",
                    "guards",
                ],
                rows: figures,
            },
        ],
        notes,
    })
}

/// The runtime of the load: one thread, so that it takes no more of the machine than it needs.
fn load_runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn take_turn(runtime: &Runtime, settings: &Settings, plan: &Plan, who: Who) -> Result<Turn> {
    let subject = match who {
        Who::Direct => return runtime.block_on(take_direct_turn(plan)),
        Who::Relay => Subject::relay()?,
        Who::Switchboard => Subject::switchboard(&settings.switchboard)?,
        Who::McpProxy => Subject::mcp_proxy(peer(settings)?)?,
    };
    runtime.block_on(measure(subject, plan))
}

fn peer(settings: &Settings) -> Result<&Path> {
    Ok(settings.peer.as_deref().ok_or("mcp-proxy is not installed")?)
}

async fn take_direct_turn(plan: &Plan) -> Result<Turn> {
    let mut pipe = Pipe::open(&subject::echo(1)?).await?;
    pipe.run(1, plan.warm_up).await?;
    let (p50, p99) = middle_and_worst(pipe.run(1, plan.sequential).await?);
    pipe.run(CONNECTIONS, plan.warm_up).await?;
    let begin = Instant::now();
    let taken = pipe.run(CONNECTIONS, plan.load).await?;
    let calls_per_second = rate(plan.load, begin.elapsed());
    let (_, load_p99) = middle_and_worst(taken);
    Ok(Turn {
        p50,
        p99,
        calls_per_second,
        load_p99,
        ..Turn::default()
    })
}

async fn measure(mut subject: Subject, plan: &Plan) -> Result<Turn> {
    let mut first = subject.ready().await?;
    let (before, _) = subject.resident()?;
    for _ in 0..plan.warm_up {
        first.call().await?;
    }
    let (cpu_sequential, taken) = {
        let begin = subject.cpu_time()?;
        let mut taken = Vec::with_capacity(plan.sequential);
        for _ in 0..plan.sequential {
            taken.push(first.call().await?);
        }
        (a_call(subject.cpu_time()? - begin, plan.sequential), taken)
    };
    let (p50, p99) = middle_and_worst(taken);
    let mut connections = vec![first];
    for number in 1..CONNECTIONS as u64 {
        connections.push(Connection::open(&subject.door, number).await?);
    }
    let (connections, _) = load(connections, plan.warm_up).await?;
    let cpu = subject.cpu_time()?;
    let begin = Instant::now();
    let (connections, taken) = load(connections, plan.load).await?;
    let elapsed = begin.elapsed();
    let cpu = subject.cpu_time()? - cpu;
    let calls = taken.len();
    let (_, load_p99) = middle_and_worst(taken);
    let (after, guards) = subject.resident()?;
    drop(connections);
    subject.stop()?;
    Ok(Turn {
        p50,
        p99,
        calls_per_second: rate(calls, elapsed),
        load_p99,
        cpu_sequential,
        cpu: a_call(cpu, calls),
        before,
        after,
        guards,
    })
}

/// Makes so many calls on these connections, all of them at work until the last call is begun.
async fn load(
    connections: Vec<Connection>,
    calls: usize,
) -> Result<(Vec<Connection>, Vec<Duration>)> {
    let left = Arc::new(AtomicUsize::new(calls));
    let work: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            let left = Arc::clone(&left);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while left.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                    taken.push(connection.call().await?);
                }
                Result::Ok((connection, taken))
            })
        })
        .collect();
    let mut connections = Vec::new();
    let mut taken = Vec::with_capacity(calls);
    for work in work {
        let (connection, some) = work.await??;
        connections.push(connection);
        taken.extend(some);
    }
    Ok((connections, taken))
}

/// In microseconds: half of them take no longer, and all but one in a hundred.
fn middle_and_worst(mut taken: Vec<Duration>) -> (f64, f64) {
    taken.sort_unstable();
    let micros = |percent| percentile(&taken, percent).as_secs_f64() * 1e6;
    (micros(50), micros(99))
}

#[expect(clippy::cast_precision_loss)] // There are fewer calls than that.
fn rate(calls: usize, elapsed: Duration) -> f64 {
    calls as f64 / elapsed.as_secs_f64()
}

/// Microseconds for each of so many calls.
#[expect(clippy::cast_precision_loss)]
fn a_call(total: Duration, calls: usize) -> f64 {
    total.as_secs_f64() * 1e6 / calls as f64
}

fn figures(who: Who, turns: &[Turn]) -> Vec<Cell> {
    let median = |figure: fn(&Turn) -> f64| Summary::of(turns.iter().map(figure).collect()).median;
    let of_process = |figure: fn(&Turn) -> f64| match who {
        Who::Direct => Cell::Nothing,
        _ => median(figure).into(),
    };
    vec![
        who.name().into(),
        median(|turn| turn.p50).into(),
        median(|turn| turn.p99).into(),
        median(|turn| turn.calls_per_second).into(),
        median(|turn| turn.load_p99).into(),
        of_process(|turn| turn.cpu),
        of_process(|turn| turn.cpu_sequential),
        of_process(|turn| turn.before),
        of_process(|turn| turn.after),
        of_process(|turn| turn.guards),
    ]
}

/// The goals that can be judged with these subjects.
fn goals(found: &[(Who, Vec<Turn>)]) -> Vec<Vec<Cell>> {
    let of = |who: Who| {
        let found = found.iter().find(|(subject, _)| *subject == who);
        found.map(|(_, turns)| turns.as_slice())
    };
    let (direct, relay) = (of(Who::Direct), of(Who::Relay));
    let (ours, peer) = (of(Who::Switchboard), of(Who::McpProxy));
    let ratio = |a: Option<&[Turn]>, b: Option<&[Turn]>, figure: fn(&Turn) -> f64| {
        let ratios = a?.iter().zip(b?).map(|(a, b)| figure(a) / figure(b));
        Some(Summary::of(ratios.collect()).median)
    };
    let added = || {
        let rounds = ours?.iter().zip(peer?).zip(direct?);
        let ratios = rounds.map(|((ours, peer), direct)| {
            (ours.p50 - direct.p50) / (peer.p50 - direct.p50)
        });
        Some(Summary::of(ratios.collect()).median)
    };
    let memory = ours.map(|turns| {
        Summary::of(turns.iter().map(|turn| turn.after).collect()).median
    });
    let rate: fn(&Turn) -> f64 = |turn| turn.calls_per_second;
    [
        goal("calls/s, ours/mcp-proxy", ratio(ours, peer, rate), Bound::AtLeast(1.5)),
        goal("calls/s, ours/relay", ratio(ours, relay, rate), Bound::AtLeast(0.85)),
        goal("CPU a call, ours/mcp-proxy", ratio(ours, peer, |turn| turn.cpu), Bound::AtMost(0.5)),
        goal("latency added to direct (p50), ours/mcp-proxy", added(), Bound::AtMost(0.6)),
        goal("RSS after the load, MB", memory, Bound::AtMost(20.0)),
    ]
    .into_iter()
    .collect()
}

/// What a figure has to keep to.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A row that tells whether a goal is met.
fn goal(name: &str, found: Option<f64>, bound: Bound) -> Vec<Cell> {
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
