//! `cargo xtask simulate`: plays random schedules against the connection machine.

use crate::{USAGE, is_help, run_release};

const HELP: &str = "\
cargo xtask simulate [ARGUMENTS]

Plays random schedules against the state machine of a connection: busy transports, losses, late,
doubled and garbled answers, callers that leave, stops at any moment. A schedule that breaks an
invariant is shrunk and printed.

Without ARGUMENTS a million schedules are played. Otherwise they are handed on; among them are
`--schedules N`, `--seed N` and `--replay FILE`.";

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
