//! `cargo xtask bench`: what the wire and a connection cost.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask bench wire|connection [--quick] [--json]

Builds bench/ for release and runs it. Ratios come first, because they hold on any machine.

  wire         read, route and forward a message with another id, against the typed model of rmcp and
               against serde_json's Value
  connection   calls per second to a child process over its pipes, against the bare pipes to the same
               child, and the memory of an idle connection

  --quick      fewer and shorter rounds, to see that it works
  --json       the figures as JSON

A full run takes about a minute. Leave the machine alone meanwhile.";

const WHAT: [&str; 2] = ["wire", "connection"];
const OPTIONS: [&str; 2] = ["--quick", "--json"];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    let known = |word: &String, words: &[&str]| words.contains(&word.as_str());
    match args {
        [what, options @ ..]
            if known(what, &WHAT) && options.iter().all(|option| known(option, &OPTIONS)) => {}
        _ => return Err(format!("{USAGE} {HELP}")),
    }
    run_release("switchboard-bench", args)
}
