//! The `switchboard` program: command line, wiring, exit codes.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A guard is this same program run again. It must start its work before anything else happens.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|arg| arg == switchboard_contain::GUARD_ARGUMENT)
    {
        return switchboard_contain::guard_main(std::env::args_os());
    }
    cli::main()
}
