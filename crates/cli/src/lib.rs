//! The commands other than the gateway itself: they query the running gateway, or work on its files.

pub mod activity;
pub mod approvals;
pub mod audit;
pub mod call;
pub mod clients;
pub mod connect;
pub mod console;
pub mod describe;
pub mod doctor;
pub mod import;
pub mod list;
pub mod logs;
#[cfg(feature = "memory")]
pub mod memory;
pub mod search;
pub mod secret;
pub mod servers;
pub mod status;
pub mod stop;
pub mod tools;
pub mod trust;

mod agree;
mod backups;
mod config_file;
mod difference;
mod launching;
mod learning;
pub mod link;
pub mod place;
mod programs;
mod progress;
mod times;
mod words;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use switchboard_terminal::{error::Error, print};

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to complete for
    shell: Shell,
}

/// Prints the completions of a shell.
pub fn completions<C: CommandFactory>(args: &Completions) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "switchboard", &mut script);
    print::data(&String::from_utf8_lossy(&script))
}

/// Prints the JSON Schema of switchboard.json.
pub fn schema() -> Result<(), Error> {
    print::json(&switchboard_config::schema())
}
