//! The resources that an idle gateway takes: processes, memory, CPU time, wake-ups.

use std::{thread, time::Duration};

use serde_json::json;

use super::{
    Bound, GOALS, Settings, flat, goal, load_runtime, process,
    subject::{Home, echo},
};
use crate::{
    Effort, Result,
    report::{Report, Table},
};

const SERVERS: usize = 50;
const TOOLS: usize = 20;
const SETTLE: Duration = Duration::from_secs(5);

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let watched = match settings.effort {
        Effort::Quick => Duration::from_secs(10),
        Effort::Full => Duration::from_mins(1),
    };
    let home = Home::new()?;
    let servers: Result<Vec<_>> = (0..SERVERS)
        .map(|number| Ok((format!("server{number}"), echo(TOOLS)?)))
        .collect();
    home.configure(&servers?, &json!({"start": "lazy"}))?;
    flat::learn(
        &load_runtime()?,
        &home,
        &settings.switchboard,
        SERVERS * TOOLS,
    )?;

    let subject = home.serve(&settings.switchboard)?;
    let pid = subject.pid();
    thread::sleep(SETTLE);
    let cpu = process::cpu_time(pid)?;
    let switches = process::context_switches(pid)?;
    thread::sleep(watched);
    let cpu = process::cpu_time(pid)?.saturating_sub(cpu);
    let switches = process::context_switches(pid)?.saturating_sub(switches);
    let children = process::descendants(pid)?.len();
    let resident = process::resident(pid)?;
    subject.stop()?;

    let per_minute = 60.0 / watched.as_secs_f64();
    let cpu = cpu.as_secs_f64() * 1e3 * per_minute;
    let children = f64::from(u32::try_from(children)?);
    let switches = f64::from(u32::try_from(switches)?) * per_minute;
    Ok(Report {
        tables: vec![Table {
            title: "An idle gateway with 50 servers that start on demand",
            columns: GOALS.to_vec(),
            rows: vec![
                goal("child processes", Some(children), Bound::AtMost(0.0)),
                goal("RSS, MB", Some(resident), Bound::AtMost(20.0)),
                goal("CPU time a minute, ms", Some(cpu), Bound::AtMost(0.0)),
                goal(
                    "context switches a minute",
                    Some(switches),
                    Bound::AtMost(10.0),
                ),
            ],
        }],
        notes: vec![
            format!(
                "Watched for {} s after {} s to settle.",
                watched.as_secs(),
                SETTLE.as_secs()
            ),
            format!("Load average {}.", process::load_average()),
        ],
    })
}
