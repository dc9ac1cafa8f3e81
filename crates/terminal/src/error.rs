//! Errors of commands: a message, a hint and the exit code.

use std::{borrow::Cow, error, fmt, io, process::ExitCode};

use switchboard_wire::with_hint;

/// The reason why a command failed.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The requested operation failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The gateway does not respond.
    Unreachable,
    /// The user declined.
    Declined,
    /// The output already says that the command failed.
    AlreadyReported,
    /// The reader of standard output left, as `head` does. This is not a failure.
    ReaderLeft,
}

impl Error {
    /// Creates an error for an operation that failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(Kind::Failed, message)
    }

    /// Creates an error for a wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::of(Kind::Usage, message)
    }

    /// Creates an error for a gateway that cannot be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::of(Kind::Unreachable, message)
    }

    /// Tests if the gateway could not be reached.
    pub fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// Creates an error for a question that the user answered with no.
    pub fn declined(message: impl Into<String>) -> Self {
        Self::of(Kind::Declined, message)
    }

    /// Tests if the user declined.
    pub(crate) fn is_declined(&self) -> bool {
        self.kind == Kind::Declined
    }

    /// Creates an error that prints nothing, because the output already says that the command failed.
    pub fn reported() -> Self {
        Self::of(Kind::AlreadyReported, "")
    }

    /// Converts an error with its chain of causes, and its hint.
    pub fn from_error(error: &(dyn error::Error + 'static), hint: Option<Cow<'_, str>>) -> Self {
        let mut failure = Self::new(error.to_string());
        failure.hint = hint.map(Cow::into_owned);
        failure.add_causes(error.source());
        failure
    }

    fn add_causes(&mut self, mut below: Option<&(dyn error::Error + 'static)>) {
        while let Some(source) = below {
            let text = source.to_string();
            // Some errors repeat their cause.
            if !self.message.ends_with(&text) {
                self.message = format!("{}: {text}", self.message);
            }
            below = source.source();
        }
    }

    /// Turns the error into one of usage.
    pub(crate) fn wrong_usage(mut self) -> Self {
        self.kind = Kind::Usage;
        self
    }

    /// Adds a hint, unless the error has one.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The message: what failed, and why.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The hint, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message followed by the hint, for a log.
    pub fn line(&self) -> String {
        with_hint(&self.message, self.hint.as_deref())
    }

    /// Returns `true` if nothing is printed for this error.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::AlreadyReported | Kind::ReaderLeft)
    }

    /// The exit code of the program.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::ReaderLeft => 0,
            Kind::Failed | Kind::Declined | Kind::AlreadyReported => 1,
            Kind::Usage => 2,
            Kind::Unreachable => 3,
        })
    }

    fn of(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Adds the operation that failed to an error that has only the cause.
pub trait Context<T> {
    /// Returns an error with the message `what` and this error as its cause.
    fn context(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T, E: error::Error + 'static> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| {
            let mut failure = Error::new(what);
            failure.add_causes(Some(&error));
            failure
        })
    }
}

impl From<switchboard_config::HomeError> for Error {
    fn from(error: switchboard_config::HomeError) -> Self {
        Self::from_error(&error, error.hint())
    }
}

impl From<switchboard_store::StoreError> for Error {
    fn from(error: switchboard_store::StoreError) -> Self {
        Self::from_error(&error, error.hint())
    }
}

impl From<switchboard_config::ConfigError> for Error {
    fn from(error: switchboard_config::ConfigError) -> Self {
        Self::from_error(&error, error.hint())
            .hint("fix the file; `switchboard schema` prints the allowed keys")
    }
}

impl From<switchboard_config::EditError> for Error {
    fn from(error: switchboard_config::EditError) -> Self {
        let failure = Self::from_error(&error, error.hint());
        match error {
            switchboard_config::EditError::Name(_)
            | switchboard_config::EditError::Entry { .. } => failure.wrong_usage(),
            _ => failure,
        }
    }
}

impl From<switchboard_client_configs::Error> for Error {
    fn from(error: switchboard_client_configs::Error) -> Self {
        let failure = Self::from_error(&error, error.hint());
        match error.kind() {
            switchboard_client_configs::ErrorKind::Usage => failure.wrong_usage(),
            _ => failure,
        }
    }
}

/// An error of writing to standard output.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::of(Kind::ReaderLeft, ""),
            _ => Self::new(format!("cannot write to standard output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolon_does_not_split_the_message() {
        let error = switchboard_config::ConfigError::Read {
            path: "a; b.json".into(),
            source: io::Error::other("no; luck"),
        };
        let failure = Error::from_error(&error, error.hint());
        assert_eq!(failure.message(), "cannot read a; b.json: no; luck");
        assert_eq!(
            failure.advice(),
            Some("check that it is a file and that you can read it")
        );
    }

    #[test]
    fn context_precedes_the_cause() {
        let failed = Err::<(), _>(io::Error::other("no room"));
        let failure = failed.context("cannot write b").unwrap_err();
        assert_eq!(failure.message(), "cannot write b: no room");
        assert_eq!(failure.advice(), None);
    }
}
