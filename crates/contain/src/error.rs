//! Why a server could not be started.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
};

const INVALID: &str = "its arguments or its environment are not valid";
const GUARD_FAILED: &str = "the guard that looks after it failed";

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program itself did not start.
    #[error("cannot start `{program}`: {}", .failure.reason(.cwd, .interpreter.as_deref()))]
    Start {
        /// The program.
        program: String,
        /// Its working directory.
        cwd: PathBuf,
        /// What was wrong.
        failure: StartFailure,
        /// The interpreter that its first line names, if that was not found.
        interpreter: Option<String>,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What was asked for can be given to no program.
    #[error("cannot start `{program}`: {INVALID}")]
    Invalid {
        /// The program.
        program: String,
        /// What is wrong with it.
        #[source]
        source: io::Error,
    },
    /// The process that was to look after it did not start, or was killed, so that it was not started or has been ended.
    #[error("cannot start `{program}`: {GUARD_FAILED}")]
    Guard {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What was wrong with a program that did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartFailure {
    /// There is no such command.
    NotFound,
    /// The file is there, but not the interpreter that it names.
    Interpreter,
    /// It may not be executed.
    PermissionDenied,
    /// It is not a program. Many systems take such a file for a shell script, and start it.
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
                    format!("the interpreter `{name}` that its first line names was not found")
                        .into()
                }
                None => {
                    "the interpreter named in its first line, or its loader, was not found".into()
                }
            },
            Self::PermissionDenied => "permission denied".into(),
            Self::NotExecutable => "not a program for this system".into(),
            Self::WorkingDirectory => format!(
                "the working directory `{}` is missing or cannot be entered",
                cwd.display()
            )
            .into(),
            Self::Other => "the system refused".into(),
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::NotFound => "check the spelling and PATH",
            Self::Interpreter => "install it",
            Self::PermissionDenied => "make the file executable, or check who may run it",
            Self::NotExecutable => "check that the file is what it should be",
            Self::WorkingDirectory => "create it or change the setting",
            Self::Other => "try again when it has room",
        }
    }
}

impl LaunchError {
    /// The message without the program, and without anything that its file says.
    pub fn reason(&self) -> Cow<'_, str> {
        match self {
            Self::Start { failure, cwd, .. } => failure.reason(cwd, None),
            Self::Invalid { .. } => INVALID.into(),
            Self::Guard { .. } => GUARD_FAILED.into(),
        }
    }

    /// The interpreter that the first line of the program names, if that was not found. The file may be anyone's, so this
    /// is for people only.
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
            Self::Invalid { .. } => "check the server's settings".into(),
            Self::Guard { .. } => "try again".into(),
        })
    }

    /// Whether trying again is of no use until a person has changed something.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Start { failure, .. } => *failure != StartFailure::Other,
            Self::Invalid { .. } => true,
            Self::Guard { .. } => false,
        }
    }
}

/// Programs that start others. A name of which one is the beginning may have been taken for a path, for the sake of a
/// slash in an argument.
const LAUNCHERS: [&str; 14] = [
    "bun", "bunx", "deno", "docker", "node", "npm", "npx", "pipx", "pnpm", "podman", "python",
    "python3", "uv", "uvx",
];

/// Advice for a program that was not found, if its arguments seem to stand in its name.
pub fn split_advice(program: &str) -> Option<String> {
    let (path, rest) = program.split_once(' ')?;
    let name = path.rsplit('/').next().unwrap_or(path);
    // Else it may be a path with a space in it.
    (name == path || LAUNCHERS.contains(&name)).then(|| {
        format!(
            "keep `{name}` in `command`, and move `{}` to `args`, each word on its own",
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
    fn command_with_its_arguments_is_told_apart() {
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
            assert_eq!(hint(program), "check the spelling and PATH");
        }
        // A path was made of it, for the slash in its argument.
        assert!(hint("/opt/ada/npx -y @scope/server").starts_with("keep `npx` in `command`"));
        assert_eq!(
            hint("npx -y foo"),
            "keep `npx` in `command`, and move `-y foo` to `args`, each word on its own"
        );
    }
}
