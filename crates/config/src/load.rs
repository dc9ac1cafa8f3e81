//! From a file to a configuration.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use switchboard_files::{access, follow};

use crate::json::{self, TEXT_MAX};
use crate::keys::ROOT;
use crate::model::Config;
use crate::problem::{Problem, Problems};
use crate::read;
use crate::shape::{Shape, check};

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
    /// Another user could have written the file.
    #[error("{} is not trusted: {why}; {fix}", path.display())]
    Unsafe {
        /// The file, or the folder that holds it.
        path: PathBuf,
        /// Its owner or mode.
        why: String,
        /// The command that puts it right.
        fix: String,
    },
    /// The file is wrong; every problem on a line of its own.
    #[error("{}", lines(problems))]
    Invalid {
        /// All that was found, in the order of the file.
        problems: Vec<Problem>,
    },
}

/// Reads a configuration and reports everything that is wrong with it, in the order of the text.
/// Problems name the file as `name`. A text without anything in it is an empty configuration.
pub fn parse(text: &str, name: &str) -> Result<Config, Vec<Problem>> {
    let mut problems = Problems::default();
    let config = match json::read(text, &mut problems) {
        Ok(Some(root)) if root.members().is_some() => {
            check(&root, &Shape::Object(&ROOT), "", &mut problems);
            read::config(&root, &mut problems)
        }
        Ok(Some(other)) => {
            let message = format!("the configuration must be an object, not {}", other.kind());
            problems.add_with_hint(other.start, message, "put everything in { }");
            Config::default()
        }
        Ok(None) | Err(json::Broken) => Config::default(),
    };
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(problems.report(name, text))
    }
}

impl Config {
    /// Reads a configuration file. A missing file is an empty configuration. Since it names programs
    /// to run, a file that another user could have written is refused.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        check_owner(path)?;
        let name = path.display().to_string();
        let parsed = match read_file(path) {
            Ok(bytes) => match str::from_utf8(&bytes) {
                Ok(text) => parse(text, &name),
                Err(error) => Err(not_text(&bytes, error.valid_up_to(), &name)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                return Err(ConfigError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        parsed.map_err(|problems| ConfigError::Invalid { problems })
    }
}

/// Refuses a file that a user other than this one and root owns or may change, or that stands in such
/// a folder.
fn check_owner(path: &Path) -> Result<(), ConfigError> {
    let target = follow(path).unwrap_or_else(|_| path.to_owned());
    for place in [Some(target.as_path()), target.parent()]
        .into_iter()
        .flatten()
    {
        // What is missing, or may not be looked at, is told when it is read.
        let Ok(found) = access(place) else { continue };
        let refused = |why, fix| ConfigError::Unsafe {
            path: place.to_owned(),
            why,
            fix,
        };
        let shown = place.display();
        if found.is_foreign() {
            let why = format!("it belongs to another user (uid {})", found.owner);
            return Err(refused(why, format!("run: chown \"$(id -u)\" '{shown}'")));
        }
        if found.is_world_writable() && !found.is_sticky() {
            let why = format!("every user may change it (mode {:o})", found.mode);
            return Err(refused(why, format!("run: chmod go-w '{shown}'")));
        }
    }
    Ok(())
}

/// Reads a configuration file, or enough of it to see that it is too large.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(TEXT_MAX as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn not_text(bytes: &[u8], valid: usize, name: &str) -> Vec<Problem> {
    let text = String::from_utf8_lossy(&bytes[..valid]);
    let mut problems = Problems::default();
    problems.add_with_hint(
        valid,
        format!("the byte {:02X} is not UTF-8 text", bytes[valid]),
        "save the file as UTF-8",
    );
    problems.report(name, &text)
}

pub(crate) fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
