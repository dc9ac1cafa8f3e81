//! Verifies that the cost of a call does not depend on the configuration: with one server and with a hundred,
//! with ten tools and with ten thousand, and for the owner and a client with a token, a profile and overrides.

use std::{fs, path::Path, time::Duration};

use serde_json::{Map, Value, json};
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
    /// The caller has a token that is held to one of this number of profiles, and calls a tool with an override. With
    /// 0, it is the owner.
    profiles: usize,
}

/// A name, a small size, a large one, and the highest permitted ratio of their costs.
type Pair = (&'static str, Size, Size, f64);

const PAIRS: [Pair; 3] = [
    (
        "1 → 100 servers",
        Size {
            servers: 1,
            tools: 10,
            profiles: 0,
        },
        Size {
            servers: 100,
            tools: 10,
            profiles: 0,
        },
        AT_MOST,
    ),
    (
        "10 → 10,000 tools",
        Size {
            servers: 1,
            tools: 10,
            profiles: 0,
        },
        Size {
            servers: 1,
            tools: 10_000,
            profiles: 0,
        },
        AT_MOST,
    ),
    (
        "owner → token, 10 profiles, overrides",
        Size {
            servers: 1,
            tools: 1_000,
            profiles: 0,
        },
        Size {
            servers: 1,
            tools: 1_000,
            profiles: 10,
        },
        1.03,
    ),
];

/// The highest permitted ratio of the cost with many to that with few. It allows for noise between runs only.
const AT_MOST: f64 = 1.15;

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let plan = Plan::of(settings.effort);
    let runtime = load_runtime()?;
    let mut goals = Vec::new();
    let mut figures = Vec::new();
    for (name, few, many, at_most) in PAIRS {
        let homes = [
            known(&runtime, &settings.switchboard, few)?,
            known(&runtime, &settings.switchboard, many)?,
        ];
        let mut found = [Vec::new(), Vec::new()];
        for _ in 0..plan.rounds {
            let turns = runtime.block_on(async {
                let mut lanes = Vec::new();
                for (home, token) in &homes {
                    let mut subject = home.serve(&settings.switchboard)?;
                    if token.is_some() {
                        subject.door.token.clone_from(token);
                    }
                    lanes.push(Lane::through(subject).await?);
                }
                lane::race(&plan, lanes).await
            })?;
            for (found, turns) in found.iter_mut().zip(turns) {
                found.extend(turns);
            }
        }
        // Turns of the two alternate, so each pair saw the machine in the same state.
        let ratio = |figure: fn(&Turn) -> f64| {
            let [few, many] = &found;
            let pairs = few.iter().zip(many);
            let ratios = pairs.map(|(few, many)| figure(many) / figure(few));
            Some(Summary::of(ratios.collect()).median)
        };
        let bound = Bound::AtMost(at_most);
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
                    "profiles",
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
                "{} rounds of fresh processes, {} turns in each. A ratio is the median of those of adjacent turns, in which the machine was in the same state.",
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

/// A home whose servers have all been listed, and the token of the caller unless that is the owner.
fn known(runtime: &Runtime, switchboard: &Path, size: Size) -> Result<(Home, Option<String>)> {
    let home = Home::new()?;
    let mut servers = vec![("echo".to_owned(), echo(size.tools)?)];
    for number in 1..size.servers {
        servers.push((format!("other{number}"), echo(10)?));
    }
    home.configure(&servers, &json!({"start": "lazy"}))?;
    let tools = size.tools + (size.servers - 1) * 10;
    learn(runtime, &home, switchboard, tools)?;
    let token = match size.profiles {
        0 => None,
        profiles => Some(confine(&home, switchboard, profiles)?),
    };
    Ok((home, token))
}

/// Adds profiles and overrides to the configuration of a home, and creates a token that is held to a profile.
fn confine(home: &Home, switchboard: &Path, profiles: usize) -> Result<String> {
    let file = home.path().join("switchboard.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let named = (0..profiles).map(|number| {
        let profile = json!({
            "servers": ["echo", "memory"],
            "tools": { "deny": [format!("*:echo_9{number}*")] },
            "view": "direct",
            "memory": { "namespace": format!("namespace{number}") },
        });
        (format!("profile{number}"), profile)
    });
    config["profiles"] = named.collect();
    config["clients"] = json!({ "bench": { "view": "direct" }, "another": { "view": "search" } });
    let renamed = (1..100).map(|number| {
        let change = json!({ "name": format!("renamed_{number}"), "description": "Another." });
        (format!("echo_{number}"), change)
    });
    let mut overrides: Map<String, Value> = renamed.collect();
    let own = json!({ "description": "Echoes.", "arguments": { "voice": { "value": "low" } } });
    overrides.insert("echo".to_owned(), own);
    config["mcpServers"]["echo"]["overrides"] = overrides.into();
    fs::write(&file, config.to_string())?;
    let mut create = home.command(switchboard, "token");
    let created = create.args(["create", "bench", "--profile", "profile0"]);
    let created = created.args(["--server", "echo", "--server", "memory"]);
    let created = created.output()?;
    if !created.status.success() {
        return Err(String::from_utf8_lossy(&created.stderr).into());
    }
    Ok(String::from_utf8(created.stdout)?.trim().to_owned())
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
        size.profiles.into(),
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
