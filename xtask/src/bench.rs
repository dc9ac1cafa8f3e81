//! `cargo xtask bench`: measures the cost of the wire format, a connection and the gateway.

use std::{env, path::PathBuf, process::Command};

use crate::{USAGE, is_help, root, run_release};

const HELP: &str = "\
cargo xtask bench wire|connection|gateway|revisions|flat|disk|start|idle|instances|memory|search|tokens [--quick] [--json FILE]

Run one benchmark. Builds bench/, and the gateway if the benchmark needs it, in release mode. Ratios come first,
because they hold on any machine.

  wire         Read, route and forward a message under another ID, compared with the typed model of rmcp and with
               serde_json's Value
  connection   Calls per second to a child process over its pipes, compared with the bare pipes to the same child;
               memory of an idle connection
  gateway      Calls through `switchboard serve` to an echo server, compared with the same server without a gateway,
               with a minimal relay, and with mcp-proxy 0.6.0, which is installed into .tools/bench if it is missing
  revisions    Calls through `switchboard serve` for each pair of a client and a server: of the revisions that open
               a session (legacy), and of 2026-07-28 (modern)
  flat         Cost of a call with 1 and with 100 servers, with 10 and with 10,000 tools; and, with 1,000 tools, for the
               owner and for a client with a token that is held to servers and to one of 10 profiles, with 100 overrides
  disk         Disk writes of the gateway during calls, by thread; requires strace
  start        Time from the start of `switchboard stdio` to its first tool list, compared with `cat`, with 50 servers
               that need 5 s each: with known servers, with unknown ones, and with a running gateway
  idle         Processes, memory, CPU time and wake-ups of an idle gateway
  instances    Time of a call that starts the server: with one process for all clients, and with one for each
  memory       Storing and recalling with 1,000, 10,000, 100,000 and 300,000 memories; starting with a full, a locked
               or a damaged store; and a comparison with the reference server, if scripts/tools.sh has installed it.
               Also writes the figures to target/bench-memory.json
  search       Searching 1,000, 10,000 and 100,000 tools: time, memory, and time to index
  tokens       Context that an agent needs with 5 to 10,000 tools: the list of all tools, compared with the menu and
               searches; and the number of tools at which both cost the same

  --quick          Fewer and shorter rounds, as a smoke test
  --json FILE      Also write the figures as JSON to this file
  --only SUBJECTS  For `gateway`: a comma-separated subset of direct, relay, switchboard, mcp-proxy
  --sizes N,N      For `memory`: other numbers of memories
  --model DIR      For `memory`: directory of a sentence model, or \"built-in\" for the built-in one (default: the
                   model in .tools)
  --tools FILE     For `tokens`: a file of further definitions to measure, [{\"server\", \"tool\"}]

A full run takes 1 to 3 min, one of `memory` 20 min. Do not use the machine for other work meanwhile.

Example: cargo xtask bench gateway --quick --only direct,switchboard";

/// Benchmarks, each with `true` if it needs the gateway.
const WHAT: [(&str, bool); 10] = [
    ("wire", false),
    ("connection", false),
    ("gateway", true),
    ("revisions", true),
    ("flat", true),
    ("disk", true),
    ("start", true),
    ("idle", true),
    ("instances", true),
    ("memory", true),
];

/// Options, each with `true` if a value follows.
const OPTIONS: [(&str, bool); 5] = [
    ("--quick", false),
    ("--json", true),
    ("--only", true),
    ("--sizes", true),
    ("--model", true),
];

/// The other gateway, for comparison.
const PEER: &str = "mcp-proxy";
const PEER_VERSION: &str = "0.6.0";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    match args.split_first().map(|(what, rest)| (what.as_str(), rest)) {
        Some(("search", rest)) => {
            let args: Vec<String> = std::iter::once("speed".to_owned())
                .chain(rest.iter().cloned())
                .collect();
            return run_release("switchboard-eval", &args);
        }
        Some(("tokens", _)) => {
            cargo(&["build", "--quiet", "--release", "--package", "switchboard"])?;
            return run_release("switchboard-eval", args);
        }
        _ => {}
    }
    let wrong = || format!("{USAGE} {HELP}");
    let (what, options) = args.split_first().ok_or_else(wrong)?;
    let (_, needs_gateway) = WHAT
        .iter()
        .find(|(name, _)| name == what)
        .ok_or_else(wrong)?;
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let (_, has_value) = OPTIONS
            .iter()
            .find(|(name, _)| name == word)
            .ok_or_else(wrong)?;
        if *has_value {
            words.next().ok_or_else(wrong)?;
        }
    }
    let mut args = args.to_vec();
    if *needs_gateway {
        cargo(&["build", "--quiet", "--release", "--package", "switchboard"])?;
    }
    if what == "gateway" {
        args.push("--peer".to_owned());
        args.push(install_peer().display().to_string());
    }
    if what == "memory" {
        complete_memory(&mut args);
    }
    run_release("switchboard-bench", &args)
}

/// Adds the default arguments of the memory benchmark.
fn complete_memory(args: &mut Vec<String>) {
    let tools = root().join(".tools");
    args.push("--peer".to_owned());
    args.push(tools.display().to_string());
    let place = |name: &str| args.iter().position(|arg| arg == name);
    let model = tools.join("model");
    match place("--model") {
        Some(at) if args.get(at + 1).is_some_and(|model| model == "built-in") => {
            args.drain(at..at + 2);
        }
        None if model.join("model.safetensors").exists() => {
            args.push("--model".to_owned());
            args.push(model.display().to_string());
        }
        Some(_) | None => {}
    }
    if !args.iter().any(|arg| arg == "--json") {
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        args.push("--json".to_owned());
        args.push(target.join("bench-memory.json").display().to_string());
    }
}

/// The path of the other gateway. If it cannot be installed, the benchmark runs without it.
fn install_peer() -> PathBuf {
    let tools = root().join(".tools").join("bench");
    let program = tools.join("bin").join(PEER);
    if !program.exists() {
        println!("installing {PEER} {PEER_VERSION} into .tools/bench");
        let package = format!("{PEER}@{PEER_VERSION}");
        let tools = tools.display().to_string();
        if let Err(error) = cargo(&["install", &package, "--locked", "--root", &tools]) {
            println!("skipping {PEER}: cannot install it: {error}");
        }
    }
    program
}

fn cargo(args: &[&str]) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(args)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("cargo {} failed with {status}", args.join(" ")))
    }
}
