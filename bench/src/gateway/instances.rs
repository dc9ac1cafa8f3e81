//! The time of a call that starts the server: with one process for all clients, and with one for each.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use super::{
    Bound, GOALS, Settings, flat, goal,
    http::{Connection, Door},
    load_runtime, process,
    subject::{Home, echo},
};
use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::Summary,
};

/// The servers, with the callers that share a process of each, and the name of the called tool.
const SHARED: [(&str, &str, &str); 2] = [
    ("all", "all", "all__echo"),
    ("each", "client", "each__echo"),
];

/// The highest permitted ratio of the time with a process for each client. It allows for noise only.
const AT_MOST: f64 = 1.15;

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let times = match settings.effort {
        Effort::Quick => 5,
        Effort::Full => 40,
    };
    let runtime = load_runtime()?;
    let home = Home::new()?;
    let line = echo(10)?;
    home.configure(
        &SHARED.map(|(name, _, _)| (name.to_owned(), line.clone())),
        &json!({ "start": "lazy" }),
    )?;
    let file = home.path().join("switchboard.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file)?)?;
    for (name, share, _) in SHARED {
        config["mcpServers"][name]["share"] = share.into();
    }
    fs::write(&file, config.to_string())?;
    flat::learn(&runtime, &home, &settings.switchboard, 20)?;

    let mut took = SHARED.map(|_| Vec::new());
    for time in 0..times {
        let subject = home.serve(&settings.switchboard)?;
        let mut turns = [0, 1];
        // Neither profits from being the second.
        turns.rotate_left(time % 2);
        for at in turns {
            let door = Door {
                tool: SHARED[at].2,
                ..subject.door.clone()
            };
            took[at].push(runtime.block_on(async {
                let mut connection = Connection::open(&door, 0).await?;
                let begin = Instant::now();
                connection.call().await?;
                Result::Ok(begin.elapsed().as_secs_f64() * 1e3)
            })?);
        }
        subject.stop()?;
    }
    let ratios = took[0].iter().zip(&took[1]).map(|(all, each)| each / all);
    let ratio = Summary::of(ratios.collect()).median;
    let rows = SHARED.iter().zip(took).map(|((_, share, _), took)| {
        let took = Summary::of(took);
        vec![
            Cell::from(*share),
            took.median.into(),
            took.min.into(),
            took.max.into(),
        ]
    });
    Ok(Report {
        tables: vec![
            Table {
                title: "A call that starts the server, relative to one process for all",
                columns: GOALS.to_vec(),
                rows: vec![goal(
                    "a process for the client: time",
                    Some(ratio),
                    Bound::AtMost(AT_MOST),
                )],
            },
            Table {
                title: "Absolute figures, ms",
                columns: vec!["share", "median", "least", "most"],
                rows: rows.collect(),
            },
        ],
        notes: vec![
            format!(
                "{times} starts of the gateway, each with one such call of either kind, in turns."
            ),
            format!("Load average {}.", process::load_average()),
        ],
    })
}
