//! The cost of translation: calls through the gateway with every combination of client and server eras, in
//! turns.

use switchboard_wire::Era::{self, Legacy, Modern};

use super::{
    Plan, Settings,
    echo::word,
    lane::{self, CONNECTIONS, Lane, Turn},
    load_runtime, process, ratio,
    subject::Subject,
};
use crate::{
    Result,
    report::{Cell, Report, Table},
    stats::Summary,
};

/// The era of the clients, and that of the server.
type Pair = (Era, Era);

/// The combinations that take turns.
const PAIRS: [Pair; 4] = [
    (Legacy, Legacy),
    (Legacy, Modern),
    (Modern, Modern),
    (Modern, Legacy),
];

/// The pairs that are compared.
const RATIOS: [(Pair, Pair); 3] = [
    ((Legacy, Modern), (Legacy, Legacy)),
    ((Modern, Legacy), (Modern, Modern)),
    ((Modern, Modern), (Legacy, Legacy)),
];

/// One figure of a turn, with the name of its column.
type Figure = (&'static str, fn(&Turn) -> f64);

const FIGURES: [Figure; 6] = [
    ("calls/s at 32", |turn| turn.calls_per_second),
    ("p50", |turn| turn.p50),
    ("p99", |turn| turn.p99),
    ("p99 at 32", |turn| turn.load_p99),
    ("CPU/call", |turn| turn.cpu),
    ("CPU/call at 1", |turn| turn.cpu_sequential),
];

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let plan = Plan::of(settings.effort);
    let load_before = process::load_average();
    let runtime = load_runtime()?;
    let mut found = PAIRS.map(|pair| (pair, Vec::new()));
    for _ in 0..plan.rounds {
        let turns = runtime.block_on(async {
            let mut lanes = Vec::new();
            for (clients, server) in PAIRS {
                let subject = Subject::between(&settings.switchboard, clients, server)?;
                lanes.push(Lane::through(subject).await?);
            }
            lane::race(&plan, lanes).await
        })?;
        for ((_, found), turns) in found.iter_mut().zip(turns) {
            found.extend(turns);
        }
    }
    let of = |pair: Pair| {
        let found = found.iter().find(|(found, _)| *found == pair);
        found.map_or_else(Default::default, |(_, turns)| turns.as_slice())
    };
    let ratios = RATIOS.map(|(first, second)| {
        let name = format!("({}) / ({})", name(first), name(second));
        row(name, |figure| ratio(of(first), of(second), figure))
    });
    let figures = found.iter().map(|(pair, turns)| {
        row(name(*pair), |figure| {
            Summary::of(turns.iter().map(figure).collect()).median
        })
    });
    Ok(Report {
        tables: vec![
            Table {
                title: "Calls between two eras, relative to calls within one",
                columns: columns("ratio"),
                rows: ratios.to_vec(),
            },
            Table {
                title: "Absolute figures: times in µs",
                columns: columns("client → server"),
                rows: figures.collect(),
            },
        ],
        notes: vec![
            format!(
                "{} rounds of fresh processes, {} turns in each: {} calls one at a time, then {} on {CONNECTIONS} connections, after a warm-up. Medians of the turns; a ratio is the median of the ratios within a turn.",
                plan.rounds, plan.turns, plan.sequential, plan.load
            ),
            "Legacy is 2025-06-18, with a session for each connection; modern is 2026-07-28, whose requests are longer, because each is self-contained. Clients connect over HTTP, servers over pipes.".to_owned(),
            "CPU time is that of the gateway under load, with the guard of its server and without the server.".to_owned(),
            format!(
                "Load average before {load_before}, after {}. Above the number of cores, other programs disturbed the run: trust CPU times before ratios, and ratios before rates and latencies.",
                process::load_average()
            ),
        ],
    })
}

fn name((clients, server): Pair) -> String {
    format!("{} → {}", word(clients), word(server))
}

fn columns(first: &'static str) -> Vec<&'static str> {
    let figures = FIGURES.iter().map(|(name, _)| *name);
    std::iter::once(first).chain(figures).collect()
}

fn row(name: String, of: impl Fn(fn(&Turn) -> f64) -> f64) -> Vec<Cell> {
    let figures = FIGURES.iter().map(|(_, figure)| of(*figure).into());
    std::iter::once(Cell::Text(name)).chain(figures).collect()
}
