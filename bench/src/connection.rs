//! The cost of a connection: calls over the pipes of a child process, compared with the bare pipes to the
//! same child, and the memory of idle connections.

mod bare;
mod echo;
mod idle;
mod load;
mod mux;
mod system;

use std::{sync::Arc, time::Duration};

use tokio::runtime::{Builder, Runtime};

use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::{Summary, percentile},
};
use load::{Lines, Load, Window};

pub(crate) use echo::serve;
pub(crate) use idle::hold;

/// The argument that makes this program the server at the other end of the pipes.
pub(crate) const SERVE: &str = "serve";
/// The argument that makes it hold idle connections and report their memory.
pub(crate) const HOLD: &str = "hold";

const IN_FLIGHT: [usize; 3] = [1, 32, 256];

/// A way to make calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Lines written and read with nothing in between.
    Bare,
    /// The same, with each response handed to its caller.
    Mux,
    /// Through the library, with raw JSON in and out, as a gateway does.
    Raw,
    /// Through the library, from and to types, as an application does.
    Typed,
}

const WAYS: [Way; 4] = [Way::Bare, Way::Mux, Way::Raw, Way::Typed];

impl Way {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "bare" => Some(Self::Bare),
            "mux" => Some(Self::Mux),
            "raw" => Some(Self::Raw),
            "typed" => Some(Self::Typed),
            _ => None,
        }
    }
}

/// The kind of runtime: one thread or several.
#[derive(Debug, Clone, Copy)]
enum Flavour {
    Current,
    Multi,
}

impl Flavour {
    fn name(self) -> &'static str {
        match self {
            Self::Current => "current-thread",
            Self::Multi => "multi-thread",
        }
    }

    fn runtime(self) -> Result<Runtime> {
        let mut builder = match self {
            Self::Current => Builder::new_current_thread(),
            Self::Multi => Builder::new_multi_thread(),
        };
        Ok(builder.enable_all().build()?)
    }
}

/// The extent of the measurement.
struct Plan {
    rounds: usize,
    window: Duration,
    idle_memory: usize,
    idle_stdio: usize,
}

pub(crate) fn run(effort: Effort) -> Result<Report> {
    let plan = match effort {
        Effort::Quick => Plan {
            rounds: 2,
            window: Duration::from_millis(50),
            idle_memory: 100,
            idle_stdio: 10,
        },
        Effort::Full => Plan {
            rounds: 12,
            window: Duration::from_millis(250),
            idle_memory: 1_000,
            idle_stdio: 100,
        },
    };
    let mut ratios = Vec::new();
    let mut figures = Vec::new();
    for flavour in [Flavour::Current, Flavour::Multi] {
        flavour.runtime()?.block_on(async {
            let mut lines = Lines::open().await?;
            for in_flight in IN_FLIGHT {
                let found = measure(&plan, &mut lines, in_flight).await?;
                let name = [Cell::from(flavour.name()), in_flight.into()];
                ratios.push([&name[..], &found.ratios()].concat());
                figures.push([&name[..], &found.figures()].concat());
            }
            lines.close().await;
            Result::Ok(())
        })?;
    }
    let ratios = Table {
        title: "Calls over the pipes of a child process: ratios of calls/s, and of CPU time per call",
        columns: vec![
            "runtime",
            "in flight",
            "raw/bare (best)",
            "raw/bare (median)",
            "raw/mux (best)",
            "raw/mux (median)",
            "typed/raw (best)",
            "CPU raw/bare",
            "CPU raw/mux",
            "CPU typed/raw",
        ],
        rows: ratios,
    };
    let figures = Table {
        title: "Absolute figures: best calls/s, least CPU time in µs per call, latency of raw calls in µs",
        columns: vec![
            "runtime",
            "in flight",
            "bare calls/s",
            "mux calls/s",
            "raw calls/s",
            "typed calls/s",
            "bare CPU",
            "mux CPU",
            "raw CPU",
            "typed CPU",
            "raw p50",
            "raw p99",
            "spread",
        ],
        rows: figures,
    };
    let windows = format!(
        "{} alternating windows of {} ms for each method; a median ratio is the median of the ratios within a round.",
        plan.rounds,
        plan.window.as_millis()
    );
    let notes = [
        &windows,
        "bare: the same child, the same request line; one write follows the responses of one read.",
        "mux: the bare pipes, shared by one task for each call in flight; the lower bound for a client of this shape.",
        "raw: this library, JSON in and out; typed: the same with types at both ends.",
        "CPU time is that of this process, without the child.",
        "spread: the best window of the bare pipes over their worst. If it is far above 1, other programs disturbed the run.",
    ];
    Ok(Report {
        tables: vec![
            ratios,
            idle::table(plan.idle_memory, plan.idle_stdio)?,
            figures,
        ],
        notes: notes.map(str::to_owned).to_vec(),
    })
}

/// Makes `calls` calls and nothing else, for a profiler.
pub(crate) fn drive(way: Way, in_flight: usize, calls: u64) -> Result<()> {
    Flavour::Current.runtime()?.block_on(async {
        let mut lines = Lines::open().await?;
        lines.run(way, Load::of_calls(in_flight, calls)).await?;
        lines.close().await;
        Ok(())
    })
}

/// The results of all rounds with one number of calls in flight.
struct Found {
    bare: Vec<Window>,
    mux: Vec<Window>,
    raw: Vec<Window>,
    typed: Vec<Window>,
    /// Latencies of raw calls in nanoseconds, sorted.
    latencies: Vec<u64>,
}

async fn measure(plan: &Plan, lines: &mut Lines, in_flight: usize) -> Result<Found> {
    let mut found = Found {
        bare: Vec::new(),
        mux: Vec::new(),
        raw: Vec::new(),
        typed: Vec::new(),
        latencies: Vec::new(),
    };
    // The first round warms up.
    for round in 0..=plan.rounds {
        for turn in 0..WAYS.len() {
            let way = WAYS[(round + turn) % WAYS.len()];
            let window = timed(plan, lines, way, Load::until_stopped(in_flight)).await?;
            if round > 0 {
                found.of(way).push(window);
            }
        }
    }
    // Measured separately, because reading the clock twice per call costs time, too.
    for _ in 0..=plan.rounds / 4 {
        let load = Load::until_stopped(in_flight).with_latencies();
        let window = timed(plan, lines, Way::Raw, load).await?;
        found.latencies.extend(window.latencies);
    }
    found.latencies.sort_unstable();
    Ok(found)
}

async fn timed(plan: &Plan, lines: &mut Lines, way: Way, load: Arc<Load>) -> Result<Window> {
    let window = plan.window;
    let stop = Arc::clone(&load);
    let timer = tokio::spawn(async move {
        tokio::time::sleep(window).await;
        stop.stop();
    });
    let window = lines.run(way, load).await?;
    timer.await?;
    Ok(window)
}

impl Found {
    fn of(&mut self, way: Way) -> &mut Vec<Window> {
        match way {
            Way::Bare => &mut self.bare,
            Way::Mux => &mut self.mux,
            Way::Raw => &mut self.raw,
            Way::Typed => &mut self.typed,
        }
    }

    fn ratios(&self) -> Vec<Cell> {
        let best = |ours: &[Window], to: &[Window]| rates(ours).max / rates(to).max;
        let median = |ours: &[Window], to: &[Window]| {
            let pairs = ours.iter().zip(to);
            Summary::of(pairs.map(|(ours, to)| ours.rate() / to.rate()).collect()).median
        };
        let cpu = |ours: &[Window], to: &[Window]| Some(least_cpu(ours)? / least_cpu(to)?);
        vec![
            best(&self.raw, &self.bare).into(),
            median(&self.raw, &self.bare).into(),
            best(&self.raw, &self.mux).into(),
            median(&self.raw, &self.mux).into(),
            best(&self.typed, &self.raw).into(),
            cpu(&self.raw, &self.bare).into(),
            cpu(&self.raw, &self.mux).into(),
            cpu(&self.typed, &self.raw).into(),
        ]
    }

    fn figures(&self) -> Vec<Cell> {
        let bare = rates(&self.bare);
        let latency = |percent| {
            let nanos = percentile(&self.latencies, percent);
            Duration::from_nanos(nanos).as_secs_f64() * 1e6
        };
        vec![
            bare.max.into(),
            rates(&self.mux).max.into(),
            rates(&self.raw).max.into(),
            rates(&self.typed).max.into(),
            least_cpu(&self.bare).into(),
            least_cpu(&self.mux).into(),
            least_cpu(&self.raw).into(),
            least_cpu(&self.typed).into(),
            latency(50).into(),
            latency(99).into(),
            (bare.max / bare.min).into(),
        ]
    }
}

fn rates(windows: &[Window]) -> Summary {
    Summary::of(windows.iter().map(Window::rate).collect())
}

/// The least CPU time, in microseconds per call.
fn least_cpu(windows: &[Window]) -> Option<f64> {
    let each: Option<Vec<f64>> = windows.iter().map(Window::cpu_micros).collect();
    each.map(|each| Summary::of(each).min)
}
