//! The home and the configuration that a command uses.

use std::{
    env,
    path::{Path, PathBuf},
};

use clap::Args;
use switchboard_config::Home;
use switchboard_rest::status::Config;
use switchboard_terminal::{error::Error, print};

use crate::link::Link;

/// The location of the gateway's files. Part of every command.
#[derive(Debug, Args)]
pub struct Place {
    /// Home directory of the gateway (configuration, logs and data)
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    home: Option<PathBuf>,
    /// Configuration file, if it is not switchboard.json in that directory
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    pub config: Option<PathBuf>,
}

impl Place {
    /// Fails if the configuration file that the user named does not exist. Without a name, the file may be
    /// missing.
    pub fn check(&self) -> Result<(), Error> {
        match &self.config {
            Some(file) if !file.exists() => Err(Error::new(format!(
                "the configuration {} does not exist",
                file.display()
            ))
            .hint("check the spelling; `switchboard add` with the same --config creates it")),
            _ => Ok(()),
        }
    }

    /// The home that these options select.
    pub fn locate(&self) -> Result<Home, Error> {
        Ok(Home::locate(self.home.as_deref(), self.config.as_deref())?)
    }

    /// The options that select the same place for a program with another working directory and environment.
    pub fn to_args(&self, home: &Home) -> Vec<String> {
        let mut args = Vec::new();
        let from_variable = env::var_os("SWITCHBOARD_HOME").filter(|home| !home.is_empty());
        if self.home.is_some() || from_variable.is_some() {
            let folder = home.logs();
            let folder = folder.parent().unwrap_or(&folder);
            args.extend(["--home".to_owned(), folder.display().to_string()]);
        }
        if self.config.is_some() {
            args.extend([
                "--config".to_owned(),
                home.config_file().display().to_string(),
            ]);
        }
        args
    }
}

/// Rejects a configuration file that the running gateway does not read: the command would neither show nor
/// change what the gateway uses.
pub fn check_running(home: &Home) -> Result<(), Error> {
    let Some(link) = Link::find_staying(home)? else {
        return Ok(());
    };
    let config: Config = link.get("/api/v1/config")?;
    let file = PathBuf::from(config.file);
    let same = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if same(&file) == same(home.config_file()) {
        return Ok(());
    }
    let message = format!(
        "the running gateway uses {}, not {}",
        file.display(),
        home.config_file().display()
    );
    let file = file.display().to_string();
    Err(Error::new(message).hint(format!("use --config {}", print::shell_word(&file))))
}
