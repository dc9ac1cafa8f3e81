//! The `switchboard` program: command line, wiring, exit codes.

mod cli;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // A guard, or a process that renews tokens, is this same program run again. It must start its work before anything else
    // happens.
    let first = env::args_os().nth(1);
    match first.as_deref().and_then(|first| first.to_str()) {
        Some(switchboard_contain::GUARD_ARGUMENT) => {
            switchboard_contain::guard_main(env::args_os())
        }
        Some(switchboard_host::RENEWAL_ARGUMENT) => switchboard_host::renewal_main(),
        _ => cli::main(),
    }
}
