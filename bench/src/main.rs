//! What the wire and a connection cost, against others that do the same in the same run.
//!
//! Ratios come first: they hold on any machine, where times and rates belong to the one at hand.

mod connection;
mod report;
mod stats;
mod wire;

use std::{error::Error, io, process::ExitCode};

use connection::Way;
use report::Report;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "\
usage: switchboard-bench wire|connection [--quick] [--json]
       switchboard-bench drive raw|typed|mux|bare IN_FLIGHT CALLS

  wire         read, route and forward a message with another id: this library, the typed model of
               rmcp, and serde_json's Value
  connection   calls per second to a child process over its pipes, against the bare pipes, and the
               memory of an idle connection
  drive        only that many calls over the pipes and nothing else, for a profiler

  --quick      fewer and shorter rounds, to see that it works
  --json       the figures as JSON";

/// How much time to take for a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Quick,
    Full,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match run(&words) {
        Ok(Some(report)) => report.print(&mut io::stdout().lock(), words.contains(&"--json")),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<Option<Report>> {
    match *words {
        ["wire", ref options @ ..] => wire::run(effort(options)?).map(Some),
        ["connection", ref options @ ..] => connection::run(effort(options)?).map(Some),
        ["drive", way, in_flight, calls] => {
            let way = Way::named(way).ok_or(USAGE)?;
            connection::drive(way, in_flight.parse()?, calls.parse()?)?;
            Ok(None)
        }
        // The two below are this program in the roles it starts itself in.
        [connection::SERVE] => connection::serve().map(|()| None),
        [connection::HOLD, what, count] => connection::hold(what, count.parse()?).map(|()| None),
        _ => Err(USAGE.into()),
    }
}

fn effort(options: &[&str]) -> Result<Effort> {
    let mut effort = Effort::Full;
    for option in options {
        match *option {
            "--quick" => effort = Effort::Quick,
            "--json" => {}
            _ => return Err(USAGE.into()),
        }
    }
    Ok(effort)
}
