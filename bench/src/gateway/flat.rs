//! Verifies that the cost of a call does not depend on the configuration: with one server and with a hundred,
//! with ten tools and with ten thousand.

use std::{path::Path, time::Duration};

use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    Bound, GOALS, Plan, Settings, goal, lane,
    lane::{Lane, Turn},
    load_runtime, process,
    subject::{Home, echo},
};
use crate::{
    Result,
    report::{Cell, Report, Table},
    stats::Summary,
};

/// The size of a gateway: its number of servers, and the number of tools of the first one.
#[derive(Debug, Clone, Copy)]
struct Size {
    servers: usize,
    tools: usize,
}

/// A name, a small size and a large one.
type Pair = (&'static str, Size, Size);

const PAIRS: [Pair; 2] = [
    (
        "1 → 100 servers",
        Size {
            servers: 1,
            tools: 10,
        },
        Size {
            servers: 100,
            tools: 10,
        },
    ),
    (
        "10 → 10,000 tools",
        Size {
            servers: 1,
            tools: 10,
        },
        Size {
            servers: 1,
            tools: 10_000,
        },
    ),
];

/// The highest permitted ratio of the cost with many to that with few. It allows for noise between runs only.
const AT_MOST: f64 = 1.15;

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let plan = Plan::of(settings.effort);
    let runtime = load_runtime()?;
    let mut goals = Vec::new();
    let mut figures = Vec::new();
    for (name, few, many) in PAIRS {
        let homes = [
            known(&runtime, &settings.switchboard, few)?,
            known(&runtime, &settings.switchboard, many)?,
        ];
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..plan.rounds {
            let turns = runtime.block_on(async {
                let mut lanes = Vec::new();
                for home in &homes {
                    lanes.push(Lane::through(home.serve(&settings.switchboard)?).await?);
                }
                lane::race(&plan, lanes).await
            })?;
            for (found, turns) in found.iter_mut().zip(turns) {
                found.extend(turns);
            }
        }
        let ratio = |figure: fn(&Turn) -> f64| {
            let [few, many] = &found;
            Some(least(many, figure) / least(few, figure))
        };
        let bound = Bound::AtMost(AT_MOST);
        goals.push(goal(
            &format!("{name}: CPU a call"),
            ratio(|turn| turn.cpu),
            bound,
        ));
        goals.push(goal(&format!("{name}: p50"), ratio(|turn| turn.p50), bound));
        for (size, turns) in [few, many].into_iter().zip(&found) {
            figures.push(row(size, turns));
        }
    }
    Ok(Report {
        tables: vec![
            Table {
                title: "The cost of a call with many servers or tools, relative to few",
                columns: GOALS.to_vec(),
                rows: goals,
            },
            Table {
                title: "Absolute figures: times in µs, memory in MB",
                columns: vec![
                    "servers",
                    "tools of the first",
                    "least p50",
                    "p50",
                    "p99",
                    "calls/s at 32",
                    "least CPU/call",
                    "CPU/call",
                    "RSS before",
                    "RSS after",
                ],
                rows: figures,
            },
        ],
        notes: vec![
            format!(
                "{} rounds of fresh processes, {} turns in each. A ratio is that of the lowest figures of all turns, which other programs disturbed the least.",
                plan.rounds, plan.turns
            ),
            "All servers are known from an earlier run; only the called one runs.".to_owned(),
            format!("Load average {}.", process::load_average()),
        ],
    })
}

fn least(turns: &[Turn], figure: fn(&Turn) -> f64) -> f64 {
    Summary::of(turns.iter().map(figure).collect()).min
}

/// A home whose servers have all been listed.
fn known(runtime: &Runtime, switchboard: &Path, size: Size) -> Result<Home> {
    let home = Home::new()?;
    let mut servers = vec![("echo".to_owned(), echo(size.tools)?)];
    for number in 1..size.servers {
        servers.push((format!("other{number}"), echo(10)?));
    }
    home.configure(&servers, &json!({"start": "lazy"}))?;
    let tools = size.tools + (size.servers - 1) * 10;
    learn(runtime, &home, switchboard, tools)?;
    Ok(home)
}

/// Lets a gateway list all servers of a home once, which have `tools` tools, and stops it.
pub(super) fn learn(
    runtime: &Runtime,
    home: &Home,
    switchboard: &Path,
    tools: usize,
) -> Result<()> {
    let mut subject = home.serve(switchboard)?;
    runtime.block_on(async {
        let mut connection = subject.connect().await?;
        for _ in 0..600 {
            if connection.count_tools().await? >= tools {
                return Result::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("not all of {tools} tools were discovered within 1 min").into())
    })?;
    // The snapshot of the last server is written right after its tools appear.
    std::thread::sleep(Duration::from_millis(300));
    subject.stop()
}

fn row(size: Size, turns: &[Turn]) -> Vec<Cell> {
    let median = |figure: fn(&Turn) -> f64| {
        Cell::from(Summary::of(turns.iter().map(figure).collect()).median)
    };
    vec![
        size.servers.into(),
        size.tools.into(),
        least(turns, |turn| turn.p50).into(),
        median(|turn| turn.p50),
        median(|turn| turn.p99),
        median(|turn| turn.calls_per_second),
        least(turns, |turn| turn.cpu).into(),
        median(|turn| turn.cpu),
        median(|turn| turn.before),
        median(|turn| turn.after),
    ]
}
