//! `cargo xtask bench`: measures the cost of the wire format, a connection and the gateway.

use std::{env, path::PathBuf, process::Command};

use crate::{USAGE, is_help, root, run_release};

const HELP: &str = "\
cargo xtask bench wire|connection|gateway|revisions|flat|disk|start|idle|memory|search|tokens [--quick] [--json FILE]

Builds bench/ for release, and the gateway if it is measured, and runs it. Ratios come first, because they
hold on any machine.

  wire         read, route and forward a message with another id, against the typed model of rmcp and
               against serde_json's Value
  connection   calls per second to a child process over its pipes, against the bare pipes to the same
               child, and the memory of an idle connection
  gateway      calls through `switchboard serve` to an echo server, against the same server without a
               gateway, a relay that does nothing else, and mcp-proxy 0.6.0, which is installed into
               .tools/bench if it is not there
  revisions    calls through `switchboard serve` with client and server of the revisions that open a session
               (legacy) and of 2026-07-28 (modern), each with each
  flat         what a call costs with 1 and with 100 servers, with 10 and with 10,000 tools
  disk         what the gateway writes while calls go through it, by thread; needs strace
  start        from the start of `switchboard stdio` to its first tool list, against `cat`, with 50 servers
               that need 5 s each: known from before, unknown, and joining a running gateway
  idle         processes, memory, CPU time and wake-ups of a gateway that nobody calls
  memory       storing and recalling with 1,000, 10,000, 100,000 and 300,000 memories, starting with a store that
               is full, locked or damaged, and the same against the reference server, if scripts/tools.sh has
               installed it; the figures go into target/bench-memory.json as well
  search       finding tools among 1,000, 10,000 and 100,000: time, memory, and time to index them
  tokens       what an agent carries around with 5 to 10,000 tools: the list of all, against the menu and
               searches; and with how many tools both cost the same

  --quick      fewer and shorter rounds, to see that it works
  --json FILE  the figures as JSON, into this file as well
  --only SUBJECTS   of `gateway`: only some of direct, relay, switchboard, mcp-proxy; with commas
  --sizes N,N  of `memory`: other numbers of memories
  --model DIR  of `memory`: the folder of a sentence model; the one in .tools unless given, and \"built-in\" for
               the one that is built in
  --tools FILE of `tokens`: measure with these definitions as well, [{\"server\", \"tool\"}]

A full run takes one to three minutes, of `memory` twenty. Leave the machine alone meanwhile.";

/// Benchmarks, each with `true` if it needs the gateway.
const WHAT: [(&str, bool); 9] = [
    ("wire", false),
    ("connection", false),
    ("gateway", true),
    ("revisions", true),
    ("flat", true),
    ("disk", true),
    ("start", true),
    ("idle", true),
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

/// The other gateway that ours is compared with.
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
            println!("{PEER} cannot be installed, and is left out: {error}");
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
        Err(format!("cargo {} ended with {status}", args.join(" ")))
    }
}
