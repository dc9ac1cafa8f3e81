//! The time until a client has its first list of tools: from the start of `switchboard stdio` to the complete
//! response, compared with `cat` over the same kind of pipes.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

use memchr::memmem;
use serde_json::json;
use switchboard_store::{Activity, Outcome, Retention, Store};
use tokio::runtime::Runtime;

use super::{
    Bound, GOALS, Settings, flat, goal, load_runtime,
    process::{self, Watchdog},
    subject::{Home, echo},
};
use crate::{
    Effort, Result,
    report::{Cell, Report, Table},
    stats::Summary,
};

const SERVERS: usize = 50;
const TOOLS: usize = 20;
/// The seconds that each server takes to start.
const SLOW: &str = "5";
/// Size of the database in bytes.
const DATABASE: u64 = 100 * 1024 * 1024;
/// Longer than any start or exit takes.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most milliseconds that it may take longer than `cat`.
const AT_MOST: f64 = 10.0;

const OPENING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
const LIST: &str = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n";
const ANSWER: &[u8] = b"\"id\":2,";

/// One start.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// Time until the response was complete, in milliseconds.
    took: f64,
    /// Time from the end of input to the exit of the process, in milliseconds.
    leaving: f64,
    /// CPU time up to the response, in milliseconds.
    cpu: f64,
    tools: usize,
    /// Number of its processes that remained after it exited.
    left: usize,
}

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let times = match settings.effort {
        Effort::Quick => 3,
        Effort::Full => 20,
    };
    let runtime = load_runtime()?;
    let program = &settings.switchboard;
    let home = furnished(&runtime, program)?;
    let marker = delay_file(&home)?;

    let known = race(times, || start(home.command(program, "stdio"), &marker))?;
    // Only the first list of all may wait a second, for servers that have never been listed.
    let empty = Home::new()?;
    let slow = configure(&empty, SLOW)?;
    start(empty.command(program, "stdio"), &slow)?;
    let fresh = race(times, || start(empty.command(program, "stdio"), &slow))?;
    let running = home.serve(program)?;
    let joining = race(times, || {
        start(home.command(program, "stdio"), "no server is started")
    })?;
    running.stop()?;

    let situations = [
        ("known servers, full database, a damaged file", known),
        ("nothing known, from the second start on", fresh),
        ("joining a gateway", joining),
    ];
    let mut goals = Vec::new();
    let mut figures = Vec::new();
    for (name, (starts, cats)) in &situations {
        let ours = Summary::of(starts.iter().map(|start| start.took).collect());
        let cat = Summary::of(cats.iter().map(|cat| cat.took).collect());
        let more = ours.median - cat.median;
        goals.push(goal(
            &format!("{name}: ms more than cat"),
            Some(more),
            Bound::AtMost(AT_MOST),
        ));
        let left: usize = starts.iter().map(|start| start.left).sum();
        let left = f64::from(u32::try_from(left)?);
        goals.push(goal(
            &format!("{name}: processes left behind"),
            Some(left),
            Bound::AtMost(0.0),
        ));
        let leaving = Summary::of(starts.iter().map(|start| start.leaving).collect());
        figures.push(vec![
            Cell::from(*name),
            ours.median.into(),
            ours.min.into(),
            ours.max.into(),
            cat.median.into(),
            cat.min.into(),
            cat.max.into(),
            starts.first().map_or(0, |start| start.tools).into(),
            leaving.median.into(),
        ]);
    }
    Ok(Report {
        tables: vec![
            Table {
                title: "From the start of `switchboard stdio` to the response to tools/list",
                columns: GOALS.to_vec(),
                rows: goals,
            },
            Table {
                title: "Absolute figures, ms",
                columns: vec![
                    "situation", "median", "least", "most", "cat", "cat least", "cat most",
                    "tools in the answer", "leaving",
                ],
                rows: figures,
            },
        ],
        notes: vec![
            format!("{times} starts for each situation, alternating with `cat`. {SERVERS} servers are configured, each of which responds after {SLOW} s; {TOOLS} tools of each are known, or none."),
            "The response is one page of the list. Leaving is the time from the end of input to the exit of the process, including all servers.".to_owned(),
            format!("Load average {}.", process::load_average()),
        ],
    })
}

/// A home with everything that could slow down a start.
fn furnished(runtime: &Runtime, switchboard: &Path) -> Result<Home> {
    let home = Home::new()?;
    let delay = configure(&home, "0")?;
    flat::learn(runtime, &home, switchboard, SERVERS * TOOLS)?;
    fs::write(delay, SLOW)?;
    runtime.block_on(fill(&home))?;
    fs::write(
        home.path().join("catalog").join("damaged.json"),
        "{\"version\":1,\"check",
    )?;
    Ok(home)
}

fn delay_file(home: &Home) -> Result<String> {
    let path = home.path().join("delay");
    Ok(path.to_str().ok_or("the path is not UTF-8")?.to_owned())
}

/// Configures the servers. Returns the path of the file that slows them down, which is on their command
/// lines.
fn configure(home: &Home, delay: &str) -> Result<String> {
    let file = delay_file(home)?;
    fs::write(&file, delay)?;
    let mut line = echo(TOOLS)?;
    line.push(file.clone());
    let servers: Vec<_> = (0..SERVERS)
        .map(|number| (format!("server{number}"), line.clone()))
        .collect();
    // Servers do not notice the end of their input while they sleep, and the gateway need not wait for them.
    home.configure(&servers, &json!({"start": "lazy", "closeTimeoutMs": 300}))?;
    Ok(file)
}

/// Fills the database up to the size.
async fn fill(home: &Home) -> Result<()> {
    let file = home.path().join("switchboard.db");
    let store = Store::open_keeping(file.clone(), Retention::default());
    let error = "what went wrong, at some length; ".repeat(32);
    let activity = Activity {
        id: 0,
        at: SystemTime::now(),
        server: "server1".into(),
        method: "tools/call".into(),
        name: "echo".into(),
        client: "bench".into(),
        principal: "owner".into(),
        door: "pipe".into(),
        duration: Duration::from_millis(1),
        waited: Duration::ZERO,
        outcome: Outcome::Error { code: -32603 },
        error: Some(error.into()),
        request_bytes: 100,
        response_bytes: 100,
    };
    let until = Instant::now() + PATIENCE * 3;
    while fs::metadata(&file).map_or(0, |file| file.len()) < DATABASE {
        for _ in 0..2_000 {
            while !store.record(activity.clone()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        if Instant::now() > until {
            return Err("the database does not grow".into());
        }
    }
    store.close();
    store.closed().await;
    Ok(())
}

/// Starts the gateway and `cat` in turns.
fn race(
    times: usize,
    mut start_one: impl FnMut() -> Result<Start>,
) -> Result<(Vec<Start>, Vec<Start>)> {
    let mut starts = Vec::new();
    let mut cats = Vec::new();
    for _ in 0..times {
        cats.push(launch(Command::new("/bin/cat"), LIST, "")?);
        starts.push(start_one()?);
    }
    Ok((starts, cats))
}

fn start(mut command: Command, marker: &str) -> Result<Start> {
    command.args(["--log-level", "off"]);
    launch(command, &format!("{OPENING}{LIST}"), marker)
}

/// Starts `cat` or an MCP server. Returns the time until its response, the time until its exit, and the CPU
/// time up to the response.
pub(crate) fn launch_bare(command: Command, is_server: bool) -> Result<[Duration; 3]> {
    let say = if is_server {
        format!("{OPENING}{LIST}")
    } else {
        LIST.to_owned()
    };
    let start = launch(command, &say, "")?;
    Ok([start.took, start.leaving, start.cpu].map(|millis| Duration::from_secs_f64(millis / 1e3)))
}

/// Starts a program, writes `say` to it, and stops the clock at the response. `marker` is on the command
/// lines of its servers.
fn launch(mut command: Command, say: &str, marker: &str) -> Result<Start> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe to the process")?;
    let mut output = child.stdout.take().ok_or("no pipe from the process")?;
    input.write_all(say.as_bytes())?;
    let watchdog = Watchdog::new(&child, PATIENCE);
    let mut said = Vec::with_capacity(1 << 20);
    let mut chunk = vec![0; 1 << 16];
    while !said.ends_with(b"\n") || memmem::find(&said, ANSWER).is_none() {
        let read = output.read(&mut chunk)?;
        if read == 0 {
            return Err(format!("{command:?} exited without a response").into());
        }
        said.extend_from_slice(&chunk[..read]);
    }
    let took = begin.elapsed();
    let cpu = process::cpu_time(child.id())?;
    let below = process::descendants(child.id())?;
    let begin = Instant::now();
    drop(input);
    child.wait()?;
    let leaving = begin.elapsed();
    drop(watchdog);
    let mut left: Vec<u32> = below
        .into_iter()
        .filter(|pid| process::command_line(*pid).is_some_and(|line| !line.is_empty()))
        .collect();
    if !marker.is_empty() {
        left.extend(process::with_command_line(marker)?);
    }
    left.sort_unstable();
    left.dedup();
    Ok(Start {
        took: took.as_secs_f64() * 1e3,
        leaving: leaving.as_secs_f64() * 1e3,
        cpu: cpu.as_secs_f64() * 1e3,
        tools: memmem::find_iter(&said, b"\"inputSchema\"").count(),
        left: left.len(),
    })
}
