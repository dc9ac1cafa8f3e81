//! The command line.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use switchboard_config::Home;

use crate::{serve, stdio};

/// One program through which AI agents use all their MCP servers.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

/// Where the gateway lives. Goes with every command.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The gateway's folder: configuration, logs, data
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,
    /// The configuration file, if it is not switchboard.json in the folder
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    pub(crate) fn locate(&self) -> anyhow::Result<Home> {
        Ok(Home::locate(self.home.as_deref(), self.config.as_deref())?)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway
    Serve(serve::Serve),
    /// MCP on standard input and output, for a client: joins the running gateway, or is the gateway
    Stdio(stdio::StdioArgs),
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = cli.place.locate().and_then(|home| match cli.command {
        Command::Serve(args) => serve::run(home, &args),
        Command::Stdio(args) => stdio::run(home, &args),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr)] // This is where a person reads it.
fn complain(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
