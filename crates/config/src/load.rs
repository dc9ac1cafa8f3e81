//! Loads a configuration file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard_files::{Access, access, links, open_any, read_within};

use crate::diagnostic::{Diagnostic, Problems};
use crate::json::{self, TEXT_MAX};
use crate::keys::ROOT;
use crate::model::Config;
use crate::read::{self, Malformed};
use crate::shape::{Shape, check};

/// The longest wait for a configuration that is a pipe.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file exists but cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// Another user could have written the file.
    #[error("{} is not trusted: {why}", path.display())]
    Unsafe {
        /// The file, or the directory that contains it.
        path: PathBuf,
        /// The problem with its owner or mode.
        why: String,
        /// The command that fixes it.
        fix: String,
    },
    /// The file is invalid. The message has one line per problem.
    #[error("{}", messages(problems))]
    Invalid {
        /// All problems, in the order of the file.
        problems: Vec<Diagnostic>,
    },
}

impl ConfigError {
    /// A hint for the user, separate from the message. If there are several problems, their lines have
    /// the hints.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Read { .. } => "check that it is a file and that you can read it".into(),
            Self::Unsafe { fix, .. } => fix.into(),
            Self::Invalid { problems } => return only_hint(problems),
        })
    }
}

/// Parses a configuration and reports all problems, in the order of the text. Problems name the file as
/// `name`. An empty text is an empty configuration. A malformed reference in the entry of a server concerns
/// that server alone: if there is no other problem, it becomes [`Server::malformed`](crate::Server::malformed).
pub fn parse(text: &str, name: &str) -> Result<Config, Vec<Diagnostic>> {
    let mut read = Read::from(text);
    if !read.problems.is_empty() {
        return Err(read.all_problems().report(name, text));
    }
    for (server, malformed) in read.malformed {
        if let Some(server) = read.config.servers.get_mut(&server) {
            server.malformed = malformed.first(name, text);
        }
    }
    Ok(read.config)
}

/// All problems of a text, including the malformed references of its servers.
pub(crate) fn problems(text: &str, name: &str) -> Vec<Diagnostic> {
    Read::from(text).all_problems().report(name, text)
}

/// A configuration as far as it could be read.
struct Read {
    config: Config,
    problems: Problems,
    malformed: Malformed,
}

impl Read {
    fn from(text: &str) -> Self {
        let mut problems = Problems::default();
        let mut malformed = Malformed::default();
        let config = match json::read(text, &mut problems) {
            Ok(Some(root)) if root.members().is_some() => {
                check(&root, &Shape::Object(&ROOT), "", &mut problems);
                read::config(&root, &mut problems, &mut malformed)
            }
            Ok(Some(other)) => {
                let message = format!("the configuration must be an object, not {}", other.kind());
                problems.add_with_hint(other.start, message, "put everything in { }");
                Config::default()
            }
            Ok(None) | Err(json::Broken) => Config::default(),
        };
        Self {
            config,
            problems,
            malformed,
        }
    }

    fn all_problems(self) -> Problems {
        let mut problems = self.problems;
        let malformed = self.malformed.into_iter();
        malformed.for_each(|(_, malformed)| problems.append(malformed));
        problems
    }
}

impl Config {
    /// Loads a configuration file. A missing file is an empty configuration. Since it names programs to
    /// run, a file that another user could have written is rejected.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let Some(bytes) = read_trusted(path)? else {
            return Ok(Self::default());
        };
        let name = path.display().to_string();
        let parsed = match str::from_utf8(&bytes) {
            Ok(text) => parse(text, &name),
            Err(error) => Err(not_text(&bytes, error.valid_up_to(), &name)),
        };
        parsed.map_err(|problems| ConfigError::Invalid { problems })
    }
}

/// Reads a configuration file, or enough of it to see that it is too large. Returns `None` if it does
/// not exist. Rejects a file that another user could have written, and waits for a pipe for up to 5 s.
pub fn read_trusted(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    let Some(file) = open_trusted(path, open_any)? else {
        return Ok(None);
    };
    let bytes = read_within(&file, TEXT_MAX + 1, PATIENCE);
    bytes.map(Some).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Opens a configuration file with `open`. Returns `None` if it does not exist. Rejects a file that a
/// user other than this one and root owns or may write to, and one behind such a link or in such a
/// directory.
pub fn open_trusted(
    path: &Path,
    open: impl FnOnce(&Path) -> io::Result<File>,
) -> Result<Option<File>, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    for place in links(path).map_err(failed)? {
        // If it is missing or not accessible, opening it below reports that.
        if let Ok(link) = fs::symlink_metadata(&place)
            && link.is_symlink()
        {
            check_owner(&place, Access::from(&link))?;
        }
        if let Some(folder) = place.parent()
            && let Ok(found) = access(folder)
        {
            check_owner(folder, found)?;
            check_mode(folder, found)?;
        }
    }
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // Check the open file, since another may have taken its name.
    let found = Access::of(&file).map_err(failed)?;
    check_owner(path, found)?;
    check_mode(path, found)?;
    Ok(Some(file))
}

fn check_owner(place: &Path, found: Access) -> Result<(), ConfigError> {
    if !found.is_foreign() {
        return Ok(());
    }
    Err(ConfigError::Unsafe {
        path: place.to_owned(),
        why: format!("it belongs to another user (uid {})", found.owner),
        fix: format!("run `chown -h \"$(id -u)\" '{}'`", place.display()),
    })
}

fn check_mode(place: &Path, found: Access) -> Result<(), ConfigError> {
    if !found.is_world_writable() || found.is_sticky() {
        return Ok(());
    }
    Err(ConfigError::Unsafe {
        path: place.to_owned(),
        why: format!("every user can change it (mode {:o})", found.mode),
        fix: format!("run `chmod go-w '{}'`", place.display()),
    })
}

fn not_text(bytes: &[u8], valid: usize, name: &str) -> Vec<Diagnostic> {
    let text = String::from_utf8_lossy(&bytes[..valid]);
    let mut problems = Problems::default();
    problems.add_with_hint(
        valid,
        format!("the byte {:02X} is not valid UTF-8", bytes[valid]),
        "save the file as UTF-8",
    );
    problems.report(name, &text)
}

/// Formats a single problem without its hint, or several with theirs.
fn messages(problems: &[Diagnostic]) -> String {
    match problems {
        [problem] => problem.alone(),
        _ => lines(problems),
    }
}

/// The hint of a problem that is the only one.
pub(crate) fn only_hint(problems: &[Diagnostic]) -> Option<Cow<'_, str>> {
    match problems {
        [problem] => problem.hint.as_deref().map(Cow::Borrowed),
        _ => None,
    }
}

pub(crate) fn lines(problems: &[Diagnostic]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
