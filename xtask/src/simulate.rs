//! `cargo xtask simulate`: plays random schedules against the connection machine.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask simulate [ARGUMENTS]

Run random schedules against the state machine of a connection: busy transports, lost connections, late,
duplicate and malformed responses, callers that cancel, stops at any moment. A schedule that violates an
invariant is shrunk and printed.

Without ARGUMENTS, 1,000,000 schedules run. Otherwise the arguments are passed to the simulation, such as
`--schedules N`, `--seed N` and `--replay FILE`.

Example: cargo xtask simulate --schedules 1000 --seed 7";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [arg] if is_help(arg) => {
            println!("{USAGE} {HELP}");
            Ok(())
        }
        [] => run_release(
            "switchboard-simulation",
            &["--schedules".to_owned(), "1000000".to_owned()],
        ),
        args => run_release("switchboard-simulation", args),
    }
}
