//! How a command ends when it does not end well: what to say, what to do next, and the exit code.

use std::{error::Error, fmt, io, process::ExitCode};

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The thing asked for failed.
    Failed,
    /// It was asked for in a way that makes no sense.
    Usage,
    /// No gateway answers.
    Unreachable,
    /// Everything has been said already.
    Told,
    /// The reader has left, as `head` does; that is no failure.
    ReaderLeft,
}

impl Failure {
    /// The thing asked for failed.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::of(Kind::Failed, message)
    }

    /// It was asked for wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::of(Kind::Usage, message)
    }

    /// The gateway cannot be reached.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::of(Kind::Unreachable, message)
    }

    /// It failed, and what was printed says so.
    pub(crate) fn told() -> Self {
        Self::of(Kind::Told, "")
    }

    /// What an error says, and everything below it. Our errors have what to do behind a semicolon,
    /// which becomes the hint.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let text = error.to_string();
        let one_line = !text.contains('\n');
        let (message, hint) = match text.split_once("; ") {
            Some((message, hint)) if one_line => (message.to_owned(), Some(hint.to_owned())),
            _ => (text, None),
        };
        let mut failure = Self::new(message);
        failure.hint = hint;
        let mut below = error.source();
        while let Some(source) = below {
            let text = source.to_string();
            // Some errors repeat what is below them.
            if !failure.message.ends_with(&text) {
                failure.message = format!("{}: {text}", failure.message);
            }
            below = source.source();
        }
        failure
    }

    /// The same, as wrong usage.
    pub(crate) fn wrong_usage(mut self) -> Self {
        self.kind = Kind::Usage;
        self
    }

    /// What to do next, unless that has been said.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether there is something to say.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::Told | Kind::ReaderLeft)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::ReaderLeft => 0,
            Kind::Failed | Kind::Told => 1,
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::from_error(error.as_ref())
    }
}

impl From<switchboard_config::HomeError> for Failure {
    fn from(error: switchboard_config::HomeError) -> Self {
        Self::from_error(&error)
    }
}

impl From<switchboard_config::ConfigError> for Failure {
    fn from(error: switchboard_config::ConfigError) -> Self {
        Self::from_error(&error)
            .hint("mend the file; `switchboard schema` prints what may stand in it")
    }
}

impl From<switchboard_config::EditError> for Failure {
    fn from(error: switchboard_config::EditError) -> Self {
        let failure = Self::from_error(&error);
        match error {
            switchboard_config::EditError::Name(_)
            | switchboard_config::EditError::Entry { .. } => failure.wrong_usage(),
            _ => failure,
        }
    }
}

impl From<switchboard_clients::Error> for Failure {
    fn from(error: switchboard_clients::Error) -> Self {
        let failure = Self::from_error(&error);
        match error.kind() {
            switchboard_clients::ErrorKind::Usage => failure.wrong_usage(),
            _ => failure,
        }
    }
}

/// What went wrong when writing to standard output.
impl From<io::Error> for Failure {
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
    fn what_to_do_is_taken_out_of_the_message() {
        let error = io::Error::other("cannot read a.json; check that it is a file");
        let failure = Failure::from_error(&error);
        assert_eq!(failure.message(), "cannot read a.json");
        assert_eq!(failure.advice(), Some("check that it is a file"));
        let lines = io::Error::other("a:1:1: wrong; mend it\na:2:1: wrong; mend it");
        assert_eq!(Failure::from_error(&lines).advice(), None);
    }

    #[test]
    fn what_is_below_is_told_once() {
        let error = anyhow::Error::new(io::Error::other("no room"))
            .context("cannot write b; free some space")
            .context("cannot add a server");
        let failure = Failure::from(error);
        assert_eq!(
            failure.message(),
            "cannot add a server: cannot write b; free some space: no room"
        );
    }
}
