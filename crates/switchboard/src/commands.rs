//! The commands that are not the gateway itself: they ask the running one, or work on its files.

pub(crate) mod activity;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod call;
pub(crate) mod clients;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod describe;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod search;
pub(crate) mod secret;
pub(crate) mod servers;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tools;
pub(crate) mod trust;

mod agree;
mod backups;
mod config_file;
mod difference;
mod launching;
mod learning;
mod programs;
mod progress;
mod shapes;
mod times;
pub(crate) mod visible;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{failure::Failure, print};

/// Print a script that completes commands, for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// For which shell
    shell: Shell,
}

pub(crate) fn completions<C: CommandFactory>(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "switchboard", &mut script);
    print::data(&String::from_utf8_lossy(&script))
}

/// Prints the JSON Schema of switchboard.json.
pub(crate) fn schema() -> Result<(), Failure> {
    print::json(&switchboard_config::schema())
}
