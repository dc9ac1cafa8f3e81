//! Benchmarks of the wire format, a connection and the gateway, compared with alternatives in the same run.
//!
//! Ratios come first: they hold on any machine, whereas times and rates depend on the machine.

mod connection;
mod gateway;
mod memory;
mod report;
mod stats;
mod wire;

use std::{error::Error, io, path::PathBuf, process::ExitCode};

use connection::Way;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "\
usage: switchboard-bench wire|connection [--quick] [--json FILE]
       switchboard-bench gateway [--quick] [--json FILE] [--switchboard FILE] [--peer FILE]
                                 [--only SUBJECT[,SUBJECT...]]
       switchboard-bench revisions|flat|disk|start|idle|instances [--quick] [--json FILE] [--switchboard FILE]
       switchboard-bench memory [--quick] [--json FILE] [--switchboard FILE] [--sizes N[,N...]]
                                [--model FOLDER] [--peer FOLDER]
       switchboard-bench drive raw|typed|mux|bare IN_FLIGHT CALLS

  wire         Read, route and forward a message under another ID: this library, the typed model of rmcp, and
               serde_json's Value
  connection   Calls per second to a child process over its pipes, compared with the bare pipes; memory of an idle
               connection
  gateway      Calls through the gateway to an echo server, compared with the same server without a gateway (direct),
               a minimal relay (relay), and another gateway (mcp-proxy)
  revisions    Calls through the gateway for each pair of a client and a server: of the revisions that open a session
               (legacy), and of 2026-07-28 (modern)
  flat         Cost of a call with 1 and with 100 servers, with 10 and with 10,000 tools, and for a client with a token,
               a profile and overrides
  disk         Disk writes of the gateway during calls, by thread (requires strace)
  start        Time from the start of `switchboard stdio` to its first tool list, compared with `cat`, with 50 servers
               that need 5 s each: with known servers, with unknown ones, and with a running gateway
  idle         Processes, memory, CPU time and wake-ups of an idle gateway
  instances    Time of a call that starts the server: with one process for all clients, and with one for each
  memory       The built-in memory with 1,000 to 300,000 memories: storing; recalling; starting with a full, a locked
               or a damaged store; and a comparison with the reference server
  drive        Only the given number of calls over the pipes, for a profiler

  --quick             Fewer and shorter rounds, as a smoke test
  --json FILE         Also write the figures as JSON to this file
  --switchboard FILE  Program to measure (default: the one in the directory of this program)
  --peer FILE         mcp-proxy to compare with (default: no comparison)
  --peer FOLDER       For `memory`: directory of tools with the reference server (default: no comparison)
  --sizes N[,N...]    Numbers of memories
  --model FOLDER      Directory of a sentence model, in place of the built-in one
  --only SUBJECT      Only these subjects: direct, relay, switchboard, mcp-proxy

Example: switchboard-bench gateway --quick --only direct,switchboard";

/// The amount of time to spend on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Quick,
    Full,
}

/// Options of a measurement.
#[derive(Debug, Default)]
struct Options {
    quick: bool,
    json: Option<PathBuf>,
    switchboard: Option<PathBuf>,
    peer: Option<PathBuf>,
    only: Vec<String>,
    sizes: Vec<u64>,
    model: Option<PathBuf>,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(USAGE);
            match *word {
                "--quick" => options.quick = true,
                "--json" => options.json = Some(value()?.into()),
                "--switchboard" => options.switchboard = Some(value()?.into()),
                "--peer" => options.peer = Some(value()?.into()),
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--model" => options.model = Some(value()?.into()),
                "--sizes" => {
                    let sizes = value()?.split(',').map(str::parse);
                    options.sizes = sizes.collect::<std::result::Result<_, _>>()?;
                }
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }

    const fn effort(&self) -> Effort {
        if self.quick {
            Effort::Quick
        } else {
            Effort::Full
        }
    }

    fn memory(&self) -> Result<memory::Settings> {
        Ok(memory::Settings {
            effort: self.effort(),
            switchboard: self.program()?,
            sizes: self.sizes.clone(),
            model: self.model.clone(),
            tools: self.peer.clone().filter(|tools| tools.exists()),
        })
    }

    fn settings(&self) -> Result<gateway::Settings> {
        Ok(gateway::Settings {
            effort: self.effort(),
            switchboard: self.program()?,
            peer: self.peer.clone().filter(|peer| peer.exists()),
            only: self.only.clone(),
        })
    }

    fn program(&self) -> Result<PathBuf> {
        let switchboard = match &self.switchboard {
            Some(program) => program.clone(),
            None => std::env::current_exe()?.with_file_name("switchboard"),
        };
        if !switchboard.exists() {
            let message =
                "cannot find the program {}: build it with `cargo build --release -p switchboard`";
            return Err(message
                .replace("{}", &switchboard.display().to_string())
                .into());
        }
        Ok(switchboard)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    let (what, rest) = words.split_first().ok_or(USAGE)?;
    match (*what, rest) {
        ("drive", [way, in_flight, calls]) => {
            let way = Way::named(way).ok_or(USAGE)?;
            connection::drive(way, in_flight.parse()?, calls.parse()?)
        }
        // The roles in which this program starts itself.
        (connection::SERVE, []) => connection::serve(),
        (connection::HOLD, [what, count]) => connection::hold(what, count.parse()?),
        (gateway::ECHO, server) => gateway::serve_echo(server),
        (gateway::RELAY, server) => gateway::serve_relay(server),
        (what, options) => measure(what, &Options::read(options)?),
    }
}

fn measure(what: &str, options: &Options) -> Result<()> {
    let report = match what {
        "wire" => wire::run(options.effort())?,
        "connection" => connection::run(options.effort())?,
        "gateway" => gateway::run(&options.settings()?)?,
        "revisions" => gateway::run_revisions(&options.settings()?)?,
        "flat" => gateway::run_flat(&options.settings()?)?,
        "disk" => gateway::run_disk(&options.settings()?)?,
        "start" => gateway::run_start(&options.settings()?)?,
        "idle" => gateway::run_idle(&options.settings()?)?,
        "instances" => gateway::run_instances(&options.settings()?)?,
        "memory" => memory::run(&options.memory()?)?,
        _ => return Err(USAGE.into()),
    };
    report.print(&mut io::stdout().lock())?;
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(())
}
