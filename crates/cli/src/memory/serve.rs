//! `switchboard memory serve`: only the memory, over standard input and output.

use clap::Args;
use switchboard_config::{Config, Home, Memory};
use switchboard_host::{
    log,
    stdio::{self, StdioArgs},
};
use switchboard_terminal::error::Error;
use tracing::level_filters::LevelFilter;

use super::session::{check_config, check_running};

/// Serve only the memory, over standard input and output.
///
/// The same as `switchboard stdio --view server:memory`: connects to the gateway that is running for
/// this home directory, or starts one. Several can run at once, and all share one memory.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Log level on standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log::level)]
    log_level: LevelFilter,
}

pub(super) fn run(home: Home, args: &Serve) -> Result<(), Error> {
    if check_running(&home)?.is_none() {
        check_config(&home, &Config::load(home.config_file())?)?;
    }
    let args = StdioArgs::of_server(Memory::NAME, args.log_level);
    stdio::run(home, &args)
}
