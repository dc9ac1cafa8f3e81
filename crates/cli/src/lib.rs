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
pub mod login;
pub mod logs;
#[cfg(feature = "memory")]
pub mod memory;
pub mod search;
pub mod secret;
pub mod servers;
pub mod status;
pub mod stop;
pub mod token;
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
mod projects;
mod times;
mod words;

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use switchboard_terminal::{error::Error, print};

/// Print a shell completion script
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

/// Write the manual pages to a directory.
///
/// One page for the program and one for each command, such as switchboard-add.1. `man` finds them in
/// ~/.local/share/man/man1.
#[derive(Debug, Args)]
pub struct Man {
    /// Directory for the pages; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the manual pages of a command line.
pub fn man(command: clap::Command, args: &Man) -> Result<(), Error> {
    let directory = args.directory.display();
    let written = std::fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(command, &args.directory));
    written.map_err(|error| {
        Error::new(format!(
            "cannot write the manual pages to {directory}: {error}"
        ))
        .hint("choose a directory that you can write to")
    })?;
    print::say(&format!("wrote the manual pages to {directory}"));
    Ok(())
}

/// Prints the JSON Schema of switchboard.json.
pub fn schema() -> Result<(), Error> {
    print::json(&switchboard_config::schema())
}
