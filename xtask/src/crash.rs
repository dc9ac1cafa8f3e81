//! `cargo xtask crash`: kills the program again and again while it works.

use std::{env, process::Command};

use crate::{USAGE, is_help, root};

const HELP: &str = "\
cargo xtask crash memory|sign-in [--kills N] [--expiries N] [--seed N]

Kill the program with SIGKILL at random moments, and restart it. The test suite of the workspace does the same with
fewer kills.

  memory   While it stores, changes, deletes, imports and consolidates memories and computes their vectors. Every
           acknowledged change has to be there, deleted memories have to be gone, the index has to match the store, and
           no process or file may be left behind.
  sign-in  While 50 clients call a server whose tokens expire after a second. The sign-in must not be lost, no refresh
           token may be used twice, and only calls of a killed gateway may fail. Then tokens expire while 50 clients
           call at once; each is renewed once. Needs the tools of ./test.

  --kills N     Number of kills (default: 200 for memory, 100 for sign-in)
  --expiries N  Number of tokens that expire afterwards, for sign-in (default: 1000)
  --seed N      Seed of the moments and of the work, to repeat an earlier run, which prints its seed

Example: cargo xtask crash memory --kills 20 --seed 7";

/// Environment variables that configure the tests.
const KILLS: &str = "SWITCHBOARD_CRASH_KILLS";
const EXPIRIES: &str = "SWITCHBOARD_CRASH_EXPIRIES";
const SEED: &str = "SWITCHBOARD_CRASH_SEED";

/// A part of the program.
struct Part {
    /// The test binary, and the beginnings of the names of its tests.
    binary: &'static str,
    tests: &'static [&'static str],
    kills: u64,
    /// The default number of expiries, if tokens expire.
    expiries: Option<u64>,
}

const MEMORY: Part = Part {
    binary: "e2e",
    tests: &["memory_crash::"],
    kills: 200,
    expiries: None,
};

const SIGN_IN: Part = Part {
    binary: "peers",
    tests: &[
        "renewals::sign_in_survives_kills",
        "renewals::expired_tokens",
    ],
    kills: 100,
    expiries: Some(1_000),
};

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    let wrong = || format!("{USAGE} {HELP}");
    let mut words = args.iter().map(String::as_str);
    let part = match words.next() {
        Some("memory") => MEMORY,
        Some("sign-in") => SIGN_IN,
        _ => return Err(wrong()),
    };
    let (mut kills, mut expiries, mut seed) = (part.kills, part.expiries, None);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse().ok());
        let value: u64 = value.ok_or_else(wrong)?;
        match word {
            "--kills" => kills = value,
            "--expiries" if expiries.is_some() => expiries = Some(value),
            "--seed" => seed = Some(value),
            _ => return Err(wrong()),
        }
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--quiet", "--package", "switchboard"])
        .args(["--test", part.binary, "--"])
        .args(["--nocapture", "--test-threads=1"])
        .args(part.tests)
        .env(KILLS, kills.to_string())
        .current_dir(root());
    if let Some(expiries) = expiries {
        command.env(EXPIRIES, expiries.to_string());
    }
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
