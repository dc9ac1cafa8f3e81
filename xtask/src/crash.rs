//! `cargo xtask crash memory`: kills the program again and again while it stores memories.

use std::{env, process::Command};

use crate::{USAGE, is_help, root};

const HELP: &str = "\
cargo xtask crash memory [--kills N] [--seed N]

Kill the program with SIGKILL at random moments while it stores, changes, deletes, imports and consolidates
memories and computes their vectors, and restart it. Every acknowledged change has to be there, deleted memories
have to be gone, the index has to match the store, and no process or file may be left behind. The test suite of
the workspace does the same with fewer kills.

  --kills N   Number of kills (default: 200)
  --seed N    Seed of the moments and of the work, to repeat an earlier run, which prints its seed

Example: cargo xtask crash memory --kills 20 --seed 7";

/// Environment variables that configure the test.
const KILLS: &str = "SWITCHBOARD_CRASH_KILLS";
const SEED: &str = "SWITCHBOARD_CRASH_SEED";
const TEST: &str = "memory_crash::";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    let wrong = || format!("{USAGE} {HELP}");
    let mut words = args.iter().map(String::as_str);
    if words.next() != Some("memory") {
        return Err(wrong());
    }
    let (mut kills, mut seed) = (200, None);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        let value: u64 = value.ok_or_else(wrong)?;
        match word {
            "--kills" => kills = value,
            "--seed" => seed = Some(value),
            _ => return Err(wrong()),
        }
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "test",
            "--quiet",
            "--package",
            "switchboard",
            "--test",
            "e2e",
        ])
        .args(["--", "--nocapture", TEST])
        .env(KILLS, kills.to_string())
        .current_dir(root());
    if let Some(seed) = seed {
        command.env(SEED, seed.to_string());
    }
    let status = command
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the test failed with {status}"))
    }
}
