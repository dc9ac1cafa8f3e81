//! Errors of starting a server.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
};

const INVALID: &str = "its arguments or its environment are invalid";
const GUARD_FAILED: &str = "its guard process did not start or was killed";

/// The reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program itself did not start.
    #[error("cannot run `{program}`: {}", .failure.reason(.cwd, .interpreter.as_deref()))]
    Start {
        /// The program.
        program: String,
        /// Its working directory.
        cwd: PathBuf,
        /// The kind of failure.
        failure: StartFailure,
        /// The interpreter that its first line names, if that was not found.
        interpreter: Option<String>,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The settings cannot be passed to any program.
    #[error("cannot run `{program}`: {INVALID}")]
    Invalid {
        /// The program.
        program: String,
        /// The problem with the settings.
        #[source]
        source: io::Error,
    },
    /// The guard did not start or was killed, so the server was not started or has been ended.
    #[error("cannot run `{program}`: {GUARD_FAILED}")]
    Guard {
        /// The program.
        program: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// The reason why a program did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartFailure {
    /// The command does not exist.
    NotFound,
    /// The file exists, but not the interpreter that it names.
    Interpreter,
    /// The file may not be executed.
    PermissionDenied,
    /// The file is not a program. Many systems run such a file as a shell script.
    NotExecutable,
    /// The working directory is missing, or may not be entered.
    WorkingDirectory,
    /// The system refused for another reason, such as too many processes.
    Other,
}

impl StartFailure {
    const ALL: [Self; 6] = [
        Self::NotFound,
        Self::Interpreter,
        Self::PermissionDenied,
        Self::NotExecutable,
        Self::WorkingDirectory,
        Self::Other,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Interpreter => "interpreter",
            Self::PermissionDenied => "permission-denied",
            Self::NotExecutable => "not-executable",
            Self::WorkingDirectory => "working-directory",
            Self::Other => "other",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.word() == word)
    }

    fn reason(self, cwd: &Path, interpreter: Option<&str>) -> Cow<'static, str> {
        match self {
            Self::NotFound => "command not found".into(),
            Self::Interpreter => match interpreter {
                Some(name) => {
                    format!("the interpreter `{name}` in its first line was not found").into()
                }
                None => "the interpreter in its first line, or its loader, was not found".into(),
            },
            Self::PermissionDenied => "permission denied".into(),
            Self::NotExecutable => "it is not a program for this system".into(),
            Self::WorkingDirectory => format!(
                "the working directory `{}` is missing or cannot be entered",
                cwd.display()
            )
            .into(),
            Self::Other => "the system refused to start it".into(),
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::NotFound => "install it, or check the spelling and PATH",
            Self::Interpreter => "install the interpreter, or correct the first line of the file",
            Self::PermissionDenied => "make the file executable, or check its permissions",
            Self::NotExecutable => "check the file, or install a version for this system",
            Self::WorkingDirectory => "create it, or change `cwd`",
            Self::Other => "free some memory, or raise the limit on processes",
        }
    }
}

impl LaunchError {
    /// The message without the program and without any text from its file.
    pub fn reason(&self) -> Cow<'_, str> {
        match self {
            Self::Start { failure, cwd, .. } => failure.reason(cwd, None),
            Self::Invalid { .. } => INVALID.into(),
            Self::Guard { .. } => GUARD_FAILED.into(),
        }
    }

    /// The interpreter that the program's first line names, if that was not found. The content of the file is
    /// not trusted, so show this only to users, not to agents.
    pub fn interpreter(&self) -> Option<&str> {
        match self {
            Self::Start { interpreter, .. } => interpreter.as_deref(),
            Self::Invalid { .. } | Self::Guard { .. } => None,
        }
    }

    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Start {
                failure: StartFailure::NotFound,
                program,
                ..
            } if let Some(advice) = split_advice(program) => advice.into(),
            Self::Start { failure, .. } => failure.hint().into(),
            Self::Invalid { .. } => "check `args` and `env` of the server".into(),
            Self::Guard { .. } => {
                "if it fails again, run `switchboard doctor` to find the cause".into()
            }
        })
    }

    /// Tests if retrying is useless until a user has changed something.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Start { failure, .. } => *failure != StartFailure::Other,
            Self::Invalid { .. } => true,
            Self::Guard { .. } => false,
        }
    }
}

/// Programs that start others. If a missing program's name begins with one of these and a space, the command
/// line was probably taken for a path because an argument contains a slash.
const LAUNCHERS: [&str; 14] = [
    "bun", "bunx", "deno", "docker", "node", "npm", "npx", "pipx", "pnpm", "podman", "python",
    "python3", "uv", "uvx",
];

/// Advice for a program that was not found, if its name seems to include arguments.
pub fn split_advice(program: &str) -> Option<String> {
    let (path, rest) = program.split_once(' ')?;
    let name = path.rsplit('/').next().unwrap_or(path);
    // Otherwise it may be a path that contains a space.
    (name == path || LAUNCHERS.contains(&name)).then(|| {
        format!(
            "keep `{name}` in `command`, and move `{}` to `args`, with each word as its own string",
            rest.trim()
        )
    })
}

impl From<LaunchError> for io::Error {
    fn from(error: LaunchError) -> Self {
        let kind = match &error {
            LaunchError::Start {
                failure, source, ..
            } => match failure {
                StartFailure::NotFound | StartFailure::Interpreter => io::ErrorKind::NotFound,
                StartFailure::PermissionDenied => io::ErrorKind::PermissionDenied,
                StartFailure::NotExecutable | StartFailure::WorkingDirectory => {
                    io::ErrorKind::InvalidInput
                }
                StartFailure::Other => source.kind(),
            },
            LaunchError::Invalid { .. } => io::ErrorKind::InvalidInput,
            LaunchError::Guard { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_includes_arguments_is_recognised() {
        let hint = |program: &str| {
            let error = LaunchError::Start {
                program: program.to_owned(),
                cwd: PathBuf::new(),
                failure: StartFailure::NotFound,
                interpreter: None,
                source: io::ErrorKind::NotFound.into(),
            };
            error.hint().unwrap().into_owned()
        };
        for program in ["npx", "/opt/My Tools/server"] {
            assert_eq!(hint(program), "install it, or check the spelling and PATH");
        }
        // It was resolved as a path, because its argument contains a slash.
        assert!(hint("/opt/ada/npx -y @scope/server").starts_with("keep `npx` in `command`"));
        assert_eq!(
            hint("npx -y foo"),
            "keep `npx` in `command`, and move `-y foo` to `args`, with each word as its own \
             string"
        );
    }
}
